//! The listening socket and the server's life.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::{StatusContext, routes};

/// How long a stop waits for answers that are under way.
const GRACE: Duration = Duration::from_secs(2);

/// Why the page cannot listen. `Display` names the address; [`BindError::hint`] the way out.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    #[error("the status page cannot listen on {0}: the address is in use")]
    InUse(SocketAddr),
    #[error("the status page cannot listen on {0}: this user may not use that port")]
    Denied(SocketAddr),
    #[error("the status page cannot listen on {0}: it is not a loopback address")]
    OffLoopback(SocketAddr),
    #[error("the status page cannot listen on {address}: {source}")]
    Other {
        address: SocketAddr,
        #[source]
        source: io::Error,
    },
}

impl BindError {
    /// The way out.
    pub fn hint(&self) -> String {
        match self {
            BindError::InUse(address) => format!(
                "stop what listens there (`ss -ltnp 'sport = :{}'` shows it), or choose another \
                 address with `--listen` or `serve.listen` in fleet.toml",
                address.port()
            ),
            BindError::Denied(_) => {
                "choose a port above 1023 with `--listen` or `serve.listen` in \
                                     fleet.toml"
                    .to_owned()
            }
            BindError::OffLoopback(address) => format!(
                "the page has no login, so it stays on this machine: listen on 127.0.0.1:{port} \
                 and reach it with `ssh -L {port}:127.0.0.1:{port} HOST`",
                port = address.port()
            ),
            BindError::Other { .. } => {
                "choose another address with `--listen` or `serve.listen` in fleet.toml".to_owned()
            }
        }
    }
}

/// Opens the page's socket. Refuses addresses that other machines can reach.
pub async fn bind(address: SocketAddr) -> Result<TcpListener, BindError> {
    if !address.ip().to_canonical().is_loopback() {
        return Err(BindError::OffLoopback(address));
    }
    TcpListener::bind(address).await.map_err(|source| match source.kind() {
        io::ErrorKind::AddrInUse => BindError::InUse(address),
        io::ErrorKind::PermissionDenied => BindError::Denied(address),
        _ => BindError::Other { address, source },
    })
}

/// Why serving ended early.
#[derive(Debug, thiserror::Error)]
#[error("the status page stopped")]
pub struct ServeError(#[from] io::Error);

/// Serves the page until `shutdown`, then for at most two seconds more.
pub async fn serve(
    listener: TcpListener,
    context: StatusContext,
    shutdown: CancellationToken,
) -> Result<(), ServeError> {
    let router = routes(context, shutdown.clone());
    let stop = shutdown.clone();
    let server =
        axum::serve(listener, router).with_graceful_shutdown(async move { stop.cancelled().await });
    tokio::select! {
        ended = server.into_future() => Ok(ended?),
        () = async { shutdown.cancelled().await; tokio::time::sleep(GRACE).await } => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_busy_port_is_named_with_the_way_out() {
        let first = bind("127.0.0.1:0".parse().expect("an address")).await.expect("a free port");
        let address = first.local_addr().expect("an address");
        let error = bind(address).await.expect_err("the port is busy");
        let text = format!("the status page cannot listen on {address}: the address is in use");
        assert_eq!(error.to_string(), text);
        assert!(error.hint().contains("--listen"));
    }

    #[tokio::test]
    async fn an_address_that_others_can_reach_is_refused() {
        for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:80"] {
            let address: SocketAddr = address.parse().expect("an address");
            let error = bind(address).await.expect_err("not loopback");
            assert!(matches!(error, BindError::OffLoopback(seen) if seen == address));
            assert!(error.hint().contains("ssh -L"));
        }
    }
}
