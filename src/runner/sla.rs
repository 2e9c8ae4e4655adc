//! Tells that a run takes longer than its task's expected duration: an event in its log and a notice,
//! once for each level and attempt. Advice only: it ends nothing.

use std::sync::Arc;
use std::time::Duration;

use tracing::{error, warn};

use super::{Context, notices};
use crate::bundle::{Sla, Task};
use crate::run::{Event, EventKind, NoticeEvent};
use crate::store::{ClaimedRun, StoreError};

/// How soon a failed store is tried again.
const TRY_AGAIN: Duration = Duration::from_secs(5);

/// Watches an attempt from now on until it is overdue; dropped with the attempt.
pub(super) async fn watch(context: Arc<Context>, task: Arc<Task>, sla: Sla, claimed: ClaimedRun) {
    let began = context.clock.now();
    let levels =
        [(NoticeEvent::SlaWarning, sla.warn_after), (NoticeEvent::SlaOverdue, sla.overdue_after)];
    for (level, after) in levels {
        let Ok(at) = began.saturating_add(after) else { return };
        context.clock.sleep_until(at).await;
        if let Err(failure) = tell(&context, &task, &sla, &claimed, level, after).await {
            warn!(run.id = %claimed.run_id, error = %failure, "cannot tell that the run takes long: it has no claim any more");
            return;
        }
    }
}

/// Until it is recorded, or cannot be.
async fn tell(
    context: &Context,
    task: &Task,
    sla: &Sla,
    claimed: &ClaimedRun,
    level: NoticeEvent,
    after: Duration,
) -> Result<(), StoreError> {
    let now = context.clock.now();
    let kind = EventKind::RanLong {
        level: level.as_str().to_owned(),
        expected_ms: millis(sla.expected),
        after_ms: millis(after),
    };
    let event = Event { at: now, attempt: claimed.attempt, kind };
    let minutes = |span: Duration| span.as_secs_f64() / 60.0;
    let reason = format!(
        "the attempt runs for {:.1} minutes, and {:.1} were expected",
        minutes(after),
        minutes(sla.expected)
    );
    let promised = notices::of_long_run(task, claimed, level, &reason, now);
    warn!(run.id = %claimed.run_id, task.id = %claimed.task, attempt = claimed.attempt, level = level.as_str(), reason, "run takes long");
    loop {
        let (run, events) = (claimed.run_id.clone(), vec![event.clone()]);
        let stored = context.store.record_and_promise(run, claimed.token, events, promised.clone());
        match stored.await {
            Ok(()) => break,
            Err(lost @ (StoreError::LeaseLost(_) | StoreError::Closed)) => return Err(lost),
            Err(failure) => {
                error!(run.id = %claimed.run_id, error = %failure, "cannot record that the run takes long: tried again");
                context.clock.sleep(TRY_AGAIN).await;
            }
        }
    }
    context.promised.notify_one();
    Ok(())
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
