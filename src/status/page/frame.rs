//! What every page shows around its content: navigation with counts, banners, the footer.

use jiff::Timestamp;
use serde::Serialize;

use crate::bundle::Severity;
use crate::status::words::{Moment, Words, count, short_commit};
use crate::status::{BundleView, Instance};

/// The entry of the navigation that a page belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Section {
    Overview,
    Runs,
    Schedule,
    DeadLetters,
    Problems,
    Nothing,
}

/// A sentence across the page, with its way out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Banner {
    /// `bad`, `warning` or `note`: also shown as a word.
    pub tone: &'static str,
    pub text: String,
    /// (address, words), where a page tells more.
    pub link: Option<(&'static str, &'static str)>,
}

/// The frame around a page.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Frame {
    pub title: String,
    pub section: Section,
    pub dead_letters: u64,
    pub problems: usize,
    pub bundle: String,
    pub commit: Option<String>,
    pub version: &'static str,
    pub pid: u32,
    pub started: Moment,
    pub now: Moment,
    pub banners: Vec<Banner>,
}

/// What a frame is made from.
pub(crate) struct FrameFacts<'a> {
    pub bundle: &'a BundleView,
    pub instance: &'a Instance,
    pub dead_letters_open: u64,
    /// Why the process is not healthy, one line each.
    pub unhealthy: &'a [String],
    pub now: Timestamp,
}

impl Frame {
    /// The frame of one page.
    pub(crate) fn new(title: impl Into<String>, section: Section, facts: &FrameFacts<'_>) -> Self {
        let words = Words::new("UTC", facts.now);
        let commit = facts.bundle.commit.as_ref();
        Frame {
            title: title.into(),
            section,
            dead_letters: facts.dead_letters_open,
            problems: facts.bundle.problems.len(),
            bundle: facts.bundle.name.clone(),
            commit: commit.map(|commit| short_commit(commit.as_str()).to_owned()),
            version: env!("CARGO_PKG_VERSION"),
            pid: facts.instance.pid,
            started: words.moment(facts.instance.started_at),
            now: words.moment(facts.now),
            banners: banners(section, facts),
        }
    }
}

/// What is wrong is told on every page, how the host is limited on the overview.
fn banners(section: Section, facts: &FrameFacts<'_>) -> Vec<Banner> {
    let health = facts.unhealthy.iter().map(|reason| Banner {
        tone: "bad",
        text: reason.clone(),
        link: Some(("/healthz", "Health")),
    });
    let best_effort = section == Section::Overview && facts.instance.limits == "best_effort";
    let limits = best_effort.then(|| Banner {
        tone: "note",
        text: "Resource limits are best effort on this host: memory, CPU and process limits are \
               stood in for by rlimits. Network, capabilities, seccomp and the read-only root are \
               sealed."
            .to_owned(),
        link: Some(("/seal", "Seal report")),
    });
    health.chain(problem_banner(facts.bundle)).chain(limits).collect()
}

fn problem_banner(bundle: &BundleView) -> Option<Banner> {
    let errors = bundle.count(Severity::Error) as u64;
    let warnings = bundle.count(Severity::Warning) as u64;
    let checked = bundle.problems_commit.as_ref().map_or("?", |commit| commit.as_str());
    let (tone, text) = match (&bundle.commit, errors) {
        (_, 0) if warnings == 0 => return None,
        (_, 0) => ("warning", format!("The bundle has {}.", count(warnings, "warning"))),
        (Some(commit), _) => (
            "bad",
            format!(
                "Commit {} was refused with {}; commit {} keeps running.",
                short_commit(checked),
                count(errors, "error"),
                short_commit(commit.as_str())
            ),
        ),
        (None, _) => (
            "bad",
            format!(
                "Commit {} was refused with {}; nothing is scheduled.",
                short_commit(checked),
                count(errors, "error")
            ),
        ),
    };
    Some(Banner { tone, text, link: Some(("/problems", "Problems")) })
}
