//! Refuses a call that was made too often without anything changing in between.

use std::collections::HashMap;

use serde_json::Value;

use crate::run::NativeTool;

/// How many identical calls run.
pub(super) const MAX_IDENTICAL: u32 = 3;

/// Counts identical calls. The counts are forgotten when another call that may change something runs:
/// to test again after an edit is work, not repetition.
#[derive(Debug, Default)]
pub(super) struct RepeatGuard {
    counts: HashMap<(NativeTool, String), u32>,
}

/// Whether a call may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Run,
    Refuse,
}

impl RepeatGuard {
    /// Counts a call, and refuses it when it was made [`MAX_IDENTICAL`] times already.
    pub(super) fn admit(
        &mut self,
        tool: NativeTool,
        arguments: &Value,
        read_only: bool,
    ) -> Verdict {
        let key = (tool, canonical(arguments));
        if !read_only {
            self.counts.retain(|known, _| *known == key);
        }
        let count = self.counts.entry(key).or_default();
        if *count >= MAX_IDENTICAL {
            return Verdict::Refuse;
        }
        *count += 1;
        Verdict::Run
    }
}

/// The same text for equal values, whatever the order of members.
fn canonical(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let mut sorted: Vec<_> = members.iter().collect();
            sorted.sort_by_key(|(name, _)| name.as_str());
            let parts: Vec<_> = sorted
                .into_iter()
                .map(|(name, value)| format!("{name:?}:{}", canonical(value)))
                .collect();
            format!("{{{}}}", parts.join(","))
        }
        Value::Array(items) => {
            format!("[{}]", items.iter().map(canonical).collect::<Vec<_>>().join(","))
        }
        plain => plain.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_fourth_identical_call_is_refused_whatever_the_order_of_its_arguments() {
        let mut guard = RepeatGuard::default();
        let (one, other) = (json!({"a": 1, "b": 2}), json!({"b": 2, "a": 1}));
        for arguments in [&one, &other, &one] {
            assert_eq!(guard.admit(NativeTool::Bash, arguments, false), Verdict::Run);
        }
        assert_eq!(guard.admit(NativeTool::Bash, &other, false), Verdict::Refuse);
    }

    #[test]
    fn a_change_in_between_makes_a_repetition_work_again() {
        let mut guard = RepeatGuard::default();
        let (test, edit) = (json!({"command": "make test"}), json!({"path": "a"}));
        for _ in 0..6 {
            assert_eq!(guard.admit(NativeTool::Bash, &test, false), Verdict::Run);
            assert_eq!(guard.admit(NativeTool::EditFile, &edit, false), Verdict::Run);
        }
    }

    #[test]
    fn looking_at_something_else_in_between_does_not() {
        let mut guard = RepeatGuard::default();
        let (one, other) = (json!({"path": "a"}), json!({"path": "b"}));
        for _ in 0..3 {
            assert_eq!(guard.admit(NativeTool::ViewFile, &one, true), Verdict::Run);
            assert_eq!(guard.admit(NativeTool::ViewFile, &other, true), Verdict::Run);
        }
        assert_eq!(guard.admit(NativeTool::ViewFile, &one, true), Verdict::Refuse);
    }
}
