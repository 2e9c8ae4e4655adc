//! A daemon in the test's process, on a clock that the test moves.

use std::sync::Arc;
use std::time::Duration;

use fleet::clock::{Clock, Heartbeat, SimulatedClock};
use fleet::config::{Config, Overrides};
use fleet::runner::{BundleKeeper, Context, Service, Signal, Wake};
use fleet::secrets::Redactor;
use fleet::store::{RunFilter, RunRow};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::world::{PATIENCE, World};

/// A daemon on a simulated clock.
pub struct Simulation {
    pub clock: SimulatedClock,
    pub context: Arc<Context>,
    pub stop: mpsc::Sender<Signal>,
    pub service: JoinHandle<()>,
    pub bundles: tokio::sync::watch::Receiver<fleet::runner::BundleState>,
    pub heartbeat: Heartbeat,
}

impl Simulation {
    pub async fn start(world: &World, at: &str) -> Self {
        let clock = SimulatedClock::starting_at(at.parse().expect("an instant"));
        let time = Clock::Simulated(clock.clone());
        let config =
            Config::read(Overrides { state: Some(world.state()) }).expect("the configuration");
        let keeper =
            BundleKeeper::start(&world.bundle(), &config.state, time.now()).expect("the bundle");
        let bundles = keeper.subscribe();
        let context = Context::open(config, time, Redactor::default()).await.expect("the context");
        let wake = Wake::watch(&context.config.state).expect("the wake file");
        let (stop, signals) = mpsc::channel(2);
        let heartbeat = Heartbeat::default();
        let service = Service::new(context.clone(), keeper, wake, signals, heartbeat.clone());
        let service =
            tokio::spawn(async move { service.run().await.expect("the daemon ends well") });
        // Only a daemon that has ticked once knows since when it is there.
        let mut look_again = tokio::time::interval(Duration::from_millis(10));
        while heartbeat.last().is_none() {
            look_again.tick().await;
        }
        Simulation { clock, context, stop, service, bundles, heartbeat }
    }

    /// Waits until `enough` holds of the list of runs.
    pub async fn runs(&self, enough: impl Fn(&[RunRow]) -> bool) -> Vec<RunRow> {
        let look = async {
            let mut look_again = tokio::time::interval(Duration::from_millis(20));
            loop {
                look_again.tick().await;
                let runs = self.context.store.runs(RunFilter::default()).await.expect("the runs");
                if enough(&runs) {
                    return runs;
                }
            }
        };
        match tokio::time::timeout(PATIENCE, look).await {
            Ok(runs) => runs,
            Err(_) => panic!(
                "it never came true of {:#?}",
                self.context.store.runs(RunFilter::default()).await
            ),
        }
    }

    /// Lets time pass, a minute at each look, until `enough` holds of the list of runs: whatever waits
    /// for a delay gets on, whenever it began to wait.
    pub async fn runs_in_time(&self, enough: impl Fn(&[RunRow]) -> bool) -> Vec<RunRow> {
        self.runs(|runs| {
            let done = enough(runs);
            if !done {
                self.clock.advance(Duration::from_secs(60));
            }
            done
        })
        .await
    }

    pub async fn end(self) {
        self.stop.send(Signal::Stop).await.expect("the daemon listens");
        self.service.await.expect("the daemon ends");
    }
}
