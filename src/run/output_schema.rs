//! The form of a run's result: a JSON Schema that the model's last answer must be valid by.

use std::sync::Arc;

use jsonschema::Validator;
use serde_json::Value;

/// The most that a schema may take as JSON, in bytes: it goes into every prompt of the task.
pub const MAX_SCHEMA_BYTES: usize = 32 * 1024;
/// Violations that a model is told of at once.
const SHOWN: usize = 5;
/// Characters of one violation.
const SHOWN_CHARS: usize = 300;

/// A schema that can be asked.
#[derive(Clone, Debug)]
pub struct OutputSchema {
    text: Arc<str>,
    validator: Arc<Validator>,
}

/// Why a value is no schema, and where in it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SchemaError {
    /// Keys and indices from the schema's root.
    pub path: Vec<String>,
    pub message: String,
}

impl OutputSchema {
    /// Reads a schema. References lead nowhere but into the schema itself.
    pub fn new(schema: &Value) -> Result<Self, SchemaError> {
        let text = schema.to_string();
        if text.len() > MAX_SCHEMA_BYTES {
            let message = format!("it has {} bytes, more than {MAX_SCHEMA_BYTES}", text.len());
            return Err(SchemaError { path: Vec::new(), message });
        }
        let validator = jsonschema::validator_for(schema).map_err(|error| SchemaError {
            path: steps(&error.instance_path().to_string()),
            message: shortened(&error.to_string()),
        })?;
        Ok(OutputSchema { text: text.into(), validator: Arc::new(validator) })
    }

    /// The schema as JSON.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The value of an answer, or what is wrong with it, for the model. An answer is one JSON value and
    /// nothing else; a code fence around it is left out.
    pub fn check(&self, answer: &str) -> Result<Value, String> {
        let value: Value = serde_json::from_str(unfenced(answer))
            .map_err(|error| format!("it is not one JSON value: {error}"))?;
        let violations: Vec<String> = self
            .validator
            .iter_errors(&value)
            .map(|error| {
                let path = error.instance_path().to_string();
                let place = if path.is_empty() { "the value" } else { &path };
                shortened(&format!("{place}: {error}"))
            })
            .collect();
        if violations.is_empty() {
            return Ok(value);
        }
        let more = violations.len().saturating_sub(SHOWN);
        let shown = violations.iter().take(SHOWN).cloned().collect::<Vec<_>>().join("; ");
        Err(if more > 0 { format!("{shown}; and {more} more") } else { shown })
    }
}

/// The steps of a JSON pointer.
fn steps(pointer: &str) -> Vec<String> {
    pointer.split('/').skip(1).map(|step| step.replace("~1", "/").replace("~0", "~")).collect()
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// What stands between the fences, where the whole answer is one fenced block.
fn unfenced(answer: &str) -> &str {
    let answer = answer.trim();
    let inner = answer.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    match inner.and_then(|inner| inner.split_once('\n')) {
        Some((language, body)) if matches!(language.trim(), "" | "json") => body.trim(),
        _ => answer,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> OutputSchema {
        let schema = json!({
            "type": "object",
            "properties": {"rows": {"type": "integer", "minimum": 0}, "note": {"type": "string"}},
            "required": ["rows"],
            "additionalProperties": false,
        });
        OutputSchema::new(&schema).expect("a schema")
    }

    #[test]
    fn an_answer_is_one_value_and_nothing_around_it() {
        assert_eq!(schema().check(" {\"rows\": 3}\n"), Ok(json!({"rows": 3})));
        assert_eq!(schema().check("```json\n{\"rows\": 3}\n```"), Ok(json!({"rows": 3})));
        for answer in ["", "Here: {\"rows\": 3}", "{\"rows\": 3} {\"rows\": 4}", "```sh\n{}\n```"] {
            let error = schema().check(answer).expect_err("refused");
            assert!(error.starts_with("it is not one JSON value: "), "{answer:?}: {error}");
        }
    }

    #[test]
    fn violations_are_told_with_their_place_and_bounded() {
        let error = schema().check(r#"{"rows": -1, "nots": "x"}"#).expect_err("refused");
        assert!(error.contains("/rows: ") && error.contains("'nots'"), "{error}");
        let long = json!({"rows": "x".repeat(1000)}).to_string();
        let error = schema().check(&long).expect_err("refused");
        assert!(error.len() < 1000, "{} bytes", error.len());
        let many = OutputSchema::new(&json!({"items": {"type": "string"}})).expect("a schema");
        let error = many.check("[1,2,3,4,5,6,7]").expect_err("refused");
        assert!(error.ends_with("; and 2 more"), "{error}");
    }

    #[test]
    fn what_is_no_schema_is_told_with_its_place() {
        let error = OutputSchema::new(&json!({"properties": {"rows": {"type": "integr"}}}));
        let error = error.expect_err("refused");
        assert_eq!(error.path, ["properties", "rows", "type"], "{error}");
        let remote = json!({"$ref": "https://example.org/schema.json"});
        assert!(OutputSchema::new(&remote).is_err(), "nothing is fetched");
        let file = json!({"$ref": "file:///etc/passwd"});
        assert!(OutputSchema::new(&file).is_err(), "nothing is read");
        let big = json!({"description": "x".repeat(MAX_SCHEMA_BYTES)});
        assert!(OutputSchema::new(&big).expect_err("refused").message.contains("more than"));
    }
}
