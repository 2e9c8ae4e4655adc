//! The pages' queries as JSON, with the field names of the command line's `--json`.

use std::sync::Arc;

use axum::extract::{Path, Query, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::json;

use super::Served;
use super::pages::{OffsetQuery, RunsQuery};
use super::render::PageError;
use crate::bundle::Problem;
use crate::run::CommitId;
use crate::store::{RunRow, TaskStats, Totals};

/// The most rows of one answer.
const MOST_ROWS: u32 = 500;

type Shared = State<Arc<Served>>;

/// A failure as JSON.
pub(crate) struct ApiError(PageError);

impl<E: Into<PageError>> From<E> for ApiError {
    fn from(error: E) -> Self {
        ApiError(error.into())
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        self.0.log();
        let body = json!({ "error": self.0.to_string() }).to_string() + "\n";
        (self.0.status(), [(header::CONTENT_TYPE, JSON)], body).into_response()
    }
}

const JSON: &str = "application/json";

fn answer(value: &impl Serialize) -> Result<Response, ApiError> {
    let body = serde_json::to_string(value)? + "\n";
    Ok(([(header::CONTENT_TYPE, JSON)], body).into_response())
}

#[derive(Serialize)]
struct Overview {
    bundle: Arc<super::BundleView>,
    instance: super::Instance,
    unhealthy: Vec<String>,
    totals: Totals,
    running: Vec<RunRow>,
    tasks: Vec<TaskStats>,
}

/// `/api/overview`
pub(crate) async fn overview(State(served): Shared) -> Result<Response, ApiError> {
    let store = &served.context.store;
    answer(&Overview {
        bundle: served.bundle_with_holds().await?,
        instance: served.context.instance.clone(),
        unhealthy: served.troubles(served.context.clock.now()),
        totals: store.totals().await?,
        running: served.running().await?,
        tasks: store.task_stats().await?,
    })
}

/// `/api/runs`
pub(crate) async fn runs(
    State(served): Shared,
    Query(query): Query<RunsQuery>,
) -> Result<Response, ApiError> {
    answer(&served.context.store.runs(query.filter(MOST_ROWS)?).await?)
}

/// `/api/runs/<id>`
pub(crate) async fn run(
    State(served): Shared,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    let store = &served.context.store;
    answer(&store.run_detail(store.find_run(id).await?).await?)
}

/// `/api/dead-letters`
pub(crate) async fn dead_letters(
    State(served): Shared,
    Query(query): Query<OffsetQuery>,
) -> Result<Response, ApiError> {
    let offset = query.offset.unwrap_or(0);
    answer(&served.context.store.dead_letters(None, MOST_ROWS, offset).await?)
}

#[derive(Serialize)]
struct Problems<'a> {
    commit: Option<&'a CommitId>,
    problems: &'a [Problem],
}

/// `/api/problems`: as `fleet bundle validate --format json` prints it.
pub(crate) async fn problems(State(served): Shared) -> Result<Response, ApiError> {
    let bundle = served.bundle();
    let commit = bundle.problems_commit.as_ref().or(bundle.commit.as_ref());
    answer(&Problems { commit, problems: &bundle.problems })
}
