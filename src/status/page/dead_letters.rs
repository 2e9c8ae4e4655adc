//! Dead letters, each with the command that replays it.

use jiff::Timestamp;
use serde::Serialize;

use super::frame::Frame;
use crate::status::BundleView;
use crate::status::words::{Moment, Words};
use crate::store::DeadLetterRow;

/// Dead letters on one page.
pub(crate) const PAGE: u32 = 50;

#[derive(Clone, Debug, Serialize)]
pub(crate) struct DeadLettersPage {
    pub frame: Frame,
    pub letters: Vec<Letter>,
    pub newer: Option<String>,
    pub older: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Letter {
    pub run_id: String,
    pub task: String,
    pub at: Moment,
    pub reason: String,
    pub attempts: u32,
    pub tags: Vec<String>,
    pub replay: String,
}

/// Makes the list. `rows` holds one row more than a page when there are older ones.
pub(crate) fn page(
    frame: Frame,
    bundle: &BundleView,
    mut rows: Vec<DeadLetterRow>,
    offset: u32,
    now: Timestamp,
) -> DeadLettersPage {
    let more = rows.len() > PAGE as usize;
    rows.truncate(PAGE as usize);
    let address = |offset: u32| match offset {
        0 => "/dead-letters".to_owned(),
        _ => format!("/dead-letters?offset={offset}"),
    };
    DeadLettersPage {
        frame,
        letters: rows.iter().map(|row| letter(row, bundle, now)).collect(),
        newer: (offset > 0).then(|| address(offset.saturating_sub(PAGE))),
        older: more.then(|| address(offset.saturating_add(PAGE))),
    }
}

fn letter(row: &DeadLetterRow, bundle: &BundleView, now: Timestamp) -> Letter {
    Letter {
        run_id: row.run_id.to_string(),
        task: row.task.to_string(),
        at: Words::new(bundle.zone(&row.task), now).moment(row.dead_lettered_at),
        reason: row.dead_letter_reason.clone(),
        attempts: row.dead_letter_attempts,
        tags: row.tags.clone(),
        replay: format!("fleet sched dlq replay {}", row.run_id),
    }
}
