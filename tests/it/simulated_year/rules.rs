//! What must hold of a year, worked out from the tasks' keys and from what befell the daemon.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use super::calendar;
use super::drive::{END, START, Year, at};
use super::tasks::{AFTER, Failing, MAX_RETRIES, Misfire, Overlap, Task};
use crate::env::pretend::Stretch;

/// A scheduled occurrence as it is in the store.
#[derive(Clone, Debug)]
pub struct Row {
    pub due: Timestamp,
    pub state: String,
    pub reason: String,
    pub finished: Option<Timestamp>,
}

impl Row {
    fn skipped(&self) -> Option<&str> {
        (self.state == "skipped").then_some(self.reason.as_str())
    }

    /// Until when it held up others, if it has ended.
    fn open_until(&self) -> Timestamp {
        self.finished.unwrap_or(Timestamp::MAX)
    }
}

/// The rows of each task, by due instant.
pub fn rows(year: &Year) -> BTreeMap<String, Vec<Row>> {
    let connection = rusqlite::Connection::open(&year.database).expect("the store opens");
    let mut query = connection
        .prepare("SELECT task, due, state, coalesce(reason, ''), finished_at FROM runs WHERE cause = 'schedule' ORDER BY task, due")
        .expect("a table");
    let instant = |nanos: i64| Timestamp::from_nanosecond(nanos.into()).expect("in range");
    let mut found: BTreeMap<String, Vec<Row>> = BTreeMap::new();
    let mut rows = query.query([]).expect("rows");
    while let Some(row) = rows.next().expect("a row") {
        let field = |i: usize| row.get::<_, String>(i).expect("text");
        let finished: Option<i64> = row.get(4).expect("an instant");
        let due = instant(row.get(1).expect("an instant"));
        let finished = finished.map(instant);
        let row = Row { due, state: field(2), reason: field(3), finished };
        found.entry(field(0)).or_default().push(row);
    }
    found
}

/// Every due instant of a task in this year.
fn due_of(year: &Year, task: &Task) -> BTreeSet<Timestamp> {
    let shift = calendar::jitter(&task.name, task.policy.jitter_secs);
    let until = task.policy.until.map_or(at(END), |day| {
        let day: jiff::civil::Date = day.parse().expect("a date");
        let next = day.tomorrow().expect("a date").in_tz(task.zone).expect("a zone");
        next.timestamp() - SignedDuration::from_secs(1)
    });
    let between = |schedule: &str, from: Timestamp, to: Timestamp| {
        let named = calendar::due(schedule, task.zone, from - shift, to - shift);
        named.into_iter().map(|named| named + shift).collect::<BTreeSet<_>>()
    };
    match year.changed.get(task.name.as_str()) {
        None => between(task.schedule, at(START), until),
        Some(change) => {
            let mut due = between(task.schedule, at(START), *change);
            if task.name == "rescheduled" {
                due.extend(between(AFTER, *change, until));
            }
            due
        }
    }
}

/// Every due instant has one row, and nothing else has one.
pub fn every_due_instant_has_one_row(year: &Year, rows: &BTreeMap<String, Vec<Row>>) {
    for task in &year.tasks {
        let found: Vec<Timestamp> = rows[&task.name].iter().map(|row| row.due).collect();
        let mut due: Vec<Timestamp> = due_of(year, task).into_iter().collect();
        if let Some(count) = task.policy.count {
            let ran = rows[&task.name].iter().filter(|row| row.skipped().is_none()).count();
            assert_eq!(ran, count, "{}: as often as its schedule may", task.name);
            due.truncate(found.len());
            assert!(rows[&task.name].last().is_some_and(|row| row.skipped().is_none()));
        }
        let missing: Vec<_> = due.iter().filter(|at| !found.contains(at)).take(3).collect();
        let odd: Vec<_> = found.iter().filter(|at| !due.contains(at)).take(3).collect();
        assert_eq!((missing, odd, found.len()), (vec![], vec![], due.len()), "{}", task.name);
    }
}

/// What the daemon knew of a task at the moment at which it decided over a due instant.
struct Moment<'y> {
    year: &'y Year,
    task: &'y Task,
    rows: &'y [Row],
    holds: Vec<(Timestamp, Timestamp)>,
}

impl Moment<'_> {
    /// When the daemon learned that it was due.
    fn decided(&self, due: Timestamp) -> Timestamp {
        let missed = self.year.missed.iter().find(|missed| missed.from < due && due <= missed.to);
        missed.map_or(due, |missed| missed.to)
    }

    fn is_held(&self, at: Timestamp) -> bool {
        self.holds.iter().any(|(from, until)| *from <= at && at < *until)
    }

    fn is_missed(&self, row: &Row) -> bool {
        let decided = self.decided(row.due);
        let late = decided.duration_since(row.due);
        let too_late = late > SignedDuration::from_hours(self.task.policy.max_delay_hours);
        match self.task.policy.misfire {
            Misfire::Skip => late > SignedDuration::from_mins(1),
            Misfire::All => too_late,
            Misfire::Latest => {
                let newer = |other: &&Row| other.due > row.due && other.due <= decided;
                too_late || self.rows.iter().filter(newer).any(|other| !self.is_held(other.due))
            }
        }
    }

    /// Which ends are right for the occurrence.
    fn is_right(&self, number: usize) -> Result<(), String> {
        let row = &self.rows[number];
        let decided = self.decided(row.due);
        let says = |wanted: &str| Err(format!("{} wanted of {row:?}", wanted));
        if self.is_held(row.due) || self.is_held(decided) {
            return if row.skipped() == Some("skipped_paused") { Ok(()) } else { says("paused") };
        }
        if self.is_missed(row) {
            return if row.skipped() == Some("skipped_misfire") { Ok(()) } else { says("misfire") };
        }
        let open = |beyond: fn(&Timestamp, &Timestamp) -> bool| {
            let earlier = self.rows[..number].iter().filter(|other| other.skipped().is_none());
            earlier.filter(|other| beyond(&other.open_until(), &decided)).count()
        };
        let overlaps = matches!(row.skipped(), Some("skipped_overlap" | "skipped_serialization"));
        // What ends in the very moment may be seen as open or not.
        match self.task.policy.overlap {
            Overlap::Skip if open(Timestamp::gt) > 0 && !overlaps => return says("overlap"),
            Overlap::Skip if overlaps && open(Timestamp::ge) > 0 => return Ok(()),
            _ => {}
        }
        let disabled = self.year.changed.get(self.task.name.as_str());
        match (row.skipped(), row.state.as_str()) {
            (Some("skipped_disabled_by_reload"), _) if disabled.is_some() => Ok(()),
            (Some(_), _) => says("a run"),
            (None, "cancelled") if self.task.policy.overlap == Overlap::CancelRunning => {
                let newer = self.rows.get(number + 1).map(|newer| newer.due);
                let reason = newer.map(|due| format!("replaced by the occurrence due {due}"));
                if Some(&row.reason) == reason.as_ref() { Ok(()) } else { says("replaced") }
            }
            (None, "success") if self.task.failures_end_well(row.due) => Ok(()),
            (None, "dead_lettered") if !self.task.failures_end_well(row.due) => Ok(()),
            // Long runs of the last days.
            (None, "running" | "pending" | "scheduled") => {
                let last_days = at(END) - SignedDuration::from_hours(12 * 24);
                if row.due > last_days { Ok(()) } else { says("an end") }
            }
            _ => says("another end"),
        }
    }
}

impl Task {
    fn failures_end_well(&self, due: Timestamp) -> bool {
        self.policy.failing != Failing::Always && self.failures(due) <= MAX_RETRIES
    }
}

/// Each row has the end that its task's policies give it.
pub fn every_row_has_its_end(year: &Year, rows: &BTreeMap<String, Vec<Row>>) {
    let mut wrong = Vec::new();
    for task in &year.tasks {
        let rows = rows[&task.name].as_slice();
        let pauses = year.pauses.get(task.name.as_str()).cloned().unwrap_or_default();
        let parked = parked(year, task, rows);
        let moment = Moment { year, task, rows, holds: [pauses, parked].concat() };
        let ends = (0..rows.len()).filter_map(|number| moment.is_right(number).err());
        wrong.extend(ends.map(|wrong| format!("{}: {wrong}", task.name)));
    }
    let few: Vec<_> = wrong.iter().take(10).collect();
    assert!(wrong.is_empty(), "{} wrong, of them {few:#?}", wrong.len());
}

/// From when to when a task was parked: after so many dead letters in a row until it was resumed.
fn parked(year: &Year, task: &Task, rows: &[Row]) -> Vec<(Timestamp, Timestamp)> {
    let limit = if task.name == "failing" { 3 } else { 5 };
    let (mut in_a_row, mut parked) = (0, Vec::<(Timestamp, Timestamp)>::new());
    let resumed = |from: Timestamp, to: Timestamp| {
        task.name == "failing" && year.resumed.iter().any(|at| *at > from && *at <= to)
    };
    let mut last = at(START);
    let mut ended: Vec<&Row> = rows.iter().filter(|row| row.finished.is_some()).collect();
    ended.sort_by_key(|row| row.finished);
    for row in ended.into_iter().filter(|row| row.skipped().is_none()) {
        let finished = row.open_until();
        if resumed(last, finished) {
            in_a_row = 0;
        }
        last = finished;
        in_a_row = if row.state == "dead_lettered" { in_a_row + 1 } else { 0 };
        if in_a_row == limit {
            let mut resumes = year.resumed.iter().filter(|_| task.name == "failing");
            let until = resumes.find(|at| **at > finished).copied();
            parked.push((finished, until.unwrap_or(Timestamp::MAX)));
        }
    }
    parked
}

/// Nothing that needs room for itself was carried out beside another of its task, and no key was held
/// twice.
pub fn nothing_ran_beside_what_excludes_it(year: &Year) {
    let mut by_room: BTreeMap<String, Vec<&Stretch>> = BTreeMap::new();
    let tasks: BTreeMap<&str, &Task> =
        year.tasks.iter().map(|task| (task.name.as_str(), task)).collect();
    for stretch in &year.stretches {
        let task = tasks[stretch.task.as_str()];
        if task.policy.overlap != Overlap::Allow {
            by_room.entry(format!("task {}", task.name)).or_default().push(stretch);
        }
        if let Some(key) = task.key() {
            by_room.entry(format!("key {key}")).or_default().push(stretch);
        }
    }
    for (room, mut stretches) in by_room {
        stretches.sort_by_key(|stretch| (stretch.from, stretch.to));
        for pair in stretches.windows(2) {
            assert!(pair[0].to <= pair[1].from, "{room}: {pair:?}");
        }
    }
}

/// The year held what it is about: each state and each reason of which the policies speak.
pub fn the_year_held_everything(rows: &BTreeMap<String, Vec<Row>>) -> BTreeMap<String, usize> {
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    for row in rows.values().flatten() {
        let kind = row.skipped().unwrap_or(&row.state).to_owned();
        *kinds.entry(kind).or_default() += 1;
    }
    kinds
}
