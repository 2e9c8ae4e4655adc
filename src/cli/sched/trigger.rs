//! `fleet sched trigger`: a task due now, once.

use super::{find, wake};
use crate::cli::bundle_source::BundleSource;
use crate::cli::{Exit, Failure, Global, print};
use crate::clock::Clock;
use crate::runner::{ServeLock, by_hand, new_run_id};

pub(super) fn run(name: &str, source: &BundleSource, global: &Global) -> Result<Exit, Failure> {
    let bundle = source.valid(global)?;
    let task = find(&bundle, name)?;
    let run_id =
        new_run_id(&Clock::System).map_err(|error| Failure::from_error(Exit::Io, &error))?;
    let occurrence = by_hand(task, run_id, Clock::System.now());
    let store = global.store()?;
    let inserted = global.block_on(store.insert_occurrences(vec![occurrence], None))??;
    let [run] = inserted.as_slice() else {
        let text = format!("task {} was triggered at this very instant already", task.name);
        return Err(Failure::new(Exit::Conflict, text).hint("fleet runs list shows its run"));
    };
    wake(global);
    print(&format!("{run} is due now"))?;
    let name = &task.name;
    print(&match ServeLock::holder(&global.config.state) {
        Some(_) if task.enabled => format!("fleet runs logs -f {run} follows it"),
        Some(_) => format!("task {name} is disabled, and is run once all the same"),
        None => format!(
            "no daemon runs on {}: it starts with the next `fleet serve`; \
             `fleet task run {name}` runs one in the foreground",
            global.config.state.root().display()
        ),
    })?;
    Ok(Exit::Ok)
}
