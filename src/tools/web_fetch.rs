//! `web_fetch`: one document of a host that the task allows, by GET, over the run's own way out.

use serde::Deserialize;

use crate::egress::{FetchError, FetchLimits, Fetched, fetch};

use super::context::{ToolContext, ToolFailure, ToolOutput};
use super::output::{self, Raw};

/// The arguments of a call.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    url: String,
}

/// Fetches the document.
pub(super) async fn run(
    arguments: Arguments,
    context: &ToolContext<'_>,
) -> Result<ToolOutput, ToolFailure> {
    let Some(gate) = context.egress else {
        return Ok(ToolOutput::error("this task has no network: its allow_network is false"));
    };
    let limits = FetchLimits::default();
    let limits = FetchLimits { time: limits.time.min(context.timeout), ..limits };
    let fetched = tokio::select! {
        biased;
        () = context.cancel.cancelled() => return Err(ToolFailure::Cancelled),
        fetched = fetch(gate, &arguments.url, limits) => fetched,
    };
    match fetched {
        Ok(document) => shown(&document, context).await,
        Err(error) => Ok(ToolOutput::error(format!("{error}; {}", way_out(&error)))),
    }
}

async fn shown(document: &Fetched, context: &ToolContext<'_>) -> Result<ToolOutput, ToolFailure> {
    let Fetched { url, status, content_type, body, is_cut } = document;
    let kind = output::clean(content_type.as_bytes());
    let mut verdict = format!("[status {status}, {kind}, {} bytes from {url}]", body.len());
    if *is_cut {
        verdict.push_str("\n[the document is longer: only its beginning was read]");
    }
    let raw = Raw { bytes: body, dropped_bytes: 0, spill_path: None };
    let text = output::show(raw, &verdict, context).await?;
    Ok(ToolOutput { text, is_error: !(200..300).contains(status), ..ToolOutput::default() })
}

fn way_out(error: &FetchError) -> &'static str {
    match error {
        FetchError::Url { .. } => "write https://host/path with a public host's name",
        FetchError::Refused { .. } => "use a host that the task allows, or go on without it",
        FetchError::Tls { .. } | FetchError::Http { .. } | FetchError::Encoding { .. } => {
            "try another source"
        }
        FetchError::Redirects(_) => "name the document's final URL",
        FetchError::TimedOut(_) => "try again later, or another source",
    }
}
