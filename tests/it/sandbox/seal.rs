//! What the seal keeps from the agent.

use fleet::sandbox::Sandbox;

use super::{ended, told};
use crate::env::sandbox::Cell;

#[tokio::test]
async fn a_command_runs_in_the_workspace_and_its_output_comes_back() {
    let cell = Cell::new().await;
    let sandbox = cell.start("run0").await;
    let seen = told(&sandbox, "pwd; echo word > file; exit 3").await;
    assert_eq!(seen, ended(3, &format!("{}\n", cell.path("ws").display())));
    assert_eq!(std::fs::read_to_string(cell.path("ws/file")).expect("file"), "word\n");
    sandbox.close().await;
}
