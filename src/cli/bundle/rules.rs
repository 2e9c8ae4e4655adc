//! What each code stands for, in one line.

const RULES: [(&str, &str); 46] = [
    ("ambiguous-model", "A model name that several providers list"),
    ("duplicate-entry", "A list entry that stands there twice"),
    ("duplicate-key", "A key that occurs twice in one mapping"),
    ("duplicate-name", "A name that is given twice"),
    ("encoding", "A file that is not UTF-8"),
    ("host-not-allowed", "A host outside the manifest's network_allowlist"),
    ("invalid-branch", "Text that git does not take in a branch name"),
    ("invalid-duration", "Text that is not a length of time"),
    ("invalid-host", "Text that is not a host that a task may reach"),
    ("invalid-name", "A name with characters that names may not have"),
    ("invalid-repo", "A repository that no task can work in"),
    ("invalid-schedule", "Text that is not a schedule, or one that is never due"),
    ("invalid-schema", "A value that is no JSON Schema"),
    ("invalid-value", "A value out of its range or not in its form"),
    ("merge-key", "A YAML merge key"),
    ("missing-file", "A file that is needed and not there"),
    ("missing-key", "A key that is needed and not there"),
    ("missing-repo", "A path at which no repository is; only the tasks that need it fail"),
    ("no-completion", "A task without a completion check"),
    ("not-a-file", "Something else in the place of a file"),
    ("path-outside", "A path that leads out of the workspace"),
    ("sealed-runtime", "A network where the runtime cannot have one"),
    ("secret-in-bundle", "Text in the form of a secret"),
    ("stray-file", "A file that is never read"),
    ("template", "A prompt that cannot be rendered"),
    ("tool-not-offered", "A required tool that the task is not offered"),
    ("too-large", "A file with more in it than is read"),
    ("too-many-problems", "A file with more problems than are listed"),
    ("undefined-variable", "A prompt variable that does not exist"),
    ("unknown-channel", "A channel that is not declared"),
    ("unknown-key", "A key that nobody knows"),
    ("unknown-model", "A model that no provider lists"),
    ("unknown-outcome", "A word that is not an outcome class"),
    ("unknown-persona", "A persona that has no file"),
    ("unknown-provider", "A provider that is not declared"),
    ("unknown-timezone", "A time zone that does not exist"),
    ("unknown-tool", "A tool that does not exist"),
    ("unlimited", "A ceiling that is switched off"),
    ("unreadable", "A file that cannot be read"),
    ("unsupported-runtime", "An OCI runtime that is not supported"),
    ("unused-script", "A recorded session without its task"),
    ("useless-entry", "An entry of a list that another list makes void"),
    ("useless-key", "A key that has no effect here"),
    ("wrong-type", "A value of the wrong type"),
    ("yaml-syntax", "Text that is not YAML"),
    ("yaml-tag", "A YAML tag"),
];

/// The code in words.
pub(super) fn describe(code: &str) -> &str {
    RULES.iter().find(|(known, _)| *known == code).map_or(code, |(_, text)| text)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use regex::Regex;

    use super::RULES;

    fn collect(dir: &Path, codes: &mut BTreeSet<String>) {
        let given = Regex::new(r#"(?:Finding::(?:error|warning)\(|code:)\s*"([a-z-]+)""#);
        let given = given.expect("the pattern is a regex");
        for entry in std::fs::read_dir(dir).expect("readable") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                collect(&path, codes);
            } else {
                let text = std::fs::read_to_string(&path).expect("text");
                codes.extend(given.captures_iter(&text).map(|found| found[1].to_owned()));
            }
        }
    }

    #[test]
    fn every_code_is_described() {
        let mut codes = BTreeSet::new();
        collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/bundle"), &mut codes);
        let described: BTreeSet<String> =
            RULES.iter().map(|(code, _)| (*code).to_owned()).collect();
        assert_eq!(codes, described);
    }
}
