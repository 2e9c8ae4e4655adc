//! What a host is told before anything runs on it, by a `podman` that answers as recorded.

mod complaints;
mod facts;
mod fedora;
mod page;
mod read_back;
mod runtimes;

use crate::env::fake_host::FakeHost;

/// The code and the text of the refusal, without the host's own directory.
async fn refusal(host: &FakeHost) -> (&'static str, String) {
    let error = host.preflight().await.expect_err("the host is refused");
    (error.code(), host.plain(&error.to_string()))
}

/// The account of this process, as messages name it.
fn user() -> String {
    let output = std::process::Command::new("id").arg("-un").output().expect("id runs");
    String::from_utf8(output.stdout).expect("text").trim().to_owned()
}
