//! `stub_effect`: posts to a counting service on the host, so that a test sees whether something
//! outside the worktree happened, and how often. Exists in fault builds only, and is offered only
//! where `FLEET_STUB_EFFECT_URL` names the service.

use serde::Deserialize;
use serde_json::json;

use super::context::{ToolContext, ToolFailure, ToolOutput};
use crate::fault;

/// The arguments of a call.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    what: String,
}

/// The service, where there is one.
pub(super) fn service() -> Option<String> {
    std::env::var("FLEET_STUB_EFFECT_URL").ok()
}

/// Posts the arguments under a key of this call.
pub(super) async fn run(
    arguments: Arguments,
    context: &ToolContext<'_>,
) -> Result<ToolOutput, ToolFailure> {
    let Some(url) = service() else {
        return Ok(ToolOutput::error("FLEET_STUB_EFFECT_URL names no service"));
    };
    let key = format!("{}/{}", context.workspace_path, context.call_id);
    let body = json!({"key": key, "what": arguments.what}).to_string();
    // The service has counted once it answers; its answer has not arrived anywhere yet.
    let sent = reqwest::Client::new().post(url).body(body).send().await;
    fault::point("mid_tool_call");
    Ok(match sent {
        Ok(answer) if answer.status().is_success() => ToolOutput::text("done"),
        Ok(answer) => ToolOutput::error(format!("the service answered {}", answer.status())),
        Err(error) => ToolOutput::error(format!("the service did not answer: {error}")),
    })
}
