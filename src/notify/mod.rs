//! Sends one notice to one channel: webhook, mail or a program on the host. Refuses to know when, how
//! often and what follows: that is the runner's.

mod command;
mod environment;
mod mail;
mod message;
mod signature;
mod webhook;

use std::time::Duration;

use jiff::Timestamp;

use crate::bundle::{Channel, ChannelKind};
use crate::run::Notice;
use crate::secrets::Redactor;

pub use signature::{REPLAY_WINDOW, sign};

use environment::Environment;
use message::Message;

/// Why a notice was not sent. No text holds a secret or more of a URL than its host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    #[error(
        "the environment variable {variable} ({key} of channel {channel}) is not set: set it for the daemon"
    )]
    MissingVariable { variable: String, key: &'static str, channel: String },
    #[error("the environment variable {variable} (url_env of channel {channel}): {why}")]
    UnusableUrl { variable: String, channel: String, why: &'static str },
    #[error("{host} answered with status {status}")]
    Refused { host: String, status: u16 },
    #[error("{host} cannot be reached: {why}")]
    Unreachable { host: String, why: String },
    #[error("{host} took longer than {} s", limit.as_secs())]
    TimedOut { host: String, limit: Duration },
    #[error("the mail server {host}: {why}")]
    Mail { host: String, why: String },
    #[error("the mail cannot be written: {0}")]
    Unwritable(String),
    #[error("the command {program} cannot be started: {why}")]
    NotStarted { program: String, why: String },
    #[error("the command {program} ended with {status}{said}")]
    Failed { program: String, status: String, said: String },
    #[error("the command {program} was killed after {} s", limit.as_secs())]
    Killed { program: String, limit: Duration },
}

/// Whether a notice reports something, or tries a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    Report,
    Test,
}

/// Sends one notice. Returns what the other side said, in a few words.
pub async fn send(
    channel: &Channel,
    notice: &Notice,
    purpose: Purpose,
    now: Timestamp,
    redactor: &Redactor,
) -> Result<String, SendError> {
    let environment = Environment { channel: &channel.name, redactor };
    let message = Message::new(notice, purpose);
    match &channel.kind {
        ChannelKind::Webhook(webhook) => webhook::post(webhook, &message, now, &environment).await,
        ChannelKind::Smtp(smtp) => mail::send(smtp, &message, now, &environment).await,
        ChannelKind::Command(command) => command::run(command, &message, redactor).await,
    }
}

/// How long sending to a channel takes at most.
pub fn longest(channel: &Channel) -> Duration {
    match &channel.kind {
        ChannelKind::Webhook(_) => webhook::TIMEOUT,
        ChannelKind::Smtp(_) => mail::TIMEOUT,
        ChannelKind::Command(command) => command.timeout + command::LAST_WORDS,
    }
}
