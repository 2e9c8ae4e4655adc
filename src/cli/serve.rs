//! `fleet serve`: the daemon in the foreground.

use std::net::SocketAddr;
use std::path::PathBuf;

use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::{Exit, Failure, Global, logging};
use crate::clock::{Clock, Heartbeat};
use crate::config::Config;
use crate::runner::{
    BundleKeeper, Context, DaemonInfo, Seat, ServeLock, ServeLockError, Service, Signal,
    StandbyError, StartError, Tenure, Wake, host_name, stand_by,
};
use crate::status;

/// Runs the scheduler and the status page until SIGTERM.
#[derive(Debug, clap::Args)]
pub struct ServeArgs {
    /// The bundle repository [default: `bundle` of fleet.toml]
    #[arg(long, value_name = "DIR")]
    bundle: Option<PathBuf>,
    /// The status page's address [default: `serve.listen` of fleet.toml, or 127.0.0.1:8707]
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,
    /// Wait while another daemon has the state directory, and take over when it ends or hangs
    #[arg(long)]
    standby: bool,
}

/// Carries out the verb.
pub fn run(args: ServeArgs, global: &Global) -> Result<Exit, Failure> {
    logging::start(&global.redactor);
    let mut config = global.config.clone();
    if let Some(listen) = args.listen {
        config.listen = listen;
    }
    super::open::refuse_root()?;
    let bundle = super::bundle_dir(args.bundle, &config)?;
    let turn = if args.standby { Turn::WhenFree } else { Turn::Now };
    if let (Turn::Now, Some(daemon)) = (turn, ServeLock::holder(&config.state)) {
        let state = config.state.root().display().to_string();
        return Err(held(&ServeLockError::Held { state, holder: daemon.to_string() }));
    }
    global.block_on(serve(config, bundle, turn, global))?
}

/// When this daemon begins.
#[derive(Clone, Copy)]
enum Turn {
    /// At once, or not at all.
    Now,
    /// When no other daemon is left.
    WhenFree,
}

async fn serve(
    config: Config,
    bundle: PathBuf,
    turn: Turn,
    global: &Global,
) -> Result<Exit, Failure> {
    for warning in &config.warnings {
        warn!("{warning}");
    }
    let clock = Clock::System;
    let mut daemon = DaemonInfo {
        pid: std::process::id(),
        host: host_name(),
        since: clock.now(),
        page: String::new(),
        bundle: bundle.clone(),
    };
    let mut signals = signals()
        .map_err(|error| Failure::new(Exit::Io, format!("cannot listen for signals: {error}")))?;
    let (listener, mut lock) = match turn {
        Turn::Now => {
            // The cheap refusals come first: nothing is made when the port is unusable.
            let listener = bind(config.listen).await?;
            super::make_state_dir(&config.state)?;
            let lock = ServeLock::acquire(&config.state, &daemon).map_err(|error| held(&error))?;
            (listener, lock)
        }
        Turn::WhenFree => {
            super::make_state_dir(&config.state)?;
            tokio::select! {
                seat = stand_by(&config.state, &daemon, &clock) => take_seat(seat, config.listen).await?,
                _ = signals.recv() => {
                    info!("stopped while standing by");
                    return Ok(Exit::Ok);
                }
            }
        }
    };
    let address = listener.local_addr().map_or(config.listen, |address| address);
    daemon.since = clock.now();
    daemon.page = format!("http://{address}/");
    lock.describe(&daemon).map_err(|error| held(&error))?;
    let bundles =
        BundleKeeper::start(&bundle, &config.state, clock.now()).map_err(bundle_failure)?;
    let context = tokio::select! {
        opened = Context::open(config, clock, global.redactor.clone()) => {
            opened.map_err(super::open::failure)?
        }
        _ = signals.recv() => {
            info!("stopped before it began");
            return Ok(Exit::Ok);
        }
    };
    let tenure = Tenure::begin(&context, lock, &daemon).await?;
    let wake = Wake::watch(&context.config.state).map_err(|error| {
        Failure::new(Exit::Io, format!("cannot watch the state directory: {error}"))
    })?;
    let heartbeat = Heartbeat::default();
    let page_stop = CancellationToken::new();
    let page = tokio::spawn(status::serve(
        listener,
        super::page::context(&context, bundles.subscribe(), heartbeat.clone()),
        page_stop.clone(),
    ));
    info!(page = daemon.page, "the status page is up");
    let service = Service::new(context.clone(), bundles, wake, signals, heartbeat);
    let ended = tokio::select! {
        ended = service.run() => ended,
        replaced = tenure.lost() => Err(replaced),
    };
    page_stop.cancel();
    if let Ok(Err(error)) = page.await {
        warn!(error = %error, "the status page ended with an error");
    }
    ended?;
    tenure.end().await;
    Ok(Exit::Ok)
}

async fn bind(address: SocketAddr) -> Result<TcpListener, Failure> {
    status::bind(address)
        .await
        .map_err(|error| Failure::from_error(Exit::Conflict, &error).hint(error.hint()))
}

/// The page's socket and the lock of a daemon that has waited. One that hangs may still have the
/// address: then any other will do.
async fn take_seat(
    seat: Result<Seat, StandbyError>,
    address: SocketAddr,
) -> Result<(TcpListener, ServeLock), Failure> {
    match seat {
        Ok(Seat::Left(lock)) => Ok((bind(address).await?, lock)),
        Ok(Seat::TakenOver(lock)) => {
            let listener = match status::bind(address).await {
                Ok(listener) => listener,
                Err(error) => {
                    warn!(error = %error, "the daemon that hangs has the page's address: another one is used");
                    bind(SocketAddr::new(address.ip(), 0)).await?
                }
            };
            Ok((listener, lock))
        }
        Err(StandbyError::Store(error)) => Err(error.into()),
        Err(StandbyError::Lock(error)) => Err(held(&error)),
    }
}

/// SIGTERM and SIGINT, each as one [`Signal::Stop`].
fn signals() -> std::io::Result<mpsc::Receiver<Signal>> {
    use tokio::signal::unix::{SignalKind, signal};
    let (tell, told) = mpsc::channel(2);
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            if tell.send(Signal::Stop).await.is_err() {
                return;
            }
        }
    });
    Ok(told)
}

fn held(error: &ServeLockError) -> Failure {
    Failure::from_error(Exit::Conflict, error).hint(
        "stop it first (kill -TERM with that pid), wait for it with --standby, or give this one its own --state directory",
    )
}

fn bundle_failure(error: StartError) -> Failure {
    let failure = Failure::from_error(Exit::Problems, &error);
    match error {
        StartError::Invalid { .. } => failure.hint("fleet bundle validate lists every problem; a daemon needs one valid commit to start with"),
        StartError::Load(load) => failure.hint(load.hint().unwrap_or("give the bundle repository with --bundle DIR; fleet init DIR makes one")),
    }
}
