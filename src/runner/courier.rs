//! Sends the notices that the outbox holds, beside the daemon's loop: one after another for each
//! channel, channels beside each other, so that a slow receiver delays nobody else. At least once:
//! what was sent and not recorded as sent is sent again, with the same key.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use super::bundles::BundleState;
use super::finish::chance;
use super::{Context, ServeLock};
use crate::bundle::{Bundle, Channel};
use crate::fault;
use crate::notify::{self, Purpose};
use crate::store::{AfterFailure, ClaimedNotice, StoreError};

/// How often the outbox is looked at without any occasion: whoever promises a notice says so, and
/// the next try of one is known.
const LOOK_EVERY: Duration = Duration::from_secs(300);
/// How long a claim outlives the longest send.
const SPARE: Duration = Duration::from_secs(20);
/// How soon a failed store is tried again.
const TRY_AGAIN: Duration = Duration::from_secs(5);
/// How long `fleet task run` sends before it ends; a daemon goes on with the rest.
const FOREGROUND: Duration = Duration::from_secs(60);
/// How long a stop waits for what is being sent; the next start goes on with the rest.
const LAST_SENDING: Duration = Duration::from_secs(5);
/// The first wait after a failure; it doubles.
const FIRST_WAIT: Duration = Duration::from_secs(10);
const LONGEST_WAIT: Duration = Duration::from_secs(3600);
/// After so many tries, or that long, a notice is given up.
const MOST_TRIES: u32 = 20;
const LONGEST_EFFORT: Duration = Duration::from_secs(24 * 3600);

/// The task that sends. Aborted when dropped.
pub(super) struct Courier {
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Courier {
    /// Begins to send. Channels are those of the bundle in force.
    pub(super) fn start(context: Arc<Context>, bundles: watch::Receiver<BundleState>) -> Self {
        let stop = CancellationToken::new();
        let rounds = Rounds { context, bundles, busy: HashSet::new(), sending: JoinSet::new() };
        Courier { task: tokio::spawn(rounds.run(stop.clone())), stop }
    }

    /// Sends what is due, for a few seconds at most.
    pub(super) async fn finish(&mut self) {
        self.stop.cancel();
        if tokio::time::timeout(LAST_SENDING, &mut self.task).await.is_err() {
            warn!("notices are still being sent: the next start goes on with them");
        }
    }
}

impl Drop for Courier {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Sends once what is due now where no daemon does; one that runs is told.
pub(super) async fn send_or_wake(context: &Arc<Context>, bundle: &Arc<Bundle>) {
    if ServeLock::holder(&context.config.state).is_none() {
        if tokio::time::timeout(FOREGROUND, send_due(context, bundle)).await.is_err() {
            warn!("notices take long: the next daemon goes on with them");
        }
    } else if let Err(error) = context.config.state.wake() {
        warn!(error = %error, "cannot touch the wake file: the daemon sends notices late");
    }
}

async fn send_due(context: &Arc<Context>, bundle: &Arc<Bundle>) {
    let now = context.clock.now();
    match context.store.due_notices(now).await {
        Ok(due) => {
            let channels = due.channels.into_iter();
            let all = channels.map(|channel| empty(context.clone(), bundle.clone(), channel));
            futures_util::future::join_all(all).await;
        }
        Err(failure) => warn!(error = %failure, "the store failed while notices were looked for"),
    }
}

struct Rounds {
    context: Arc<Context>,
    bundles: watch::Receiver<BundleState>,
    /// The channels that are being told.
    busy: HashSet<String>,
    sending: JoinSet<String>,
}

impl Rounds {
    async fn run(mut self, stop: CancellationToken) {
        let clock = self.context.clock.clone();
        let context = self.context.clone();
        loop {
            let next = self.begin().await;
            tokio::select! {
                () = stop.cancelled() => break,
                () = context.promised.notified() => {}
                () = clock.sleep_until(next) => {}
                Some(ended) = self.sending.join_next() => self.note_end(ended.ok()),
            }
        }
        self.begin().await;
        while let Some(ended) = self.sending.join_next().await {
            self.note_end(ended.ok());
        }
    }

    /// A channel whose task panicked stays busy no longer than the others.
    fn note_end(&mut self, channel: Option<String>) {
        match channel {
            Some(channel) => {
                self.busy.remove(&channel);
            }
            None => {
                error!("the sending of a notice failed by a mistake of fleet: tried again");
                if self.sending.is_empty() {
                    self.busy.clear();
                }
            }
        }
    }

    /// Begins to tell every channel that has something due. Returns when to look again.
    async fn begin(&mut self) -> Timestamp {
        let now = self.context.clock.now();
        let due = match self.context.store.due_notices(now).await {
            Ok(due) => due,
            Err(failure) => {
                warn!(error = %failure, "the store failed while notices were looked for: tried again");
                return now + TRY_AGAIN;
            }
        };
        let bundle = self.bundles.borrow().bundle.clone();
        for channel in due.channels {
            if self.busy.insert(channel.clone()) {
                self.sending.spawn(empty(self.context.clone(), bundle.clone(), channel));
            }
        }
        due.next.map_or(now + LOOK_EVERY, |next| next.min(now + LOOK_EVERY))
    }
}

/// Tells a channel everything that is due. Returns its name.
async fn empty(context: Arc<Context>, bundle: Arc<Bundle>, name: String) -> String {
    let channel = bundle.channels.get(&name).cloned();
    loop {
        match next(&context, channel.as_deref(), &name).await {
            Ok(true) => {}
            Ok(false) => return name,
            Err(failure) => {
                warn!(channel = name, error = %failure, "the store failed while notices were sent: tried again");
                context.clock.sleep(TRY_AGAIN).await;
                return name;
            }
        }
    }
}

/// Sends the channel's next notice; false when there is none.
async fn next(
    context: &Context,
    channel: Option<&Channel>,
    name: &str,
) -> Result<bool, StoreError> {
    let now = context.clock.now();
    let longest = channel.map(notify::longest).unwrap_or_default() + SPARE;
    let until = now + fault::shortened("FLEET_NOTICE_CLAIM", longest);
    let claimed = context.store.claim_notice(name.to_owned(), now, until).await?;
    let Some(claimed) = claimed else { return Ok(false) };
    let notice = &claimed.notice;
    let Some(channel) = channel else {
        let why = format!("the bundle in force has no channel {name}");
        let after = AfterFailure::GiveUp(now);
        failed(context, &claimed, why, after).await?;
        return Ok(true);
    };
    fault::point("before_outbox_send");
    match notify::send(channel, notice, Purpose::Report, now, &context.redactor).await {
        Ok(said) => {
            fault::point("after_outbox_send");
            info!(run.id = %notice.run_id, task.id = %notice.task, channel = name, event = notice.event.as_str(), said, "sent a notice");
            context.store.notice_sent(claimed.id, claimed.tries).await?;
        }
        Err(error) => {
            let now = context.clock.now();
            let after = after_failure(claimed.tries, claimed.waits_since, now, chance());
            failed(context, &claimed, error.to_string(), after).await?;
        }
    }
    Ok(true)
}

async fn failed(
    context: &Context,
    claimed: &ClaimedNotice,
    why: String,
    after: AfterFailure,
) -> Result<(), StoreError> {
    let notice = &claimed.notice;
    match after {
        AfterFailure::TryAt(at) => {
            warn!(run.id = %notice.run_id, task.id = %notice.task, channel = notice.channel, event = notice.event.as_str(), tries = claimed.tries, error = why, try_at = %at, "cannot send a notice yet");
        }
        AfterFailure::GiveUp(_) => {
            error!(run.id = %notice.run_id, task.id = %notice.task, channel = notice.channel, event = notice.event.as_str(), tries = claimed.tries, error = why, "gave up a notice: `fleet notify retry` tries it again");
        }
    }
    context.store.notice_failed(claimed.id, claimed.tries, why, after).await.map(drop)
}

/// 10 s after the first failure, then twice as long each time up to an hour, less up to a fifth by
/// chance. Pure.
fn after_failure(tries: u32, waits_since: Timestamp, now: Timestamp, chance: f64) -> AfterFailure {
    let effort = now.duration_since(waits_since).unsigned_abs();
    if tries >= MOST_TRIES || effort >= LONGEST_EFFORT {
        return AfterFailure::GiveUp(now);
    }
    let doubled = 2_u32.saturating_pow(tries.saturating_sub(1));
    let wait = FIRST_WAIT.saturating_mul(doubled).min(LONGEST_WAIT);
    AfterFailure::TryAt(now + wait.mul_f64(1.0 - 0.2 * chance.clamp(0.0, 1.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(tries: u32, since: &str, chance: f64) -> Option<u64> {
        let now: Timestamp = "2026-07-02T00:00:00Z".parse().expect("an instant");
        let since = since.parse().expect("an instant");
        match after_failure(tries, since, now, chance) {
            AfterFailure::TryAt(at) => Some(at.duration_since(now).unsigned_abs().as_secs()),
            AfterFailure::GiveUp(_) => None,
        }
    }

    #[test]
    fn waits_double_up_to_an_hour_with_some_chance() {
        let recent = "2026-07-01T23:00:00Z";
        let waits_of: Vec<_> =
            [1, 2, 3, 9, 10, 19].map(|tries| waits(tries, recent, 0.0)).into_iter().collect();
        let wanted = [10, 20, 40, 2560, 3600, 3600].map(Some);
        assert_eq!(waits_of, wanted);
        assert_eq!(waits(1, recent, 1.0), Some(8));
    }

    #[test]
    fn twenty_tries_or_a_day_are_enough() {
        assert_eq!(waits(20, "2026-07-01T23:00:00Z", 0.0), None);
        assert_eq!(waits(2, "2026-07-01T00:00:00Z", 0.0), None);
        assert_eq!(waits(2, "2026-07-01T00:00:01Z", 0.0), Some(20));
    }
}
