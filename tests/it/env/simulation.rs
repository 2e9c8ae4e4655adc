//! A daemon in the test's process, on a clock that the test moves.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use fleet::clock::{Clock, Heartbeat, Rest, SimulatedClock};
use fleet::config::{Config, Overrides};
use fleet::runner::{BundleKeeper, Context, Service, Signal, Wake};
use fleet::secrets::Redactor;
use fleet::store::{RunFilter, RunRow};
use jiff::Timestamp;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::pretend::{self, Pretend};
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
    /// A daemon whose runs are carried out in the sandbox.
    pub async fn start(world: &World, at: &str) -> Self {
        let clock = SimulatedClock::starting_at(at.parse().expect("an instant"));
        let time = Clock::Simulated(clock.clone());
        let config =
            Config::read(Overrides { state: Some(world.state()) }).expect("the configuration");
        let keeper =
            BundleKeeper::start(&world.bundle(), &config.state, time.now()).expect("the bundle");
        let context = Context::open(config, time, Redactor::default()).await.expect("the context");
        Self::serve(clock, context, keeper).await
    }

    /// A daemon without containers: the double says how each attempt goes.
    pub async fn pretend(bundle: &Path, config: Config, at: Timestamp, double: &Pretend) -> Self {
        let clock = SimulatedClock::starting_at(at);
        let time = Clock::Simulated(clock.clone());
        let keeper = BundleKeeper::start(bundle, &config.state, at).expect("the bundle");
        let context = Context::open_with_double(
            config,
            time,
            Redactor::default(),
            pretend::seal(),
            double.double(),
        );
        let simulation = Self::serve(clock, context.expect("the context"), keeper).await;
        simulation.settle(double).await;
        simulation
    }

    async fn serve(clock: SimulatedClock, context: Arc<Context>, keeper: BundleKeeper) -> Self {
        let bundles = keeper.subscribe();
        let wake = Wake::watch(&context.config.state).expect("the wake file");
        let (stop, signals) = mpsc::channel(2);
        let heartbeat = Heartbeat::default();
        let service = Service::new(context.clone(), keeper, wake, signals, heartbeat.clone());
        let service =
            tokio::spawn(async move { service.run().await.expect("the daemon ends well") });
        // Only a daemon that has ticked once knows since when it is there.
        let mut resting = heartbeat.resting();
        let ticked = resting.wait_for(Option::is_some);
        tokio::time::timeout(PATIENCE, ticked).await.expect("it ticks").expect("the daemon lives");
        Simulation { clock, context, stop, service, bundles, heartbeat }
    }

    /// Waits until the daemon has done all that is to be done now, and gives what it waits for.
    pub async fn settle(&self, double: &Pretend) -> Rest {
        let mut resting = self.heartbeat.resting();
        let mut changed = double.changed();
        let settled = async {
            loop {
                changed.borrow_and_update();
                let rest = *resting.borrow_and_update();
                let settled = rest.filter(|rest| double.is_settled(*rest, self.clock.now()));
                if let Some(rest) = settled {
                    return rest;
                }
                tokio::select! {
                    alive = resting.changed() => alive.expect("the daemon lives"),
                    alive = changed.changed() => alive.expect("the double lives"),
                }
            }
        };
        match tokio::time::timeout(PATIENCE, settled).await {
            Ok(rest) => rest,
            Err(_) => panic!("never at rest: {:?} at {}", resting.borrow(), self.clock.now()),
        }
    }

    /// Lets time pass until `to`, from one moment at which something is to be done to the next.
    pub async fn pass(&self, to: Timestamp, double: &Pretend) {
        loop {
            let rest = self.settle(double).await;
            let moments = [rest.next, double.next_end()];
            match moments.into_iter().flatten().min().filter(|next| *next < to) {
                Some(next) => self.clock.set(next),
                None => break,
            }
        }
        self.clock.set(to);
        self.settle(double).await;
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

    /// Stops the daemon while the clock goes on, so that a grace ends. Returns the instant of its end.
    pub async fn end_in_time(mut self) -> Timestamp {
        self.stop.send(Signal::Stop).await.expect("the daemon listens");
        let mut step = tokio::time::interval(Duration::from_millis(100));
        let ended = async {
            loop {
                tokio::select! {
                    ended = &mut self.service => return ended.expect("the daemon ends"),
                    _ = step.tick() => self.clock.advance(Duration::from_secs(31)),
                }
            }
        };
        tokio::time::timeout(PATIENCE, ended).await.expect("the daemon ends in time");
        self.clock.now()
    }
}
