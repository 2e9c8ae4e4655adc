//! Host names in one spelling. Whatever could be read as an address, by whichever program, is no name.

use std::fmt;

/// The longest name that DNS has, in characters.
const MAX_NAME: usize = 253;
const MAX_LABEL: usize = 63;

/// A DNS name: lower case, ASCII, without a dot at its end, at least two labels.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostName(String);

/// Why a text is not a [`HostName`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    #[error("the host is empty")]
    Empty,
    #[error("the host is an address, not a name")]
    Address,
    #[error("the host is not ASCII")]
    NotAscii,
    #[error("the host has a character that no name has")]
    Character,
    #[error("the host has an empty part")]
    EmptyLabel,
    #[error("a part of the host begins or ends with a hyphen")]
    Hyphen,
    #[error("the host is longer than a name can be")]
    TooLong,
    #[error("the host has no dot: it is no public name")]
    OneLabel,
}

impl HostName {
    /// Reads a name as a program may write it: any case, perhaps a dot at its end.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        if text.is_empty() || text == "." {
            return Err(NameError::Empty);
        }
        if !text.is_ascii() {
            return Err(NameError::NotAscii);
        }
        if text.contains(':') || text.starts_with('[') {
            return Err(NameError::Address);
        }
        let text = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
        if text.len() > MAX_NAME {
            return Err(NameError::TooLong);
        }
        let last = text.rsplit('.').next().unwrap_or_default();
        if is_number(last) {
            return Err(NameError::Address);
        }
        text.split('.').try_for_each(check_label)?;
        if !text.contains('.') {
            return Err(NameError::OneLabel);
        }
        Ok(HostName(text))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A name that ends in a number is read as an IPv4 address by URL parsers and by `inet_aton`:
/// `127.1`, `2130706433`, `0x7f.1`, `0177.0.0.1` (WHATWG URL, "ends in a number").
fn is_number(label: &str) -> bool {
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    match label.strip_prefix("0x") {
        Some(rest) => hex(rest),
        None => !label.is_empty() && digits(label),
    }
}

fn check_label(label: &str) -> Result<(), NameError> {
    if label.is_empty() {
        return Err(NameError::EmptyLabel);
    }
    if label.len() > MAX_LABEL {
        return Err(NameError::TooLong);
    }
    if !label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')) {
        return Err(NameError::Character);
    }
    if label.starts_with('-') || label.ends_with('-') {
        return Err(NameError::Hyphen);
    }
    Ok(())
}

/// Where a connection is asked to go.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    pub host: HostName,
    pub port: u16,
}

/// Why an authority is not a [`Target`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    #[error(transparent)]
    Name(#[from] NameError),
    #[error("the port is not a number from 1 to 65535")]
    Port,
    #[error("no port is named")]
    NoPort,
}

impl Target {
    /// Reads `host:port`; without a port `default` is taken.
    pub fn parse(authority: &str, default: Option<u16>) -> Result<Self, TargetError> {
        if authority.starts_with('[') {
            return Err(NameError::Address.into());
        }
        let Some((host, port)) = authority.rsplit_once(':') else {
            // The name's own fault is told first.
            let host = HostName::parse(authority)?;
            return Ok(Target { host, port: default.ok_or(TargetError::NoPort)? });
        };
        let host = HostName::parse(host)?;
        Ok(Target { host, port: port_of(port).ok_or(TargetError::Port)? })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// A port as plain digits: no sign, no blank.
pub(super) fn port_of(text: &str) -> Option<u16> {
    let plain = !text.is_empty() && text.len() <= 5 && text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|port| plain && *port != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_spelling() {
        for text in ["Example.COM", "example.com.", "example.com", "EXAMPLE.com."] {
            assert_eq!(HostName::parse(text).map(|name| name.0), Ok("example.com".to_owned()));
        }
        for text in ["_acme.example.com", "xn--bcher-kva.example", "a.b", "1.example", "0x.example"]
        {
            assert_eq!(HostName::parse(text).map(|name| name.0), Ok(text.to_owned()));
        }
    }

    #[test]
    fn an_address_in_any_spelling_is_no_name() {
        for text in [
            "127.0.0.1",
            "127.0.0.1.",
            "127.1",
            "127.0.1",
            "2130706433",
            "017700000001",
            "0177.0.0.1",
            "0x7f000001",
            "0X7F000001",
            "0x7f.0.0.1",
            "0x7f.1",
            "127.0.0.0x1",
            "1.2.3.4.5",
            "999.999.999.999",
            "example.0",
            "example.0x",
            "[::1]",
            "[::ffff:127.0.0.1]",
            "::1",
            "fe80::1%eth0",
            "[fe80::1%25eth0]",
            "[v1.fe80::a]",
        ] {
            assert_eq!(HostName::parse(text), Err(NameError::Address), "{text}");
        }
    }

    #[test]
    fn what_no_name_is_gets_its_own_reason() {
        let long = format!("{}.com", "a".repeat(64));
        let longer = format!("{}com", "abcd.".repeat(51));
        let table = [
            ("", NameError::Empty),
            (".", NameError::Empty),
            ("localhost", NameError::OneLabel),
            ("metadata", NameError::OneLabel),
            ("a..b", NameError::EmptyLabel),
            (".a.b", NameError::EmptyLabel),
            ("a.b..", NameError::EmptyLabel),
            ("-a.example", NameError::Hyphen),
            ("a-.example", NameError::Hyphen),
            ("bücher.example", NameError::NotAscii),
            ("１２７.0.0.1", NameError::NotAscii),
            ("example。com", NameError::NotAscii),
            ("user@example.com", NameError::Character),
            ("example.com#x", NameError::Character),
            ("example.com/x", NameError::Character),
            ("example.com\\x", NameError::Character),
            ("example.com?x", NameError::Character),
            ("exam ple.com", NameError::Character),
            ("example%2ecom.example", NameError::Character),
            ("example.com\0.example", NameError::Character),
            ("*.example.com", NameError::Character),
            (&long, NameError::TooLong),
            (&longer, NameError::TooLong),
        ];
        for (text, want) in table {
            assert_eq!(HostName::parse(text), Err(want), "{text}");
        }
    }

    #[test]
    fn a_port_is_plain_digits() {
        for port in
            ["0", "65536", "99999", "+443", "-1", " 443", "443 ", "0x50", "", "4a", "000443"]
        {
            let seen = Target::parse(&format!("example.com:{port}"), Some(443));
            assert_eq!(seen, Err(TargetError::Port), "{port}");
        }
        let seen = Target::parse("Example.com.:8443", None).map(|target| target.to_string());
        assert_eq!(seen, Ok("example.com:8443".to_owned()));
        assert_eq!(Target::parse("example.com", None), Err(TargetError::NoPort));
        assert_eq!(Target::parse("[::1]:443", None), Err(NameError::Address.into()));
        assert_eq!(Target::parse("::1:443", None), Err(NameError::Address.into()));
    }
}
