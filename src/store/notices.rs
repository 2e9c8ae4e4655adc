//! Notices in the outbox: promised with what they report, claimed by one sender at a time, forgotten
//! once sent, kept with the reason when given up.

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::columns::{get_instant, get_instant_opt, get_json, get_small, instant};
use super::counters::{self, bump};
use super::writer::Durability;
use super::{AfterFailure, ClaimedNotice, DueNotices, NoticeRow, Store, StoreError, events};
use crate::run::{Event, FencingToken, Notice, RunId};
use crate::secrets::Redactor;

/// Characters of a failure that are kept.
const LONGEST_ERROR: usize = 500;
/// Characters of a reason that are sent.
const LONGEST_REASON: usize = 2000;

impl Store {
    /// Records events of a running run and promises notices of them, both or neither. Refused once the
    /// claim is lost.
    pub async fn record_and_promise(
        &self,
        run: RunId,
        token: FencingToken,
        recorded: Vec<Event>,
        notices: Vec<Notice>,
    ) -> Result<(), StoreError> {
        let doing = "promises notices";
        let redactor = self.redactor.clone();
        self.writer
            .write(doing, Durability::Power, move |connection| {
                let failed = |source| StoreError::sql(doing, source);
                events::append(connection, &redactor, &run, token, &recorded, doing)?;
                for notice in notices {
                    let reason = told(&redactor, &notice.reason);
                    promise(connection, &Notice { reason, ..notice }).map_err(failed)?;
                }
                Ok(())
            })
            .await
    }

    /// The channels with notices whose time has come, and when the next time is.
    pub async fn due_notices(&self, now: Timestamp) -> Result<DueNotices, StoreError> {
        let doing = "reads due notices";
        self.readers
            .read(doing, move |connection| {
                due(connection, now).map_err(|source| StoreError::sql(doing, source))
            })
            .await
    }

    /// Claims the channel's oldest due notice until `until`, after which another sender may take it.
    pub async fn claim_notice(
        &self,
        channel: String,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<Option<ClaimedNotice>, StoreError> {
        let doing = "claims a notice";
        self.writer
            .write(doing, Durability::Process, move |connection| {
                connection
                    .prepare_cached(
                        "UPDATE outbox SET try_at = ?3, tries = tries + 1 WHERE id = (
                            SELECT id FROM outbox
                            WHERE kind = 'notice' AND given_up_at IS NULL AND channel = ?1
                                AND (try_at IS NULL OR try_at <= ?2)
                            ORDER BY id LIMIT 1)
                         RETURNING id, job, tries, waits_since",
                    )
                    .and_then(|mut claim| {
                        let values = params![channel, instant(now), instant(until)];
                        claim.query_row(values, claimed).optional()
                    })
                    .map_err(|source| StoreError::sql(doing, source))
            })
            .await
    }

    /// A claimed notice was sent: it is forgotten. False when somebody else has claimed it meanwhile.
    pub async fn notice_sent(&self, id: i64, tries: u32) -> Result<bool, StoreError> {
        let doing = "records that a notice was sent";
        self.writer
            .write(doing, Durability::Process, move |connection| {
                let failed = |source| StoreError::sql(doing, source);
                let removed = connection
                    .execute(
                        "DELETE FROM outbox WHERE id = ?1 AND kind = 'notice' AND tries = ?2",
                        params![id, tries],
                    )
                    .map_err(failed)?;
                if removed > 0 {
                    bump(connection, counters::NOTICE, "sent", 1).map_err(failed)?;
                }
                Ok(removed > 0)
            })
            .await
    }

    /// A claimed notice was not sent, and why. False when somebody else has claimed it meanwhile.
    pub async fn notice_failed(
        &self,
        id: i64,
        tries: u32,
        error: String,
        after: AfterFailure,
    ) -> Result<bool, StoreError> {
        let doing = "records that a notice was not sent";
        let error: String = self.redactor.redact(&error).chars().take(LONGEST_ERROR).collect();
        let (try_at, given_up_at) = match after {
            AfterFailure::TryAt(at) => (Some(instant(at)), None),
            AfterFailure::GiveUp(at) => (None, Some(instant(at))),
        };
        self.writer
            .write(doing, Durability::Process, move |connection| {
                let failed = |source| StoreError::sql(doing, source);
                let changed = connection
                    .execute(
                        "UPDATE outbox SET try_at = ?3, given_up_at = ?4, last_error = ?5
                         WHERE id = ?1 AND kind = 'notice' AND tries = ?2",
                        params![id, tries, try_at, given_up_at, error],
                    )
                    .map_err(failed)?;
                if changed > 0 && given_up_at.is_some() {
                    bump(connection, counters::NOTICE, "given_up", 1).map_err(failed)?;
                }
                Ok(changed > 0)
            })
            .await
    }

    /// Notices that wait or were given up, the oldest first.
    pub async fn notices(&self, limit: u32) -> Result<Vec<NoticeRow>, StoreError> {
        let doing = "reads notices";
        self.readers
            .read(doing, move |connection| {
                let failed = |source| StoreError::sql(doing, source);
                let mut query = connection
                    .prepare_cached(
                        "SELECT * FROM outbox WHERE kind = 'notice' ORDER BY id LIMIT ?1",
                    )
                    .map_err(failed)?;
                let rows = query.query_map([limit], listed).map_err(failed)?;
                rows.collect::<Result<_, _>>().map_err(failed)
            })
            .await
    }

    /// Lets notices that were given up be tried again, at once and with a fresh count: that one, or
    /// all. Returns their ids.
    pub async fn retry_notices(
        &self,
        only: Option<i64>,
        now: Timestamp,
    ) -> Result<Vec<i64>, StoreError> {
        let doing = "lets notices be tried again";
        self.writer
            .write(doing, Durability::Power, move |connection| {
                let failed = |source| StoreError::sql(doing, source);
                let mut update = connection
                    .prepare_cached(
                        "UPDATE outbox SET given_up_at = NULL, try_at = NULL, tries = 0,
                            waits_since = ?2
                         WHERE kind = 'notice' AND given_up_at IS NOT NULL
                            AND (?1 IS NULL OR id = ?1)
                         RETURNING id",
                    )
                    .map_err(failed)?;
                let ids = update
                    .query_map(params![only, instant(now)], |row| row.get("id"))
                    .map_err(failed)?;
                ids.collect::<Result<_, _>>().map_err(failed)
            })
            .await
    }
}

fn claimed(row: &Row<'_>) -> rusqlite::Result<ClaimedNotice> {
    Ok(ClaimedNotice {
        id: row.get("id")?,
        tries: get_small(row, "tries")?,
        waits_since: get_instant(row, "waits_since")?,
        notice: get_json(row, "job")?,
    })
}

fn listed(row: &Row<'_>) -> rusqlite::Result<NoticeRow> {
    Ok(NoticeRow {
        id: row.get("id")?,
        notice: get_json(row, "job")?,
        tries: get_small(row, "tries")?,
        try_at: get_instant_opt(row, "try_at")?,
        last_error: row.get("last_error")?,
        given_up_at: get_instant_opt(row, "given_up_at")?,
    })
}

fn due(connection: &Connection, now: Timestamp) -> rusqlite::Result<DueNotices> {
    let mut query = connection.prepare_cached(
        "SELECT channel, min(coalesce(try_at, 0)) AS first FROM outbox
         WHERE kind = 'notice' AND given_up_at IS NULL GROUP BY channel ORDER BY channel",
    )?;
    let mut rows = query.query([])?;
    let mut due = DueNotices::default();
    while let Some(row) = rows.next()? {
        let first = get_instant(row, "first")?;
        if first <= now {
            due.channels.push(row.get("channel")?);
        } else {
            due.next = Some(due.next.map_or(first, |next| next.min(first)));
        }
    }
    Ok(due)
}

/// Promises a notice. One with the same key is promised already.
pub(super) fn promise(connection: &Connection, notice: &Notice) -> rusqlite::Result<()> {
    let job = serde_json::to_string(notice).expect("a notice is plain data");
    connection
        .execute(
            "INSERT INTO outbox (job, kind, idempotency_key, channel, waits_since)
             VALUES (?1, 'notice', ?2, ?3, ?4)
             ON CONFLICT (idempotency_key) WHERE idempotency_key IS NOT NULL DO NOTHING",
            params![job, notice.idempotency_key, notice.channel, instant(notice.at)],
        )
        .map(drop)
}

/// A reason as it is sent: masked first, since a secret that was cut is masked no more.
pub(super) fn told(redactor: &Redactor, reason: &str) -> String {
    redactor.redact(reason).chars().take(LONGEST_REASON).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_on_the_end_of_a_long_reason_is_masked() {
        let redactor = Redactor::default();
        redactor.register("hunter2hunter2");
        let reason = format!("{}hunter2hunter2", ".".repeat(LONGEST_REASON - 5));
        assert_eq!(told(&redactor, &reason), format!("{}[reda", ".".repeat(LONGEST_REASON - 5)));
    }
}
