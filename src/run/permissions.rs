//! Which tools a persona or a task may use: lists that allow and lists that deny. They can only narrow
//! what a run is offered anyway.

use std::fmt;

use super::NativeTool;

/// A pattern over the names by which a model calls tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolPattern {
    text: String,
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    /// `*`.
    Every,
    /// The name itself: a native tool's, or `mcp_<server>_<tool>`.
    Name(String),
    /// `prefix/*`, and `mcp:server/*`: every name that begins so.
    Prefix(String),
}

/// Why a text is no pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    #[error("it is empty")]
    Empty,
    #[error("no tool has that name")]
    Unknown,
    #[error("it does not name a server and a tool")]
    Mcp,
    #[error("a * stands alone or at the end, after a /")]
    Star,
    #[error("it has a character that no tool's name has")]
    Character,
}

impl ToolPattern {
    /// Reads `bash`, `mcp:server/tool`, `mcp:server/*`, `prefix/*` or `*`.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        let kind = if let Some(mcp) = text.strip_prefix("mcp:") {
            mcp_kind(mcp)?
        } else if text == "*" {
            Kind::Every
        } else if let Some(prefix) = text.strip_suffix("/*") {
            check_name(prefix)?;
            Kind::Prefix(prefix.to_owned())
        } else {
            check_name(text)?;
            if NativeTool::parse(text).is_none() && !text.starts_with("mcp_") {
                return Err(PatternError::Unknown);
            }
            Kind::Name(text.to_owned())
        };
        Ok(ToolPattern { text: text.to_owned(), kind })
    }

    /// Whether a tool of that name is meant.
    pub fn matches(&self, tool: &str) -> bool {
        match &self.kind {
            Kind::Every => true,
            Kind::Name(name) => name == tool,
            Kind::Prefix(prefix) => tool.starts_with(prefix.as_str()),
        }
    }
}

impl fmt::Display for ToolPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The tools of a server are called `mcp_<server>_<tool>`.
fn mcp_kind(text: &str) -> Result<Kind, PatternError> {
    let (server, tool) = text.split_once('/').ok_or(PatternError::Mcp)?;
    if server.is_empty() || tool.is_empty() {
        return Err(PatternError::Mcp);
    }
    check_name(server)?;
    if tool == "*" {
        return Ok(Kind::Prefix(format!("mcp_{server}_")));
    }
    check_name(tool)?;
    Ok(Kind::Name(format!("mcp_{server}_{tool}")))
}

fn check_name(text: &str) -> Result<(), PatternError> {
    if text.is_empty() {
        return Err(PatternError::Empty);
    }
    if text.contains('*') {
        return Err(PatternError::Star);
    }
    match text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')) {
        true => Ok(()),
        false => Err(PatternError::Character),
    }
}

/// `tool_permissions` of a persona or a task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolPermissions {
    /// Empty: everything that is not denied.
    pub allow: Vec<ToolPattern>,
    /// Goes before `allow`.
    pub deny: Vec<ToolPattern>,
}

impl ToolPermissions {
    /// Why a tool may not be used; `None`: it may.
    pub fn refusal(&self, tool: &str) -> Option<String> {
        if let Some(pattern) = self.deny.iter().find(|pattern| pattern.matches(tool)) {
            return Some(format!("deny lists {pattern}"));
        }
        let allowed = self.allow.is_empty() || self.allow.iter().any(|one| one.matches(tool));
        (!allowed).then(|| "allow does not list it".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn permissions(allow: &[&str], deny: &[&str]) -> ToolPermissions {
        let read = |list: &[&str]| {
            list.iter().map(|text| ToolPattern::parse(text).expect("a pattern")).collect()
        };
        ToolPermissions { allow: read(allow), deny: read(deny) }
    }

    #[test]
    fn lists_narrow_and_deny_goes_before_allow() {
        let may =
            |allow: &[&str], deny: &[&str], tool| permissions(allow, deny).refusal(tool).is_none();
        assert!(may(&[], &[], "bash"));
        assert!(may(&["bash"], &[], "bash") && !may(&["bash"], &[], "run_python"));
        assert!(!may(&[], &["bash"], "bash") && may(&[], &["bash"], "run_python"));
        assert!(!may(&["*"], &["bash"], "bash") && may(&["*"], &["bash"], "view_file"));
        assert!(!may(&["bash"], &["*"], "bash"));
    }

    #[test]
    fn a_servers_tools_are_meant_one_by_one_or_all() {
        let matches = |text: &str, tool| ToolPattern::parse(text).expect("a pattern").matches(tool);
        assert!(matches("mcp:files/read", "mcp_files_read"));
        assert!(!matches("mcp:files/read", "mcp_files_readdir"));
        assert!(matches("mcp:files/*", "mcp_files_read"));
        assert!(!matches("mcp:files/*", "mcp_files2_read") && !matches("mcp:files/*", "bash"));
        assert!(matches("mcp_files_read", "mcp_files_read"));
        assert!(matches("mcp_files/*", "mcp_files_read"));
    }

    #[test]
    fn what_is_no_pattern_is_told() {
        use PatternError as E;
        for (text, error) in [
            ("", E::Empty),
            ("bassh", E::Unknown),
            ("mcp:files", E::Mcp),
            ("mcp:/read", E::Mcp),
            ("mcp:files/", E::Mcp),
            ("b*sh", E::Star),
            ("mcp:fi*/x", E::Star),
            ("/*", E::Empty),
            ("run python", E::Character),
            ("mcp:a b/*", E::Character),
        ] {
            assert_eq!(ToolPattern::parse(text), Err(error), "{text:?}");
        }
    }
}
