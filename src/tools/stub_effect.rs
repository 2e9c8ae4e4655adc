//! `stub_effect`: posts to a counting service on the host, so that a test sees whether something
//! outside the worktree happened, and how often. Exists in fault builds only, and is offered only
//! where `FLEET_STUB_EFFECT_URL` names the service.

use serde::Deserialize;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

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
    Ok(match post(&url, &body).await {
        Ok(status) if status.contains(" 200 ") => ToolOutput::text("done"),
        Ok(status) => ToolOutput::error(format!("the service answered {status}")),
        Err(error) => ToolOutput::error(format!("the service did not answer: {error}")),
    })
}

/// One HTTP request on a connection of its own; returns the status line.
async fn post(url: &str, body: &str) -> std::io::Result<String> {
    let (host, path) = url.trim_start_matches("http://").split_once('/').unwrap_or((url, ""));
    let mut stream = TcpStream::connect(host).await?;
    let length = body.len();
    let request = format!(
        "POST /{path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    // The service has counted, and nobody here knows it yet.
    fault::point("mid_tool_call");
    Ok(answer.lines().next().unwrap_or_default().to_owned())
}
