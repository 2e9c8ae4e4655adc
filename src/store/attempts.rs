//! Attempts: their facts while they run, and the one transaction that ends them.

use jiff::Timestamp;
use rusqlite::{Connection, params};

use super::claims::held;
use super::columns::{instant, signed};
use super::counters::{self, bump};
use super::occurrences::counted;
use super::writer::Durability;
use super::{AttemptFacts, AttemptFinish, Store, StoreError, events, task_state};
use crate::run::{Artifact, FencingToken, OutcomeClass, RunId, RunState, Usage};
use crate::secrets::Redactor;

impl Store {
    /// Stores facts about the running attempt.
    pub async fn set_attempt_facts(
        &self,
        run: RunId,
        token: FencingToken,
        facts: AttemptFacts,
    ) -> Result<(), StoreError> {
        let doing = "records an attempt's facts";
        self.writer
            .write(doing, Durability::Power, move |connection| {
                let failed = |source| StoreError::sql(doing, source);
                held(set_run_facts(connection, &run, token, &facts).map_err(failed)?, &run)?;
                set_facts(connection, &run, &facts).map_err(failed)
            })
            .await
    }

    /// The one terminal transaction of an attempt: state, log, artifacts, usage, counters and the
    /// promised clean-up, or none of them.
    pub async fn finish_attempt(
        &self,
        run: RunId,
        token: FencingToken,
        finish: AttemptFinish,
    ) -> Result<(), StoreError> {
        let doing = "ends an attempt";
        let redactor = self.redactor.clone();
        self.writer
            .write(doing, Durability::Power, move |connection| {
                let failed = |source| StoreError::sql(doing, source);
                events::append(connection, &redactor, &run, token, &finish.events, doing)?;
                end_run(connection, &redactor, &run, token, &finish).map_err(failed)?;
                end_attempt(connection, &redactor, &run, &finish).map_err(failed)?;
                replace_artifacts(connection, &redactor, &run, &finish.artifacts)
                    .map_err(failed)?;
                count(connection, &run, &finish).map_err(failed)?;
                if finish.state.is_terminal() {
                    task_state::follow_up(connection, &redactor, &run, &finish).map_err(failed)?;
                }
                for job in &finish.cleanup {
                    connection
                        .prepare_cached("INSERT INTO outbox (job) VALUES (?1)")
                        .and_then(|mut insert| insert.execute([job.to_string()]))
                        .map_err(failed)?;
                }
                Ok(())
            })
            .await
    }
}

fn set_run_facts(
    connection: &Connection,
    run: &RunId,
    token: FencingToken,
    facts: &AttemptFacts,
) -> rusqlite::Result<usize> {
    let seal = facts.seal.as_ref().map(ToString::to_string);
    connection.prepare_cached("UPDATE runs SET bundle_commit = coalesce(?3, bundle_commit), limits = coalesce(?4, limits),
            seal = coalesce(?5, seal)
         WHERE run_id = ?1 AND token = ?2 AND state = 'running'")?.execute(params![
            run.as_str(),
            token.0,
            facts.bundle_commit.as_ref().map(|commit| commit.as_str()),
            facts.limits,
            seal
        ],
    )
}

fn set_facts(connection: &Connection, run: &RunId, facts: &AttemptFacts) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "UPDATE attempts SET repo = coalesce(?2, repo), worktree = coalesce(?3, worktree),
                branch = coalesce(?4, branch), base_commit = coalesce(?5, base_commit),
                container = coalesce(?6, container), model = coalesce(?7, model)
             WHERE run_id = ?1 AND attempt = (SELECT attempts FROM runs WHERE run_id = ?1)",
        )?
        .execute(params![
            run.as_str(),
            facts.repo,
            facts.worktree,
            facts.branch,
            facts.base_commit,
            facts.container,
            facts.model
        ])
        .map(drop)
}

fn end_run(
    connection: &Connection,
    redactor: &Redactor,
    run: &RunId,
    token: FencingToken,
    finish: &AttemptFinish,
) -> rusqlite::Result<()> {
    let masked =
        |text: &Option<String>| text.as_deref().map(|text| redactor.redact(text).into_owned());
    let output =
        finish.output.as_ref().map(|output| redactor.redact(&output.to_string()).into_owned());
    let finished = finish.state.is_terminal().then(|| instant(finish.at));
    let reason = Some(finish.outcome.reason.clone()).filter(|reason| !reason.is_empty());
    connection.prepare_cached("UPDATE runs SET state = ?3, outcome = ?4, reason = ?5, retry_at = ?6, retries = ?7,
            connector_retries = ?8, interruptions = ?9, finished_at = ?10, answer = ?11, output = ?12,
            branch = coalesce(?13, branch), commit_id = ?14, diff_stat = ?15, holder_instance = NULL, holder_pid = NULL,
            holder_boot = NULL, lease_until = NULL, cancel_requested = NULL,
            input_tokens = min(input_tokens, 1 << 61) + ?16,
            cached_tokens = min(cached_tokens, 1 << 61) + ?17,
            output_tokens = min(output_tokens, 1 << 61) + ?18, cost = min(cost, 1 << 61) + ?19,
            cost_is_estimated = max(cost_is_estimated, ?20)
         WHERE run_id = ?1 AND token = ?2")?.execute(params![
            run.as_str(),
            token.0,
            finish.state.as_str(),
            (finish.state != RunState::Skipped).then(|| finish.outcome.class.as_str()),
            masked(&reason),
            finish.retry_at.map(instant),
            finish.counters.retries,
            finish.counters.connector_retries,
            finish.counters.interruptions,
            finished,
            masked(&finish.answer),
            output,
            finish.branch,
            finish.commit.as_ref().map(|commit| commit.as_str()),
            finish.diff_stat,
            signed(finish.usage.input_tokens),
            signed(finish.usage.cached_tokens),
            signed(finish.usage.output_tokens),
            signed(finish.usage.cost_nano_usd.0),
            finish.usage.estimated
        ],
    )?;
    if finish.dead_letter.is_some() {
        connection
            .prepare_cached(
                "UPDATE runs SET dead_lettered_at = ?2, dead_letter_reason = ?3,
                dead_letter_attempts = attempts - attempts_before
             WHERE run_id = ?1",
            )?
            .execute(params![
                run.as_str(),
                instant(finish.at),
                masked(&reason).unwrap_or_default()
            ])?;
    }
    Ok(())
}

fn end_attempt(
    connection: &Connection,
    redactor: &Redactor,
    run: &RunId,
    finish: &AttemptFinish,
) -> rusqlite::Result<()> {
    let Usage { input_tokens, cached_tokens, output_tokens, cost_nano_usd, estimated } =
        finish.usage;
    connection
        .prepare_cached(
            "UPDATE attempts SET finished_at = ?2, outcome = ?3, reason = ?4, input_tokens = ?5,
                cached_tokens = ?6, output_tokens = ?7, cost = ?8, cost_is_estimated = ?9
             WHERE run_id = ?1 AND attempt = (SELECT attempts FROM runs WHERE run_id = ?1)",
        )?
        .execute(params![
            run.as_str(),
            instant(finish.at),
            finish.outcome.class.as_str(),
            redactor.redact(&finish.outcome.reason),
            signed(input_tokens),
            signed(cached_tokens),
            signed(output_tokens),
            signed(cost_nano_usd.0),
            estimated
        ])
        .map(drop)
}

/// A run serves the artifacts of its latest, successful attempt and no others.
fn replace_artifacts(
    connection: &Connection,
    redactor: &Redactor,
    run: &RunId,
    artifacts: &[Artifact],
) -> rusqlite::Result<()> {
    connection
        .prepare_cached("DELETE FROM artifacts WHERE run_id = ?1")?
        .execute([run.as_str()])?;
    for (number, artifact) in (1_u32..).zip(artifacts) {
        let description =
            artifact.description.as_deref().map(|text| redactor.redact(text).into_owned());
        connection.prepare_cached("INSERT INTO artifacts (run_id, number, attempt, name, path, description, size, sha256)
             VALUES (?1, ?2, (SELECT attempts FROM runs WHERE run_id = ?1), ?3, ?4, ?5, ?6, ?7)")?.execute(params![
                run.as_str(),
                number,
                redactor.redact(&artifact.name),
                redactor.redact(&artifact.path),
                description,
                signed(artifact.size),
                artifact.sha256
            ],
        )?;
    }
    Ok(())
}

fn count(connection: &Connection, run: &RunId, finish: &AttemptFinish) -> rusqlite::Result<()> {
    bump(connection, counters::COST, "", finish.usage.cost_nano_usd.0)?;
    bump(connection, counters::TOKENS, "", finish.usage.counted_tokens())?;
    if finish.state.is_terminal() {
        // A skip has no outcome: its reason is counted.
        let label = match finish.state {
            RunState::Skipped => finish.outcome.reason.as_str(),
            _ => finish.outcome.class.as_str(),
        };
        bump(connection, counters::OUTCOME, label, 1)?;
    }
    if let Some(class) = finish.dead_letter {
        bump(connection, counters::DEAD_LETTER, class.as_str(), 1)?;
    }
    let succeeded = (finish.outcome.class == OutcomeClass::Success
        && finish.state == RunState::Success)
        .then_some(finish.at);
    add_task_totals(connection, run, &finish.usage, succeeded)
}

fn add_task_totals(
    connection: &Connection,
    run: &RunId,
    usage: &Usage,
    succeeded: Option<Timestamp>,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO task_totals (task, cost, tokens, last_success)
             SELECT task, ?2, ?3, ?4 FROM runs WHERE run_id = ?1
             ON CONFLICT (task) DO UPDATE SET cost = min(cost, 1 << 61) + excluded.cost,
                tokens = min(tokens, 1 << 61) + excluded.tokens,
                last_success = coalesce(excluded.last_success, last_success)",
        )?
        .execute(params![
            run.as_str(),
            signed(usage.cost_nano_usd.0),
            counted(usage),
            succeeded.map(instant)
        ])
        .map(drop)
}
