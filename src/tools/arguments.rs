//! Turns the text that a model wrote as arguments into checked values, and says precisely what is
//! wrong with it.

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::run::NativeTool;

/// Why a call's arguments were refused. The text is what the model sees.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArgumentError {
    #[error("the arguments are not valid JSON ({0}); send one JSON object")]
    Malformed(String),
    #[error("the arguments must be one JSON object, not {0}")]
    NotAnObject(&'static str),
    #[error("{tool}: argument {argument}: {message}")]
    Invalid { tool: &'static str, argument: String, message: String },
}

/// Parses the arguments' text into an object; nothing and `null` are an object without members.
pub fn parse_arguments(text: &str) -> Result<Value, ArgumentError> {
    if text.trim().is_empty() {
        return Ok(Value::Object(serde_json::Map::new()));
    }
    match serde_json::from_str(text) {
        Ok(Value::Null) => Ok(Value::Object(serde_json::Map::new())),
        Ok(object @ Value::Object(_)) => Ok(object),
        Ok(Value::Bool(_)) => Err(ArgumentError::NotAnObject("a boolean")),
        Ok(Value::Number(_)) => Err(ArgumentError::NotAnObject("a number")),
        Ok(Value::String(_)) => Err(ArgumentError::NotAnObject("a string")),
        Ok(Value::Array(_)) => Err(ArgumentError::NotAnObject("an array")),
        Err(error) => Err(ArgumentError::Malformed(error.to_string())),
    }
}

/// Decodes an object into a tool's arguments.
pub(super) fn decode<T: DeserializeOwned>(
    tool: NativeTool,
    arguments: Value,
) -> Result<T, ArgumentError> {
    serde_path_to_error::deserialize(arguments).map_err(|error| {
        let path = error.path().to_string();
        ArgumentError::Invalid {
            tool: tool.as_str(),
            argument: if path == "." { "list".to_owned() } else { path },
            message: error.into_inner().to_string(),
        }
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::ToolCall;
    use super::*;

    #[test]
    fn nothing_and_null_are_an_empty_object() {
        for text in ["", "  ", "null", "{}"] {
            assert_eq!(parse_arguments(text), Ok(json!({})), "{text:?}");
        }
    }

    #[test]
    fn malformed_text_and_other_kinds_are_refused() {
        assert!(matches!(parse_arguments("{\"path\":\"a"), Err(ArgumentError::Malformed(_))));
        assert_eq!(parse_arguments("[1]"), Err(ArgumentError::NotAnObject("an array")));
        assert_eq!(parse_arguments("\"ls\""), Err(ArgumentError::NotAnObject("a string")));
    }

    #[test]
    fn an_unknown_argument_is_named() {
        let error = ToolCall::parse(NativeTool::Bash, json!({"command": "ls", "cwd": "/"}))
            .expect_err("cwd is not an argument");
        assert_eq!(
            error.to_string(),
            "bash: argument cwd: unknown field `cwd`, expected `command` or `timeout_seconds`"
        );
    }

    #[test]
    fn a_missing_argument_is_named() {
        let error = ToolCall::parse(NativeTool::Bash, json!({})).expect_err("command is missing");
        assert_eq!(error.to_string(), "bash: argument list: missing field `command`");
    }
}
