//! The refs that keep every attempt's work: `refs/fleet/attempts/<run>/<n>`, and the run's branch,
//! which points to the latest.

use gix::ObjectId;

use super::WorktreeError;
use super::open::{Expect, Handle};

/// The full name of a branch.
pub(super) fn branch_ref(branch: &str) -> String {
    format!("refs/heads/{branch}")
}

/// The prefix of a run's kept attempts.
pub(super) fn attempts_of(run_id: &str) -> String {
    format!("refs/fleet/attempts/{run_id}/")
}

/// The ref that keeps one attempt.
pub(super) fn attempt_ref(run_id: &str, attempt: u32) -> String {
    format!("{}{attempt}", attempts_of(run_id))
}

/// Makes sure that some attempt's ref keeps `tip` before a branch moves away from it.
pub(super) fn keep_branch_tip(
    handle: &Handle,
    run_id: &str,
    attempt: u32,
    tip: ObjectId,
) -> Result<(), WorktreeError> {
    let kept = handle.under(&attempts_of(run_id))?;
    if kept.iter().any(|(_, id)| *id == tip) {
        return Ok(());
    }
    let first = attempt_ref(run_id, attempt);
    let mut name = first.clone();
    let mut copy = 1;
    while kept.iter().any(|(taken, _)| *taken == name) {
        copy += 1;
        name = format!("{first}-{copy}");
    }
    handle.point(&name, tip, &Expect::Missing, "fleet: keep an earlier attempt")
}
