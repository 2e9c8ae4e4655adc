//! The one way into a running sandbox: a private directory with a socket, a token and the helper,
//! mounted read-only inside. One connection is accepted, the right one, and the door is shut.

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::net::{UnixListener, UnixStream};

use super::podman::random_hex;
use super::{frame, helper};

/// The egress proxy's socket in a door, where a run has one. The helper looks for it.
const EGRESS: &str = "e";
/// How long one peer may take for its hello.
const HELLO: Duration = Duration::from_secs(5);
const MAX_PATH: usize = 100;

/// The directory of one sandbox; removed when it is dropped. Not `Debug`: it holds the token.
pub(super) struct Door {
    dir: PathBuf,
    /// Beside the directory: who made it.
    owner: PathBuf,
    token: String,
}

/// An open [`Door`], waiting for the helper.
#[derive(Debug)]
pub(super) struct OpenDoor {
    listener: UnixListener,
}

/// Name of the file that tells whose door a directory is.
pub(super) fn owner_file(dir: &Path) -> PathBuf {
    dir.with_extension("owner")
}

impl Door {
    /// Makes a door under `parent`. `owner` is written first, so that a sweep never meets a
    /// directory that belongs to nobody.
    pub fn make(parent: &Path, owner: &str) -> Result<(Self, OpenDoor), String> {
        let short = random_hex(4)?;
        let dir = parent.join(&short);
        let token = random_hex(32)?;
        let socket = dir.join("s");
        if socket.as_os_str().len() > MAX_PATH {
            return Err(format!(
                "the path {} is too long for a socket: use a shorter XDG_RUNTIME_DIR",
                socket.display()
            ));
        }
        let door = Door { owner: owner_file(&dir), dir, token };
        door.fill(owner).map_err(|error| format!("cannot make {}: {error}", door.dir.display()))?;
        let listener = UnixListener::bind(&socket)
            .map_err(|error| format!("cannot listen on {}: {error}", socket.display()))?;
        Ok((door, OpenDoor { listener }))
    }

    fn fill(&self, owner: &str) -> std::io::Result<()> {
        helper::write_private(&self.owner, owner)?;
        fs::DirBuilder::new().mode(0o700).create(&self.dir)?;
        helper::write_private(&self.dir.join("token"), &self.token)?;
        helper::write_into(&self.dir)
    }

    /// Where the egress proxy listens.
    pub fn egress_socket(&self) -> PathBuf {
        self.dir.join(EGRESS)
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        // What cannot be removed now is removed by a sweep: the owner file stays until then.
        if fs::remove_dir_all(&self.dir).is_ok() {
            let _ = fs::remove_file(&self.owner);
        }
    }
}

/// Who may knock: this user, and under gVisor, whose file server connects in the sandbox's place,
/// this user's subordinate ids.
#[derive(Clone, Debug)]
pub(super) struct Peers {
    pub uid: u32,
    /// (first, how many)
    pub subordinate: Vec<(u32, u32)>,
}

impl Peers {
    /// Whether a process of that user may speak.
    pub fn include(&self, uid: u32) -> bool {
        let among =
            |(first, count): &(u32, u32)| uid.checked_sub(*first).is_some_and(|i| i < *count);
        uid == self.uid || self.subordinate.iter().any(among)
    }
}

impl OpenDoor {
    /// Waits for the helper and shuts the door behind it. Peers of another user, or without the
    /// token, are turned away and the wait goes on.
    pub async fn admit(
        &self,
        door: &Door,
        peers: &Peers,
        workspace: &str,
    ) -> Result<UnixStream, String> {
        loop {
            let (mut stream, _) = self
                .listener
                .accept()
                .await
                .map_err(|error| format!("cannot accept the helper's connection: {error}"))?;
            let same_user = stream.peer_cred().is_ok_and(|peer| peers.include(peer.uid()));
            if !same_user {
                continue;
            }
            let greeted = tokio::time::timeout(HELLO, greet(&mut stream, door, workspace)).await;
            if let Ok(Ok(())) = greeted {
                return Ok(stream);
            }
        }
    }
}

/// Checks a hello and answers it.
async fn greet(stream: &mut UnixStream, door: &Door, workspace: &str) -> Result<(), String> {
    let header = frame::read_header(stream).await.map_err(|error| error.to_string())?;
    let text = |name: &str| header.value.get(name).and_then(Value::as_str).unwrap_or("").to_owned();
    let version = header.value.get("hello").and_then(Value::as_u64);
    let known = same(text("token").as_bytes(), door.token.as_bytes());
    if header.body != 0 || version != Some(1) || !known {
        return Err("it did not give the token".to_owned());
    }
    let welcome = json!({"welcome": 1, "workspace": workspace});
    frame::write(stream, &welcome, &[]).await.map_err(|error| error.to_string())
}

/// Compares in a time that tells nothing but the length.
fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn hello(door: &Door, token: &str) -> std::io::Result<Value> {
        let mut stream = UnixStream::connect(door.dir().join("s")).await?;
        frame::write(&mut stream, &json!({"hello": 1, "token": token}), &[]).await?;
        match frame::read_header(&mut stream).await {
            Ok(header) => Ok(header.value),
            Err(error) => Err(std::io::Error::other(error.to_string())),
        }
    }

    fn peers() -> Peers {
        Peers { uid: rustix::process::geteuid().as_raw(), subordinate: Vec::new() }
    }

    #[test]
    fn only_this_user_and_its_subordinate_ids_may_knock() {
        let peers = Peers { uid: 1001, subordinate: vec![(100_000, 65_536)] };
        let seen = [0, 1000, 1001, 99_999, 100_000, 165_535, 165_536].map(|uid| peers.include(uid));
        assert_eq!(seen, [false, false, true, false, true, true, false]);
    }

    #[tokio::test]
    async fn only_the_token_opens_the_door_and_it_shuts_behind_it() {
        let parent = tempfile::tempdir().expect("scratch directory");
        let (door, open) = Door::make(parent.path(), "me").expect("door");
        let right = door.token.clone();
        let visits = async {
            let wrong = hello(&door, &"0".repeat(64)).await.is_err();
            let welcome = hello(&door, &right).await.expect("welcome");
            (wrong, welcome)
        };
        let admitting = async {
            let admitted = open.admit(&door, &peers(), "/w").await;
            drop(open);
            admitted
        };
        let (admitted, visited) = tokio::join!(admitting, visits);
        admitted.expect("the helper is let in");
        assert_eq!(visited, (true, json!({"welcome": 1, "workspace": "/w"})));
        hello(&door, &right).await.expect_err("the door is shut");
    }

    #[tokio::test]
    async fn dropped_door_leaves_nothing() {
        let parent = tempfile::tempdir().expect("scratch directory");
        let (door, _open) = Door::make(parent.path(), "me").expect("door");
        assert_eq!(fs::read_dir(parent.path()).expect("list").count(), 2);
        drop(door);
        assert_eq!(fs::read_dir(parent.path()).expect("list").count(), 0);
    }
}
