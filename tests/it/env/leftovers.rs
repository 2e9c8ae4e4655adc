//! What nothing may leave behind: containers, processes, worktrees, branches without a run, temporary
//! files, locks, a damaged store.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::git;
use super::world::{World, eventually};

/// Panics with whatever is left. No daemon runs any more.
pub fn none(world: &World) {
    assert_eq!(world.containers(), Vec::<String>::new(), "containers");
    // A process that is told to end needs a moment.
    eventually("no process is left", || processes(world).is_empty().then_some(()));
    assert_eq!(doors(world), Vec::<PathBuf>::new(), "doors of sandboxes");
    assert_eq!(world.json(&["worktree", "list", "--json"]), Value::Array(Vec::new()));
    store_is_whole(world);
    state_directory(world);
    for repository in directories(&world.state().join("repos")) {
        repository_is_clean(world, &repository);
    }
}

/// Processes that name the world's directory or one of its runs: the helper, conmon, git.
fn processes(world: &World) -> Vec<String> {
    let mut names: Vec<String> = run_ids(world);
    names.push(world.path().display().to_string());
    let own = std::process::id().to_string();
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").expect("/proc").flatten() {
        if entry.file_name() == own.as_str() {
            continue;
        }
        // It may end while it is looked at.
        let Ok(line) = std::fs::read(entry.path().join("cmdline")) else { continue };
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        if names.iter().any(|name| line.contains(name.as_str())) {
            found.push(line);
        }
    }
    found
}

fn run_ids(world: &World) -> Vec<String> {
    let id = |run: &Value| run["run_id"].as_str().expect("an id").to_owned();
    world.runs().iter().map(id).collect()
}

/// Directories of sandboxes' sockets, by their owner files.
fn doors(world: &World) -> Vec<PathBuf> {
    let runs = run_ids(world);
    let parent = PathBuf::from(std::env::var_os("XDG_RUNTIME_DIR").expect("set")).join("fleet");
    let owned = |file: &PathBuf| {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        runs.iter().any(|run| text.contains(run.as_str()))
    };
    files(&parent)
        .into_iter()
        .filter(|file| file.extension().is_some_and(|extension| extension == "owner"))
        .filter(owned)
        .collect()
}

fn store_is_whole(world: &World) {
    let connection =
        rusqlite::Connection::open(world.state().join("fleet.db")).expect("the store opens");
    let ask = |sql: &str| -> String {
        connection.query_row(sql, [], |row| row.get::<_, rusqlite::types::Value>(0)).map_or_else(
            |error| error.to_string(),
            |value| match value {
                rusqlite::types::Value::Text(text) => text,
                other => format!("{other:?}"),
            },
        )
    };
    assert_eq!(ask("PRAGMA integrity_check"), "ok");
    assert_eq!(ask("SELECT count(*) FROM pragma_foreign_key_check"), "Integer(0)");
    assert_eq!(ask("SELECT count(*) FROM outbox"), "Integer(0)", "clean-up that was promised");
    let open =
        "SELECT count(*) FROM runs WHERE holder_instance IS NOT NULL OR lease_until IS NOT NULL";
    assert_eq!(ask(open), "Integer(0)", "runs that somebody holds");
    let unended = "SELECT count(*) FROM attempts WHERE finished_at IS NULL";
    assert_eq!(ask(unended), "Integer(0)", "attempts without an end");
}

/// Only what a daemon that was never killed leaves too.
fn state_directory(world: &World) {
    let state = world.state();
    let mut names: Vec<String> = std::fs::read_dir(&state)
        .expect("the state directory")
        .map(|entry| entry.expect("entry").file_name().into_string().expect("UTF-8"))
        .filter(|name| !["fleet.db-wal", "fleet.db-shm"].contains(&name.as_str()))
        .collect();
    names.sort();
    let usual = [
        "bundle-in-force",
        "fleet.db",
        "fleet.db-lock",
        "fleet.toml",
        "holders",
        "repos",
        "runs",
        "sandbox",
        "serve.lock",
        "wake",
    ];
    names.retain(|name| !usual.contains(&name.as_str()));
    assert_eq!(names, Vec::<String>::new(), "unknown files in the state directory");
    assert_eq!(files(&state.join("holders")), Vec::<PathBuf>::new(), "locks of holders");
    assert_eq!(files(&state.join("runs")), Vec::<PathBuf>::new(), "overlays");
    let free = std::fs::File::open(state.join("serve.lock")).expect("serve.lock").try_lock();
    free.expect("nobody holds the daemon's lock");
}

/// Branches are those of runs that say so; no locks, half-written objects, records or worktrees.
fn repository_is_clean(world: &World, repository: &Path) {
    let mut known: Vec<String> = world
        .runs()
        .iter()
        .filter_map(|run| run["branch"].as_str())
        .map(|branch| format!("refs/heads/{branch}"))
        .collect();
    known.push("refs/heads/main".to_owned());
    let refs = git(repository, &["for-each-ref", "--format=%(refname)", "refs/heads"]);
    let unknown: Vec<&str> =
        refs.lines().filter(|name| !known.iter().any(|known| known == name)).collect();
    assert_eq!(unknown, Vec::<&str>::new(), "branches without a run");
    assert_eq!(git(repository, &["fsck", "--no-progress", "--connectivity-only"]), "");
    let left: Vec<PathBuf> = files(repository)
        .into_iter()
        .filter(|file| {
            let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let inside = |part: &str| file.components().any(|found| found.as_os_str() == part);
            name.ends_with(".lock")
                || name.starts_with("tmp_")
                || inside(".fleet-worktrees")
                || file.starts_with(repository.join(".git/worktrees"))
                || file.starts_with(repository.join(".git/fleet"))
        })
        .collect();
    assert_eq!(left, Vec::<PathBuf>::new(), "files of runs in the repository");
}

fn directories(parent: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(parent).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
}

/// Every file beneath a directory, which may be missing.
fn files(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![root.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.symlink_metadata().is_ok_and(|meta| meta.is_dir()) {
                open.push(path);
            } else {
                found.push(path);
            }
        }
    }
    found
}
