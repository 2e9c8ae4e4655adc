//! Prompts as a run sees them.

use fleet::bundle::{PreviousRun, PromptVars, Task, render_prompt};
use fleet::run::RunId;
use std::sync::Arc;

use super::{SCRIPT, lines, load_files};

const PROMPT: &str = "prompt: |
  {{ task.name }} {{ run.id }} {{ run.due }} {{ run.attempt }} {{ date }}
  {% if previous.answer %}{{ previous.answer }} ({{ previous.outcome }}){% else %}first{% endif %}
  <b> {% raw %}{{ kept }}{% endraw %}
timezone: Pacific/Auckland
";

fn task() -> Arc<Task> {
    let files: [(&str, &[u8]); 2] =
        [("tasks/t.yaml", PROMPT.as_bytes()), ("scripted/t.yaml", SCRIPT.as_bytes())];
    let loaded = load_files(&files);
    assert_eq!(lines(&loaded.problems), [""; 0]);
    let bundle = loaded.bundle.expect("a bundle");
    Arc::clone(bundle.tasks.values().next().expect("a task"))
}

fn vars(previous: Option<PreviousRun>) -> PromptVars {
    PromptVars {
        run_id: RunId::new("0123456789abcdef"),
        due: "2026-12-01T20:00:00Z".parse().expect("an instant"),
        attempt: 2,
        now: "2026-12-01T20:00:05Z".parse().expect("an instant"),
        previous,
    }
}

#[test]
fn dates_are_the_zones_and_a_first_run_has_no_previous() {
    assert_eq!(
        render_prompt(&task(), &vars(None)).expect("rendered"),
        "t 0123456789abcdef 2026-12-02T09:00:00+13:00 2 2026-12-02\nfirst\n<b> {{ kept }}"
    );
}

#[test]
fn the_previous_answer_is_text_and_not_a_template() {
    let previous = PreviousRun { answer: "{{ run.id }}".into(), outcome: "success".into() };
    assert_eq!(
        render_prompt(&task(), &vars(Some(previous))).expect("rendered"),
        "t 0123456789abcdef 2026-12-02T09:00:00+13:00 2 2026-12-02\n{{ run.id }} (success)\n\
         <b> {{ kept }}"
    );
}
