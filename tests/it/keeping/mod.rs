//! What is kept, for how long, and what happens when the disk or the store's file fails.

mod backup;
mod damage;
mod disk_guard;
mod full_disk;
mod log;
mod restore;
mod retention;
mod small_disk;

use std::io::{Read, Write};

use crate::env::world::World;

/// A task that does nothing, once a year.
const IDLE: &[(&str, &str)] = &[
    ("tasks/idle.yaml", "prompt: Nothing.\nschedule: '0 0 1 1 *'\ncompletion: {shell: 'true'}\n"),
    ("scripted/idle.yaml", "turns:\n  - text: Done.\n"),
];

/// What the status page of the world's daemon answers: head and body.
fn page(world: &World, path: &str) -> String {
    let lock = std::fs::read_to_string(world.state().join("serve.lock")).expect("a daemon");
    let daemon: serde_json::Value = serde_json::from_str(&lock).expect("JSON");
    let url = daemon["page"].as_str().expect("an address");
    let address = url.trim_start_matches("http://").trim_end_matches('/');
    let mut stream = std::net::TcpStream::connect(address).expect("connects");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")
        .expect("asks");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("answers");
    answer
}

/// Adds a line to the world's `fleet.toml`.
fn configure(world: &World, text: &str) {
    let path = world.state().join("fleet.toml");
    let written = std::fs::read_to_string(&path).expect("fleet.toml");
    std::fs::write(&path, format!("{written}\n{text}\n")).expect("fleet.toml");
}

/// Makes the task that does nothing due now.
fn trigger(world: &World) {
    let bundle = world.bundle();
    world.ok(&["sched", "trigger", "idle", "--bundle", bundle.to_str().expect("UTF-8")]);
}
