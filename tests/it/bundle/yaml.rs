//! How YAML is read: what a file may hold, and in which words the rest is refused.

use std::time::{Duration, Instant};

use super::{SCRIPT, check_task, hints};

fn hint(task: &str) -> Option<String> {
    hints(&[("tasks/t.yaml", task), ("scripted/t.yaml", SCRIPT)]).into_iter().next().flatten()
}

#[test]
fn yamls_own_tags_are_refused_like_others() {
    assert_eq!(
        check_task("prompt: !!str 5\ntags: !!seq [a!, ! b]\n"),
        [
            "tasks/t.yaml:1:15 yaml-tag: the tag \"!!str\" is not part of a bundle",
            "tasks/t.yaml:2:13 yaml-tag: the tag \"!!seq\" is not part of a bundle",
            "tasks/t.yaml:2:20 yaml-tag: the tag \"!\" is not part of a bundle",
        ]
    );
    assert_eq!(check_task("prompt: Well done!\n"), [""; 0]);
}

#[test]
fn refusals_use_the_words_of_the_documentation() {
    let seen = |task: &str| {
        let line = check_task(task).into_iter().next().unwrap_or_default();
        (
            line.split_once(": ").map(|(_, message)| message.to_owned()).unwrap_or_default(),
            hint(task),
        )
    };
    let words = |message: &str, hint: &str| (message.to_owned(), Some(hint.to_owned()));
    assert_eq!(
        seen("prompt: x\n? [a]\n: b\n"),
        words(
            "a key is a list or a mapping, and keys are text",
            "put the key, or the value that was meant, in quotes"
        )
    );
    assert_eq!(
        seen("prompt: x\n~: y\n"),
        words("a key is empty", "write the key before its colon")
    );
    assert_eq!(
        seen("prompt: x\ntags: &a [b, *a]\n"),
        words(
            "an alias stands inside the value that it repeats",
            "an alias may only repeat a value that ended before it: write this one out"
        )
    );
    let split = "split it, or remove what is not needed";
    let deep = format!("prompt: {}{}\n", "[".repeat(70), "]".repeat(70));
    assert_eq!(seen(&deep), words("the file has more than 64 levels of nesting", split));
    let aliases = format!("prompt: &a x\ntags: [{}]\n", "*a, ".repeat(101));
    assert_eq!(seen(&aliases), words("the file has more than 100 aliases", split));
    assert_eq!(
        seen("prompt: x\nmax_retries: 1.0\n"),
        words(
            "max_retries: the number 1.0 is not a whole number, 0 or more",
            "write 1, without a fraction"
        )
    );
    assert_eq!(
        seen("prompt: x\nmax_retries: 9999999999\n"),
        words(
            "max_retries: the number 9999999999 is not a whole number up to 4294967295",
            "write a whole number up to 4294967295"
        )
    );
}

#[test]
fn big_files_are_refused_without_a_search_for_places() {
    let many: String = (0..60_000).map(|number| format!("k{number}: 1\n")).collect();
    let same = "prompt: 1\n".repeat(20_000);
    let began = Instant::now();
    assert_eq!(
        check_task(&many)
            .iter()
            .map(|line| line.split_once(' ').unwrap_or_default().1)
            .collect::<Vec<_>>(),
        ["too-large: the file has more than 50000 keys and values"]
    );
    let repeated = check_task(&same);
    assert_eq!(repeated.len(), 201, "as many as are listed, and a last word");
    assert!(repeated.iter().any(|line| line.contains("too-many-problems")));
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
}
