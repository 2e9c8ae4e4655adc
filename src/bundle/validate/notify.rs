//! `notify`: the manifest's channels, and the tasks' choice among them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::limits::duration;
use super::manifest::check_env_name;
use super::names::check_name;
use super::range::{check_range, check_repeats};
use crate::bundle::channel::{check_webhook_url, is_loopback};
use crate::bundle::nearest::did_you_mean;
use crate::bundle::raw::{RawChannel, RawChannelType, RawNoticeEvent, RawTls};
use crate::bundle::yaml::{Document, Finding, Path};
use crate::bundle::{Channel, ChannelKind, HostCommand, Smtp, Tls, Webhook, WebhookUrl};
use crate::run::NoticeEvent;
use crate::secrets::holds_credential;

/// What a channel tells where it says nothing.
const DEFAULT_EVENTS: [NoticeEvent; 5] = [
    NoticeEvent::Failure,
    NoticeEvent::Recovery,
    NoticeEvent::Parked,
    NoticeEvent::Approval,
    NoticeEvent::SlaOverdue,
];

const DEFAULT_FAILURES: u32 = 3;
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
const SHORTEST_TIMEOUT: Duration = Duration::from_secs(1);
const LONGEST_TIMEOUT: Duration = Duration::from_secs(600);

/// The manifest's channels.
#[derive(Debug, Default)]
pub(super) struct Channels {
    pub(super) valid: BTreeMap<String, Arc<Channel>>,
    /// The names of all that are written, valid or not.
    declared: BTreeSet<String>,
    /// Some could not be read: an unknown name may be theirs.
    incomplete: bool,
}

impl Channels {
    /// Stands in for channels that cannot be read.
    pub(super) fn unreadable() -> Self {
        Channels { incomplete: true, ..Channels::default() }
    }

    /// Reports names in a list that are no channel's.
    pub(super) fn check_names(&self, names: Option<&[String]>, at: &Path, document: &Document<'_>) {
        check_repeats(names, at, document);
        for (number, name) in names.unwrap_or_default().iter().enumerate() {
            if self.incomplete || self.declared.contains(name) {
                continue;
            }
            let hint = did_you_mean(name, self.declared.iter().map(String::as_str))
                .unwrap_or_else(|| "declare it in the manifest's notify".to_owned());
            let finding =
                Finding::error("unknown-channel", format!("no channel is named {name:?}"));
            document.report(&at.index(number), finding.hint(hint));
        }
    }

    /// The channels of a list; without one, all.
    pub(super) fn choose(&self, names: Option<&[String]>) -> Vec<Arc<Channel>> {
        let is_chosen =
            |channel: &&Arc<Channel>| names.is_none_or(|names| names.contains(&channel.name));
        self.valid.values().filter(is_chosen).cloned().collect()
    }
}

/// The manifest's channels; mistakes are reported where they stand.
pub(super) fn check_channels(raw: &[RawChannel], document: &Document<'_>) -> Channels {
    let list = Path::root().key("notify");
    let mut channels = Channels { incomplete: document.is_broken(&list), ..Channels::default() };
    for (number, raw) in raw.iter().enumerate() {
        let entry = Entry { raw, at: list.index(number), document };
        let Some(name) = entry.name() else {
            channels.incomplete = true;
            entry.channel(String::new());
            continue;
        };
        let channel = entry.channel(name.clone());
        if !channels.declared.insert(name.clone()) {
            let message = format!("a channel {name:?} is declared twice");
            document.report(&entry.at.key("name"), Finding::error("duplicate-name", message));
        } else if let Some(channel) = channel {
            channels.valid.insert(name, Arc::new(channel));
        }
    }
    channels
}

/// One entry of the list.
struct Entry<'e> {
    raw: &'e RawChannel,
    at: Path,
    document: &'e Document<'e>,
}

impl Entry<'_> {
    fn refuse(&self, key: &str, message: impl Into<String>, hint: &str) {
        let finding = Finding::error("invalid-value", message).hint(hint);
        self.document.report(&self.at.key(key), finding);
    }

    fn missing(&self, key: &str, hint: &str) {
        self.document.report_missing(&self.at, key, hint);
    }

    fn name(&self) -> Option<String> {
        let Some(name) = &self.raw.name else {
            self.missing("name", "name the channel, for example on-call");
            return None;
        };
        if let Err(finding) = check_name(name, "a channel's name") {
            self.document.report(&self.at.key("name"), finding);
            return None;
        }
        Some(name.clone())
    }

    fn channel(&self, name: String) -> Option<Channel> {
        let on = self.events();
        let Some(kind) = self.raw.kind else {
            self.missing("type", "write type: webhook, type: smtp or type: command");
            return None;
        };
        self.check_foreign(kind);
        let kind = match kind {
            RawChannelType::Webhook => self.webhook().map(ChannelKind::Webhook),
            RawChannelType::Smtp => self.smtp().map(ChannelKind::Smtp),
            RawChannelType::Command => self.command().map(ChannelKind::Command),
        };
        let after_failures = self.raw.after_failures.unwrap_or(DEFAULT_FAILURES);
        Some(Channel { name, kind: kind?, on, after_failures })
    }

    fn events(&self) -> Vec<NoticeEvent> {
        let failures = self.at.key("after_failures");
        check_range(self.raw.after_failures, 1..=1000, &failures, self.document);
        let at = self.at.key("on");
        let raw = self.raw.on.as_deref();
        if raw.is_some_and(<[RawNoticeEvent]>::is_empty) && !self.document.is_cut(&at) {
            self.refuse("on", "the channel is told of nothing", "list an event, or remove the key");
        }
        let events = raw.map_or(DEFAULT_EVENTS.to_vec(), |raw| {
            raw.iter().map(|event| NoticeEvent::from(*event)).collect()
        });
        let names: Vec<String> = events.iter().map(|event| event.as_str().to_owned()).collect();
        check_repeats(Some(&names), &at, self.document);
        let counts = events.contains(&NoticeEvent::RepeatedFailure) || self.document.is_cut(&at);
        if self.raw.after_failures.is_some() && !counts {
            let message = "after_failures counts only for repeated_failure, which on does not list";
            let finding = Finding::error("useless-key", message);
            self.document.report_key(&failures, finding.hint("list it in on, or remove the key"));
        }
        NoticeEvent::ALL.into_iter().filter(|event| events.contains(event)).collect()
    }

    /// Keys that belong to another type.
    fn check_foreign(&self, kind: RawChannelType) {
        use RawChannelType::{Command, Smtp, Webhook};
        let raw = self.raw;
        let parts = [
            (Webhook, "url", raw.url.is_some()),
            (Webhook, "url_env", raw.url_env.is_some()),
            (Webhook, "secret_env", raw.secret_env.is_some()),
            (Smtp, "server", raw.server.is_some()),
            (Smtp, "tls", raw.tls.is_some()),
            (Smtp, "username_env", raw.username_env.is_some()),
            (Smtp, "password_env", raw.password_env.is_some()),
            (Smtp, "from", raw.from.is_some()),
            (Smtp, "to", raw.to.is_some()),
            (Command, "command", raw.command.is_some()),
            (Command, "timeout", raw.timeout.is_some()),
        ];
        for (owner, key, given) in parts {
            if given && owner != kind {
                let message = format!("a {} channel has no {key}", word(kind));
                let hint = format!("remove the key: it belongs to type: {}", word(owner));
                let finding = Finding::error("useless-key", message).hint(hint);
                self.document.report_key(&self.at.key(key), finding);
            }
        }
    }

    fn env_name(&self, key: &str, name: Option<&String>) -> Option<String> {
        let name = name?;
        check_env_name(name, &self.at.key(key), self.document);
        Some(name.clone())
    }

    fn webhook(&self) -> Option<Webhook> {
        let url_env = self.env_name("url_env", self.raw.url_env.as_ref());
        let secret_env = self.env_name("secret_env", self.raw.secret_env.as_ref());
        if secret_env.is_none() {
            let hint =
                "name the environment variable of the key that signs, for example NOTIFY_KEY";
            self.missing("secret_env", hint);
        }
        let url = match (&self.raw.url, url_env) {
            (Some(_), Some(_)) => {
                let message = "url and url_env exclude each other";
                let finding = Finding::error("useless-key", message).hint("keep one of the two");
                self.document.report_key(&self.at.key("url_env"), finding);
                None
            }
            (Some(url), None) => self.url(url).map(WebhookUrl::Plain),
            (None, Some(name)) => Some(WebhookUrl::Env(name)),
            (None, None) => {
                if !self.document.is_broken(&self.at.key("url_env")) {
                    self.missing("url", "write url:, or url_env: where the URL is a secret");
                }
                None
            }
        };
        Some(Webhook { url: url?, secret_env: secret_env? })
    }

    fn url(&self, url: &str) -> Option<String> {
        if holds_credential(url) {
            return None;
        }
        if let Err(why) = check_webhook_url(url) {
            self.refuse("url", why, "write scheme, host and path: https://host/path");
            return None;
        }
        let user = url.split_once("://").and_then(|(_, rest)| rest.split(['/', '?']).next());
        if user.is_some_and(|authority| authority.contains('@')) {
            let hint = "keep the URL in an environment variable, and name the variable in url_env";
            self.refuse("url", "the URL holds a user", hint);
            return None;
        }
        Some(url.to_owned())
    }

    fn smtp(&self) -> Option<Smtp> {
        let username = self.env_name("username_env", self.raw.username_env.as_ref());
        let password = self.env_name("password_env", self.raw.password_env.as_ref());
        match (&username, &password) {
            (Some(_), None) => self.missing("password_env", "a user's name needs a password"),
            (None, Some(_)) => self.missing("username_env", "a password needs a user's name"),
            _ => {}
        }
        let server = self.server();
        let tls = match self.raw.tls {
            Some(RawTls::None) => Tls::None,
            Some(RawTls::Starttls) => Tls::StartTls,
            Some(RawTls::Required) | None => Tls::Required,
        };
        if let Some((host, _)) = &server
            && tls == Tls::None
            && !is_loopback(host)
        {
            let message = format!("tls: none sends the mail in the open to {host}");
            self.refuse("tls", message, "write required or starttls; none is for this host alone");
        }
        let from = self.from();
        let to = self.to();
        let (host, port) = server?;
        Some(Smtp { host, port, tls, login_env: username.zip(password), from: from?, to: to? })
    }

    fn server(&self) -> Option<(String, u16)> {
        let Some(server) = &self.raw.server else {
            self.missing("server", "write host:port, for example mail.example.org:465");
            return None;
        };
        let parsed = server.rsplit_once(':').and_then(|(host, port)| {
            let host = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host);
            let port = port.parse::<u16>().ok().filter(|port| *port > 0)?;
            let plain = |c: char| c.is_ascii_alphanumeric() || ".-:".contains(c);
            (!host.is_empty() && host.chars().all(plain)).then(|| (host.to_owned(), port))
        });
        if parsed.is_none() {
            let message = format!("{server:?} is not a mail server's host:port");
            self.refuse("server", message, "write host and port: mail.example.org:465");
        }
        parsed
    }

    fn from(&self) -> Option<String> {
        let Some(from) = &self.raw.from else {
            self.missing("from", "write the sender's address");
            return None;
        };
        self.address(from, &self.at.key("from")).then(|| from.clone())
    }

    fn to(&self) -> Option<Vec<String>> {
        let at = self.at.key("to");
        let Some(to) = &self.raw.to else {
            self.missing("to", "list the receivers' addresses");
            return None;
        };
        if to.is_empty() && !self.document.is_cut(&at) {
            self.refuse("to", "the mail goes to nobody", "list the receivers' addresses");
        }
        check_repeats(Some(to), &at, self.document);
        let bad = to.iter().enumerate().filter(|(n, text)| !self.address(text, &at.index(*n)));
        (bad.count() == 0).then(|| to.clone())
    }

    fn address(&self, text: &str, at: &Path) -> bool {
        let valid = text.parse::<lettre::message::Mailbox>().is_ok();
        if !valid {
            let finding =
                Finding::error("invalid-value", format!("{text:?} is not a mail address"));
            self.document.report(at, finding.hint("write name@host, or Name <name@host>"));
        }
        valid
    }

    fn command(&self) -> Option<HostCommand> {
        let at = self.at.key("timeout");
        let given = duration(self.raw.timeout.as_ref(), &at, self.document);
        if given.is_some_and(|given| !(SHORTEST_TIMEOUT..=LONGEST_TIMEOUT).contains(&given)) {
            self.refuse("timeout", "timeout is out of range", "write 1s to 10m");
        }
        let Some(command) = &self.raw.command else {
            self.missing("command", "list the program and its arguments");
            return None;
        };
        let hint = "list a program of the PATH, or its whole path, and its arguments";
        let Some((program, arguments)) = command.split_first() else {
            if !self.document.is_cut(&self.at.key("command")) {
                self.refuse("command", "the command is empty", hint);
            }
            return None;
        };
        if program.trim().is_empty() || (program.contains('/') && !program.starts_with('/')) {
            let finding =
                Finding::error("invalid-value", format!("{program:?} is not a program")).hint(hint);
            self.document.report(&self.at.key("command").index(0), finding);
            return None;
        }
        if command.iter().any(|part| part.contains('\0')) {
            self.refuse("command", "the command holds a NUL character", "remove it");
            return None;
        }
        Some(HostCommand {
            program: program.clone(),
            arguments: arguments.to_vec(),
            timeout: given.unwrap_or(DEFAULT_TIMEOUT),
        })
    }
}

fn word(kind: RawChannelType) -> &'static str {
    match kind {
        RawChannelType::Webhook => "webhook",
        RawChannelType::Smtp => "smtp",
        RawChannelType::Command => "command",
    }
}
