//! How one configuration value is written. Each reader says which form it accepts.

use std::net::SocketAddr;
use std::time::Duration;

use jiff::SignedDuration;

use super::LimitsMode;

/// What a value became: taken as written, or out of range and replaced, with the words to say so.
#[derive(Debug, PartialEq)]
pub(super) enum Taken<T> {
    AsWritten(T),
    Replaced(T, &'static str),
}

pub(super) const DURATION: &str = "a duration such as 30s, 15m or 4h30m";

/// A duration that is not negative: Go's `4h30m` and the friendlier `4h 30m`. A bare `0` has no unit.
pub(super) fn duration(text: &str) -> Result<Duration, &'static str> {
    if text.trim() == "0" {
        return Ok(Duration::ZERO);
    }
    let parsed: SignedDuration = text.trim().parse().map_err(|_| DURATION)?;
    Duration::try_from(parsed).map_err(|_| DURATION)
}

/// A duration whose zero means that there is no ceiling.
pub(super) fn ceiling(text: &str) -> Result<Option<Duration>, &'static str> {
    const WANTED: &str = "a duration such as 30s, 15m or 4h30m, or 0 for no ceiling";
    let duration = duration(text).map_err(|_| WANTED)?;
    Ok((!duration.is_zero()).then_some(duration))
}

pub(super) fn limits(text: &str) -> Result<LimitsMode, &'static str> {
    match text {
        "enforced" => Ok(LimitsMode::Enforced),
        "best_effort" => Ok(LimitsMode::BestEffort),
        _ => Err("enforced or best_effort"),
    }
}

/// An OCI runtime that the sandbox knows: no other holds the seal.
pub(super) fn runtime(text: &str) -> Result<String, &'static str> {
    match text {
        "crun" | "runc" | "runsc" | "kata" | "libkrun" => Ok(text.to_owned()),
        _ => Err("crun, runc, runsc, kata or libkrun"),
    }
}

pub(super) fn address(text: &str) -> Result<SocketAddr, &'static str> {
    text.parse().map_err(|_| "an IP address with a port such as 127.0.0.1:8707")
}

/// A number of runs at once; 0 would never run anything.
pub(super) fn concurrency(text: &str, default: u32) -> Result<Taken<u32>, &'static str> {
    match text.parse::<u32>().map_err(|_| "a whole number from 1")? {
        0 => Ok(Taken::Replaced(default, "must be at least 1")),
        count => Ok(Taken::AsWritten(count)),
    }
}

/// A fraction in (0, 1]: larger ones become 1; zero and less have no nearest value and follow the
/// default.
pub(super) fn fraction(text: &str, default: f64) -> Result<Taken<f64>, &'static str> {
    let value: f64 = text.parse().map_err(|_| "a number above 0 and at most 1")?;
    if value.is_nan() {
        return Err("a number above 0 and at most 1");
    }
    Ok(if value > 1.0 {
        Taken::Replaced(1.0, "is above 1")
    } else if value <= 0.0 {
        Taken::Replaced(default, "must be above 0")
    } else {
        Taken::AsWritten(value)
    })
}

/// A share of which anything out of (0, 1] is replaced by the default.
pub(super) fn share(text: &str, default: f64) -> Result<Taken<f64>, &'static str> {
    let value: f64 = text.parse().map_err(|_| "a number above 0 and at most 1")?;
    Ok(if value > 0.0 && value <= 1.0 {
        Taken::AsWritten(value)
    } else {
        Taken::Replaced(default, "must be above 0 and at most 1")
    })
}

/// 1 or true, 0 or false.
pub(super) fn switch(text: &str) -> Result<bool, &'static str> {
    match text.trim() {
        "1" | "true" => Ok(true),
        "0" | "false" => Ok(false),
        _ => Err("1 or 0"),
    }
}

/// Whole days; zero means that there is no end.
pub(super) fn days(text: &str) -> Result<Option<Duration>, &'static str> {
    const WANTED: &str = "a whole number of days up to 36500, or 0 for no end";
    let days: u64 = text.trim().parse().map_err(|_| WANTED)?;
    if days > 36_500 {
        return Err(WANTED);
    }
    Ok((days > 0).then(|| Duration::from_secs(days * 24 * 3600)))
}

/// A number of things.
pub(super) fn count(text: &str) -> Result<u32, &'static str> {
    text.trim().parse().map_err(|_| "a whole number from 0")
}

/// A number of bytes: `1GiB`, `500 MiB`, `4096`.
pub(super) fn bytes(text: &str) -> Result<u64, &'static str> {
    const WANTED: &str = "a size such as 500MiB, 1GiB or 0";
    const UNITS: [(&str, u64); 6] =
        [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1), ("", 1)];
    let text = text.trim();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let factor = UNITS.iter().find(|(name, _)| *name == unit.trim_start()).ok_or(WANTED)?.1;
    let number: u64 = number.parse().map_err(|_| WANTED)?;
    number.checked_mul(factor).ok_or(WANTED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_in_both_styles() {
        let read = |text| duration(text).map(|d| d.as_millis());
        assert_eq!(read("4h30m"), Ok(16_200_000));
        assert_eq!(read("4h 30m"), Ok(16_200_000));
        assert_eq!(read("300ms"), Ok(300));
        assert_eq!(read("0"), Ok(0));
        for bad in ["", "soon", "30", "-5s"] {
            assert_eq!(read(bad), Err(DURATION), "{bad}");
        }
    }

    #[test]
    fn no_ceiling_is_written_as_zero() {
        assert_eq!(ceiling("0"), Ok(None));
        assert_eq!(ceiling("0s"), Ok(None));
        assert_eq!(ceiling("4h"), Ok(Some(Duration::from_secs(14_400))));
    }

    #[test]
    fn sizes_have_binary_units_or_none() {
        for (text, read) in [("0", 0), ("4096", 4096), ("1GiB", 1 << 30), ("500 MiB", 500 << 20)] {
            assert_eq!(bytes(text), Ok(read), "{text}");
        }
        for bad in ["", "GiB", "1GB", "-1", "1.5GiB", "99999999TiB"] {
            assert!(bytes(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn zero_days_have_no_end() {
        assert_eq!(days("0"), Ok(None));
        assert_eq!(days("90"), Ok(Some(Duration::from_secs(90 * 86_400))));
        assert!(days("-1").is_err() && days("36501").is_err() && days("9d").is_err());
    }

    #[test]
    fn fractions_out_of_range_are_replaced() {
        assert_eq!(fraction("0.5", 0.8), Ok(Taken::AsWritten(0.5)));
        assert_eq!(fraction("7", 0.8), Ok(Taken::Replaced(1.0, "is above 1")));
        assert_eq!(fraction("0", 0.8), Ok(Taken::Replaced(0.8, "must be above 0")));
        assert!(fraction("nan", 0.8).is_err());
        assert!(fraction("most", 0.8).is_err());
    }
}
