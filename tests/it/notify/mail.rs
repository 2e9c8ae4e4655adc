//! Mails.

use fleet::bundle::{ChannelKind, Smtp, Tls};
use fleet::secrets::Redactor;

use super::{VARIABLE, key, send_to};
use crate::env::mail_server::MailServer;

fn smtp(server: &MailServer, tls: Tls) -> Smtp {
    Smtp {
        host: "127.0.0.1".into(),
        port: server.address().port(),
        tls,
        login_env: None,
        from: "Fleet <fleet@example.org>".into(),
        to: vec!["a@example.org".into(), "b@example.org".into()],
    }
}

#[tokio::test]
async fn mail_is_plain_text_with_the_key_as_its_message_id() {
    let server = MailServer::start(&[]);
    let kind = ChannelKind::Smtp(smtp(&server, Tls::None));
    let said = send_to(kind, &Redactor::default()).await.expect("sent");
    assert_eq!(said, format!("{} answered with code 250", server.address()));
    let mails = server.mails();
    let (head, body) = mails[0].split_once("\n\n").expect("a head and a body");
    let mut head: Vec<&str> = head.lines().collect();
    head.sort_unstable();
    assert_eq!(
        head,
        [
            "Auto-Submitted: auto-generated",
            "Content-Transfer-Encoding: 7bit",
            "Content-Type: text/plain; charset=utf-8",
            "Date: Wed, 01 Jul 2026 04:00:10 +0000",
            "From: Fleet <fleet@example.org>",
            "MIME-Version: 1.0",
            "Message-ID: <r1.1.failure.ops@example.org>",
            "Subject: fleet: task report failed",
            "To: a@example.org, b@example.org",
        ]
    );
    assert_eq!(
        body.trim_end(),
        "fleet: task report failed\n\ntask: report\nrun: r1\ndue: 2026-07-01T04:00:00Z\n\
         at: 2026-07-01T04:00:00Z\nstate: dead_lettered\noutcome: cost_ceiling\nattempts: 1\n\
         failures in a row: 2\nreason: spent $5 of $5\n\nfleet runs show r1 has the whole run"
    );
}

#[tokio::test]
async fn mail_logs_in_with_the_variables_values() {
    let server = MailServer::start(&[]);
    let login_env = Some((VARIABLE.to_owned(), VARIABLE.to_owned()));
    let kind = ChannelKind::Smtp(Smtp { login_env, ..smtp(&server, Tls::None) });
    let redactor = Redactor::default();
    send_to(kind, &redactor).await.expect("sent");
    let commands = server.commands();
    assert!(commands.iter().any(|command| command.starts_with("AUTH PLAIN ")), "{commands:?}");
    assert_ne!(redactor.redact(&key()), key(), "the password is masked");
}

#[tokio::test]
async fn refusal_of_the_mail_server_is_a_failure_with_its_words() {
    let server = MailServer::start(&["451 come back later", "550 nobody here"]);
    for words in ["come back later", "nobody here"] {
        let kind = ChannelKind::Smtp(smtp(&server, Tls::None));
        let failure = send_to(kind, &Redactor::default()).await.expect_err("it is refused");
        let text = failure.to_string();
        let host = format!("the mail server {}: ", server.address());
        assert!(text.starts_with(&host) && text.contains(words), "{text}");
    }
    assert_eq!(server.mails(), [""; 0]);
}

#[tokio::test]
async fn nothing_is_sent_where_tls_is_wanted_and_not_offered() {
    for tls in [Tls::StartTls, Tls::Required] {
        let server = MailServer::start(&[]);
        let login_env = Some((VARIABLE.to_owned(), VARIABLE.to_owned()));
        let kind = ChannelKind::Smtp(Smtp { login_env, ..smtp(&server, tls) });
        send_to(kind, &Redactor::default()).await.expect_err("there is no TLS");
        let told = server.commands();
        let leaked = |line: &String| line.starts_with("AUTH") || line.starts_with("MAIL");
        assert!(!told.iter().any(leaked), "{told:?}");
    }
}
