//! What a list of hosts may name: `host`, `host:port`, `*.host`, `*.host:port`.

use std::fmt;

use super::DEFAULT_PORTS;
use super::name::{HostName, NameError, Target, port_of};

/// One entry of a list of hosts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HostPattern {
    name: HostName,
    reach: Reach,
    /// Absent: [`DEFAULT_PORTS`].
    port: Option<u16>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Reach {
    /// The name alone.
    Name,
    /// Every name below it, at any depth, and not itself.
    Below,
}

/// Why an entry is not a host that can be allowed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    #[error("it is a URL")]
    Url,
    #[error("the port {0:?} is not a number from 1 to 65535")]
    Port(String),
    #[error("a * stands for whole parts at the beginning only")]
    Star,
    #[error("*.{0} would allow every host below a top-level domain")]
    TooWide(String),
    #[error(transparent)]
    Name(#[from] NameError),
}

impl PatternError {
    /// How to write what was probably meant, for the entry `text`.
    pub fn hint(&self, text: &str) -> String {
        match self {
            PatternError::Url => {
                let parsed = reqwest::Url::parse(text).ok();
                let host = parsed.as_ref().and_then(reqwest::Url::host_str);
                match host.filter(|host| HostPattern::parse(host).is_ok()) {
                    Some(host) => format!("write the host alone: {host}"),
                    None => "write the host alone, such as example.com".to_owned(),
                }
            }
            PatternError::Port(_) => "write host:port, such as example.com:8443".to_owned(),
            PatternError::Star => "write *.example.com for everything below example.com".to_owned(),
            PatternError::TooWide(_) => {
                "name the domain, such as *.example.com; true allows every public host".to_owned()
            }
            PatternError::Name(NameError::NotAscii) => match punycode(text) {
                Some(ascii) => format!("write the name in its ASCII form: {ascii}"),
                None => {
                    "write the name in its ASCII form, such as xn--bcher-kva.example".to_owned()
                }
            },
            PatternError::Name(NameError::Address) => {
                "write a name: only names can be allowed, and what they resolve to is checked"
                    .to_owned()
            }
            PatternError::Name(NameError::OneLabel) => {
                "write a public name, such as example.com: hosts of this network cannot be reached"
                    .to_owned()
            }
            PatternError::Name(_) => {
                "write a host such as example.com, example.com:8443 or *.example.com".to_owned()
            }
        }
    }
}

/// A name's ASCII form (UTS 46).
fn punycode(text: &str) -> Option<String> {
    let (star, name) = match text.strip_prefix("*.") {
        Some(name) => ("*.", name),
        None => ("", text),
    };
    let url = reqwest::Url::parse(&format!("http://{name}/")).ok()?;
    let host = url.domain()?;
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    HostName::parse(host).ok().map(|name| format!("{star}{name}{port}"))
}

impl HostPattern {
    /// Reads an entry.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        if text.contains("://") || text.contains('/') {
            return Err(PatternError::Url);
        }
        let (reach, rest) = match text.strip_prefix("*.") {
            Some(rest) => (Reach::Below, rest),
            None => (Reach::Name, text),
        };
        if rest.contains('*') {
            return Err(PatternError::Star);
        }
        let (host, port) = match rest.split_once(':') {
            // More than one colon: an IPv6 address, which the name's check tells.
            Some((host, port)) if !port.contains(':') && !rest.starts_with('[') => {
                (host, Some(port_of(port).ok_or_else(|| PatternError::Port(port.to_owned()))?))
            }
            _ => (rest, None),
        };
        match HostName::parse(host) {
            Ok(name) => Ok(HostPattern { name, reach, port }),
            Err(NameError::OneLabel) if reach == Reach::Below => {
                Err(PatternError::TooWide(host.to_owned()))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Whether the entry allows a target.
    pub fn admits(&self, target: &Target) -> bool {
        self.has_port(target.port) && self.has_name(&target.host)
    }

    /// Whether the entry allows the target's host, on whichever port.
    pub(super) fn has_name(&self, host: &HostName) -> bool {
        match self.reach {
            Reach::Name => self.name == *host,
            Reach::Below => self.is_above(host.as_str()),
        }
    }

    fn has_port(&self, port: u16) -> bool {
        self.port.map_or(DEFAULT_PORTS.contains(&port), |own| own == port)
    }

    fn is_above(&self, name: &str) -> bool {
        name.strip_suffix(self.name.as_str()).is_some_and(|rest| rest.ends_with('.'))
    }

    /// Whether everything that the entry allows is allowed by a list.
    pub fn is_within(&self, list: &[HostPattern]) -> bool {
        let ports = self.port.map_or(DEFAULT_PORTS.to_vec(), |port| vec![port]);
        ports.into_iter().all(|port| list.iter().any(|outer| outer.covers(self, port)))
    }

    fn covers(&self, inner: &HostPattern, port: u16) -> bool {
        let names = match (self.reach, inner.reach) {
            (Reach::Name, Reach::Name) => self.name == inner.name,
            (Reach::Name, Reach::Below) => false,
            (Reach::Below, Reach::Name) => self.is_above(inner.name.as_str()),
            (Reach::Below, Reach::Below) => {
                self.name == inner.name || self.is_above(inner.name.as_str())
            }
        };
        names && self.has_port(port)
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.reach == Reach::Below {
            f.write_str("*.")?;
        }
        write!(f, "{}", self.name)?;
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> HostPattern {
        HostPattern::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    fn target(text: &str) -> Target {
        Target::parse(text, None).expect("a target")
    }

    #[test]
    fn an_entry_admits_what_it_names_and_nothing_else() {
        let table = [
            ("example.com", "example.com:443", true),
            ("Example.COM.", "example.com:80", true),
            ("example.com", "example.com:8443", false),
            ("example.com", "www.example.com:443", false),
            ("example.com", "notexample.com:443", false),
            ("example.com", "example.com.evil.test:443", false),
            ("example.com:8443", "example.com:8443", true),
            ("example.com:8443", "example.com:443", false),
            ("*.example.com", "www.example.com:443", true),
            ("*.example.com", "a.b.example.com:80", true),
            ("*.example.com", "example.com:443", false),
            ("*.example.com", "notexample.com:443", false),
            ("*.example.com:22", "git.example.com:22", true),
            ("*.example.com:22", "git.example.com:443", false),
        ];
        for (entry, to, want) in table {
            assert_eq!(pattern(entry).admits(&target(to)), want, "{entry} {to}");
        }
    }

    #[test]
    fn an_entry_is_within_a_list_that_allows_all_of_it() {
        let list = [pattern("*.example.com"), pattern("example.org:8443"), pattern("a.test")];
        let table = [
            ("www.example.com", true),
            ("*.www.example.com", true),
            ("*.example.com", true),
            ("www.example.com:443", true),
            ("www.example.com:8443", false),
            ("example.com", false),
            ("example.org:8443", true),
            ("example.org", false),
            ("*.a.test", false),
            ("a.test:80", true),
        ];
        for (entry, want) in table {
            assert_eq!(pattern(entry).is_within(&list), want, "{entry}");
        }
        let parts = [pattern("a.test:80"), pattern("a.test:443")];
        assert!(pattern("a.test").is_within(&parts), "two entries together allow it");
    }

    #[test]
    fn every_mistake_says_what_it_is_and_what_to_write() {
        let told = |text: &str| {
            let error = HostPattern::parse(text).expect_err(text);
            format!("{error}; {}", error.hint(text))
        };
        insta::assert_snapshot!(
            [
                "https://example.com/path",
                "example.com/path",
                "example.com:0",
                "example.com:https",
                "*",
                "*example.com",
                "www.*.com",
                "*.com",
                "bücher.example",
                "*.bücher.example:8443",
                "10.0.0.1",
                "0x7f.1",
                "[::1]:443",
                "localhost",
                "",
                "-a.example",
                "user@example.com",
                "a..example",
            ]
            .map(|text| format!("{text:?}: {}", told(text)))
            .join("\n")
        );
    }
}
