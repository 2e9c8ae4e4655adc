//! `fleet serve`: the daemon in the foreground.

use std::net::SocketAddr;
use std::path::PathBuf;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::{Exit, Failure, Global, logging};
use crate::clock::{Clock, Heartbeat};
use crate::config::Config;
use crate::runner::{
    BundleKeeper, Context, DaemonInfo, ServeLock, ServeLockError, Service, Signal, StartError, Wake,
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
    if let Some(daemon) = ServeLock::holder(&config.state) {
        let state = config.state.root().display().to_string();
        return Err(held(&ServeLockError::Held { state, holder: daemon.to_string() }));
    }
    global.block_on(serve(config, bundle, global))?
}

async fn serve(config: Config, bundle: PathBuf, global: &Global) -> Result<Exit, Failure> {
    for warning in &config.warnings {
        warn!("{warning}");
    }
    let clock = Clock::System;
    // The cheap refusals come first: nothing is made when the bundle or the port is unusable.
    let listener = status::bind(config.listen)
        .await
        .map_err(|error| Failure::from_error(Exit::Conflict, &error).hint(error.hint()))?;
    super::make_state_dir(&config.state)?;
    let address = listener.local_addr().map_or(config.listen, |address| address);
    let daemon = DaemonInfo {
        pid: std::process::id(),
        since: clock.now(),
        page: format!("http://{address}/"),
        bundle: bundle.clone(),
    };
    let _lock = ServeLock::acquire(&config.state, &daemon).map_err(|error| held(&error))?;
    let bundles =
        BundleKeeper::start(&bundle, &config.state, clock.now()).map_err(bundle_failure)?;
    let context = Context::open(config, clock, global.redactor.clone())
        .await
        .map_err(super::open::failure)?;
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
    let signals = signals()
        .map_err(|error| Failure::new(Exit::Io, format!("cannot listen for signals: {error}")))?;
    let service = Service::new(context.clone(), bundles, wake, signals, heartbeat);
    let ended = service.run().await;
    page_stop.cancel();
    if let Ok(Err(error)) = page.await {
        warn!(error = %error, "the status page ended with an error");
    }
    ended?;
    Ok(Exit::Ok)
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
        "stop it first (kill -TERM with that pid), or give this one its own --state directory",
    )
}

fn bundle_failure(error: StartError) -> Failure {
    let failure = Failure::from_error(Exit::Problems, &error);
    match error {
        StartError::Invalid { .. } => failure.hint("fleet bundle validate lists every problem; a daemon needs one valid commit to start with"),
        StartError::Load(load) => failure.hint(load.hint().unwrap_or("give the bundle repository with --bundle DIR; fleet init DIR makes one")),
    }
}
