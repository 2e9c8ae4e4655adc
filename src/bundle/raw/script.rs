//! `scripted/<task>.yaml`.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::DurationText;

/// A recorded session: what the scripted model says, turn by turn. The tools that it calls really run.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping")]
#[schemars(title = "scripted/<task>.yaml")]
#[schemars(rename = "Script")]
pub(crate) struct RawScript {
    /// The answers, in order.
    #[schemars(required, length(min = 1))]
    pub(crate) turns: Option<Vec<RawTurn>>,
    /// After the last turn go on from this one, counted from 0. Absent: end the session.
    pub(crate) loop_from: Option<usize>,
}

/// One answer of the model.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping")]
#[schemars(rename = "Turn")]
pub(crate) struct RawTurn {
    /// What it says.
    pub(crate) text: Option<String>,
    /// The tools that it calls.
    pub(crate) tool_calls: Option<Vec<RawToolCall>>,
    /// What the answer consumed. Default: no tokens and no cost.
    pub(crate) usage: Option<RawUsage>,
    /// How long it takes, such as 200ms. Default: no time.
    pub(crate) delay: Option<DurationText>,
    /// Why it stopped: `end_turn`, `tool_calls` or `length`. Absent: by whether there are calls.
    pub(crate) stop: Option<RawStop>,
    /// Fail in this way instead of answering.
    pub(crate) fault: Option<RawFault>,
}

/// A tool call.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping")]
#[schemars(rename = "ToolCall")]
pub(crate) struct RawToolCall {
    /// The tool's name.
    #[schemars(required)]
    pub(crate) name: Option<String>,
    /// A mapping is sent as JSON; text is sent as it is, even if it is malformed.
    #[schemars(schema_with = "arguments")]
    pub(crate) arguments: Option<Value>,
}

fn arguments(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": ["object", "string"] })
}

/// What an answer consumed.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping")]
#[schemars(rename = "Usage")]
pub(crate) struct RawUsage {
    /// Tokens of the request, cached ones included.
    #[schemars(range(max = 1_000_000_000_000_u64))]
    pub(crate) prompt_tokens: Option<u64>,
    /// Those of them that were read from a cache.
    #[schemars(range(max = 1_000_000_000_000_u64))]
    pub(crate) cached_tokens: Option<u64>,
    /// Tokens of the answer.
    #[schemars(range(max = 1_000_000_000_000_u64))]
    pub(crate) completion_tokens: Option<u64>,
    /// US dollars, as a provider that tells them would. Absent: by the price table.
    #[schemars(range(min = 0.0, max = 1_000_000.0))]
    pub(crate) cost_usd: Option<f64>,
}

/// Why an answer stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Stop")]
pub(crate) enum RawStop {
    EndTurn,
    ToolCalls,
    Length,
}

/// An HTTP-like fault.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping")]
#[schemars(rename = "Fault")]
pub(crate) struct RawFault {
    /// The HTTP status, 400 to 599.
    #[schemars(required, range(min = 400, max = 599))]
    pub(crate) status: Option<u16>,
    /// The error's text.
    pub(crate) message: Option<String>,
    /// What the server says about trying again, such as 2s.
    pub(crate) retry_after: Option<DurationText>,
    /// How many requests fail before the script goes on. Default 1.
    #[schemars(range(min = 1))]
    pub(crate) times: Option<u32>,
}
