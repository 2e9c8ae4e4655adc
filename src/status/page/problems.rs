//! What is wrong with the bundle, as `fleet bundle validate` tells it.

use serde::Serialize;

use super::frame::Frame;
use crate::bundle::{Problem, Severity};
use crate::status::BundleView;
use crate::status::words::short_commit;

#[derive(Clone, Debug, Serialize)]
pub(crate) struct ProblemsPage {
    pub frame: Frame,
    /// The commit that was checked.
    pub checked: Option<String>,
    /// The commit that runs, when it is another one.
    pub kept: Option<String>,
    pub errors: usize,
    pub warnings: usize,
    pub problems: Vec<ProblemLine>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct ProblemLine {
    /// `error` or `warning`.
    pub severity: &'static str,
    pub place: String,
    pub code: &'static str,
    pub message: String,
    pub hint: Option<String>,
}

/// Makes the page of problems.
pub(crate) fn page(frame: Frame, bundle: &BundleView) -> ProblemsPage {
    let checked = bundle.problems_commit.as_ref().or(bundle.commit.as_ref());
    let kept = bundle.commit.as_ref().filter(|commit| Some(*commit) != checked);
    let short = |commit: &crate::run::CommitId| short_commit(commit.as_str()).to_owned();
    ProblemsPage {
        frame,
        checked: checked.map(short),
        kept: kept.map(short),
        errors: bundle.count(Severity::Error),
        warnings: bundle.count(Severity::Warning),
        problems: bundle.problems.iter().map(line).collect(),
    }
}

fn line(problem: &Problem) -> ProblemLine {
    ProblemLine {
        severity: match problem.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        },
        place: format!("{}:{}:{}", problem.file, problem.line, problem.column),
        code: problem.code,
        message: problem.message.clone(),
        hint: problem.hint.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::CommitId;
    use crate::status::page::samples;

    #[test]
    fn a_refused_commit_names_itself_and_the_one_that_keeps_running() {
        let refused = CommitId::new("f".repeat(40));
        let bundle = samples::bundle().refused(refused, vec![samples::problem(Severity::Error)]);
        let page = page(samples::frame(), &bundle);
        assert_eq!(page.checked.as_deref(), Some("ffffffffffff"));
        assert_eq!(page.kept.as_deref(), Some("1f6e2d3c4b5a"));
        assert_eq!(page.problems[0].place, "tasks/report.yaml:14:11");
        assert_eq!((page.errors, page.warnings), (1, 0));
    }
}
