//! A test once more, in a process of its own: for what holds for a whole process, as its environment
//! and its file systems do.

use std::process::Command;

/// Tells the process that it is the second one.
const MARK: &str = "FLEET_TEST_AGAIN";

/// Whether this process is the one that was started by [`carry_out`].
pub fn is_second() -> bool {
    std::env::var_os(MARK).is_some()
}

/// Carries out this one test by `command` in front of the test binary, and demands that it passes.
pub fn carry_out(mut command: Command, test: &str) {
    let binary = std::env::current_exe().expect("the test binary");
    let command = command.arg(binary).args([test, "--exact", "--nocapture"]).env(MARK, "1");
    let output = command.output().expect("it starts");
    let told = String::from_utf8_lossy(&output.stdout);
    let passed = output.status.success() && told.contains("test result: ok. 1 passed");
    assert!(passed, "{told}{}", String::from_utf8_lossy(&output.stderr));
}
