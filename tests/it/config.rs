//! Behaviour of `config`: what is read, from where, and what is refused. Also the pages that are
//! written from tables.

use std::path::Path;
use std::time::Duration;

use fleet::config::{Config, ConfigError, Environment, LimitsMode, Origin, Overrides};
use tempfile::TempDir;

use crate::env::source_root;

/// A scratch home with a state directory.
struct Home(TempDir);

impl Home {
    fn new() -> Self {
        let home = Home(tempfile::tempdir().expect("scratch directory"));
        std::fs::create_dir(home.state()).expect("made");
        home
    }

    fn state(&self) -> std::path::PathBuf {
        self.0.path().join("state")
    }

    fn write(&self, dir: &str, text: &str) {
        let path = self.0.path().join(dir).join("fleet.toml");
        std::fs::create_dir_all(path.parent().expect("has a parent")).expect("made");
        std::fs::write(path, text).expect("written");
    }

    /// Reads with the home, the state directory and these variables.
    fn read<const N: usize>(&self, variables: [(&str, &str); N]) -> Result<Config, ConfigError> {
        let env = environment(self.0.path(), variables);
        Config::read_with(Overrides { state: Some(self.state()) }, &env)
    }

    fn refusal<const N: usize>(&self, variables: [(&str, &str); N]) -> String {
        let error = self.read(variables).expect_err("refused").to_string();
        error.replace(&self.0.path().display().to_string(), "~")
    }
}

/// `HOME` and at most three others.
fn environment<const N: usize>(home: &Path, variables: [(&str, &str); N]) -> Environment {
    let home = home.display().to_string();
    let mut all = [("HOME", home.as_str()); 4];
    all[1..=N].copy_from_slice(&variables);
    Environment::from(all)
}

fn origin(config: &Config, key: &str) -> (String, Origin) {
    let setting = config.settings.iter().find(|setting| setting.key == key).expect("a known key");
    (setting.value.clone(), setting.origin.clone())
}

#[test]
fn nothing_written_gives_the_documented_defaults() {
    let config = Home::new().read([]).expect("reads");
    assert_eq!(config.bundle, None);
    assert_eq!(config.limits, LimitsMode::Enforced);
    assert_eq!(
        (config.runtime.as_deref(), config.image.as_str()),
        (None, "localhost/fleet-sandbox:latest")
    );
    assert_eq!(config.podman_root, config.state.podman_root());
    assert_eq!(config.listen.to_string(), "127.0.0.1:8707");
    assert_eq!((config.max_concurrent_runs, config.shutdown_grace.as_secs()), (4, 30));
    assert_eq!(config.task_wall_timeout, Some(Duration::from_secs(4 * 3600)));
    assert_eq!((config.python_cell_timeout, config.budget_winddown_fraction), (None, 0.8));
    assert_eq!(config.warnings, Vec::<String>::new());
    assert!(config.settings.iter().all(|setting| setting.origin == Origin::Default));
}

#[test]
fn the_environment_wins_over_the_file() {
    let home = Home::new();
    home.write("state", "[serve]\nlisten = \"127.0.0.1:1\"\nmax_concurrent_runs = 2\n");
    let config = home.read([("FLEET_LISTEN", "127.0.0.1:2")]).expect("reads");
    assert_eq!((config.listen.port(), config.max_concurrent_runs), (2, 2));
    let env = Origin::Env("FLEET_LISTEN".into());
    assert_eq!(origin(&config, "serve.listen"), ("127.0.0.1:2".into(), env));
    let file = Origin::File(home.state().join("fleet.toml").display().to_string());
    assert_eq!(origin(&config, "serve.max_concurrent_runs"), ("2".into(), file));
}

#[test]
fn a_variable_that_is_set_but_empty_counts_as_unset() {
    let config = Home::new().read([("FLEET_LISTEN", "")]).expect("reads");
    assert_eq!(origin(&config, "serve.listen").1, Origin::Default);
}

#[test]
fn the_file_in_the_state_directory_is_read_instead_of_the_users() {
    let home = Home::new();
    home.write(".config/fleet", "[serve]\nmax_concurrent_runs = 7\nshutdown_grace = \"7s\"\n");
    assert_eq!(home.read([]).expect("reads").max_concurrent_runs, 7);
    home.write("state", "[serve]\nmax_concurrent_runs = 2\n");
    let config = home.read([]).expect("reads");
    assert_eq!((config.max_concurrent_runs, config.shutdown_grace.as_secs()), (2, 30));
}

#[test]
fn the_state_directory_is_found_in_its_order_and_absolute() {
    let home = tempfile::tempdir().expect("scratch directory");
    let root = home.path();
    let read = |flag: Option<&str>, env: &Environment| {
        let config = Config::read_with(Overrides { state: flag.map(Into::into) }, env);
        config.expect("reads").state.root().to_owned()
    };
    assert_eq!(read(None, &environment(root, [])), root.join(".local/state/fleet"));
    let xdg = root.join("xdg").display().to_string();
    let with_xdg = environment(root, [("XDG_STATE_HOME", &xdg)]);
    assert_eq!(read(None, &with_xdg), root.join("xdg/fleet"));
    let own = root.join("own").display().to_string();
    let with_own = environment(root, [("XDG_STATE_HOME", &xdg), ("FLEET_STATE_DIR", &own)]);
    assert_eq!(read(None, &with_own), root.join("own"));
    let here = std::env::current_dir().expect("a directory");
    assert_eq!(read(Some("flag"), &with_own), here.join("flag"));
}

#[test]
fn without_a_home_the_state_directory_must_be_said() {
    let error = Config::read_with(Overrides::default(), &Environment::default());
    let error = error.expect_err("refused").to_string();
    assert_eq!(error, "no state directory: set FLEET_STATE_DIR, or HOME");
}

#[test]
fn what_cannot_be_parsed_names_the_place_the_value_and_the_form() {
    let home = Home::new();
    assert_eq!(
        home.refusal([("FLEET_TASK_WALL_TIMEOUT", "soon")]),
        "FLEET_TASK_WALL_TIMEOUT: \"soon\" is not a duration such as 30s, 15m or 4h30m, or 0 for no ceiling"
    );
    assert_eq!(
        home.refusal([("FLEET_SANDBOX_LIMITS", "none")]),
        "FLEET_SANDBOX_LIMITS: \"none\" is not enforced or best_effort"
    );
    home.write("state", "[serve]\nmax_concurrent_runs = \"many\"\n");
    assert_eq!(
        home.refusal([]),
        "serve.max_concurrent_runs in ~/state/fleet.toml: \"many\" is not a whole number from 1"
    );
}

#[test]
fn an_unknown_key_is_refused_with_the_nearest_known() {
    let home = Home::new();
    home.write("state", "[serve]\nlisen = \"127.0.0.1:1\"\n");
    assert_eq!(
        home.refusal([]),
        "~/state/fleet.toml: unknown key serve.lisen: did you mean serve.listen?"
    );
    home.write("state", "zzz = 1\n");
    assert_eq!(
        home.refusal([]),
        "~/state/fleet.toml: unknown key zzz: `fleet config show` lists the keys"
    );
    home.write("state", "serve = 4\n");
    assert_eq!(home.refusal([]), "serve in ~/state/fleet.toml: \"4\" is not a table");
}

#[test]
fn text_that_is_not_toml_is_refused_with_its_line() {
    let home = Home::new();
    home.write("state", "bundle = \"x\"\nserve = [\n");
    let refusal = home.refusal([]);
    assert!(refusal.starts_with("~/state/fleet.toml: not TOML: "), "{refusal}");
    assert!(refusal.contains("line 2"), "{refusal}");
}

#[test]
fn values_out_of_range_are_replaced_with_a_warning() {
    let home = Home::new();
    let config = home
        .read([("FLEET_BUDGET_WINDDOWN_FRACTION", "-1"), ("FLEET_MAX_CONCURRENT_RUNS", "0")])
        .expect("reads");
    assert_eq!((config.budget_winddown_fraction, config.max_concurrent_runs), (0.8, 4));
    assert_eq!(
        config.warnings,
        [
            "FLEET_MAX_CONCURRENT_RUNS: 0 must be at least 1; 4 is used",
            "FLEET_BUDGET_WINDDOWN_FRACTION: -1 must be above 0; 0.8 is used",
        ]
    );
}

#[test]
fn names_that_only_chat_reads_are_warned_of() {
    let set = [("FLEET_PYTHON_REPL_MODE", "x"), ("CHAT_A", "x"), ("CUTLASS_B", "x")];
    let config = Home::new().read(set).expect("reads");
    assert_eq!(
        config.warnings,
        ["CHAT_A", "CUTLASS_B", "FLEET_PYTHON_REPL_MODE"]
            .map(|name| format!("{name} is set but not read: fleet has no chat"))
    );
}

#[test]
fn the_configuration_page_is_the_one_that_the_table_writes() {
    same_as_written("docs/configuration.md", &fleet::config::document());
}

#[test]
fn the_outcomes_page_is_the_one_that_the_decisions_write() {
    same_as_written("docs/outcomes.md", &fleet::run::outcomes_document());
}

/// Compares a page with its source; FLEET_WRITE_DOCS=1 writes it.
fn same_as_written(page: &str, text: &str) {
    let path = source_root().join(page);
    if std::env::var_os("FLEET_WRITE_DOCS").is_some() {
        std::fs::write(&path, text).expect("the page is written");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(written, text, "{page} is stale: run this test with FLEET_WRITE_DOCS=1");
}
