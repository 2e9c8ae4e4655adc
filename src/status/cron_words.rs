//! Common crontab expressions in words. Pure; an expression that has no short wording is shown as it
//! is written.

/// `every day at 07:00`, `Mon–Fri at 09:30`, `every 15 min`; `None` for anything less common.
pub(crate) fn cron_words(expression: &str) -> Option<String> {
    let named = match expression.trim() {
        "@hourly" => "0 * * * *",
        "@daily" | "@midnight" => "0 0 * * *",
        "@weekly" => "0 0 * * 0",
        "@monthly" => "0 0 1 * *",
        "@yearly" | "@annually" => "0 0 1 1 *",
        other => other,
    };
    let fields: Vec<&str> = named.split_whitespace().collect();
    let &[minute, hour, day, month, weekday] = fields.as_slice() else { return None };
    match (minute, hour, day, month, weekday) {
        ("*", "*", "*", "*", "*") => Some("every minute".to_owned()),
        (minute, "*", "*", "*", "*") => within_hour(minute),
        (minute, hour, "*", "*", "*") if hour.starts_with("*/") => {
            let hours = number(hour.strip_prefix("*/")?, 23)?;
            Some(format!("every {hours} h at minute {}", number(minute, 59)?))
        }
        (minute, hour, day, month, weekday) => {
            let when = days(day, month, weekday)?;
            Some(format!("{when} at {}", clock_times(minute, hour)?))
        }
    }
}

fn within_hour(minute: &str) -> Option<String> {
    if let Some(step) = minute.strip_prefix("*/") {
        return Some(format!("every {} min", number(step, 59)?));
    }
    Some(format!("every hour at minute {}", number(minute, 59)?))
}

fn days(day: &str, month: &str, weekday: &str) -> Option<String> {
    match (day, month, weekday) {
        ("*", "*", "*") => Some("every day".to_owned()),
        ("*", "*", weekday) => weekdays(weekday),
        (day, "*", "*") => Some(format!("on day {} of the month", number(day, 31)?)),
        (day, month, "*") => Some(format!("on {} {}", number(day, 31)?, month_name(month)?)),
        _ => None,
    }
}

fn weekdays(field: &str) -> Option<String> {
    if let Some((from, to)) = field.split_once('-') {
        return Some(format!("{}–{}", weekday(from)?, weekday(to)?));
    }
    let names: Option<Vec<&str>> = field.split(',').map(weekday).collect();
    Some(format!("every {}", names?.join(", ")))
}

fn weekday(text: &str) -> Option<&'static str> {
    const NAMES: [&str; 8] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
    match text.parse::<usize>() {
        Ok(index) => NAMES.get(index).copied(),
        Err(_) => NAMES.into_iter().find(|name| name.eq_ignore_ascii_case(text)),
    }
}

fn month_name(text: &str) -> Option<&'static str> {
    const NAMES: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    match text.parse::<usize>() {
        Ok(index) => NAMES.get(index.checked_sub(1)?).copied(),
        Err(_) => NAMES.into_iter().find(|name| name.eq_ignore_ascii_case(text)),
    }
}

fn clock_times(minute: &str, hour: &str) -> Option<String> {
    let minute = number(minute, 59)?;
    let times: Option<Vec<String>> = hour
        .split(',')
        .map(|hour| number(hour, 23).map(|hour| format!("{hour:02}:{minute:02}")))
        .collect();
    Some(times?.join(", "))
}

fn number(text: &str, most: u32) -> Option<u32> {
    text.parse().ok().filter(|value| *value <= most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_expressions_have_words_and_rare_ones_none() {
        let words = |expression| cron_words(expression);
        assert_eq!(words("0 7 * * *").as_deref(), Some("every day at 07:00"));
        assert_eq!(words("30 9 * * 1-5").as_deref(), Some("Mon–Fri at 09:30"));
        assert_eq!(words("0 9,17 * * mon,7").as_deref(), Some("every Mon, Sun at 09:00, 17:00"));
        assert_eq!(words("*/15 * * * *").as_deref(), Some("every 15 min"));
        assert_eq!(words("20 */4 * * *").as_deref(), Some("every 4 h at minute 20"));
        assert_eq!(words("@hourly").as_deref(), Some("every hour at minute 0"));
        assert_eq!(words("@yearly").as_deref(), Some("on 1 Jan at 00:00"));
        assert_eq!(words("0 0 1 * *").as_deref(), Some("on day 1 of the month at 00:00"));
        assert_eq!(words("0 9 13 * 5"), None);
        assert_eq!(words("1-5/2 9 * * *"), None);
        assert_eq!(words("not cron"), None);
    }
}
