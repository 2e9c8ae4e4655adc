//! `tool_permissions`: patterns that can match, and runs that keep the tools they need.

use super::range::check_repeats;
use crate::bundle::Completion;
use crate::bundle::nearest::did_you_mean;
use crate::bundle::raw::RawToolPermissions;
use crate::bundle::yaml::{Document, Finding, Path};
use crate::run::{NativeTool, PatternError, ToolPattern, ToolPermissions};

/// The permissions; mistakes are reported where they stand.
pub(super) fn check_permissions(
    raw: Option<RawToolPermissions>,
    document: &Document<'_>,
) -> ToolPermissions {
    let at = Path::root().key("tool_permissions");
    let raw = raw.unwrap_or_default();
    let allow = patterns(raw.allow.unwrap_or_default(), &at.key("allow"), document);
    let deny = patterns(raw.deny.unwrap_or_default(), &at.key("deny"), document);
    for (number, pattern) in &allow {
        if deny.iter().any(|(_, denied)| denied == pattern) {
            let message = format!("{pattern} is allowed and denied: it is denied");
            let finding = Finding::warning("useless-entry", message).hint("keep one of the two");
            document.report(&at.key("allow").index(*number), finding);
        }
    }
    let bare = |list: Vec<(usize, ToolPattern)>| list.into_iter().map(|(_, one)| one).collect();
    ToolPermissions { allow: bare(allow), deny: bare(deny) }
}

fn patterns(list: Vec<String>, at: &Path, document: &Document<'_>) -> Vec<(usize, ToolPattern)> {
    check_repeats(Some(&list), at, document);
    let read = |(number, text): (usize, String)| match ToolPattern::parse(&text) {
        Ok(pattern) => Some((number, pattern)),
        Err(error) => {
            document.report(&at.index(number), finding(&text, &error));
            None
        }
    };
    list.into_iter().enumerate().filter_map(read).collect()
}

fn finding(text: &str, error: &PatternError) -> Finding {
    let names = NativeTool::ALL.map(NativeTool::as_str);
    match error {
        PatternError::Unknown => {
            let hint = did_you_mean(text, names).unwrap_or_else(|| {
                format!("fleet's tools are {}; a server's are mcp:server/tool", names.join(", "))
            });
            Finding::error("unknown-tool", format!("no tool is named {text:?}")).hint(hint)
        }
        other => {
            let message = format!("{text:?} is no pattern of tools: {other}");
            let hint = "write a tool's name, mcp:server/tool, mcp:server/*, prefix/* or *";
            Finding::error("invalid-value", message).hint(hint)
        }
    }
}

/// A check that can never pass, because its tool is not permitted by one of these: whose permissions,
/// and the permissions.
pub(super) fn check_needed_tools(
    completion: &Completion,
    permissions: &[(String, &ToolPermissions)],
    document: &Document<'_>,
) {
    let at = Path::root().key("completion");
    let report = |at: &Path, tool: &str| {
        let refused = |(who, permissions): &(String, &ToolPermissions)| {
            permissions.refusal(tool).map(|why| format!("in {who}, tool_permissions.{why}"))
        };
        let Some(why) = permissions.iter().find_map(refused) else { return };
        let message = format!("{tool} is not permitted: {why}");
        let hint = "permit the tool, or remove the check that needs it";
        document.report(at, Finding::error("tool-not-offered", message).hint(hint));
    };
    for (number, tool) in completion.required_tools.iter().enumerate() {
        report(&at.key("required_tools").index(number), tool);
    }
    let publishes = NativeTool::PublishArtifact.as_str();
    let required = completion.required_tools.iter().any(|tool| tool == publishes);
    if !completion.artifacts.is_empty() && !required {
        report(&at.key("artifacts"), publishes);
    }
}
