//! `docs/configuration.md`, written from the table.

use super::table::{CHAT_ONLY, KEYS};

const HEAD: &str = "\
# Configuration of the host

<!-- Generated from src/config/table.rs; `cargo nextest run config::` says when it is stale. -->

A value is taken from the environment, else from `fleet.toml`, else from its default. `fleet config
show` prints each value and where it came from.

`fleet.toml` is looked for in the state directory, then at `$XDG_CONFIG_HOME/fleet/fleet.toml`
(`~/.config/fleet/fleet.toml`); the first one found is read, the other is not. The state directory is
`--state`, else `FLEET_STATE_DIR`, else `$XDG_STATE_HOME/fleet`, else `~/.local/state/fleet`; it cannot
be set in `fleet.toml`.

A value that cannot be parsed, or an unknown key in `fleet.toml`, refuses to start. An out-of-range
value is replaced as its line says, with a warning. Durations are written `30s`, `15m`, `4h30m` or
`4h 30m`. A variable that is set but empty counts as unset.

| `fleet.toml` | environment | default | meaning |
|---|---|---|---|
";

const LOGS: &str = "
Two variables that `fleet.toml` does not know say how fleet logs to standard error: `FLEET_LOG` picks
what is logged, in the syntax of `RUST_LOG` (default `info`), and `FLEET_LOG_FORMAT=json` writes one
JSON object a line.
";

/// What a key of `fleet.toml` is for.
pub fn meaning(key: &str) -> &'static str {
    KEYS.iter().find(|known| known.toml == key).map_or("", |known| known.meaning)
}

/// The text of `docs/configuration.md`.
pub fn document() -> String {
    let mut text = HEAD.to_owned();
    for key in KEYS {
        let default = match key.default.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')) {
            Some(words) => words.to_owned(),
            None => format!("`{}`", key.default),
        };
        text += &format!("| `{}` | `{}` | {default} | {} |\n", key.toml, key.env, key.meaning);
    }
    text += LOGS;
    let names = CHAT_ONLY.map(|prefix| format!("`{prefix}*`")).join(", ");
    text += &format!(
        "\nNot read, because fleet has no chat: {names}. `fleet config show` says so when one is set.\n"
    );
    text += "\nKeys of model providers are read from the variable that the bundle names in \
             `api_key_env`; no secret belongs in `fleet.toml`.\n";
    text
}
