//! The source tree keeps to its own rules: which module may use which, how long files get, what
//! modules are called, where SQL is.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::env::source_root;

/// Which module may use which: the table of `docs/architecture.md`. `cli` may use everything.
const ALLOWED: &[(&str, &[&str])] = &[
    ("clock", &[]),
    ("fault", &[]),
    ("schedule", &[]),
    ("secrets", &[]),
    ("tls", &[]),
    ("config", &[]),
    ("run", &[]),
    ("egress", &["run", "tls"]),
    ("bundle", &["schedule", "secrets", "run", "egress"]),
    ("store", &["run", "secrets", "fault"]),
    ("model", &["clock", "secrets", "tls"]),
    ("sandbox", &["config", "run", "egress"]),
    ("worktree", &["fault"]),
    ("tools", &["sandbox", "run", "secrets", "fault", "egress"]),
    ("agent", &["model", "tools", "sandbox", "run", "secrets", "clock", "fault", "egress"]),
    ("notify", &["run", "secrets", "bundle", "tls"]),
    (
        "runner",
        &[
            "clock", "schedule", "secrets", "config", "run", "bundle", "store", "model", "sandbox",
            "worktree", "tools", "agent", "notify", "fault", "egress",
        ],
    ),
    ("status", &["store", "run", "schedule", "bundle", "config", "clock"]),
];

/// Lines of a source file without its tests.
const MAX_LINES: usize = 600;
/// Lines of a `mod.rs` without its tests.
const MAX_MOD_LINES: usize = 150;
const BANNED_NAMES: [&str; 4] = ["util", "helpers", "common", "manager"];

/// One file under `src`: Rust, or Python of the program inside containers.
struct Source {
    /// Relative to `src`.
    path: PathBuf,
    text: String,
}

impl Source {
    /// The top-level module: `store` for `store/mod.rs` and for `store.rs`.
    fn module(&self) -> &str {
        let first = self.path.iter().next().and_then(|part| part.to_str()).unwrap_or_default();
        first.strip_suffix(".rs").unwrap_or(first)
    }

    /// The text before its unit tests.
    fn without_tests(&self) -> &str {
        self.text.split("\n#[cfg(test)]\nmod ").next().unwrap_or_default()
    }

    fn lines(&self) -> usize {
        self.without_tests().lines().count()
    }
}

fn sources() -> Vec<Source> {
    let src = source_root().join("src");
    let mut found = Vec::new();
    let mut open = vec![src.clone()];
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(&dir).expect("source directory") {
            let path = entry.expect("entry").path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|kind| kind == "rs" || kind == "py") {
                let text = std::fs::read_to_string(&path).expect("source is text");
                let path = path.strip_prefix(&src).expect("beneath src").to_owned();
                found.push(Source { path, text });
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    assert!(found.len() > 20, "the sources were not found: {}", src.display());
    found
}

/// The top-level modules that a text uses through `crate::`, comments left out.
fn uses(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let code: String = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .flat_map(|line| [line, "\n"])
        .collect();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        if let Some(group) = rest.strip_prefix('{') {
            group_names(group, &mut found);
        } else {
            found.extend(first_word(rest));
        }
    }
    found
}

/// The first words of a `{…}` list at its own level.
fn group_names(group: &str, found: &mut BTreeSet<String>) {
    let mut depth = 0;
    let mut item = String::new();
    for c in group.chars() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => found.extend(first_word(&std::mem::take(&mut item))),
            _ if depth == 0 => item.push(c),
            _ => {}
        }
    }
    found.extend(first_word(&item));
}

fn first_word(text: &str) -> Option<String> {
    let word: String =
        text.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    (!word.is_empty()).then_some(word)
}

#[test]
fn modules_use_only_what_the_table_allows() {
    let mut broken = Vec::new();
    for source in sources() {
        let module = source.module();
        if matches!(module, "lib" | "main" | "cli") {
            continue;
        }
        let allowed = ALLOWED.iter().find(|(name, _)| *name == module);
        let Some((_, allowed)) = allowed else {
            broken.push(format!("{}: module {module} is not in the table", source.path.display()));
            continue;
        };
        for used in uses(source.without_tests()) {
            if used != module && !allowed.contains(&used.as_str()) {
                broken.push(format!("{}: {module} may not use {used}", source.path.display()));
            }
        }
    }
    assert_eq!(broken, Vec::<String>::new());
}

#[test]
fn the_documented_table_is_the_one_that_is_checked() {
    let path = source_root().join("docs/architecture.md");
    let text = std::fs::read_to_string(path).expect("docs/architecture.md");
    for (module, allowed) in ALLOWED {
        let row = text.lines().find(|line| line.starts_with(&format!("| `{module}` |")));
        let row = row.unwrap_or_else(|| panic!("{module} has no row"));
        let documented = row.trim_end_matches('|').rsplit('|').next().expect("last column").trim();
        let expected = if allowed.is_empty() { "–".to_owned() } else { allowed.join(", ") };
        assert_eq!(documented, expected, "may use, of {module}");
    }
}

#[test]
fn source_files_stay_short() {
    let too_long: Vec<String> = sources()
        .iter()
        .filter(|source| {
            let is_mod = source.path.ends_with("mod.rs");
            source.lines() > if is_mod { MAX_MOD_LINES } else { MAX_LINES }
        })
        .map(|source| format!("{}: {} lines", source.path.display(), source.lines()))
        .collect();
    assert_eq!(too_long, Vec::<String>::new(), "split by subject");
}

#[test]
fn modules_are_named_after_their_subject() {
    let banned: Vec<PathBuf> = sources()
        .into_iter()
        .map(|source| source.path)
        .filter(|path| path.with_extension("").iter().any(|part| is_banned(Path::new(part))))
        .collect();
    assert_eq!(banned, Vec::<PathBuf>::new());
}

fn is_banned(part: &Path) -> bool {
    BANNED_NAMES.iter().any(|name| part == Path::new(name))
}

#[test]
fn every_module_says_what_it_owns() {
    let silent: Vec<PathBuf> = sources()
        .into_iter()
        .filter(|source| !["//!", "\"\"\""].iter().any(|head| source.text.starts_with(head)))
        .map(|source| source.path)
        .collect();
    assert_eq!(silent, Vec::<PathBuf>::new());
}

#[test]
fn sql_is_written_only_in_the_store() {
    let statements =
        ["SELECT ", "INSERT INTO ", "INSERT OR ", "DELETE FROM ", "CREATE TABLE ", "PRAGMA "];
    let outside: Vec<String> = sources()
        .iter()
        .filter(|source| source.module() != "store")
        .filter(|source| {
            statements.iter().any(|word| source.without_tests().contains(word))
                || source.without_tests().contains("rusqlite::")
        })
        .map(|source| source.path.display().to_string())
        .collect();
    assert_eq!(outside, Vec::<String>::new());
}

#[test]
fn time_zones_come_from_the_binary_and_not_from_the_system() {
    let outside: Vec<String> = sources()
        .iter()
        .filter(|source| source.module() != "schedule")
        .filter(|source| {
            let text = source.without_tests();
            ["TimeZone::get(", "TimeZone::system(", "in_tz("].iter().any(|word| text.contains(word))
        })
        .map(|source| source.path.display().to_string())
        .collect();
    assert_eq!(outside, Vec::<String>::new(), "schedule::zone has the schedules' rules");
}

#[test]
fn tests_that_pages_name_exist() {
    let tests = every_test();
    for name in ["security.md", "notices.md", "keeping.md", "what-happens-when.md"] {
        let missing: Vec<String> = tests_named(&page(name))
            .filter(|name| {
                let test = name.rsplit("::").next().unwrap_or_default();
                !tests.contains(&format!("fn {test}()"))
            })
            .map(str::to_owned)
            .collect();
        assert_eq!(missing, Vec::<String>::new(), "{name}");
    }
}

#[test]
fn what_happens_is_held_by_a_test_under_each_heading() {
    let page = page("what-happens-when.md");
    let paragraphs: Vec<&str> = page.split("\n## …").skip(1).collect();
    assert!(paragraphs.len() > 10, "the headings were not found");
    let bare: Vec<&str> = paragraphs
        .iter()
        .filter(|paragraph| tests_named(paragraph).next().is_none())
        .filter_map(|paragraph| paragraph.lines().next())
        .collect();
    assert_eq!(bare, Vec::<&str>::new());
}

fn page(name: &str) -> String {
    std::fs::read_to_string(source_root().join("docs").join(name)).expect(name)
}

/// The tests that a page names, as `module::test`.
fn tests_named(page: &str) -> impl Iterator<Item = &str> {
    page.split('`').skip(1).step_by(2).filter(|name| name.contains("::"))
}

/// The text of everything that holds tests.
pub fn every_test() -> String {
    let mut text = String::new();
    let mut open = vec![source_root().join("tests/it"), source_root().join("src")];
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(&dir).expect("test directory") {
            let path = entry.expect("entry").path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                text.push_str(&std::fs::read_to_string(&path).expect("source is text"));
            }
        }
    }
    text
}

#[test]
fn uses_are_found_in_every_form() {
    let text = "use crate::run::{RunId, TaskName};\nuse crate::{\n    store::{Store, views},\n    \
                clock,\n};\n// crate::secret is a comment\nlet x = crate::config::StateDir::new();\n";
    let expected = ["clock", "config", "run", "store"].map(str::to_owned);
    assert_eq!(uses(text), BTreeSet::from(expected));
}
