//! Names of tasks, personas and providers.

use crate::bundle::yaml::Finding;

/// Names become directories, branches and container names.
const MAX_NAME: usize = 64;

/// Whether a name may be used: lower-case letters, digits, `-` and `_`, at most 64.
pub(super) fn check_name(name: &str, what: &str) -> Result<(), Finding> {
    let first = name.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
    let rest =
        name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_');
    if first && rest && name.len() <= MAX_NAME {
        return Ok(());
    }
    let finding = Finding::error("invalid-name", format!("{name:?} cannot be {what}"));
    Err(finding.hint(format!(
        "use a to z, 0 to 9, - and _, beginning with a letter or digit, at most {MAX_NAME}"
    )))
}
