//! Turns one commit of the bundle repository into a [`Bundle`], or into the list of everything that
//! is wrong with it. Reads git objects only (the files on disk only to validate what is not committed
//! yet) and looks at the repositories that tasks name; never the environment or the clock.

mod channel;
mod model;
mod nearest;
mod problem;
mod prompt;
mod raw;
mod schema;
mod source;
mod validate;
mod watch;
mod yaml;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use crate::run::CommitId;

pub use channel::{
    Channel, ChannelKind, HostCommand, Sla, Smtp, Tls, Webhook, WebhookUrl, check_webhook_url,
};
pub use model::{
    Bundle, Completion, HttpService, Misfire, MisfirePolicy, ModelRef, OnError, Overlap, Persona,
    PriceEntry, Pricing, Provider, ProviderKind, RunIf, SandboxLimits, SandboxSettings, Script,
    ScriptFault, ScriptTurn, Task, TaskLimits, TaskSchedule, WorktreeConfig,
};
pub use problem::{Position, Problem, Severity};
pub use prompt::{PreviousRun, PromptError, PromptVars, render_prompt};
pub use schema::SchemaKind;
pub use source::{LoadError, Revision, head_commit};
pub use watch::BundleWatch;

/// What reading a bundle gave.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The commit that was read; `None` for files on disk.
    pub commit: Option<CommitId>,
    /// Absent when a problem is an error.
    pub bundle: Option<Arc<Bundle>>,
    /// The bundle whose only errors are that the host lacks something: the tasks that need it fail,
    /// the others can run.
    pub degraded: Option<Arc<Bundle>>,
    /// Sorted by file and place.
    pub problems: Vec<Problem>,
    /// The text of each readable file that has a problem, for excerpts; secrets are masked.
    pub texts: BTreeMap<String, String>,
}

/// Reads and validates a bundle.
pub fn load(dir: &Path, revision: &Revision) -> Result<Loaded, LoadError> {
    let files = source::read(dir, revision)?;
    let (bundle, problems) = validate::check(&files, dir);
    let mut texts = BTreeMap::new();
    for problem in &problems {
        if let Some(text) = files.text(&problem.file) {
            texts.insert(problem.file.clone(), validate::mask_secrets(text).into_owned());
        }
    }
    let is_clean = problems.iter().all(|problem| problem.severity != Severity::Error);
    let bundle = bundle.map(Arc::new);
    let (bundle, degraded) = if is_clean { (bundle, None) } else { (None, bundle) };
    Ok(Loaded { commit: files.commit, bundle, degraded, problems, texts })
}

/// Reads and validates one commit.
pub fn load_commit(dir: &Path, commit: &CommitId) -> Result<Loaded, LoadError> {
    load(dir, &Revision::Named(commit.as_str().to_owned()))
}
