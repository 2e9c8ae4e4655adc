//! A bundle repository, a state directory and the binary, for tests that run fleet as a person does.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use fleet::secrets::Redactor;
use fleet::store::Store;
use jiff::Timestamp;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use super::{commit_files, fleet_binary, repository, sandbox};

/// How long anything may take before a test gives up on it.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A manifest with the scripted provider, and a persona.
pub const BASE: &[(&str, &str)] = &[(
    "manifest.yaml",
    "version: 1\nname: world\ndefaults:\n  model: recorded/session\nproviders:\n  - name: recorded\n    type: scripted\n    models: [session]\n",
)];

/// Everything that one test owns.
pub struct World {
    dir: TempDir,
}

impl World {
    /// A bundle with these files besides [`BASE`], committed.
    pub fn new(files: &[(&str, &str)]) -> Self {
        let dir =
            tempfile::Builder::new().prefix("fleet-world-").tempdir().expect("scratch directory");
        let world = World { dir };
        repository(&world.bundle(), &[BASE, files].concat());
        std::fs::create_dir_all(world.state()).expect("state directory");
        std::fs::write(world.state().join("fleet.toml"), sandbox::fleet_toml(&world.state()))
            .expect("fleet.toml");
        world
    }

    /// The bundle of `examples/<name>`.
    pub fn of_example(name: &str) -> Self {
        let root = super::source_root().join("examples").join(name);
        let mut files = Vec::new();
        for part in ["", "tasks", "personas", "scripted", "system_prompts"] {
            for entry in std::fs::read_dir(root.join(part)).into_iter().flatten().flatten() {
                let path = entry.path();
                if path
                    .extension()
                    .is_some_and(|extension| extension == "yaml" || part == "system_prompts")
                {
                    let name = path.strip_prefix(&root).expect("below it").display().to_string();
                    files.push((name, std::fs::read_to_string(&path).expect("text")));
                }
            }
        }
        let files: Vec<_> =
            files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        World::new(&files)
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    pub fn bundle(&self) -> PathBuf {
        self.dir.path().join("bundle")
    }

    pub fn state(&self) -> PathBuf {
        self.dir.path().join("state")
    }

    /// Commits files to the bundle.
    pub fn commit(&self, files: &[(&str, &str)], message: &str) {
        commit_files(&self.bundle(), files, message);
    }

    /// `fleet` with an environment of its own and this world's state directory.
    pub fn command(&self, args: &[&str]) -> Command {
        self.program(fleet_binary(), args)
    }

    /// Another program in the same environment.
    pub fn program(&self, program: impl AsRef<std::ffi::OsStr>, args: &[&str]) -> Command {
        let mut command = Command::new(program);
        command
            .args(args)
            .env_clear()
            .env("HOME", self.dir.path())
            .env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")
            .env(
                "XDG_RUNTIME_DIR",
                std::env::var_os("XDG_RUNTIME_DIR").expect("a runtime directory"),
            )
            .env("FLEET_STATE_DIR", self.state())
            .current_dir(self.dir.path())
            .stdin(Stdio::null());
        command
    }

    /// Runs a command to its end.
    pub fn fleet(&self, args: &[&str]) -> Output {
        self.command(args).output().expect("fleet starts")
    }

    /// Runs a command that must succeed, and gives its standard output.
    pub fn ok(&self, args: &[&str]) -> String {
        let output = self.fleet(args);
        assert!(
            output.status.success(),
            "fleet {args:?} ended with {}\n{}\n{}",
            output.status,
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).expect("fleet speaks UTF-8")
    }

    /// The JSON that a command prints.
    pub fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.ok(args)).expect("fleet prints JSON")
    }

    /// Every run, the newest first.
    pub fn runs(&self) -> Vec<Value> {
        match self.json(&["runs", "list", "--json", "--limit", "1000"]) {
            Value::Array(runs) => runs,
            other => panic!("runs list printed {other}"),
        }
    }

    /// One run whole.
    pub fn run(&self, id: &Value) -> Value {
        self.json(&["runs", "show", id.as_str().expect("an id"), "--json"])
    }

    /// Runs a task by hand, whatever becomes of it, and gives the run whole.
    pub fn run_task(&self, task: &str) -> Value {
        let bundle = self.bundle();
        let output =
            self.fleet(&["task", "run", task, "--bundle", bundle.to_str().expect("UTF-8")]);
        let runs = self.runs();
        let run = runs.first().unwrap_or_else(|| {
            panic!("no run was recorded: {}", String::from_utf8_lossy(&output.stderr))
        });
        self.run(&run["run_id"])
    }

    /// Starts the daemon and waits until it is ready.
    pub fn serve(&self) -> Daemon {
        self.serve_by(self.command(&[]))
    }

    /// Like [`World::serve`], with more environment.
    pub fn serve_with(&self, environment: &[(&str, &str)]) -> Daemon {
        let mut command = self.command(&[]);
        command.envs(environment.iter().copied());
        self.serve_by(command)
    }

    /// Starts the daemon by a command that passes its arguments on, and waits until it is ready.
    pub fn serve_by(&self, mut command: Command) -> Daemon {
        let bundle = self.bundle();
        command.args([
            "serve",
            "--bundle",
            bundle.to_str().expect("UTF-8"),
            "--listen",
            "127.0.0.1:0",
        ]);
        let daemon = Daemon::start(command.stdout(Stdio::null()).stderr(Stdio::piped()));
        daemon.wait_for("the status page is up");
        daemon
    }

    /// Starts the daemon with further arguments and variables. It may never become ready.
    pub fn start_serve(&self, more: &[&str], variables: &[(&str, &str)]) -> Daemon {
        let bundle = self.bundle();
        let bundle = bundle.to_str().expect("UTF-8");
        let args = ["serve", "--bundle", bundle, "--listen", "127.0.0.1:0"];
        let mut command = self.command(&[&args, more].concat());
        command.envs(variables.iter().copied());
        Daemon::start(command.stdout(Stdio::null()).stderr(Stdio::piped()))
    }

    /// As if a daemon had been there until that instant: what is due since then is due at the next
    /// start.
    pub fn ticked_last(&self, tick: Timestamp) {
        let path = self.state().join("fleet.db");
        sandbox::now(async {
            let store = Store::open(&path, Redactor::default()).expect("the store opens");
            store.insert_occurrences(Vec::new(), Some(tick)).await.expect("the tick is recorded");
        });
    }

    /// Containers that belong to a run of this world: names.
    pub fn containers(&self) -> Vec<String> {
        sandbox::containers_of_state(&self.state())
    }
}

/// A running `fleet serve`. Killed when dropped.
pub struct Daemon {
    child: Child,
    lines: mpsc::Receiver<String>,
    seen: std::cell::RefCell<Vec<String>>,
}

impl Daemon {
    fn start(command: &mut Command) -> Self {
        let mut child = command.spawn().expect("fleet serve starts");
        let stderr = child.stderr.take().expect("stderr is piped");
        let (say, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                if say.send(line).is_err() {
                    return;
                }
            }
        });
        Daemon { child, lines, seen: std::cell::RefCell::default() }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits for a log line that contains `text`, and returns it.
    pub fn wait_for(&self, text: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => {
                    self.seen.borrow_mut().push(line.clone());
                    if line.contains(text) {
                        return line;
                    }
                }
                Err(_) => {
                    panic!("no log line with {text:?}; the log:\n{}", self.seen.borrow().join("\n"))
                }
            }
        }
    }

    /// The log lines that were waited through.
    pub fn log(&self) -> String {
        self.seen.borrow().join("\n")
    }

    /// kill -9.
    pub fn kill(mut self) {
        self.child.kill().expect("the daemon is killed");
        self.child.wait().expect("the daemon is reaped");
    }

    /// How it ended by itself.
    pub fn end(mut self) -> ExitStatus {
        let deadline = Instant::now() + PATIENCE;
        loop {
            // Reading on keeps its pipe open and shows the log when it does not end.
            while let Ok(line) = self.lines.try_recv() {
                self.seen.borrow_mut().push(line);
            }
            if let Some(status) = self.child.try_wait().expect("the daemon is a child") {
                return status;
            }
            assert!(
                Instant::now() < deadline,
                "the daemon does not end; its log:\n{}",
                self.seen.borrow().join("\n")
            );
            std::thread::park_timeout(Duration::from_millis(10));
        }
    }

    /// SIGTERM, and its exit code.
    pub fn stop(mut self) -> Option<i32> {
        self.terminate();
        self.child.wait().expect("the daemon is reaped").code()
    }

    /// SIGTERM without waiting.
    pub fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).expect("a pid");
        kill_process(pid, signal).expect("the daemon gets the signal");
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Looks again and again, without a fixed wait, until `look` gives something.
pub fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        if let Some(found) = look() {
            return found;
        }
        std::thread::yield_now();
        std::thread::park_timeout(Duration::from_millis(20));
    }
    panic!("this never came true: {what}");
}
