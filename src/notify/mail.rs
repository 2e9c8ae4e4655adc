//! Mails a notice as plain text.

use std::time::Duration;

use jiff::Timestamp;
use lettre::message::header::{HeaderName, HeaderValue};
use lettre::message::{Mailbox, SinglePart};
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Tls as MailTls, TlsParameters};
use lettre::transport::smtp::extension::ClientId;
use lettre::{AsyncSmtpTransport, AsyncTransport, Message as Mail, Tokio1Executor};
use secrecy::ExposeSecret;

use super::SendError;
use super::environment::Environment;
use super::message::Message;
use crate::bundle::{Smtp, Tls};
use crate::tls;

/// How long the whole conversation may take.
pub(super) const TIMEOUT: Duration = Duration::from_secs(30);
/// How long one answer of the server may take.
const ANSWER: Duration = Duration::from_secs(10);

/// Hands the mail to the server, which must take it for every receiver.
pub(super) async fn send(
    smtp: &Smtp,
    message: &Message<'_>,
    now: Timestamp,
    environment: &Environment<'_>,
) -> Result<String, SendError> {
    let host = format!("{}:{}", smtp.host, smtp.port);
    let mail = write(smtp, message, now)?;
    let transport = connect(smtp, environment)?;
    let sent = tokio::time::timeout(TIMEOUT, transport.send(mail)).await;
    match sent {
        Ok(Ok(answer)) => Ok(format!("{host} answered with code {}", answer.code())),
        Ok(Err(error)) => Err(SendError::Mail { host, why: words(&error) }),
        Err(_) => Err(SendError::TimedOut { host, limit: TIMEOUT }),
    }
}

fn write(smtp: &Smtp, message: &Message<'_>, now: Timestamp) -> Result<Mail, SendError> {
    let unwritable = |error: &dyn std::fmt::Display| SendError::Unwritable(error.to_string());
    let from: Mailbox = smtp.from.parse().map_err(|error| unwritable(&error))?;
    let id = format!("<{}@{}>", message.notice.idempotency_key, from.email.domain());
    let automatic = HeaderName::new_from_ascii_str("Auto-Submitted");
    let mut mail = Mail::builder()
        .from(from)
        .subject(message.subject.clone())
        .date(now.into())
        .message_id(Some(id))
        .raw_header(HeaderValue::new(automatic, "auto-generated".to_owned()));
    for receiver in &smtp.to {
        mail = mail.to(receiver.parse().map_err(|error| unwritable(&error))?);
    }
    mail.singlepart(SinglePart::plain(message.text())).map_err(|error| unwritable(&error))
}

fn connect(
    smtp: &Smtp,
    environment: &Environment<'_>,
) -> Result<AsyncSmtpTransport<Tokio1Executor>, SendError> {
    tls::install_ring();
    let parameters = || {
        TlsParameters::new(smtp.host.clone()).map_err(|error| SendError::Mail {
            host: smtp.host.clone(),
            why: format!("TLS cannot be set up: {}", words(&error)),
        })
    };
    let protection = match smtp.tls {
        Tls::Required => MailTls::Wrapper(parameters()?),
        Tls::StartTls => MailTls::Required(parameters()?),
        Tls::None => MailTls::None,
    };
    let mut builder = AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(smtp.host.clone())
        .port(smtp.port)
        .tls(protection)
        .timeout(Some(ANSWER));
    if let Some(name) = own_name() {
        builder = builder.hello_name(ClientId::Domain(name));
    }
    if let Some((username, password)) = &smtp.login_env {
        let username = environment.value("username_env", username)?;
        let password = environment.secret("password_env", password)?;
        let password = password.expose_secret().to_owned();
        builder = builder.credentials(Credentials::new(username, password));
    }
    Ok(builder.build())
}

/// By what name this host greets; without one the library's address literal serves.
fn own_name() -> Option<String> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?.trim().to_owned();
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
    (!name.is_empty() && name.chars().all(plain)).then_some(name)
}

/// The error with its causes in one line, each once.
fn words(error: &lettre::transport::smtp::Error) -> String {
    error.to_string().split_whitespace().collect::<Vec<_>>().join(" ")
}
