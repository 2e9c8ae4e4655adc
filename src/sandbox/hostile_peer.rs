//! A helper that says anything at all: plays a script of bytes to a connection with one call of each
//! kind in flight. For tests and the fuzz target, which hold that every call ends, by a reply of its
//! own kind or by a typed error, and that nothing is asked of a connection that was lied to.

use serde_json::{Value, json};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;

use super::call::{Call, CallError, Reply};
use super::connection::{Connection, InFlight};

const HASH: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
const KINDS: [&str; 5] = ["not_found", "cancelled", "io", "too_large", "odd"];

/// The bytes of a script, as they are taken.
struct Script<'a>(&'a [u8]);

impl<'a> Script<'a> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn some(&mut self, length: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(length.min(self.0.len()));
        self.0 = rest;
        taken
    }
}

/// One call of each kind; their ids are 1 to 8.
fn calls() -> [Call; 8] {
    let path = || "a".to_owned();
    let second = Duration::from_secs(1);
    [
        Call::Bash { command: "true".into(), cwd: None, timeout: second },
        Call::Python {
            code: "1".into(),
            timeout: second,
            reset_kernel: false,
            return_vars: vec![],
        },
        Call::Read { path: path(), offset: 0, limit: 64 },
        Call::Write { path: path(), content: vec![] },
        Call::Stat { path: path() },
        Call::List { path: path() },
        Call::CollectGit { base: "0".repeat(40), message: "m".into(), max_bytes: 64 },
        Call::Resources,
    ]
}

/// A reply that fits the call of that id, whoever gets it.
fn fitting(id: u8) -> Value {
    match id {
        1 => json!({"ok": true, "exit_code": 0, "dropped_bytes": 3, "head_len": 2}),
        2 => json!({"ok": true, "value": "1", "error": null, "figures": ["figures/a.png"]}),
        3 | 4 => json!({"ok": true, "size": 0, "sha256": HASH}),
        5 => json!({"ok": true, "kind": "file", "size": 3}),
        6 => json!({"ok": true, "names": ["a"]}),
        7 => json!({"ok": true, "head": null, "has_bundle": true}),
        _ => json!({"ok": true, "oom_kills": 0, "memory_peak": null}),
    }
}

fn framed(header: &[u8], body: &[u8]) -> Vec<u8> {
    let lengths = [header.len(), body.len()].map(|n| u32::try_from(n).expect("a short script"));
    [&lengths[0].to_be_bytes(), &lengths[1].to_be_bytes(), header, body].concat()
}

/// The next bytes that the peer sends: a frame that is right, nearly right, or no frame.
fn next(script: &mut Script<'_>) -> Option<Vec<u8>> {
    let (what, id) = (script.byte()?, script.byte()? % 10);
    Some(match what % 6 {
        // A good reply, or one to the wrong call.
        0 | 1 => {
            let mut header = fitting(if what < 200 { id } else { script.byte()? % 9 });
            header["id"] = json!(id);
            let length = usize::from(script.byte()?) % 80;
            framed(header.to_string().as_bytes(), script.some(length))
        }
        2 => {
            let kind = KINDS[usize::from(script.byte()?) % KINDS.len()];
            let header = json!({"id": id, "ok": false, "kind": kind, "message": "no"});
            framed(header.to_string().as_bytes(), b"")
        }
        // Any text as a header; lengths that lie; no frame.
        3 => {
            let length = usize::from(script.byte()?);
            framed(script.some(length), b"")
        }
        4 => script.some(8).to_vec(),
        _ => {
            let length = usize::from(script.byte()?);
            script.some(length).to_vec()
        }
    })
}

/// Whether a reply is of its call's kind.
fn fits(id: usize, reply: &Reply) -> bool {
    matches!(
        (id, reply),
        (1, Reply::Command(_))
            | (2, Reply::Kernel(_))
            | (3, Reply::Content(_))
            | (4, Reply::Written { .. })
            | (5, Reply::Stat { .. })
            | (6, Reply::Names(_))
            | (7, Reply::Git(_))
            | (8, Reply::Resources(_))
    )
}

/// Plays a script. Panics when a promise is broken.
pub(super) fn play(script: &[u8]) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let (ours, mut peer) = UnixStream::pair().expect("a pair of sockets");
        let connection = Connection::new(ours, Box::new(|| None));
        let mut sent: Vec<Option<InFlight>> = Vec::new();
        for call in calls() {
            sent.push(connection.send(call).await.ok());
        }
        let mut script = Script(script);
        // The first byte says which callers go away at once.
        let gone = script.byte().unwrap_or(0);
        for (at, call) in sent.iter_mut().enumerate() {
            if gone & (1 << at) != 0 {
                call.take();
            }
        }
        while let Some(bytes) = next(&mut script) {
            if peer.write_all(&bytes).await.is_err() {
                break;
            }
        }
        drop(peer);
        for (at, call) in sent.iter_mut().enumerate() {
            let Some(call) = call else { continue };
            match call.answer().await {
                Ok(reply) => assert!(fits(at + 1, &reply), "call {} got {reply:?}", at + 1),
                Err(CallError::Refused { .. } | CallError::Cancelled | CallError::Gone(_)) => {}
            }
        }
        connection.ended().cancelled().await;
        let later = connection.send(Call::Resources).await.err().expect("nothing is reused");
        assert!(matches!(later, CallError::Gone(_)), "{later:?}");
    });
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn deep_and_broken_texts_end_the_connection() {
        let deep = "[".repeat(100_000);
        let nested = format!("{{\"id\":1,\"ok\":true,\"x\":{deep}");
        for text in
            [deep.as_bytes(), nested.as_bytes(), b"{\"id\": 1e999}", b"{\"id\":\xff}", b"null"]
        {
            let mut script = vec![0];
            for chunk in framed(text, b"").chunks(255) {
                script.extend([5, 0, u8::try_from(chunk.len()).expect("a chunk")]);
                script.extend(chunk);
            }
            play(&script);
        }
    }

    #[test]
    fn whatever_a_peer_sends_every_call_ends() {
        proptest!(|(script in proptest::collection::vec(any::<u8>(), 0..600))| play(&script));
    }

    #[test]
    fn whatever_replies_come_in_whatever_order_every_call_ends() {
        let frame = (0_u8..3, 0_u8..10, 0_u8..80);
        proptest!(|(gone in any::<u8>(), frames in proptest::collection::vec(frame, 0..20))| {
            let mut script = vec![gone];
            for (what, id, length) in frames {
                script.extend([what, id, length]);
                if what < 2 {
                    script.extend(std::iter::repeat_n(b'x', usize::from(length)));
                }
            }
            play(&script);
        });
    }
}
