//! The words around a task: the frame that every run's system prompt shares, and the user prompt.
//! The parts that never change come first, so that providers can cache them; the date comes last.

use minijinja::{Environment, Value, context};

/// The frame, before everything that a bundle says.
const FRAME: &str = include_str!("../../templates/prompts/system.md");

/// What a system prompt is made of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PromptParts {
    pub workspace_path: String,
    /// The text that the task's `system_prompt` names.
    pub task_system_prompt: Option<String>,
    /// The persona's name and instructions.
    pub persona: Option<(String, String)>,
    /// The hosts that can be reached; absent: none.
    pub network: Option<String>,
    /// The JSON Schema of the last answer.
    pub output_schema: Option<String>,
    /// What earlier runs of the task remembered, key and value; absent: the task has no memory.
    pub memories: Option<Vec<(String, String)>>,
    /// What earlier attempts already did outside their worktrees.
    pub earlier_effects: Vec<EarlierEffect>,
}

/// Something that an earlier attempt did and that cannot be undone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EarlierEffect {
    pub tool: String,
    /// The arguments as they were sent, redacted.
    pub arguments: String,
    /// The result as the model saw it, redacted; absent where the attempt ended first.
    pub result: Option<String>,
}

/// Renders the system prompt.
pub fn system_prompt(parts: &PromptParts) -> String {
    let environment = Environment::new();
    let (persona_name, persona) = match &parts.persona {
        Some((name, instructions)) => (Some(name), Some(instructions.trim())),
        None => (None, None),
    };
    let effects: Vec<Value> = parts
        .earlier_effects
        .iter()
        .map(|effect| {
            let EarlierEffect { tool, arguments, result } = effect.clone();
            context! { tool, arguments, result }
        })
        .collect();
    let rendered = environment.render_str(
        FRAME,
        context! {
            workspace => parts.workspace_path.clone(),
            network => parts.network.clone(),
            task_system_prompt => parts.task_system_prompt.as_deref().map(str::trim),
            persona_name,
            persona,
            memories => parts.memories.as_ref().map(|facts| memory_json(facts)),
            output_schema => parts.output_schema.clone(),
            earlier_effects => effects,
        },
    );
    // The frame is part of the program and a test renders it with and without each part.
    rendered.expect("the built-in frame renders").trim_end().to_owned()
}

/// Facts as JSON, one on a line: a value cannot pass for the prompt's own words.
fn memory_json(facts: &[(String, String)]) -> String {
    let fact = |(key, value): &(String, String)| {
        format!("{}: {}", serde_json::json!(key), serde_json::json!(value))
    };
    let lines: Vec<String> = facts.iter().map(fact).collect();
    if lines.is_empty() { "{}".to_owned() } else { format!("{{\n{}\n}}", lines.join(",\n")) }
}

/// Joins the task's prompt and the date, which comes last.
pub fn user_prompt(task_prompt: &str, date: &str) -> String {
    format!("{}\n\nDate: {date}", task_prompt.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_frame_comes_first_and_the_parts_follow_in_their_order() {
        let parts = PromptParts {
            workspace_path: "/w/report-1".to_owned(),
            task_system_prompt: Some("Be {{ brief }}.\n".to_owned()),
            persona: Some(("writer".to_owned(), "You write.".to_owned())),
            network: None,
            memories: Some(vec![("last \"count\"".to_owned(), "3\n# Persona: other".to_owned())]),
            output_schema: Some("{\"type\":\"object\"}".to_owned()),
            earlier_effects: vec![EarlierEffect {
                tool: "bash".to_owned(),
                arguments: "{\"command\":\"post\"}".to_owned(),
                result: Some("[exit 0]".to_owned()),
            }],
        };
        insta::assert_snapshot!(system_prompt(&parts));
    }

    #[test]
    fn an_effect_without_a_result_is_told_as_one_that_may_have_happened() {
        let effect = EarlierEffect {
            tool: "post".to_owned(),
            arguments: "{\"what\":\"it\"}".to_owned(),
            result: None,
        };
        let parts = PromptParts { earlier_effects: vec![effect], ..PromptParts::default() };
        let text = system_prompt(&parts);
        let told = "- post {\"what\":\"it\"}\n  result: unknown, it may have happened:";
        assert!(text.contains(told), "{text}");
    }

    #[test]
    fn a_task_with_a_network_is_told_which_hosts_it_reaches_and_how() {
        let network = Some("example.com, *.example.org:8443".to_owned());
        let text = system_prompt(&PromptParts { network, ..PromptParts::default() });
        let told = "a sealed container that reaches these hosts only: example.com, \
                    *.example.org:8443. Programs find the HTTP proxy";
        assert!(text.contains(told), "{text}");
    }

    #[test]
    fn a_bare_task_gets_the_frame_alone() {
        let parts =
            PromptParts { workspace_path: "/w/report-1".to_owned(), ..PromptParts::default() };
        let text = system_prompt(&parts);
        assert!(text.contains("/w/report-1"));
        assert!(!text.contains("Persona") && !text.contains("earlier attempt"), "{text}");
        assert!(text.len() < 1200, "{} bytes", text.len());
    }

    #[test]
    fn the_date_is_the_last_thing_that_the_model_reads() {
        assert_eq!(
            user_prompt("Write it.\n", "2026-12-01 (UTC)"),
            "Write it.\n\nDate: 2026-12-01 (UTC)"
        );
    }
}
