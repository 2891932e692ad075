//! Points in time and durations as Kubernetes writes them.

/// Reads an RFC 3339 time as seconds since 1970; fractions are cut off.
pub fn timestamp(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    let digits = |range: std::ops::Range<usize>| -> Option<i64> {
        let part = text.get(range)?;
        part.bytes().all(|b| b.is_ascii_digit()).then(|| part.parse().ok())?
    };
    let marks = [(4, b'-'), (7, b'-'), (13, b':'), (16, b':')];
    let marked = marks.iter().all(|(at, mark)| bytes.get(*at) == Some(mark))
        && matches!(bytes.get(10), Some(b'T' | b't' | b' '));
    let (year, month, day) = (digits(0..4)?, digits(5..7)?, digits(8..10)?);
    let (hour, minute, second) = (digits(11..13)?, digits(14..16)?, digits(17..19)?);
    let valid = (1..=12).contains(&month) && (1..=month_days(year, month)).contains(&day);
    if !marked || !valid || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let offset = zone(fraction_end(text.get(19..)?)?)?;
    Some(days_since_1970(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second - offset)
}

/// Reads a Go duration as whole seconds; fractions are cut off.
pub(crate) fn seconds(text: &str) -> Option<u64> {
    duration(text).map(|seconds| seconds as u64)
}

/// Reads a Go duration in seconds: `5m`, `2160h`, `1h30m`, `1.5h`. Nothing negative.
pub(crate) fn duration(text: &str) -> Option<f64> {
    if text == "0" {
        return Some(0.0);
    }
    let mut rest = text;
    let mut total = 0.0_f64;
    while !rest.is_empty() {
        let length = rest.bytes().take_while(|b| b.is_ascii_digit() || *b == b'.').count();
        let amount: f64 = rest.get(..length)?.parse().ok()?;
        let (factor, unit) = unit(&rest[length..])?;
        total += amount * factor;
        rest = &rest[length + unit..];
    }
    (!text.is_empty() && total < 1e12).then_some(total)
}

/// The length of a unit in seconds, and how many bytes it is written with.
fn unit(text: &str) -> Option<(f64, usize)> {
    let units = [("ns", 1e-9), ("us", 1e-6), ("µs", 1e-6), ("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];
    units.into_iter().find(|(name, _)| text.starts_with(name)).map(|(name, factor)| (factor, name.len()))
}

/// What stands behind a fraction of a second.
fn fraction_end(text: &str) -> Option<&str> {
    let Some(digits) = text.strip_prefix('.') else { return Some(text) };
    let rest = digits.trim_start_matches(|c: char| c.is_ascii_digit());
    (rest.len() < digits.len()).then_some(rest)
}

/// The offset of a time zone in seconds.
fn zone(text: &str) -> Option<i64> {
    if text == "Z" || text == "z" {
        return Some(0);
    }
    let sign = match text.as_bytes() {
        [b'+', _, _, b':', _, _] => 1,
        [b'-', _, _, b':', _, _] => -1,
        _ => return None,
    };
    let (hours, minutes): (i64, i64) = (text.get(1..3)?.parse().ok()?, text.get(4..6)?.parse().ok()?);
    (hours < 24 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn month_days(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970-01-01 to a date, by counting years and their leap days.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let leaps = |before: i64| (before - 1).div_euclid(4) - (before - 1).div_euclid(100) + (before - 1).div_euclid(400);
    let years = (year - 1970) * 365 + leaps(year) - leaps(1970);
    years + (1..month).map(|m| month_days(year, m)).sum::<i64>() + day - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_kubernetes() {
        for (text, seconds) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2026-03-01T10:00:05Z", 1_772_359_205),
            ("2000-02-29T23:59:59Z", 951_868_799),
            ("2026-03-01T12:00:05+02:00", 1_772_359_205),
            ("2026-03-01T10:00:05.999Z", 1_772_359_205),
            ("1969-12-31T23:59:59Z", -1),
            ("9999-12-31T23:59:59Z", 253_402_300_799),
            ("0000-01-01T00:00:00Z", -62_167_219_200),
        ] {
            assert_eq!(timestamp(text), Some(seconds), "{text}");
        }
        for text in [
            "",
            "2026-03-01",
            "2026-02-29T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-03-01T24:00:00Z",
            "2026-03-01T10:00:05",
            "2026-03-01T10:00:05.Z",
            "2026-03-01T10:00:05+2:00",
            "٢026-03-01T10:00:05Z",
        ] {
            assert_eq!(timestamp(text), None, "{text}");
        }
    }

    #[test]
    fn durations_of_go() {
        for (text, value) in
            [("5m", 300), ("2160h", 7_776_000), ("1h30m", 5400), ("1.5h", 5400), ("500ms", 0), ("0", 0)]
        {
            assert_eq!(seconds(text), Some(value), "{text}");
        }
        for text in ["", "5", "m", "5d", "-5m", "1e9h", "..5h", "99999999999999999999h", "5m "] {
            assert_eq!(seconds(text), None, "{text}");
        }
    }
}
