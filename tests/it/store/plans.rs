//! The queries that are asked all the time go through an index: what they cost does not grow with the
//! history. Asked of the database itself, in the words of the store.

use crate::store::bench::Bench;

const STORE: [&str; 4] = [
    include_str!("../../../src/store/orphans.rs"),
    include_str!("../../../src/store/occurrences.rs"),
    include_str!("../../../src/store/cancel.rs"),
    include_str!("../../../src/store/task_state.rs"),
];

/// The string literals of the store's source that begin with SELECT and need nothing put into them.
fn queries() -> Vec<String> {
    let literals = STORE.iter().flat_map(|source| source.split('"').skip(1).step_by(2));
    literals
        .filter(|text| text.starts_with("SELECT ") && !text.contains('{'))
        .map(|text| text.replace("\\\n", "\n"))
        .collect()
}

#[test]
fn no_query_of_the_loop_walks_all_runs() {
    let bench = Bench::new();
    let connection = rusqlite::Connection::open(bench.path()).expect("opens");
    let queries = queries();
    assert!(queries.len() >= 8, "the queries were not found: {queries:#?}");
    let mut walking = Vec::new();
    for query in queries {
        let mut plan =
            connection.prepare(&format!("EXPLAIN QUERY PLAN {query}")).expect("valid SQL");
        let mut rows = plan.raw_query();
        while let Some(row) = rows.next().expect("a plan") {
            let step: String = row.get("detail").expect("text");
            // A partial index may be walked: it holds the few rows that it is about.
            let walks = step.starts_with("SCAN runs")
                && ["sqlite_autoindex", "runs_by_"].iter().any(|all| step.contains(all));
            if walks || step == "SCAN runs" {
                walking.push(format!("{step}: {query}"));
            }
        }
    }
    assert_eq!(walking, Vec::<String>::new());
}
