//! Stub until the sandbox lands.
use std::path::Path;
pub fn fleet_toml() -> String {
    "[sandbox]\nlimits = \"best_effort\"\n".to_owned()
}
pub fn containers_of_state(_: &Path) -> Vec<String> {
    Vec::new()
}
