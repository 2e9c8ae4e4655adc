//! What `--fix` does with the rights of an ordinary user: fleet's own things, and nothing else.

use super::check::Repair;
use super::stale;
use crate::cli::Global;
use crate::runner::{holders, with_causes};
use crate::sandbox::{self, Podman, Python, Recipe};

impl Repair {
    /// What is about to be done, before it is done.
    pub fn announcement(self, global: &Global) -> String {
        match self {
            Repair::StorageAnew => format!(
                "removing fleet's own Podman storage {}, so that it is made anew with overlay: its \
                 images are built again, and no other storage is touched",
                global.config.podman_root.display()
            ),
            Repair::BuildImage => format!("building the image {}", global.config.image),
            Repair::ClearStale => {
                "removing what dead processes of this state directory left".to_owned()
            }
        }
    }

    /// Does it; what was done.
    pub async fn carry_out(self, global: &Global) -> Result<String, String> {
        match self {
            Repair::StorageAnew => storage_anew(global).await,
            Repair::BuildImage => build_image(global).await,
            Repair::ClearStale => stale::clear(global).await,
        }
    }
}

async fn storage_anew(global: &Global) -> Result<String, String> {
    let config = &global.config;
    let root = &config.podman_root;
    if *root != config.state.podman_root() {
        return Err(format!(
            "{} is not the storage in the state directory, and may be somebody else's too: remove it \
             yourself with `podman unshare rm -rf {}`, or remove sandbox.storage from fleet.toml",
            root.display(),
            root.display()
        ));
    }
    let living = holders(&config.state);
    if !living.is_empty() {
        let pids = living.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        return Err(format!("processes of fleet still use it (pid {pids}): stop them first"));
    }
    let podman = Podman::connect(config).map_err(|error| with_causes(&error))?;
    podman.remove_storage().await.map_err(|error| with_causes(&error))?;
    Ok(format!("removed {}", root.display()))
}

async fn build_image(global: &Global) -> Result<String, String> {
    let config = &global.config;
    let podman = Podman::connect(config).map_err(|error| with_causes(&error))?;
    let say = |line: &str| eprintln!("    {line}");
    let recipe = Recipe::Best { python: Python::Plain };
    let image = sandbox::build(&podman, config, recipe, &say).await;
    let image = image.map_err(|error| with_causes(&error))?;
    Ok(format!("built {}, id {}", config.image, image.id))
}
