//! From a name to a connection: resolve once, check every address, dial an address that was checked.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::address::AddressPolicy;
use super::name::{HostName, Target};
use super::refusal::Refusal;

/// How long a name's resolution, and each attempt to connect, may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Look-ups of a process at once, those that nobody waits for any more included: names that answer
/// slowly must not use up the threads of everything else.
const MAX_LOOKUPS: usize = 128;
/// Addresses of a name that are looked at, and that are dialled in turn.
const MAX_ADDRESSES: usize = 64;
const MAX_DIALLED: usize = 4;

/// Gives the addresses of a name. The system's resolver, or a test's.
pub trait Resolve: Send + Sync {
    /// Looks a name up, once.
    fn resolve<'a>(&'a self, host: &'a HostName) -> BoxFuture<'a, io::Result<Vec<IpAddr>>>;
}

/// `getaddrinfo`, which blocks a thread for as long as it likes.
#[derive(Clone, Debug)]
pub struct SystemResolver {
    threads: Arc<Semaphore>,
}

impl Default for SystemResolver {
    fn default() -> Self {
        SystemResolver { threads: Arc::new(Semaphore::new(MAX_LOOKUPS)) }
    }
}

impl Resolve for SystemResolver {
    fn resolve<'a>(&'a self, host: &'a HostName) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        async move {
            let thread = self.threads.clone().acquire_owned().await;
            let thread = thread.map_err(io::Error::other)?;
            // The dot keeps the search list of resolv.conf out: the name that was judged is the name
            // that is asked for.
            let name = format!("{host}.");
            // A task of its own: when nobody waits any more, the thread is still counted.
            let looking = tokio::spawn(async move {
                let _thread = thread;
                let found = tokio::net::lookup_host((name, 0)).await?;
                io::Result::Ok(found.map(|address| address.ip()).collect())
            });
            looking.await.map_err(io::Error::other)?
        }
        .boxed()
    }
}

/// Resolves, checks and dials.
#[derive(Clone)]
pub struct Dialer {
    resolver: Arc<dyn Resolve>,
    addresses: AddressPolicy,
}

impl std::fmt::Debug for Dialer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dialer").field("addresses", &self.addresses).finish_non_exhaustive()
    }
}

impl Default for Dialer {
    fn default() -> Self {
        Dialer::new(Arc::new(SystemResolver::default()), AddressPolicy::public())
    }
}

impl Dialer {
    /// A dialer from its parts. Every run gets the default one.
    pub fn new(resolver: Arc<dyn Resolve>, addresses: AddressPolicy) -> Self {
        Dialer { resolver, addresses }
    }

    /// The addresses of a target, each checked. One that is not public refuses the name: an honest
    /// public name has none.
    pub(super) async fn addresses(&self, target: &Target) -> Result<Vec<SocketAddr>, Refusal> {
        let resolving = timeout(PATIENCE, self.resolver.resolve(&target.host)).await;
        let found = match resolving {
            Ok(Ok(found)) => found,
            Ok(Err(_)) => return Err(Refusal::Unresolved("there is no such name".to_owned())),
            Err(_) => return Err(Refusal::Unresolved("no answer in time".to_owned())),
        };
        let addresses: Vec<SocketAddr> = found
            .into_iter()
            .take(MAX_ADDRESSES)
            .map(|ip| SocketAddr::new(ip, target.port))
            .collect();
        if addresses.is_empty() {
            return Err(Refusal::Unresolved("it has no address".to_owned()));
        }
        match addresses.iter().find_map(|address| self.addresses.refusal(*address)) {
            Some(kind) => Err(Refusal::NotPublic(kind)),
            None => Ok(addresses),
        }
    }

    /// Connects to the first address that answers. No name is looked up again.
    pub(super) async fn dial(&self, addresses: &[SocketAddr]) -> Result<TcpStream, Refusal> {
        let mut why = "it has no address".to_owned();
        for address in addresses.iter().take(MAX_DIALLED) {
            match timeout(PATIENCE, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => {
                    // Small requests must not wait for their acknowledgement.
                    let _ = stream.set_nodelay(true);
                    return Ok(stream);
                }
                Ok(Err(error)) => why = error.kind().to_string(),
                Err(_) => why = "no answer in time".to_owned(),
            }
        }
        Err(Refusal::Unreachable(why))
    }
}
