//! The pages over HTTP: parameters in, rows of the store to the page model, the template out.

use std::sync::Arc;

use axum::extract::{Path, Query, State};
use axum::response::Response;
use jiff::Timestamp;
use serde::Deserialize;

use super::page::frame::{Frame, FrameFacts, Section};
use super::page::run::Rounds;
use super::page::{dead_letters, overview, problems, run, runs, schedule, seal};
use super::render::{PageError, html};
use super::{BundleView, Served};
use crate::run::{RunState, TaskName};
use crate::store::{RunFilter, RunRow, StoreError, Totals};

/// The most runs listed as running now.
const MOST_RUNNING: u32 = 100;

type Shared = State<Arc<Served>>;
type Page = Result<Response, PageError>;

impl Served {
    /// The bundle's view as it is now.
    pub(crate) fn bundle(&self) -> Arc<BundleView> {
        self.context.bundle.borrow().clone()
    }

    /// The bundle's view with the tasks that are paused, parked or at the end of their count now.
    pub(crate) async fn bundle_with_holds(&self) -> Result<Arc<BundleView>, StoreError> {
        let (bundle, held) = (self.bundle(), self.context.store.held_tasks().await?);
        let used = self.context.store.scheduled_runs().await?;
        if held.is_empty() && bundle.tasks.iter().all(|task| task.count.is_none()) {
            return Ok(bundle);
        }
        Ok(Arc::new(bundle.holding(&held, &used, self.context.clock.now())))
    }

    pub(crate) async fn running(&self) -> Result<Vec<RunRow>, StoreError> {
        let filter = RunFilter {
            state: Some(RunState::Running),
            limit: MOST_RUNNING,
            ..RunFilter::default()
        };
        self.context.store.runs(filter).await
    }

    fn frame(
        &self,
        title: impl Into<String>,
        section: Section,
        bundle: &BundleView,
        totals: &Totals,
    ) -> (Frame, Timestamp) {
        let now = self.context.clock.now();
        let facts = FrameFacts {
            bundle,
            instance: &self.context.instance,
            dead_letters_open: totals.dead_letters_open,
            unhealthy: &self.troubles(now),
            now,
        };
        (Frame::new(title, section, &facts), now)
    }
}

/// `/`
pub(crate) async fn overview(State(served): Shared) -> Page {
    let (store, bundle) = (&served.context.store, served.bundle_with_holds().await?);
    let totals = store.totals().await?;
    let stats = store.task_stats().await?;
    let running = served.running().await?;
    let (frame, now) = served.frame("Overview", Section::Overview, &bundle, &totals);
    html("overview.html", &overview::page(frame, &bundle, &stats, &running, &totals, now))
}

/// The parameters of `/runs` and `/api/runs`.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct RunsQuery {
    task: Option<String>,
    state: Option<String>,
    limit: Option<u32>,
    offset: Option<u32>,
}

impl RunsQuery {
    /// The filter with at most `most` rows. A value that cannot exist is told, not ignored.
    pub(crate) fn filter(self, most: u32) -> Result<RunFilter, PageError> {
        let task = self.task.filter(|task| !task.is_empty());
        if let Some(task) = task.as_deref().filter(|task| !is_name(task)) {
            return Err(PageError::NotFound(format!("{task:?} is not a task's name")));
        }
        let state =
            match self.state.as_deref() {
                None | Some("") => None,
                Some(text) => Some(RunState::parse(text).ok_or_else(|| {
                    PageError::NotFound(format!("{text:?} is not a state of a run"))
                })?),
            };
        Ok(RunFilter {
            task: task.map(TaskName::new),
            state,
            since: None,
            limit: self.limit.unwrap_or(most).clamp(1, most),
            offset: self.offset.unwrap_or(0),
        })
    }
}

fn is_name(text: &str) -> bool {
    let plain = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-');
    text.len() <= 64 && text.bytes().all(plain)
}

/// `/runs`
pub(crate) async fn runs(State(served): Shared, Query(query): Query<RunsQuery>) -> Page {
    let (store, bundle) = (&served.context.store, served.bundle());
    let mut filter = query.filter(runs::PAGE)?;
    filter.limit = runs::PAGE + 1;
    let rows = store.runs(filter.clone()).await?;
    let totals = store.totals().await?;
    let (frame, now) = served.frame("Runs", Section::Runs, &bundle, &totals);
    html("runs.html", &runs::page(frame, &bundle, &filter, rows, now))
}

/// The parameters of `/runs/<id>`.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct RunQuery {
    rounds: Option<String>,
}

/// `/runs/<id>`; a beginning of an id is enough.
pub(crate) async fn run(
    State(served): Shared,
    Path(id): Path<String>,
    Query(query): Query<RunQuery>,
) -> Page {
    let (store, bundle) = (&served.context.store, served.bundle());
    let detail = store.run_detail(store.find_run(id).await?).await?;
    let totals = store.totals().await?;
    let title = format!("{} {}", detail.run.task, detail.run.run_id);
    let (frame, now) = served.frame(title, Section::Runs, &bundle, &totals);
    let rounds = if query.rounds.as_deref() == Some("all") { Rounds::All } else { Rounds::Last };
    html("run.html", &run::page(frame, &bundle, detail, rounds, now))
}

/// `/schedule`
pub(crate) async fn schedule(State(served): Shared) -> Page {
    let bundle = served.bundle_with_holds().await?;
    let totals = served.context.store.totals().await?;
    let (frame, now) = served.frame("Schedule", Section::Schedule, &bundle, &totals);
    html("schedule.html", &schedule::page(frame, &bundle, now))
}

/// The parameters of a paged list.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct OffsetQuery {
    pub offset: Option<u32>,
}

/// `/dead-letters`
pub(crate) async fn dead_letters(State(served): Shared, Query(query): Query<OffsetQuery>) -> Page {
    let (store, bundle) = (&served.context.store, served.bundle());
    let offset = query.offset.unwrap_or(0);
    let rows = store.dead_letters(None, dead_letters::PAGE + 1, offset).await?;
    let totals = store.totals().await?;
    let (frame, now) = served.frame("Dead letters", Section::DeadLetters, &bundle, &totals);
    html("dead_letters.html", &dead_letters::page(frame, &bundle, rows, offset, now))
}

/// `/problems`
pub(crate) async fn problems(State(served): Shared) -> Page {
    let bundle = served.bundle();
    let totals = served.context.store.totals().await?;
    let (frame, _) = served.frame("Problems", Section::Problems, &bundle, &totals);
    html("problems.html", &problems::page(frame, &bundle))
}

/// `/seal`
pub(crate) async fn seal(State(served): Shared) -> Page {
    let (bundle, instance) = (served.bundle(), &served.context.instance);
    let totals = served.context.store.totals().await?;
    let (frame, _) = served.frame("Seal report", Section::Nothing, &bundle, &totals);
    html("seal.html", &seal::SealPage::new(frame, instance))
}

/// Every other address.
pub(crate) async fn missing() -> PageError {
    PageError::NotFound("there is no such page".to_owned())
}
