//! What `--fix` repairs, and what it does not touch.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use super::{said, wrong};
use crate::env::sandbox::{Cell, containers, fleet_toml};
use crate::env::world::World;

/// Programs that are needed, without mmdebstrap: an image is built over the host's `/usr` then.
fn few_programs(dir: &Path) -> PathBuf {
    let bin = dir.join("bin");
    std::fs::create_dir_all(&bin).expect("directory");
    for program in ["podman", "crun", "runc", "git"] {
        let found = ["/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin"]
            .map(|dir| Path::new(dir).join(program))
            .into_iter()
            .find(|path| path.exists())
            .expect("the program is installed");
        std::os::unix::fs::symlink(found, bin.join(program)).expect("link");
    }
    bin
}

fn doctor(world: &World, args: &[&str]) -> Output {
    let bin = few_programs_of(world);
    world.command(&[&["doctor"], args].concat()).env("PATH", bin).output().expect("fleet starts")
}

fn few_programs_of(world: &World) -> PathBuf {
    let bin = world.path().join("bin");
    if bin.exists() { bin } else { few_programs(world.path()) }
}

/// Makes a Podman storage with the driver vfs, where and as fleet would have its own.
fn make_vfs(world: &World, root: &Path) {
    use sha2::Digest;
    let digest = sha2::Sha256::digest(root.as_os_str().as_encoded_bytes());
    let hash: String = digest[..4].iter().map(|byte| format!("{byte:02x}")).collect();
    let runtime = PathBuf::from(std::env::var_os("XDG_RUNTIME_DIR").expect("set"));
    let run = runtime.join("fleet").join(hash);
    let mut podman: Command = world.program("podman", &["--storage-driver", "vfs"]);
    podman.arg("--root").arg(root).arg("--runroot").arg(run.join("rr"));
    podman.arg("--tmpdir").arg(run.join("tmp")).arg("info");
    let made = podman.output().expect("podman starts");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

#[test]
fn storage_on_vfs_is_made_anew_after_saying_so_and_the_image_is_built() {
    let world = World::new(&[]);
    std::fs::write(world.state().join("fleet.toml"), "[sandbox]\nlimits = \"best_effort\"\n")
        .expect("fleet.toml");
    let root = world.state().join("podman");
    make_vfs(&world, &root);
    let seen = doctor(&world, &["--json"]);
    let found = wrong(&seen);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((seen.status.code(), found[0].0.as_str()), (Some(1), "storage driver"));

    let fixed = doctor(&world, &["--fix", "--json"]);
    let told = said(&fixed);
    assert_eq!((fixed.status.code(), wrong(&fixed)), (Some(0), vec![]), "{told}");
    let announced = format!(
        "fixing storage driver: removing fleet's own Podman storage {}, so that it is made anew",
        root.display()
    );
    assert!(told.starts_with(&announced), "{told}");
    assert!(told.contains("fixing image: building the image"), "{told}");

    let again = doctor(&world, &["--fix", "--json"]);
    assert_eq!((again.status.code(), said(&again).as_str()), (Some(0), ""));
    remove_storage(&root);
}

#[test]
fn storage_outside_the_state_directory_is_not_touched() {
    let world = World::new(&[]);
    let root = world.path().join("somebody's-storage");
    let toml = format!("[sandbox]\nlimits = \"best_effort\"\nstorage = \"{}\"\n", root.display());
    std::fs::write(world.state().join("fleet.toml"), toml).expect("fleet.toml");
    make_vfs(&world, &root);
    let output = doctor(&world, &["--fix", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let told = said(&output);
    assert!(
        told.contains("not fixed: ") && told.contains("is not the storage in the state"),
        "{told}"
    );
    assert!(root.join("vfs").exists() || root.join("libpod").exists());
    remove_storage(&root);
}

/// Files in it belong to subordinate ids.
fn remove_storage(root: &Path) {
    let removed = Command::new("podman").args(["unshare", "rm", "-rf", "--"]).arg(root).output();
    assert!(removed.expect("podman starts").status.success());
}

#[tokio::test]
async fn what_dead_processes_left_goes_and_a_stranger_s_container_stays() {
    let (cell, stranger) = (Cell::new().await, Cell::new().await);
    let _orphan = cell.start("run-orphan").await;
    let other = stranger.start("run-stranger").await;
    let state = cell.config.state.root().to_owned();
    std::fs::write(state.join("fleet.toml"), fleet_toml(&state)).expect("fleet.toml");
    let overlay = state.join("runs/01nobody/1/upper");
    std::fs::create_dir_all(&overlay).expect("directory");
    let world = World::new(&[]);
    let run = |args: &[&str]| {
        let mut command = world.command(args);
        command.env("FLEET_STATE_DIR", &state).output().expect("fleet starts")
    };
    let seen = run(&["doctor", "--json"]);
    let message =
        "1 container, 1 door, 1 overlay of dead processes: `fleet doctor --fix` removes them";
    assert_eq!(wrong(&seen), [("stale state".to_owned(), message.to_owned())]);

    let fixed = run(&["doctor", "--fix", "--json"]);
    let told = said(&fixed);
    assert_eq!((fixed.status.code(), wrong(&fixed)), (Some(0), vec![]), "{told}");
    assert!(told.contains("removed 1 container, 1 door, 1 overlay"), "{told}");
    assert!(!state.join("runs/01nobody").exists());
    assert_eq!(containers(&cell.podman, "run-orphan").await, Vec::<String>::new());
    assert_eq!(containers(&stranger.podman, "run-stranger").await.len(), 1);
    fleet::sandbox::Sandbox::close(&other).await;
}
