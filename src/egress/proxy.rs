//! The socket of one sandbox, and who may use it: processes of the
//! sandbox's user.

use std::path::Path;

use tokio::net::UnixListener;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::gate::Gate;
use super::verdicts::Via;

/// A listening proxy. When it is dropped, its connections end and it accepts no more.
pub struct Proxy {
    _stop: DropGuard,
}

impl Proxy {
    /// Listens on a socket that does not exist yet. Connections of users that `admits` refuses are
    /// cut.
    pub fn listen<A>(gate: &Gate, socket: &Path, admits: A) -> std::io::Result<Self>
    where
        A: Fn(u32) -> bool + Send + Sync + 'static,
    {
        let listener = UnixListener::bind(socket)?;
        let stop = gate.closed().child_token();
        let accepting = accept(gate.clone(), listener, admits, stop.clone());
        gate.spawn(accepting);
        Ok(Proxy { _stop: stop.drop_guard() })
    }
}

async fn accept(
    gate: Gate,
    listener: UnixListener,
    admits: impl Fn(u32) -> bool,
    stop: CancellationToken,
) {
    loop {
        let next = async { (gate.place().await, listener.accept().await) };
        let (place, accepted) = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            next = next => next,
        };
        let Some(place) = place else { return };
        match accepted {
            Ok((stream, _)) if stream.peer_cred().is_ok_and(|peer| admits(peer.uid())) => {
                gate.spawn_serving(stream, Via::Sandbox, place, stop.child_token());
            }
            Ok(_) => {}
            // Out of descriptors, mostly: others close theirs.
            Err(_) => tokio::time::sleep(std::time::Duration::from_millis(100)).await,
        }
    }
}
