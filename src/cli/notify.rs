//! `fleet notify`: tries a channel, shows the notices that wait, and tries those again that were given
//! up.

use super::bundle_source::BundleSource;
use super::visible::{instant, one_line};
use super::{Exit, Failure, Global, print, print_json, table};
use crate::clock::Clock;
use crate::notify::{Purpose, SendError, send};
use crate::run::{Notice, NoticeEvent, RunId, RunState, TaskName};
use crate::store::NoticeRow;

/// Characters of an error in the table.
const ERROR_WIDTH: usize = 80;

/// Tries channels and shows the notices that wait.
#[derive(Debug, clap::Args)]
pub struct NotifyArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Sends a test notice to a channel, with this shell's environment, and says what came of it
    Test(TestArgs),
    /// Lists the notices that wait or were given up
    List(ListArgs),
    /// Lets notices that were given up be tried again
    Retry(RetryArgs),
}

#[derive(Debug, clap::Args)]
struct TestArgs {
    channel: String,
    #[command(flatten)]
    source: BundleSource,
}

#[derive(Debug, clap::Args)]
struct ListArgs {
    /// At most this many
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// JSON instead of a table
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct RetryArgs {
    /// A notice's number in the list
    #[arg(value_name = "ID")]
    id: Option<i64>,
    /// Every notice that was given up
    #[arg(long)]
    all: bool,
}

/// Carries out the verb.
pub fn run(args: NotifyArgs, global: &Global) -> Result<Exit, Failure> {
    global.block_on(async {
        match args.verb {
            Verb::Test(args) => test(&args, global).await,
            Verb::List(args) => list(args, global).await,
            Verb::Retry(args) => retry(&args, global).await,
        }
    })?
}

async fn test(args: &TestArgs, global: &Global) -> Result<Exit, Failure> {
    let bundle = args.source.valid(global)?;
    let Some(channel) = bundle.channels.get(&args.channel) else {
        let names: Vec<&str> = bundle.channels.keys().map(String::as_str).collect();
        let hint = match names.as_slice() {
            [] => "the manifest has no notify".to_owned(),
            names => format!("its channels are {}", names.join(", ")),
        };
        let message = format!("the bundle has no channel {:?}", args.channel);
        return Err(Failure::new(Exit::Usage, message).hint(hint));
    };
    let now = Clock::System.now();
    let notice = sample(&args.channel, now);
    match send(channel, &notice, Purpose::Test, now, &global.redactor).await {
        Ok(said) => {
            print(&format!("sent by {} to {}: {said}", channel.kind.as_str(), args.channel))?;
            Ok(Exit::Ok)
        }
        Err(error) => Err(unsent(&error, global)),
    }
}

fn unsent(error: &SendError, global: &Global) -> Failure {
    let failure = Failure::new(Exit::Problems, global.redactor.redact(&error.to_string()));
    match error {
        SendError::MissingVariable { .. } => {
            failure.hint("set it in this shell as well: the daemon has an environment of its own")
        }
        SendError::Refused { status: 300..400, .. } => {
            failure.hint("redirects are not followed: name the URL where the receiver is")
        }
        _ => failure,
    }
}

/// A notice of nothing.
fn sample(channel: &str, now: jiff::Timestamp) -> Notice {
    let run_id = RunId::new("test");
    Notice {
        idempotency_key: format!("test.{}.{channel}", now.as_millisecond()),
        channel: channel.to_owned(),
        event: NoticeEvent::Failure,
        task: TaskName::new("test"),
        run_id,
        due: now,
        at: now,
        state: RunState::DeadLettered,
        outcome: None,
        reason: "somebody tries the channel: nothing has failed".to_owned(),
        attempts: 1,
        failures_in_a_row: 1,
    }
}

async fn list(args: ListArgs, global: &Global) -> Result<Exit, Failure> {
    let rows = match global.named_store()? {
        Some(store) => store.notices(args.limit).await?,
        None => Vec::new(),
    };
    if args.json {
        print_json(&rows)?;
    } else if rows.is_empty() {
        print("no notice waits")?;
    } else {
        print(&notices_table(&rows))?;
    }
    Ok(Exit::Ok)
}

fn notices_table(rows: &[NoticeRow]) -> String {
    let mut table = table(&["ID", "CHANNEL", "EVENT", "TASK", "RUN", "TRIES", "STATE", "ERROR"]);
    for row in rows {
        let state = match (row.given_up_at, row.try_at) {
            (Some(at), _) => format!("given up {}", instant(at)),
            (None, Some(at)) => format!("next try {}", instant(at)),
            (None, None) => "waits".to_owned(),
        };
        table.add_row([
            row.id.to_string(),
            row.notice.channel.clone(),
            row.notice.event.as_str().to_owned(),
            row.notice.task.to_string(),
            row.notice.run_id.to_string(),
            row.tries.to_string(),
            state,
            one_line(row.last_error.as_deref().unwrap_or_default(), ERROR_WIDTH),
        ]);
    }
    table.trim_fmt()
}

async fn retry(args: &RetryArgs, global: &Global) -> Result<Exit, Failure> {
    let ids = match global.named_store()? {
        Some(store) => store.retry_notices(args.id, Clock::System.now()).await?,
        None => Vec::new(),
    };
    match (ids.as_slice(), args.id) {
        ([], Some(id)) => {
            let message = format!("no notice {id} was given up");
            return Err(Failure::new(Exit::Usage, message).hint("fleet notify list shows them"));
        }
        ([], None) => print("no notice was given up")?,
        _ => {}
    }
    ids.iter().try_for_each(|id| print(&format!("notice {id} waits to be sent")))?;
    if !ids.is_empty()
        && let Err(error) = global.config.state.wake()
    {
        tracing::warn!(error = %error, "cannot touch the wake file: a daemon sends them late");
    }
    Ok(Exit::Ok)
}
