//! The seal report as a table: what was wanted, what was read back inside the container, and whether
//! it holds. A limit that is only best effort is told as such, never as a pass.

use serde::Serialize;
use serde_json::Value;

use super::frame::Frame;
use crate::run::SealLine;
use crate::status::Instance;

/// The page of the host's own report.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct SealPage {
    pub frame: Frame,
    pub best_effort: bool,
    pub seal: Option<SealView>,
}

impl SealPage {
    pub(crate) fn new(frame: Frame, instance: &Instance) -> Self {
        let limits = Limits::parse(Some(&instance.limits));
        let seal = instance.seal.as_ref().and_then(|report| view(report, limits));
        SealPage { frame, best_effort: limits == Limits::BestEffort, seal }
    }
}

/// A seal report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct SealView {
    pub lines: Vec<SealRow>,
    /// Lines that do not hold.
    pub weak: usize,
    /// Anything else that the report says: (name, value).
    pub facts: Vec<(String, String)>,
}

/// One property of the seal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct SealRow {
    pub property: String,
    pub wanted: String,
    pub seen: String,
    /// `holds`, `best effort` or `broken`.
    pub verdict: &'static str,
}

/// Whether limits are enforced or stood in for on the host of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limits {
    Enforced,
    BestEffort,
}

impl Limits {
    pub(crate) fn parse(text: Option<&str>) -> Self {
        if text == Some("best_effort") { Limits::BestEffort } else { Limits::Enforced }
    }
}

/// Reads a report: an array of lines, or an object that has one beside plain facts.
pub(crate) fn view(report: &Value, limits: Limits) -> Option<SealView> {
    let (lines, facts) = match report {
        Value::Array(_) => (parse(report)?, Vec::new()),
        Value::Object(map) => {
            let lines = map.values().find_map(parse)?;
            let fact =
                |(name, value): (&String, &Value)| Some((name.replace('_', " "), text(value)?));
            (lines, map.iter().filter_map(fact).collect())
        }
        _ => return None,
    };
    let rows: Vec<SealRow> = lines.into_iter().map(|line| row(line, limits)).collect();
    let weak = rows.iter().filter(|row| row.verdict != "holds").count();
    Some(SealView { lines: rows, weak, facts })
}

fn parse(value: &Value) -> Option<Vec<SealLine>> {
    value.as_array()?;
    serde_json::from_value(value.clone()).ok()
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

fn row(line: SealLine, limits: Limits) -> SealRow {
    let verdict = match (line.holds, limits) {
        (true, _) => "holds",
        (false, Limits::BestEffort) => "best effort",
        (false, Limits::Enforced) => "broken",
    };
    SealRow { property: line.property, wanted: line.wanted, seen: line.seen, verdict }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_limit_that_does_not_hold_is_never_told_as_a_pass() {
        let line = |property: &str, holds: bool| json!({"property": property, "wanted": "1", "seen": "max", "holds": holds});
        let report =
            json!({"runtime": "runc", "lines": [line("pids.max", false), line("cap_eff", true)]});
        let verdicts = |limits| {
            let seen = view(&report, limits).expect("a report");
            seen.lines.iter().map(|row| row.verdict).collect::<Vec<_>>()
        };
        assert_eq!(verdicts(Limits::BestEffort), ["best effort", "holds"]);
        assert_eq!(verdicts(Limits::Enforced), ["broken", "holds"]);
        let seen = view(&report, Limits::BestEffort).expect("a report");
        assert_eq!(seen.weak, 1);
        assert_eq!(seen.facts, [("runtime".to_owned(), "runc".to_owned())]);
        assert_eq!(view(&json!("nonsense"), Limits::Enforced), None);
    }
}
