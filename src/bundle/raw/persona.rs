//! `personas/<name>.yaml`.

use schemars::JsonSchema;
use serde::Deserialize;

use super::RawToolPermissions;

/// Who does a task.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping")]
#[schemars(title = "personas/<name>.yaml")]
#[schemars(rename = "Persona")]
pub(crate) struct RawPersona {
    /// For people: what the persona is for.
    pub(crate) description: Option<String>,
    /// The text that joins the system prompt of the persona's tasks.
    #[schemars(required)]
    pub(crate) instructions: Option<String>,
    /// The model of the persona's tasks that name none.
    pub(crate) model: Option<String>,
    /// Which tools the persona may use in its tasks. Default: every one that the task offers.
    pub(crate) tool_permissions: Option<RawToolPermissions>,
}
