//! How the tools are described to the model. The text and its order never change within a run, so
//! that providers can cache it.

use serde_json::{Value, json};

use crate::run::NativeTool;

/// A tool as it is offered.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolDescription {
    pub name: &'static str,
    pub description: &'static str,
    /// JSON Schema of the arguments.
    pub parameters: Value,
}

/// The descriptions of a roster, in its order.
pub fn describe(roster: &[NativeTool]) -> Vec<ToolDescription> {
    roster
        .iter()
        .map(|tool| ToolDescription {
            name: tool.as_str(),
            description: description(*tool),
            parameters: parameters(*tool),
        })
        .collect()
}

fn description(tool: NativeTool) -> &'static str {
    match tool {
        NativeTool::Bash => {
            "Run a bash command in the workspace. Each call is a new shell. Returns output and exit \
             code."
        }
        NativeTool::RunPython => {
            "Run Python in one interpreter that keeps its state between calls. Returns output and \
             the last expression's value; figures are saved under figures/."
        }
        NativeTool::ViewFile => "Read a file of the workspace, and its sha256.",
        NativeTool::WriteFile => "Create or replace a file of the workspace.",
        NativeTool::EditFile => {
            "Replace text in a file. `old` must match exactly and occur once unless replace_all."
        }
        NativeTool::TaskTracker => {
            "Keep the plan. set replaces all items, update changes or adds the given ones, view \
             shows them. The run can only finish when no item is pending or in_progress."
        }
        NativeTool::PublishArtifact => {
            "Publish a file of the workspace as a result of the run. Publishing a path again \
             updates it."
        }
        NativeTool::ConfirmAudit => {
            "Say that the work is done and what you checked, or abort: the run then ends as failed."
        }
        NativeTool::Remember => "Keep a fact for later runs of this task.",
        NativeTool::Recall => "Read one fact that was kept, or all of them.",
        NativeTool::WebFetch => {
            "Read a document of an allowed host by GET. Redirects are followed. Returns its text."
        }
        #[cfg(feature = "fault-injection")]
        NativeTool::StubEffect => "Make something happen outside the workspace.",
    }
}

fn parameters(tool: NativeTool) -> Value {
    let (properties, required): (Value, &[&str]) = match tool {
        NativeTool::Bash => {
            (json!({"command": {"type": "string"}, "timeout_seconds": seconds()}), &["command"])
        }
        NativeTool::RunPython => (
            json!({
                "code": {"type": "string"},
                "timeout_seconds": seconds(),
                "reset_kernel": {"type": "boolean", "description": "Start a fresh interpreter."},
                "return_vars": {
                    "type": "array",
                    "items": {"type": "string"},
                    "description": "Variables whose values to return."
                }
            }),
            &["code"],
        ),
        NativeTool::ViewFile => (
            json!({
                "path": {"type": "string"},
                "offset": {"type": "integer", "minimum": 0, "description": "First byte."},
                "limit": {"type": "integer", "minimum": 1, "description": "Bytes, at most 131072."}
            }),
            &["path"],
        ),
        NativeTool::WriteFile => (
            json!({"path": {"type": "string"}, "content": {"type": "string"}}),
            &["path", "content"],
        ),
        NativeTool::EditFile => (
            json!({
                "path": {"type": "string"},
                "old": {"type": "string"},
                "new": {"type": "string"},
                "replace_all": {"type": "boolean"},
                "expected_hash": {
                    "type": "string",
                    "description": "Refuse unless the file has this sha256."
                }
            }),
            &["path", "old", "new"],
        ),
        NativeTool::TaskTracker => (tracker_properties(), &["action"]),
        NativeTool::PublishArtifact => (
            json!({
                "path": {"type": "string"},
                "name": {"type": "string"},
                "description": {"type": "string"}
            }),
            &["path"],
        ),
        NativeTool::ConfirmAudit => (
            json!({
                "status": {"type": "string", "enum": ["done", "abort"]},
                "summary": {"type": "string", "description": "What was checked, or why it cannot be done."}
            }),
            &["status", "summary"],
        ),
        NativeTool::Remember => {
            (json!({"key": {"type": "string"}, "value": {"type": "string"}}), &["key", "value"])
        }
        NativeTool::Recall => (json!({"key": {"type": "string"}}), &[]),
        NativeTool::WebFetch => (json!({"url": {"type": "string"}}), &["url"]),
        #[cfg(feature = "fault-injection")]
        NativeTool::StubEffect => (json!({"what": {"type": "string"}}), &["what"]),
    };
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false
    })
}

fn seconds() -> Value {
    json!({"type": "integer", "minimum": 1})
}

fn tracker_properties() -> Value {
    json!({
        "action": {"type": "string", "enum": ["set", "update", "view"]},
        "items": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "id": {"type": "string"},
                    "title": {"type": "string"},
                    "status": {
                        "type": "string",
                        "enum": ["pending", "in_progress", "done", "cancelled"]
                    }
                },
                "required": ["id"],
                "additionalProperties": false
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::super::ToolCall;
    use super::*;

    /// A value that fits a property's schema.
    fn sample(schema: &Value) -> Value {
        if let Some(choice) = schema["enum"].as_array().and_then(|choices| choices.first()) {
            return choice.clone();
        }
        match schema["type"].as_str().expect("each property has a type") {
            "string" => json!("x"),
            "integer" => json!(1),
            "boolean" => json!(true),
            "array" => json!([sample(&schema["items"])]),
            "object" => sample_object(schema),
            other => panic!("no sample for {other}"),
        }
    }

    fn sample_object(schema: &Value) -> Value {
        let properties = schema["properties"].as_object().expect("an object has properties");
        properties.iter().map(|(name, property)| (name.clone(), sample(property))).collect()
    }

    #[test]
    fn what_the_schema_offers_is_what_the_parser_takes() {
        for tool in NativeTool::ALL {
            let schema = parameters(tool);
            let mut whole = sample_object(&schema);
            ToolCall::parse(tool, whole.clone()).expect("the whole sample is accepted");
            for name in schema["required"].as_array().expect("required is listed") {
                let name = name.as_str().expect("names are text");
                let mut without = whole.clone();
                without.as_object_mut().expect("sample is an object").remove(name);
                assert!(ToolCall::parse(tool, without).is_err(), "{tool:?} without {name}");
            }
            whole["surprise"] = json!(1);
            assert!(ToolCall::parse(tool, whole).is_err(), "{tool:?} takes unknown arguments");
        }
    }

    #[test]
    fn the_whole_roster_is_described_in_less_than_four_kilobytes() {
        let text: usize = describe(&NativeTool::ALL)
            .iter()
            .map(|tool| tool.description.len() + tool.parameters.to_string().len())
            .sum();
        assert!(text < 4096, "{text} bytes");
    }
}
