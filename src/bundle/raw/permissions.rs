//! `tool_permissions` of a persona or a task.

use schemars::JsonSchema;
use serde::Deserialize;

/// Which tools may be used. They narrow what a run is offered, and never widen it.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping")]
#[schemars(rename = "ToolPermissions")]
pub(crate) struct RawToolPermissions {
    /// Only these: a tool's name, `mcp:server/tool`, `mcp:server/*`, `prefix/*` or `*`. Default: every
    /// tool that is not denied.
    pub(crate) allow: Option<Vec<String>>,
    /// Not these, whatever `allow` says.
    pub(crate) deny: Option<Vec<String>>,
}
