//! `fleet config`, `fleet completions`, and what every verb does alike.

use super::bench::Bench;

#[test]
fn config_show_tells_each_value_and_its_origin() {
    let bench = Bench::new();
    std::fs::create_dir(bench.state().root()).expect("made");
    let file = bench.state().root().join("fleet.toml");
    std::fs::write(file, "[serve]\nshutdown_grace = \"5s\"\n").expect("written");
    let mut command = bench.command(&["config", "show", "--json"]);
    command.env("FLEET_LISTEN", "127.0.0.1:99").env("CHAT_MODEL", "x");
    let shown = bench.done(command.output().expect("starts")).json();
    let row = |key: &str| {
        let rows = shown["settings"].as_array().expect("a list");
        let row = rows.iter().find(|row| row["key"] == key).expect("the key is listed");
        [&row["env"], &row["value"], &row["origin"]].map(|v| v.as_str().expect("text").to_owned())
    };
    assert_eq!(row("state"), ["FLEET_STATE_DIR", "~/state", "environment"]);
    assert_eq!(row("serve.listen"), ["FLEET_LISTEN", "127.0.0.1:99", "environment"]);
    assert_eq!(row("serve.shutdown_grace"), ["FLEET_SHUTDOWN_GRACE", "5s", "~/state/fleet.toml"]);
    assert_eq!(row("sandbox.limits"), ["FLEET_SANDBOX_LIMITS", "enforced", "default"]);
    let warnings = serde_json::json!(["CHAT_MODEL is set but not read: fleet has no chat"]);
    assert_eq!(shown["warnings"], warnings);
    let rows = shown["settings"].as_array().expect("a list");
    assert!(rows.iter().all(|row| row["meaning"].as_str().is_some_and(|text| !text.is_empty())));
}

#[test]
fn the_state_flag_wins_over_its_variable() {
    let bench = Bench::new();
    let shown = bench.fleet(&["config", "show", "--json", "--state", "other"]).json();
    let state = &shown["settings"][0];
    assert_eq!(
        (state["value"].as_str(), state["origin"].as_str()),
        (Some("~/other"), Some("flag"))
    );
}

#[test]
fn config_show_ends_with_its_warnings() {
    let bench = Bench::new();
    let mut command = bench.command(&["config", "show"]);
    let done = bench.done(command.env("CHAT_MODEL", "x").output().expect("starts"));
    assert_eq!((done.code, done.err.as_str()), (0, ""));
    let first = done.out.lines().next().expect("a header");
    assert_eq!(
        first.split_whitespace().collect::<Vec<_>>(),
        ["KEY", "ENVIRONMENT", "VALUE", "FROM"]
    );
    assert_eq!(
        done.out.lines().last(),
        Some("warning: CHAT_MODEL is set but not read: fleet has no chat")
    );
}

#[test]
fn a_value_that_cannot_be_parsed_ends_every_verb_with_1() {
    let bench = Bench::new();
    let mut command = bench.command(&["runs", "list"]);
    let done = bench.done(command.env("FLEET_LISTEN", "here").output().expect("starts"));
    assert_eq!(
        (done.code, done.out.as_str(), done.err.as_str()),
        (
            1,
            "",
            "error: FLEET_LISTEN: \"here\" is not an IP address with a port such as 127.0.0.1:8707\n"
        )
    );
}

#[test]
fn without_a_home_the_way_out_is_told() {
    let bench = Bench::new();
    let mut command = bench.command(&["runs", "list"]);
    let done = bench.done(command.env_clear().output().expect("starts"));
    assert_eq!(
        (done.code, done.err.as_str()),
        (1, "error: no state directory: set FLEET_STATE_DIR, or HOME\n")
    );
}

#[test]
fn completions_are_printed_for_each_shell() {
    let bench = Bench::new();
    for (shell, mark) in
        [("bash", "complete -F"), ("zsh", "#compdef fleet"), ("fish", "complete -c fleet")]
    {
        let done = bench.fleet(&["completions", shell]);
        assert_eq!((done.code, done.err.as_str()), (0, ""), "{shell}");
        assert!(done.out.contains(mark), "{shell}");
    }
    assert_eq!(bench.fleet(&["completions", "tcsh"]).code, 2);
}

#[test]
fn an_unknown_verb_is_wrong_usage() {
    let done = Bench::new().fleet(&["rums"]);
    assert_eq!(done.code, 2);
    assert!(done.err.contains("'runs'"), "{}", done.err);
}
