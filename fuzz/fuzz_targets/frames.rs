//! A helper that is hostile: any bytes to a connection with calls in flight. Never a panic, never a call
//! without an end, never a reply of another kind. The input is a script of `hostile_peer`.

#![no_main]

// What `super` is in the sources is the root here.
#[path = "../../src/sandbox/call.rs"]
#[allow(dead_code)]
mod call;
#[path = "../../src/sandbox/connection.rs"]
#[allow(dead_code)]
mod connection;
#[path = "../../src/sandbox/frame.rs"]
mod frame;
#[path = "../../src/sandbox/hostile_peer.rs"]
mod hostile_peer;
#[path = "../../src/sandbox/wire.rs"]
#[allow(dead_code)]
mod wire;

use call::EditError;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|script: &[u8]| hostile_peer::play(script));
