//! Where values come from: the environment over `fleet.toml` over the default.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::table::{CHAT_ONLY, KEYS, Key};
use super::{Config, ConfigError, StateDir};

/// Environment variables, taken once.
#[derive(Clone, Debug, Default)]
pub struct Environment(BTreeMap<String, String>);

impl Environment {
    /// This process's variables. Bytes that are not UTF-8 are replaced, so such a value is refused
    /// where it is read.
    pub fn of_process() -> Self {
        let text = |os: std::ffi::OsString| os.to_string_lossy().into_owned();
        Environment(std::env::vars_os().map(|(name, value)| (text(name), text(value))).collect())
    }

    /// A variable's value; an empty one counts as unset.
    fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }
}

impl<const N: usize> From<[(&str, &str); N]> for Environment {
    fn from(pairs: [(&str, &str); N]) -> Self {
        Environment(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).into())
    }
}

/// Where a value was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "from", content = "name")]
pub enum Origin {
    Default,
    /// The path of a `fleet.toml`.
    File(String),
    /// The name of an environment variable.
    Env(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => f.write_str("default"),
            Origin::File(path) => f.write_str(path),
            Origin::Env(name) => f.write_str(name),
        }
    }
}

/// One value and where it was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Setting {
    pub key: &'static str,
    pub env: &'static str,
    pub value: String,
    pub origin: Origin,
}

/// The state directory: the flag, FLEET_STATE_DIR, or the user's state directory.
pub(super) fn state_dir(flag: Option<PathBuf>, env: &Environment) -> Result<PathBuf, ConfigError> {
    let chosen = flag
        .or_else(|| env.get("FLEET_STATE_DIR").map(PathBuf::from))
        .or_else(|| xdg(env, "XDG_STATE_HOME", ".local/state"))
        .ok_or(ConfigError::NoStateDir)?;
    std::path::absolute(&chosen)
        .map_err(|source| ConfigError::Unreadable { file: chosen.display().to_string(), source })
}

/// `fleet` in a base directory; a relative one is ignored, as its specification asks.
fn xdg(env: &Environment, name: &str, in_home: &str) -> Option<PathBuf> {
    let named = env.get(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = named.or_else(|| Some(Path::new(env.get("HOME")?).join(in_home)))?;
    Some(base.join("fleet"))
}

/// A `fleet.toml`, flattened to dotted keys; empty where there is none.
#[derive(Debug, Default)]
pub(super) struct File {
    path: String,
    values: BTreeMap<String, String>,
}

impl File {
    /// The one in the state directory, or else the user's.
    pub(super) fn find(state: &StateDir, env: &Environment) -> Result<Self, ConfigError> {
        let own = Some(state.root().to_owned());
        let places = [own, xdg(env, "XDG_CONFIG_HOME", ".config")];
        for place in places.into_iter().flatten() {
            let path = place.join("fleet.toml");
            match std::fs::read_to_string(&path) {
                Ok(text) => return Self::parse(path.display().to_string(), &text),
                Err(error) if is_absent(&error) => {}
                Err(source) => {
                    let file = path.display().to_string();
                    return Err(ConfigError::Unreadable { file, source });
                }
            }
        }
        Ok(File::default())
    }

    fn parse(path: String, text: &str) -> Result<Self, ConfigError> {
        let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
            ConfigError::NotToml { file: path.clone(), message: error.to_string() }
        })?;
        let mut file = File { path, values: BTreeMap::new() };
        file.flatten("", table)?;
        Ok(file)
    }

    fn flatten(&mut self, prefix: &str, table: toml::Table) -> Result<(), ConfigError> {
        for (name, value) in table {
            let key = format!("{prefix}{name}");
            let known = KEYS.iter().any(|k| k.toml == key);
            let section = KEYS.iter().any(|k| k.toml.starts_with(&format!("{key}.")));
            match value {
                toml::Value::Table(inner) if section => self.flatten(&format!("{key}."), inner)?,
                _ if !known && !section => return Err(self.unknown(key)),
                value => {
                    let text = match value {
                        toml::Value::String(text) => text,
                        toml::Value::Integer(number) => number.to_string(),
                        toml::Value::Float(number) => number.to_string(),
                        toml::Value::Boolean(flag) => flag.to_string(),
                        toml::Value::Datetime(instant) => instant.to_string(),
                        toml::Value::Array(_) => "a list".to_owned(),
                        toml::Value::Table(_) => "a table".to_owned(),
                    };
                    if !known {
                        let (name, wanted) = (format!("{key} in {}", self.path), "a table");
                        return Err(ConfigError::Unparsable { name, value: text, wanted });
                    }
                    self.values.insert(key, text);
                }
            }
        }
        Ok(())
    }

    fn unknown(&self, key: String) -> ConfigError {
        let last = |dotted: &str| dotted.rsplit('.').next().unwrap_or_default().to_owned();
        let near = |known: &str| {
            strsim::jaro_winkler(known, &key).max(strsim::jaro_winkler(&last(known), &last(&key)))
        };
        let best = KEYS.iter().map(|known| (near(known.toml), known.toml));
        let hint = match best.max_by(|a, b| a.0.total_cmp(&b.0)) {
            Some((score, known)) if score > 0.8 => format!(": did you mean {known}?"),
            _ => ": `fleet config show` lists the keys".to_owned(),
        };
        ConfigError::UnknownKey { file: self.path.clone(), key, hint }
    }
}

/// A path that cannot be there is the same as one that is not.
fn is_absent(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory)
}

/// Puts the winning value of one key into the configuration.
pub(super) fn apply(
    config: &mut Config,
    key: &'static Key,
    file: &File,
    env: &Environment,
) -> Result<(), ConfigError> {
    let in_file =
        file.values.get(key.toml).map(|text| (text.clone(), Origin::File(file.path.clone())));
    let in_env = env.get(key.env).map(|text| (text.to_owned(), Origin::Env(key.env.to_owned())));
    let Some((text, origin)) = in_env.or(in_file) else {
        let value = key.default.to_owned();
        let (key, env, origin) = (key.toml, key.env, Origin::Default);
        config.settings.push(Setting { key, env, value, origin });
        return Ok(());
    };
    let name = match &origin {
        Origin::File(path) => format!("{} in {path}", key.toml),
        Origin::Default | Origin::Env(_) => key.env.to_owned(),
    };
    let unparsable =
        |wanted| ConfigError::Unparsable { name: name.clone(), value: text.clone(), wanted };
    let mut value = text.clone();
    if let Some(why) = (key.set)(config, &text).map_err(unparsable)? {
        let used = (key.read_back)(config);
        config.warnings.push(format!("{name}: {text} {why}; {used} is used"));
        value = used;
    }
    config.settings.push(Setting { key: key.toml, env: key.env, value, origin });
    Ok(())
}

/// What to say of chat-only names that are set.
pub(super) fn names_not_read(env: &Environment) -> Vec<String> {
    let chat = |name: &&String| CHAT_ONLY.iter().any(|prefix| name.starts_with(prefix));
    env.0
        .keys()
        .filter(chat)
        .map(|name| format!("{name} is set but not read: fleet has no chat"))
        .collect()
}
