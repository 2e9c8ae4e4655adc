//! The end of all sandboxes of a process.

use std::sync::Arc;
use std::time::{Duration, Instant};

use fleet::sandbox::{CallError, Pool, PoolError, Sandbox};

use super::life::doors;
use super::{bash, call, ended, told};
use crate::env::sandbox::{Cell, containers, wait_until};

fn pool(cell: &Cell) -> Pool {
    Pool::new(cell.podman.clone())
}

#[tokio::test]
async fn closing_takes_back_starts_in_progress_ends_what_runs_and_refuses_the_rest() {
    let cell = Cell::new().await;
    let pool = pool(&cell);
    let running = pool.start(&cell.seal, cell.spec("run-running")).await.expect("it starts");
    let starts: Vec<_> = (0..4)
        .map(|n| {
            let (pool, seal) = (pool.clone(), cell.seal.clone());
            let spec = cell.spec(&format!("run-{n}"));
            tokio::spawn(async move { pool.start(&seal, spec).await.map(drop) })
        })
        .collect();
    // All four are past their look at the pool, with Podman at work.
    wait_until("the starts are under way", || doors(&cell).len() == 5).await;
    pool.close().await;
    assert_eq!(cell.podman.containers().await.expect("podman lists containers"), [""; 0]);
    assert_eq!(doors(&cell), [""; 0]);
    for start in starts {
        let started = start.await.expect("no panic");
        assert!(matches!(started, Err(PoolError::Closed)), "{started:?}");
    }
    let answer = call(&running, bash("true")).await;
    assert!(matches!(answer, Err(CallError::Gone(_))), "{answer:?}");
    let began = Instant::now();
    for refused in [
        pool.start(&cell.seal, cell.spec("run-late")).await,
        pool.start_salvage(&cell.seal, cell.spec("x")).await,
    ] {
        let error = refused.err().expect("refused").to_string();
        let want = "sandbox did not start: this process is ending and starts none any more";
        assert_eq!(error, want);
    }
    assert!(began.elapsed() < Duration::from_secs(1), "a refusal waits for nothing");
}

#[tokio::test]
async fn runs_get_no_sandbox_while_they_are_interrupted_but_their_work_is_collected() {
    let cell = Cell::new().await;
    let pool = pool(&cell);
    pool.refuse();
    let refused = pool.start(&cell.seal, cell.spec("run-new")).await.map(drop);
    assert!(matches!(refused, Err(PoolError::Closed)), "{refused:?}");
    let salvage = pool.start_salvage(&cell.seal, cell.spec("run-old")).await.expect("it starts");
    assert_eq!(told(&salvage, "echo saved").await, ended(0, "saved\n"));
    pool.close().await;
    assert_eq!(containers(&cell.podman, "run-old").await, [""; 0]);
}

#[tokio::test]
async fn closing_waits_for_the_ends_that_nobody_waits_for() {
    let cell = Cell::new().await;
    let pool = pool(&cell);
    let sandbox = pool.start(&cell.seal, cell.spec("run-later")).await.expect("it starts");
    pool.close_later(sandbox as Arc<dyn Sandbox>);
    pool.close().await;
    assert_eq!(containers(&cell.podman, "run-later").await, [""; 0]);
    assert_eq!(doors(&cell), [""; 0]);
}
