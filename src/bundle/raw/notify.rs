//! `notify` of the manifest: where people are told.

use schemars::JsonSchema;
use serde::Deserialize;

use super::DurationText;
use crate::run::NoticeEvent;

/// A place that people are told in.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping")]
#[schemars(rename = "Channel")]
pub(crate) struct RawChannel {
    /// The channel's name, which tasks list in `notify`.
    #[schemars(required)]
    pub(crate) name: Option<String>,
    /// How it is told.
    #[serde(rename = "type")]
    #[schemars(required)]
    pub(crate) kind: Option<RawChannelType>,
    /// Of what. Default failure, recovery, parked, approval and sla_overdue.
    #[schemars(length(min = 1))]
    pub(crate) on: Option<Vec<RawNoticeEvent>>,
    /// How many failures in a row are a `repeated_failure`. Default 3.
    #[schemars(range(min = 1, max = 1000))]
    pub(crate) after_failures: Option<u32>,
    /// Where to post: https, or http on this host. For `webhook` only.
    pub(crate) url: Option<String>,
    /// The name of the environment variable that holds the URL. For `webhook` only.
    pub(crate) url_env: Option<String>,
    /// The name of the environment variable that holds the key of the signature; never the key. For
    /// `webhook` only.
    pub(crate) secret_env: Option<String>,
    /// The mail server, `host:port`. For `smtp` only.
    pub(crate) server: Option<String>,
    /// How the connection is protected. Default required. For `smtp` only.
    pub(crate) tls: Option<RawTls>,
    /// The name of the environment variable that holds the user's name. For `smtp` only.
    pub(crate) username_env: Option<String>,
    /// The name of the environment variable that holds the password; never the password. For `smtp`
    /// only.
    pub(crate) password_env: Option<String>,
    /// The sender's address. For `smtp` only.
    pub(crate) from: Option<String>,
    /// The receivers' addresses. For `smtp` only.
    #[schemars(length(min = 1))]
    pub(crate) to: Option<Vec<String>>,
    /// A program and its arguments, run on the host without a shell. For `command` only.
    #[schemars(length(min = 1))]
    pub(crate) command: Option<Vec<String>>,
    /// How long the program may take, 1s to 10m. Default 30s. For `command` only.
    pub(crate) timeout: Option<DurationText>,
}

/// How a channel is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "ChannelType")]
pub(crate) enum RawChannelType {
    /// A signed HTTP request.
    Webhook,
    /// A mail.
    Smtp,
    /// A program on the host.
    Command,
}

/// How a mail server's connection is protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Tls")]
pub(crate) enum RawTls {
    /// TLS from the first byte.
    Required,
    /// TLS after STARTTLS, without which nothing is sent.
    Starttls,
    /// None: only to a server on this host.
    None,
}

/// What people may be told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "NoticeEvent")]
pub(crate) enum RawNoticeEvent {
    /// A run failed for good.
    Failure,
    /// That many runs in a row failed for good: `after_failures`.
    RepeatedFailure,
    /// A run succeeded after one that failed.
    Recovery,
    /// The task parked itself.
    Parked,
    /// A card waits for an answer.
    Approval,
    /// A run takes longer than expected.
    SlaWarning,
    /// A run takes far longer than expected.
    SlaOverdue,
}

impl From<RawNoticeEvent> for NoticeEvent {
    fn from(raw: RawNoticeEvent) -> Self {
        match raw {
            RawNoticeEvent::Failure => NoticeEvent::Failure,
            RawNoticeEvent::RepeatedFailure => NoticeEvent::RepeatedFailure,
            RawNoticeEvent::Recovery => NoticeEvent::Recovery,
            RawNoticeEvent::Parked => NoticeEvent::Parked,
            RawNoticeEvent::Approval => NoticeEvent::Approval,
            RawNoticeEvent::SlaWarning => NoticeEvent::SlaWarning,
            RawNoticeEvent::SlaOverdue => NoticeEvent::SlaOverdue,
        }
    }
}
