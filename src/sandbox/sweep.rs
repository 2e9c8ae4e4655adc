//! Removes containers: one, a run's, or those of processes that are dead. Strangers' containers are
//! in other storage or carry other labels, and are never touched.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::Deserialize;
use tracing::warn;

use super::command;
use super::error::PodmanError;
use super::podman::Podman;

/// The instance in the owner file of a probe's door: probes are no holders.
pub(super) const PROBE: &str = "probe";
/// No probe takes this long.
const PROBE_PATIENCE: Duration = Duration::from_secs(600);
/// How long a large tree may take to remove.
const TREE_PATIENCE: Duration = Duration::from_secs(600);
const GONE_PATIENCE: Duration = Duration::from_secs(20);
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// A container as `podman ps` tells.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Row {
    id: String,
    #[serde(default)]
    names: Vec<String>,
    #[serde(default)]
    labels: Option<std::collections::HashMap<String, String>>,
}

impl Podman {
    /// Kills and removes one container, and waits until it is gone. No such container is fine.
    pub(super) async fn remove_container(&self, name: &str) -> Result<(), PodmanError> {
        self.remove(&[name.to_owned()]).await
    }

    /// Removes a container whose `podman run` failed or was killed: Podman may not know it.
    pub(super) async fn remove_given_up(&self, name: &str) -> Result<(), PodmanError> {
        let removed = self.remove_container(name).await;
        self.end_monitor(name).await;
        removed
    }

    /// Removes all containers of a run of this state directory and waits until they are gone.
    pub async fn remove_run(&self, run_id: &str) -> Result<(), PodmanError> {
        let filter = format!("label=fleet.run={run_id}");
        let ids = self.rows(&filter).await?.into_iter().map(|row| row.id).collect::<Vec<_>>();
        self.remove(&ids).await
    }

    /// The ids of this state directory's containers, whoever started them.
    pub async fn containers(&self) -> Result<Vec<String>, PodmanError> {
        Ok(self.rows("label=fleet.run").await?.into_iter().map(|row| row.id).collect())
    }

    /// Removes a directory tree with the rights of the user namespace: what containers and overlays
    /// leave may belong to subordinate ids. Follows no link and leaves mounts alone.
    pub async fn remove_tree(&self, path: &Path) -> Result<(), PodmanError> {
        let fixed = ["unshare", "rm", "-rf", "--one-file-system", "--"].map(OsStr::new);
        self.output(fixed.into_iter().chain([path.as_os_str()]), TREE_PATIENCE).await.map(drop)
    }

    /// Removes fleet's own storage and its run state, whatever driver it was made with. The caller has
    /// seen to it that nobody uses it.
    pub async fn remove_storage(&self) -> Result<(), PodmanError> {
        // Without the global flags: with them Podman would open the storage first.
        let mut command = command::command(self.program(), &self.environment());
        command.args(["unshare", "rm", "-rf", "--one-file-system", "--"]).arg(self.root());
        command.arg(self.run_dir().join("rr")).arg(self.run_dir().join("tmp"));
        self.forget_images();
        let verb = "unshare".to_owned();
        let finished = command::finish(command, TREE_PATIENCE).await;
        let finished = finished.map_err(|error| PodmanError::NotRun {
            verb: verb.clone(),
            reason: error.to_string(),
        })?;
        match finished.code {
            Some(0) => Ok(()),
            code => Err(PodmanError::Failed {
                verb,
                status: code.unwrap_or(-1),
                stderr: finished.stderr_tail(),
            }),
        }
    }

    async fn remove(&self, names: &[String]) -> Result<(), PodmanError> {
        if names.is_empty() {
            return Ok(());
        }
        let until = Instant::now() + GONE_PATIENCE;
        let fixed = ["rm", "--force", "--time", "0", "--ignore"].map(str::to_owned);
        loop {
            let args = fixed.iter().chain(names);
            let failure = self.output(args, self.patience()).await.err();
            // `--rm` may be removing it at the same time: what counts is that it is gone.
            if self.all_gone(names).await? {
                return Ok(());
            }
            if Instant::now() > until {
                let what = names.join(" ");
                let seconds = GONE_PATIENCE.as_secs();
                return Err(failure.unwrap_or(PodmanError::StillThere { what, seconds }));
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// Names of a run's containers of this state directory.
    pub async fn containers_of(&self, run_id: &str) -> Result<Vec<String>, PodmanError> {
        let rows = self.rows(&format!("label=fleet.run={run_id}")).await?;
        Ok(rows.into_iter().flat_map(|row| row.names).collect())
    }

    async fn all_gone(&self, names: &[String]) -> Result<bool, PodmanError> {
        for name in names {
            let exists = self.finish(None, ["container", "exists", name], self.patience()).await?;
            if exists.code != Some(1) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// This state directory's containers that pass another filter.
    async fn rows(&self, filter: &str) -> Result<Vec<Row>, PodmanError> {
        let mine = format!("label=fleet.state={}", self.state_label());
        let args = ["ps", "--all", "--format", "json", "--filter", &mine, "--filter", filter];
        let stdout = self.output(args, self.patience()).await?;
        serde_json::from_slice(&stdout).map_err(|error| PodmanError::Output {
            verb: "ps".to_owned(),
            reason: error.to_string(),
        })
    }
}

/// What dead processes of this state directory left.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Orphans {
    /// Ids of containers.
    pub containers: Vec<String>,
    /// Files that tell whose a door is; the door lies beside.
    pub doors: Vec<PathBuf>,
}

/// Finds the containers of this state directory whose instance is not alive, and the doors that dead
/// processes left.
pub async fn orphans(
    podman: &Podman,
    alive: &(dyn Fn(&str) -> bool + Send + Sync),
) -> Result<Orphans, PodmanError> {
    let rows = podman.rows("label=fleet.instance").await?;
    let containers = rows.into_iter().filter(|row| !lives(row, alive)).map(|row| row.id).collect();
    Ok(Orphans { containers, doors: dead_doors(podman, alive)? })
}

/// Removes them. How many containers went.
pub async fn sweep(
    podman: &Podman,
    alive: &(dyn Fn(&str) -> bool + Send + Sync),
) -> Result<usize, PodmanError> {
    let orphans = orphans(podman, alive).await?;
    let mut removed = 0;
    for id in &orphans.containers {
        match podman.remove(std::slice::from_ref(id)).await {
            Ok(()) => removed += 1,
            Err(error) => {
                warn!(container = %id, %error, "cannot remove the container of a dead process")
            }
        }
    }
    for owner in &orphans.doors {
        // Read first: it goes with the door.
        let container = container_of(owner);
        remove_door(owner)?;
        if let Some(container) = container {
            podman.end_monitor(&container).await;
        }
    }
    Ok(removed)
}

fn lives(row: &Row, alive: &dyn Fn(&str) -> bool) -> bool {
    let instance = row.labels.as_ref().and_then(|labels| labels.get("fleet.instance"));
    instance.is_some_and(|instance| alive(instance))
}

fn failed(verb: &'static str, path: &Path, error: &std::io::Error) -> PodmanError {
    PodmanError::Files { verb, path: path.display().to_string(), reason: error.to_string() }
}

fn dead_doors(podman: &Podman, alive: &dyn Fn(&str) -> bool) -> Result<Vec<PathBuf>, PodmanError> {
    let dir = podman.run_dir();
    let mut dead = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(|error| failed("list", dir, &error))? {
        let path = entry.map_err(|error| failed("list", dir, &error))?.path();
        if path.extension().is_none_or(|extension| extension != "owner") {
            continue;
        }
        let owner = std::fs::read_to_string(&path).unwrap_or_default();
        let mut lines = owner.lines();
        let (state, instance) = (lines.next(), lines.next());
        let lives = match instance {
            Some(PROBE) => is_young(&path),
            Some(instance) => alive(instance),
            None => true,
        };
        if state == Some(podman.state_label()) && !lives {
            dead.push(path);
        }
    }
    Ok(dead)
}

/// The container that a door was made for.
fn container_of(owner: &Path) -> Option<String> {
    let owner = std::fs::read_to_string(owner).ok()?;
    owner.lines().nth(2).map(str::to_owned)
}

fn remove_door(owner: &Path) -> Result<(), PodmanError> {
    let door = owner.with_extension("");
    match std::fs::remove_dir_all(&door) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(failed("remove", &door, &error))
        }
        _ => std::fs::remove_file(owner).map_err(|error| failed("remove", owner, &error)),
    }
}

/// Whether a file was written so lately that a probe may still use its door. In doubt it was.
fn is_young(path: &Path) -> bool {
    let written = std::fs::metadata(path).and_then(|file| file.modified());
    let age = written.ok().and_then(|written| written.elapsed().ok());
    age.is_none_or(|age| age < PROBE_PATIENCE)
}
