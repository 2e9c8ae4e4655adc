//! One Podman storage and one skeleton image for the whole suite, and configurations that use them.

use std::fs::File;
use std::path::{Path, PathBuf};

use fleet::config::{Config, LimitsMode, StateDir};
use fleet::sandbox::{
    ContainerLimits, GitMounts, Podman, PodmanSandbox, Recipe, SandboxSpec, SealReport, build,
    existing, preflight,
};
use tokio::sync::OnceCell;

/// The shared image's name.
const IMAGE: &str = "localhost/fleet-tests:skeleton";

/// The storage that all tests share: an image is built in it once. Podman ties a storage to the
/// runtime directory of its first use, so each has its own.
pub fn podman_root() -> PathBuf {
    let home = std::env::var_os("HOME").map(PathBuf::from).expect("HOME is set");
    let runtime = std::env::var("XDG_RUNTIME_DIR").expect("XDG_RUNTIME_DIR is set");
    home.join(".cache/fleet-tests").join(format!("podman{}", runtime.replace('/', "-")))
}

/// A configuration with its own state directory and the shared storage. Limits are best effort: the
/// machines that run tests differ. `FLEET_TEST_RUNTIME` chooses among a host's OCI runtimes.
pub fn config(state: &Path) -> Config {
    Config {
        state: StateDir::new(state),
        bundle: None,
        limits: LimitsMode::BestEffort,
        runtime: std::env::var("FLEET_TEST_RUNTIME").ok(),
        image: IMAGE.to_owned(),
        podman_root: podman_root(),
        listen: ([127, 0, 0, 1], 0).into(),
        max_concurrent_runs: 4,
        shutdown_grace: std::time::Duration::from_secs(30),
        task_wall_timeout: None,
        python_cell_timeout: None,
        budget_winddown_fraction: 0.8,
        context_warn_fraction: 0.75,
        context_compact_fraction: 0.9,
        auto_compact: false,
        retention: None,
        retention_keep_runs: 10,
        disk_min_free: 0,
        warnings: Vec::new(),
        settings: Vec::new(),
    }
}

/// A `fleet.toml` for the binary with the same settings; the image is built by then.
pub fn fleet_toml(state: &Path) -> String {
    now(async {
        let config = config(state);
        let podman = Podman::connect(&config).expect("podman is usable");
        image(&podman, &config).await;
    });
    let storage = podman_root();
    format!(
        "[sandbox]\nlimits = \"best_effort\"\nimage = \"{IMAGE}\"\nstorage = \"{}\"\n",
        storage.display()
    )
}

/// Containers of that state directory.
pub fn containers_of_state(state: &Path) -> Vec<String> {
    now(async {
        let podman = Podman::connect(&config(state)).expect("podman is usable");
        podman.containers().await.expect("podman lists containers")
    })
}

/// Waits for a future on a thread of its own, so that it may be called inside a runtime.
pub fn now<T: Send>(future: impl Future<Output = T> + Send) -> T {
    std::thread::scope(|scope| {
        let waited = scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(future)
        });
        waited.join().expect("the future ends")
    })
}

/// Builds the shared image unless it is there. Processes of the suite wait for each other.
pub async fn image(podman: &Podman, config: &Config) {
    static BUILT: OnceCell<()> = OnceCell::const_new();
    BUILT
        .get_or_init(|| async {
            std::fs::create_dir_all(podman_root()).expect("storage directory");
            let lock = podman_root().with_extension("lock");
            let lock = File::create(lock).expect("lock file");
            let lock = tokio::task::spawn_blocking(move || lock.lock().map(|()| lock));
            let _lock = lock.await.expect("no panic").expect("lock");
            if existing(podman, config).await.expect("storage is usable").is_none() {
                let say = |line: &str| eprintln!("{line}");
                build(podman, config, Recipe::Skeleton, &say).await.expect("skeleton is built");
            }
        })
        .await;
}

/// A scratch state directory, with Podman and the seal of this host.
pub struct Cell {
    pub dir: tempfile::TempDir,
    pub config: Config,
    pub podman: Podman,
    pub seal: SealReport,
}

impl Cell {
    pub async fn new() -> Self {
        Self::of(None).await
    }

    /// With that OCI runtime instead of the host's.
    pub async fn of_runtime(name: &str) -> Self {
        Self::of(Some(name.to_owned())).await
    }

    async fn of(runtime: Option<String>) -> Self {
        let dir = tempfile::tempdir().expect("scratch directory");
        let config = Config { runtime, ..config(&dir.path().join("state")) };
        let podman = Podman::connect(&config).expect("podman is usable");
        image(&podman, &config).await;
        let seal = preflight(&podman, &config).await.expect("the seal holds");
        Cell { dir, config, podman, seal }
    }

    /// A directory of this test.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// What a run called `run_id` is made of, in the workspace `ws`.
    pub fn spec(&self, run_id: &str) -> SandboxSpec {
        let workspace = self.path("ws");
        std::fs::create_dir_all(&workspace).expect("workspace");
        SandboxSpec {
            run_id: run_id.to_owned(),
            task: "some-task".to_owned(),
            instance: "0123456789abcdef".to_owned(),
            boot: "boot".to_owned(),
            image: self.config.image.clone(),
            runtime: Some(self.seal.runtime.clone()),
            workspace,
            git: None,
            limits: ContainerLimits {
                memory_mb: 1024,
                cpus: 1.0,
                pids: 256,
                disk_mb: 256,
                nofile: 1024,
            },
            egress: None,
        }
    }

    /// The same over a repository's metadata.
    pub fn spec_with(&self, run_id: &str, workspace: PathBuf, git: GitMounts) -> SandboxSpec {
        SandboxSpec { workspace, git: Some(git), ..self.spec(run_id) }
    }

    pub async fn start(&self, run_id: &str) -> PodmanSandbox {
        self.start_spec(self.spec(run_id)).await
    }

    pub async fn start_spec(&self, spec: SandboxSpec) -> PodmanSandbox {
        PodmanSandbox::start(&self.podman, &self.seal, spec).await.expect("sandbox starts")
    }
}

impl Cell {
    /// What this state directory's containers and doors are marked with.
    pub fn state_label(&self) -> String {
        use sha2::{Digest, Sha256};
        let digest = Sha256::digest(self.config.state.root().as_os_str().as_encoded_bytes());
        digest[..4].iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Names of the containers of a run, of whatever state directory.
pub async fn containers(podman: &Podman, run_id: &str) -> Vec<String> {
    podman.containers_of(run_id).await.expect("podman lists containers")
}

/// Waits for a condition of the outside world, which tells nobody when it comes.
pub async fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let until = std::time::Instant::now() + std::time::Duration::from_secs(10);
    let mut look_again = tokio::time::interval(std::time::Duration::from_millis(20));
    while !holds() {
        assert!(std::time::Instant::now() < until, "{what}: not within 10 s");
        look_again.tick().await;
    }
}

/// Where Podman's run state of a storage lies.
pub fn run_dir(root: &Path) -> PathBuf {
    use sha2::Digest;
    let digest = sha2::Sha256::digest(root.as_os_str().as_encoded_bytes());
    let hash: String = digest[..4].iter().map(|byte| format!("{byte:02x}")).collect();
    let runtime_dir = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    runtime_dir.expect("XDG_RUNTIME_DIR is set").join("fleet").join(hash)
}

/// Podman over the suite's storage, as fleet calls it.
pub fn podman_command(runtime: &str) -> std::process::Command {
    let root = podman_root();
    let run_dir = run_dir(&root);
    let mut command = std::process::Command::new("podman");
    command.arg("--root").arg(root).arg("--runroot").arg(run_dir.join("rr"));
    command.arg("--tmpdir").arg(run_dir.join("tmp"));
    command.args(["--storage-driver", "overlay", "--runtime", runtime]);
    command
}
