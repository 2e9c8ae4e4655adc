//! One crontab field: text to the sorted list of its numbers.

use super::ScheduleError;

/// What a field may hold.
#[derive(Debug)]
pub(super) struct Unit {
    /// As it is named in messages.
    pub(super) name: &'static str,
    pub(super) min: u8,
    pub(super) max: u8,
    /// Three-letter names of the numbers from `min` on.
    names: &'static [&'static str],
}

const MONTHS: [&str; 12] =
    ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const DAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

/// The five fields in their order.
pub(super) const UNITS: [Unit; 5] = [
    Unit { name: "minute", min: 0, max: 59, names: &[] },
    Unit { name: "hour", min: 0, max: 23, names: &[] },
    Unit { name: "day of month", min: 1, max: 31, names: &[] },
    Unit { name: "month", min: 1, max: 12, names: &MONTHS },
    Unit { name: "day of week", min: 0, max: 7, names: &DAYS },
];

/// A parsed field.
#[derive(Debug)]
pub(super) struct Field {
    /// Sorted, without repetition.
    pub(super) values: Vec<u8>,
    /// The text starts with `*`: it does not restrict the day (Debian's rule).
    pub(super) starred: bool,
    /// `*` or a step occurs: the field follows elapsed time.
    pub(super) elapsed: bool,
}

impl Field {
    pub(super) fn parse(text: &str, unit: &Unit) -> Result<Self, ScheduleError> {
        let mut values = Vec::new();
        for item in text.split(',') {
            parse_item(item, unit, &mut values)?;
        }
        values.sort_unstable();
        values.dedup();
        let starred = text.starts_with('*');
        Ok(Field { values, starred, elapsed: starred || text.contains('/') })
    }
}

fn parse_item(item: &str, unit: &Unit, values: &mut Vec<u8>) -> Result<(), ScheduleError> {
    if item.is_empty() {
        return Err(ScheduleError::new(
            format!("{}: there is an empty entry in the list", unit.name),
            "separate the numbers by single commas, for example 1,15",
        ));
    }
    let (range, step) = match item.split_once('/') {
        Some((range, step)) => (range, Some(parse_step(step, item, unit)?)),
        None => (item, None),
    };
    let (first, last) = match range.split_once('-') {
        _ if range == "*" => (unit.min, unit.max),
        Some((first, last)) if first.is_empty() || last.is_empty() => {
            return Err(open_range(item, first, last, unit));
        }
        Some((first, last)) => (number(first, item, unit)?, number(last, item, unit)?),
        None if step.is_some() => {
            return Err(ScheduleError::new(
                format!("{} {item:?}: a step needs a range before it", unit.name),
                format!("write */{} or {range}-{}/{0}", step.unwrap_or(1), unit.max),
            ));
        }
        None => {
            let value = number(range, item, unit)?;
            (value, value)
        }
    };
    if first > last {
        return Err(backward(item, first, last, unit));
    }
    values.extend((first..=last).step_by(usize::from(step.unwrap_or(1))));
    Ok(())
}

fn open_range(item: &str, first: &str, last: &str, unit: &Unit) -> ScheduleError {
    let hint = match (first, last) {
        ("", "") => format!("write {}-{}, or *", unit.min, unit.max),
        ("", last) => format!("write {}-{last}, or {last} alone", unit.min),
        (first, _) => format!("write {first}-{}, or {first} alone", unit.max),
    };
    ScheduleError::new(format!("{} {item:?}: a range has two ends", unit.name), hint)
}

fn backward(item: &str, first: u8, last: u8, unit: &Unit) -> ScheduleError {
    let hint = if unit.max == 7 && last == 0 {
        format!("Sunday is also 7: write {first}-7")
    } else {
        format!("write the two parts as a list: {first}-{},{}-{last}", unit.max, unit.min)
    };
    ScheduleError::new(format!("{} {item:?}: the range runs backward", unit.name), hint)
}

fn parse_step(text: &str, item: &str, unit: &Unit) -> Result<u8, ScheduleError> {
    let step = digits(text).filter(|step| (1..=u32::from(unit.max)).contains(step));
    step.and_then(|step| u8::try_from(step).ok()).ok_or_else(|| {
        ScheduleError::new(
            format!("{} {item:?}: {text:?} is not a step", unit.name),
            format!("a step is a number from 1 to {}", unit.max),
        )
    })
}

fn number(text: &str, item: &str, unit: &Unit) -> Result<u8, ScheduleError> {
    if let Some(at) = unit.names.iter().position(|name| name.eq_ignore_ascii_case(text)) {
        // The names are at most twelve.
        return Ok(unit.min + u8::try_from(at).unwrap_or_default());
    }
    let Some(value) = digits(text) else {
        let names = match unit.names {
            [first, .., last] => format!(" or a name from {first} to {last}"),
            _ => String::new(),
        };
        let wanted = format!("a number from {} to {}{names}", unit.min, unit.max);
        return Err(ScheduleError::new(
            format!("{} {item:?}: {text:?} is not {wanted}", unit.name),
            "only numbers, names, lists, ranges, steps and * are crontab; L, W, #, ? and H are not",
        ));
    };
    u8::try_from(value).ok().filter(|value| (unit.min..=unit.max).contains(value)).ok_or_else(
        || {
            ScheduleError::new(
                format!("{} {value} is out of range", unit.name),
                format!("{} goes from {} to {}", unit.name, unit.min, unit.max),
            )
        },
    )
}

/// Plain decimal digits; `u32::from_str` would take a sign.
fn digits(text: &str) -> Option<u32> {
    if text.is_empty() || text.len() > 9 || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}
