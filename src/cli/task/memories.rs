//! `fleet task memories`: what a task's runs remember.

use crate::cli::visible::{instant, one_line};
use crate::cli::{Exit, Failure, Global, print, print_json, table};
use crate::run::{Memory, TaskName};

/// Characters of a value in the table.
const VALUE_WIDTH: usize = 80;

#[derive(Debug, clap::Args)]
pub(super) struct MemoriesArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Lists a task's facts, the one written longest ago first
    List {
        /// The task's name
        task: String,
        /// JSON instead of a table; the values are whole
        #[arg(long)]
        json: bool,
    },
    /// Forgets one fact
    Delete {
        /// The task's name
        task: String,
        /// The fact's key
        key: String,
    },
    /// Forgets every fact of a task
    Clear {
        /// The task's name
        task: String,
    },
}

pub(super) fn run(args: MemoriesArgs, global: &Global) -> Result<Exit, Failure> {
    match args.verb {
        Verb::List { task, json } => list(&task, json, global),
        Verb::Delete { task, key } => forget(&task, Some(key), global),
        Verb::Clear { task } => forget(&task, None, global),
    }
}

fn list(task: &str, json: bool, global: &Global) -> Result<Exit, Failure> {
    let facts: Vec<Memory> = match global.named_store()? {
        Some(store) => global.block_on(store.memories(TaskName::new(task)))??,
        None => Vec::new(),
    };
    if json {
        print_json(&facts)?;
    } else if facts.is_empty() {
        print(&format!("task {task} remembers nothing"))?;
    } else {
        let mut table = table(&["KEY", "WRITTEN", "VALUE"]);
        for Memory { key, value, updated_at } in &facts {
            let cells = [one_line(key, 40), instant(*updated_at), one_line(value, VALUE_WIDTH)];
            table.add_row(cells);
        }
        print(&table.trim_fmt())?;
    }
    Ok(Exit::Ok)
}

fn forget(task: &str, key: Option<String>, global: &Global) -> Result<Exit, Failure> {
    let nothing = || {
        let what = key.as_ref().map_or("nothing".to_owned(), |key| format!("nothing as {key:?}"));
        Failure::new(Exit::Usage, format!("task {task} remembers {what}"))
            .hint(format!("fleet task memories list {task} shows its facts"))
    };
    let store = global.named_store()?.ok_or_else(nothing)?;
    let gone = global.block_on(store.forget_memories(TaskName::new(task), key.clone()))??;
    if gone == 0 {
        return Err(nothing());
    }
    print(&format!(
        "{gone} {} of task {task} forgotten",
        if gone == 1 { "fact" } else { "facts" }
    ))?;
    Ok(Exit::Ok)
}
