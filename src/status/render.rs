//! Templates into HTML. Everything is escaped; a name that a template misspells is an error.

use std::sync::LazyLock;

use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Response};
use include_dir::{Dir, include_dir};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{Environment, UndefinedBehavior, context};
use serde::Serialize;

use crate::store::StoreError;

/// The pages, styles and scripts, embedded.
pub(crate) static FILES: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/templates/status");

/// The embedded templates, compiled once.
static TEMPLATES: LazyLock<Environment<'static>> =
    LazyLock::new(|| compile().expect("a test compiles every template"));

fn compile() -> Result<Environment<'static>, minijinja::Error> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?);
    for file in FILES.files() {
        // Both hold for every file of the directory, or the build's own test fails.
        let (Some(name), Some(source)) = (file.path().to_str(), file.contents_utf8()) else {
            continue;
        };
        environment.add_template(name, source)?;
    }
    Ok(environment)
}

/// Renders a page model, which the template sees as `p`.
pub(crate) fn render(template: &str, page: &impl Serialize) -> Result<String, minijinja::Error> {
    TEMPLATES.get_template(template)?.render(context! { p => Serde(page) })
}

/// Answers with a rendered page.
pub(crate) fn html(template: &str, page: &impl Serialize) -> Result<Response, PageError> {
    Ok(Html(render(template, page)?).into_response())
}

/// Why a page cannot be shown.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PageError {
    #[error("{0}")]
    NotFound(String),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("a page could not be rendered")]
    Template(#[from] minijinja::Error),
    #[error("an answer could not be written as JSON")]
    Json(#[from] serde_json::Error),
    #[error("a file could not be read")]
    File(#[from] std::io::Error),
}

impl PageError {
    /// The status that tells it.
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            PageError::NotFound(_)
            | PageError::Store(StoreError::RunNotFound(_) | StoreError::AmbiguousRun(..)) => {
                StatusCode::NOT_FOUND
            }
            PageError::Store(_) => StatusCode::SERVICE_UNAVAILABLE,
            PageError::Template(_) | PageError::Json(_) | PageError::File(_) => {
                StatusCode::INTERNAL_SERVER_ERROR
            }
        }
    }

    /// Logs what an operator must know of.
    pub(crate) fn log(&self) {
        if self.status() != StatusCode::NOT_FOUND {
            let cause = std::error::Error::source(self).map(ToString::to_string);
            tracing::error!(error = %self, cause, "the status page could not answer");
        }
    }
}

/// A small page that says what went wrong.
impl IntoResponse for PageError {
    fn into_response(self) -> Response {
        self.log();
        let status = self.status();
        let page = context! { status => status.as_u16(), message => self.to_string() };
        let body = match render("error.html", &page) {
            Ok(body) => Html(body).into_response(),
            // The page about the failure failed as well: its text alone is still told.
            Err(_) => format!("{self}\n").into_response(),
        };
        (status, body).into_response()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_template_compiles_and_the_error_page_escapes() {
        compile().expect("templates compile");
        let page = context! { status => 404, message => "no run <script>" };
        let body = render("error.html", &page).expect("it renders");
        assert!(body.contains("no run &lt;script&gt;"));
        assert!(!body.contains("<script>"));
    }
}
