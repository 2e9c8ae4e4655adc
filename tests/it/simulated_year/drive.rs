//! The year itself: the daemon on a clock that goes from one moment to the next, and what befalls it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use fleet::run::TaskName;
use jiff::{SignedDuration, Timestamp};
use tempfile::TempDir;

use super::tasks::{AFTER, Task, tasks};
use crate::env::pretend::{Pretend, Stretch};
use crate::env::simulation::Simulation;
use crate::env::{commit_files, repository, sandbox, world};

pub const START: &str = "2026-01-01T00:00:30Z";
pub const END: &str = "2027-01-01T00:00:00Z";
/// How many runs there may be at a time.
const ROOM: u32 = 24;

/// What befalls the daemon.
enum Happening {
    Pause {
        task: &'static str,
        until: Option<&'static str>,
    },
    Resume(&'static str),
    /// The clock is set forward or back to this instant.
    ClockSet(&'static str),
    /// Nobody is there until then.
    Down(&'static str),
    Reschedule(&'static str),
    Disable(&'static str),
}

use Happening::{ClockSet, Disable, Down, Pause, Reschedule, Resume};

const HAPPENINGS: [(&str, Happening); 21] = [
    ("2026-01-12T02:35:00Z", Disable("disabled")),
    ("2026-01-20T10:00:00Z", Pause { task: "paused", until: Some("2026-02-03T10:30:00Z") }),
    ("2026-02-01T08:00:00Z", Resume("failing")),
    ("2026-02-10T04:10:00Z", ClockSet("2026-02-10T09:30:00Z")),
    ("2026-03-01T08:00:00Z", Resume("failing")),
    ("2026-03-05T13:05:00Z", Reschedule("rescheduled")),
    ("2026-03-20T08:10:00Z", Down("2026-03-21T07:00:00Z")),
    ("2026-04-01T08:00:00Z", Resume("failing")),
    ("2026-04-10T10:30:00Z", Pause { task: "paused", until: None }),
    ("2026-04-25T15:00:00Z", Resume("paused")),
    ("2026-05-01T08:00:00Z", Resume("failing")),
    ("2026-05-02T06:30:00Z", ClockSet("2026-05-02T04:30:00Z")),
    ("2026-06-01T08:00:00Z", Resume("failing")),
    ("2026-06-15T01:00:00Z", Down("2026-06-17T03:00:00Z")),
    ("2026-07-01T08:00:00Z", Resume("failing")),
    ("2026-08-01T08:00:00Z", Resume("failing")),
    ("2026-08-31T22:00:00Z", Down("2026-09-01T04:00:00Z")),
    ("2026-09-01T08:00:00Z", Resume("failing")),
    // The night in which most of the zones change their clocks.
    ("2026-10-25T00:40:00Z", ClockSet("2026-10-25T03:20:00Z")),
    ("2026-11-01T04:30:00Z", Down("2026-11-01T08:30:00Z")),
    ("2026-12-01T08:00:00Z", Resume("failing")),
];

/// A span of time of which the daemon learned at its end.
#[derive(Clone, Copy, Debug)]
pub struct Missed {
    pub from: Timestamp,
    pub to: Timestamp,
}

/// Everything that a year left.
pub struct Year {
    pub tasks: Vec<Task>,
    pub missed: Vec<Missed>,
    /// Operators' pauses by task: from, until.
    pub pauses: BTreeMap<&'static str, Vec<(Timestamp, Timestamp)>>,
    /// When a commit changed the task.
    pub changed: BTreeMap<&'static str, Timestamp>,
    pub resumed: Vec<Timestamp>,
    pub stretches: Vec<Stretch>,
    pub database: PathBuf,
    _dir: TempDir,
}

pub fn at(text: &str) -> Timestamp {
    text.parse().expect("an instant")
}

/// Memory where there is some to write to: the year is about decisions and not about disks.
fn scratch() -> TempDir {
    let memory = std::path::Path::new("/dev/shm");
    let dir = tempfile::Builder::new().prefix("fleet-year-").tempdir_in(memory);
    dir.or_else(|_| tempfile::tempdir()).expect("scratch directory")
}

struct Driver {
    dir: TempDir,
    pretend: Pretend,
    year: Year,
}

impl Driver {
    fn new(zones: &[&'static str]) -> Self {
        let dir = scratch();
        let year_tasks = tasks(zones);
        let files: Vec<(String, String)> = year_tasks
            .iter()
            .flat_map(|task| {
                let turns = "turns: [{text: done}]\n".to_owned();
                let script = format!("scripted/{}.yaml", task.name);
                [(task.path(), task.file(task.schedule, "")), (script, turns)]
            })
            .collect();
        let files: Vec<(&str, &str)> =
            files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        repository(&dir.path().join("bundle"), &[world::BASE, &files].concat());
        let by_name: BTreeMap<String, Task> =
            tasks(zones).into_iter().map(|task| (task.name.clone(), task)).collect();
        let pretend = Pretend::new(move |claimed| by_name[claimed.task.as_str()].course(claimed));
        let year = Year {
            tasks: year_tasks,
            missed: Vec::new(),
            pauses: BTreeMap::new(),
            changed: BTreeMap::new(),
            resumed: Vec::new(),
            stretches: Vec::new(),
            database: dir.path().join("state/fleet.db"),
            _dir: scratch(),
        };
        Driver { dir, pretend, year }
    }

    async fn start(&self, at: Timestamp) -> Simulation {
        let mut config = sandbox::config(&self.dir.path().join("state"));
        config.max_concurrent_runs = ROOM;
        Simulation::pretend(&self.dir.path().join("bundle"), config, at, &self.pretend).await
    }

    async fn happen(&mut self, simulation: Simulation, happening: &Happening) -> Simulation {
        let now = simulation.clock.now();
        let mut simulation = simulation;
        match *happening {
            Pause { task, until } => {
                let until = until.map(at);
                let store = &simulation.context.store;
                let paused =
                    store.pause_task(TaskName::new(task), now, until, "stock-taking".into());
                paused.await.expect("paused");
                let end = until.unwrap_or(Timestamp::MAX);
                self.year.pauses.entry(task).or_default().push((now, end));
            }
            Resume(task) => {
                let resumed = simulation.context.store.resume_task(TaskName::new(task)).await;
                resumed.expect("resumed").expect("it was held");
                match self.year.pauses.get_mut(task).and_then(|pauses| pauses.last_mut()) {
                    Some(pause) => pause.1 = now,
                    None => self.year.resumed.push(now),
                }
            }
            ClockSet(to) => {
                simulation.clock.set(at(to));
                if at(to) > now {
                    self.year.missed.push(Missed { from: now, to: at(to) });
                }
            }
            Down(until) => {
                simulation.end_in_time().await;
                self.year.missed.push(Missed { from: now, to: at(until) });
                simulation = self.start(at(until)).await;
            }
            Reschedule(task) => self.commit(&mut simulation, task, Some(AFTER)).await,
            Disable(task) => self.commit(&mut simulation, task, None).await,
        }
        simulation.settle(&self.pretend).await;
        simulation
    }

    /// A commit gives the task another schedule, or disables it.
    async fn commit(
        &mut self,
        simulation: &mut Simulation,
        name: &'static str,
        schedule: Option<&str>,
    ) {
        let task = self.year.tasks.iter().find(|task| task.name == name).expect("a task");
        let file = match schedule {
            Some(schedule) => task.file(schedule, ""),
            None => task.file(task.schedule, "enabled: false\n"),
        };
        simulation.bundles.mark_unchanged();
        commit_files(&self.dir.path().join("bundle"), &[(&task.path(), &file)], "change");
        simulation.bundles.changed().await.expect("the keeper lives");
        // The new bundle's first turn: it reads the agenda from the tick of the reload.
        let next = simulation.clock.now() + SignedDuration::from_secs(30);
        simulation.clock.set(next);
        self.year.changed.insert(name, next);
    }
}

/// Lets the year pass.
pub async fn year(zones: &[&'static str]) -> Year {
    let mut driver = Driver::new(zones);
    let mut simulation = driver.start(at(START)).await;
    for (moment, happening) in &HAPPENINGS {
        simulation.pass(at(moment), &driver.pretend).await;
        simulation = driver.happen(simulation, happening).await;
    }
    simulation.pass(at(END), &driver.pretend).await;
    simulation.service.abort();
    let mut year = driver.year;
    year.stretches = driver.pretend.stretches();
    year._dir = driver.dir;
    year
}
