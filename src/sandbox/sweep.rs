//! Removes containers: one, a run's, or those of processes that are dead. Strangers' containers are
//! in other storage or carry other labels, and are never touched.

use std::ffi::OsStr;
use std::path::Path;
use std::time::{Duration, Instant};

use serde::Deserialize;
use tracing::warn;

use super::error::PodmanError;
use super::podman::{PATIENCE, Podman};

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

    async fn remove(&self, names: &[String]) -> Result<(), PodmanError> {
        if names.is_empty() {
            return Ok(());
        }
        let until = Instant::now() + GONE_PATIENCE;
        let fixed = ["rm", "--force", "--time", "0", "--ignore"].map(str::to_owned);
        loop {
            let args = fixed.iter().chain(names);
            let failure = self.output(args, PATIENCE).await.err();
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
            let exists = self.finish(None, ["container", "exists", name], PATIENCE).await?;
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
        let stdout = self.output(args, PATIENCE).await?;
        serde_json::from_slice(&stdout).map_err(|error| PodmanError::Output {
            verb: "ps".to_owned(),
            reason: error.to_string(),
        })
    }
}

/// Removes the containers of this state directory whose instance is not alive, and the doors that
/// dead processes left. How many containers went.
pub async fn sweep(
    podman: &Podman,
    alive: &(dyn Fn(&str) -> bool + Send + Sync),
) -> Result<usize, PodmanError> {
    let rows = podman.rows("label=fleet.instance").await?;
    let orphans: Vec<String> =
        rows.into_iter().filter(|row| !lives(row, alive)).map(|row| row.id).collect();
    let mut removed = 0;
    for id in &orphans {
        match podman.remove(std::slice::from_ref(id)).await {
            Ok(()) => removed += 1,
            Err(error) => {
                warn!(container = %id, %error, "cannot remove the container of a dead process")
            }
        }
    }
    sweep_doors(podman, alive)?;
    Ok(removed)
}

fn lives(row: &Row, alive: &dyn Fn(&str) -> bool) -> bool {
    let instance = row.labels.as_ref().and_then(|labels| labels.get("fleet.instance"));
    instance.is_some_and(|instance| alive(instance))
}

fn sweep_doors(podman: &Podman, alive: &dyn Fn(&str) -> bool) -> Result<(), PodmanError> {
    let dir = podman.run_dir();
    let failed = |verb, path: &Path, error: std::io::Error| PodmanError::Files {
        verb,
        path: path.display().to_string(),
        reason: error.to_string(),
    };
    for entry in std::fs::read_dir(dir).map_err(|error| failed("list", dir, error))? {
        let path = entry.map_err(|error| failed("list", dir, error))?.path();
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
        if state != Some(podman.state_label()) || lives {
            continue;
        }
        let door = path.with_extension("");
        match std::fs::remove_dir_all(&door) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(failed("remove", &door, error));
            }
            _ => std::fs::remove_file(&path).map_err(|error| failed("remove", &path, error))?,
        }
    }
    Ok(())
}

/// Whether a file was written so lately that a probe may still use its door. In doubt it was.
fn is_young(path: &Path) -> bool {
    let written = std::fs::metadata(path).and_then(|file| file.modified());
    let age = written.ok().and_then(|written| written.elapsed().ok());
    age.is_none_or(|age| age < PROBE_PATIENCE)
}
