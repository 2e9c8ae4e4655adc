//! Why a connection is not made, in the words that the sandbox, the log and the model read.

use super::name::{NameError, TargetError};

/// Why a connection is not made, or did not last.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("the request is malformed: {0}")]
    Malformed(&'static str),
    #[error("{0}")]
    Target(#[from] TargetError),
    #[error("the host is not in the task's allow_network")]
    Host,
    #[error("the port is not allowed: 443 and 80, unless the task's allow_network names another")]
    Port,
    #[error("the name cannot be resolved: {0}")]
    Unresolved(String),
    #[error("the name resolves to an address that is not public ({0})")]
    NotPublic(&'static str),
    #[error("the host cannot be reached: {0}")]
    Unreachable(String),
    #[error("too many connections at once")]
    TooMany,
    #[error("the run's bytes are spent")]
    Spent,
    #[error("nothing passed for too long")]
    Idle,
    #[error("the request did not arrive in time")]
    Slow,
    #[error("the connection broke")]
    Broken,
    #[error("the run is over")]
    Over,
}

impl From<NameError> for Refusal {
    fn from(error: NameError) -> Self {
        Refusal::Target(error.into())
    }
}

impl Refusal {
    /// Whether the task's policy says so, rather than the network.
    pub fn is_denial(&self) -> bool {
        match self {
            Refusal::Malformed(_)
            | Refusal::Target(_)
            | Refusal::Host
            | Refusal::Port
            | Refusal::NotPublic(_)
            | Refusal::TooMany
            | Refusal::Spent
            | Refusal::Over => true,
            Refusal::Unresolved(_)
            | Refusal::Unreachable(_)
            | Refusal::Idle
            | Refusal::Slow
            | Refusal::Broken => false,
        }
    }

    /// The status line's code and phrase.
    fn status(&self) -> &'static str {
        match self {
            Refusal::Malformed(_) => "400 Bad Request",
            Refusal::Target(_) | Refusal::Host | Refusal::Port | Refusal::NotPublic(_) => {
                "403 Forbidden"
            }
            Refusal::Unresolved(_) | Refusal::Unreachable(_) | Refusal::Broken => "502 Bad Gateway",
            Refusal::TooMany | Refusal::Spent | Refusal::Over => "503 Service Unavailable",
            Refusal::Idle => "504 Gateway Timeout",
            Refusal::Slow => "408 Request Timeout",
        }
    }

    /// The proxy's whole answer.
    pub(super) fn answer(&self) -> String {
        let body = format!("fleet: {self}\n");
        format!(
            "HTTP/1.1 {}\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\
             X-Fleet-Egress: {self}\r\n\r\n{body}",
            self.status(),
            body.len()
        )
    }
}
