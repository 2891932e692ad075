//! Points in time and durations as Kubernetes writes them.
//!
//! The calendar is `jiff`'s; here is only what RFC 3339 allows. Nothing here asks for the current time.

use jiff::civil::DateTime;
use jiff::fmt::temporal::Pieces;

/// Reads an RFC 3339 time as seconds since 1970; fractions are cut off.
pub fn timestamp(text: &str) -> Option<i64> {
    let (seconds, rest) = text.split_at_checked(SECONDS.len())?;
    let offset = after_fraction(rest)?;
    // jiff reads more than RFC 3339: basic formats, signed years, times without seconds, offsets without a colon.
    if !is_shaped(seconds, SECONDS) || !is_offset(offset) {
        return None;
    }
    // A fraction is left out, because jiff refuses more than nine digits.
    let pieces = match offset.len() == rest.len() {
        true => Pieces::parse(text).ok()?,
        false => Pieces::parse(&format!("{seconds}{offset}")).ok()?.into_owned(),
    };
    // A leap second, which jiff reads as second 59, counts as the second after it.
    let leap = i64::from(seconds.ends_with("60"));
    let offset = i64::from(pieces.to_numeric_offset()?.seconds());
    let time = pieces.date().to_datetime(pieces.time()?);
    // Not a `jiff::Timestamp`, which ends a day before the year 9999 does.
    (offset.abs() < DAY).then(|| time.duration_since(EPOCH).as_secs() + leap - offset)
}

/// A time in seconds since 1970 as Kubernetes writes it.
pub fn rfc3339(seconds: i64) -> String {
    jiff::Timestamp::from_second(seconds).unwrap_or_default().to_string()
}

/// A time in milliseconds since 1970 as Kubernetes writes it, with its fraction of a second.
pub fn rfc3339_millis(milliseconds: i64) -> String {
    jiff::Timestamp::from_millisecond(milliseconds).unwrap_or_default().to_string()
}

/// Reads a time in milliseconds since 1970, with its fraction of a second.
pub fn timestamp_millis(text: &str) -> Option<i64> {
    timestamp(text)?;
    text.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_millisecond)
}

/// Digits and marks of a time to the second; `T` also stands for `t` and a space.
const SECONDS: &str = "0000-00-00T00:00:00";
/// Digits and marks of an offset behind its sign.
const OFFSET: &str = "00:00";
/// Seconds of a day; offsets are shorter.
const DAY: i64 = 86_400;
const EPOCH: DateTime = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);

/// Whether a text has digits where a shape has `0`, and otherwise the marks of the shape.
fn is_shaped(text: &str, shape: &str) -> bool {
    let fits = |(byte, shape): (u8, u8)| match shape {
        b'0' => byte.is_ascii_digit(),
        b'T' => matches!(byte, b'T' | b't' | b' '),
        mark => byte == mark,
    };
    text.len() == shape.len() && text.bytes().zip(shape.bytes()).all(fits)
}

/// Whether a text is `Z` or an offset such as `+02:00`.
fn is_offset(text: &str) -> bool {
    matches!(text, "Z" | "z") || text.strip_prefix(['+', '-']).is_some_and(|offset| is_shaped(offset, OFFSET))
}

/// What follows the fraction of a second, where there is one; nothing where it has no digits.
fn after_fraction(text: &str) -> Option<&str> {
    let Some(digits) = text.strip_prefix('.') else { return Some(text) };
    let rest = digits.trim_start_matches(|c: char| c.is_ascii_digit());
    (rest.len() < digits.len()).then_some(rest)
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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
            ("9999-12-31T23:59:59-23:59", 253_402_387_139),
            ("0000-01-01T00:00:00+23:59", -62_167_305_540),
            ("2026-03-01t10:00:05z", 1_772_359_205),
            ("2026-03-01 10:00:05-00:00", 1_772_359_205),
            ("2026-03-01T10:00:05.12345678901234567890+00:00", 1_772_359_205),
            ("2016-12-31T23:59:60Z", 1_483_228_800),
            ("2016-12-31T23:59:60.5+00:00", 1_483_228_800),
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
            "2026-00-01T00:00:00Z",
            "2026-03-00T00:00:00Z",
            "1900-02-29T00:00:00Z",
            "2026-03-01T10:60:05Z",
            "2026-03-01T10:00:61Z",
            "2026-03-01T10:00Z",
            "20260301T100005Z",
            "2026-03-01_10:00:05Z",
            "+2026-03-01T10:00:05Z",
            "-002026-03-01T10:00:05Z",
            "2026-03-01T10:00:05,5Z",
            "2026-03-01T10:00:05+02",
            "2026-03-01T10:00:05+0200",
            "2026-03-01T10:00:05+24:00",
            "2026-03-01T10:00:05+02:60",
            "2026-03-01T10:00:05+02:00:00",
            "2026-03-01T10:00:05++2:00",
            "2026-03-01T10:00:05Z[UTC]",
            "2026-03-01T10:00:05ZZ",
            " 2026-03-01T10:00:05Z",
            "2026-03-01T10:00:05Z ",
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

    /// Seconds of the years 0 to 9999.
    const YEARS: std::ops::RangeInclusive<i64> = -62_167_219_200..=253_402_300_799;

    proptest! {
        #[test]
        fn a_written_time_is_read_again(seconds in YEARS, minutes in -1439..=1439_i64, fraction in "(\\.[0-9]{1,12})?") {
            let local = EPOCH + jiff::SignedDuration::from_secs(seconds);
            let sign = if minutes < 0 { '-' } else { '+' };
            let offset = format!("{sign}{:02}:{:02}", minutes.abs() / 60, minutes.abs() % 60);
            let text = format!("{}{fraction}{offset}", local.strftime("%Y-%m-%dT%H:%M:%S"));
            prop_assert_eq!(timestamp(&text), Some(seconds - 60 * minutes), "{}", text);
        }

        #[test]
        fn a_character_more_or_less_is_refused(seconds in YEARS, at in 0..20_usize, character in "[0-9A-Zz:+. -]") {
            let local = EPOCH + jiff::SignedDuration::from_secs(seconds);
            let text = local.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
            let (before, after) = text.split_at(at);
            // A digit less or a mark more: no time has such a shape.
            prop_assert_eq!(timestamp(&format!("{before}{}", &after[1..])), None, "{} without {}", text, at);
            prop_assert_eq!(timestamp(&format!("{before}{character}{after}")), None, "{} with {}", text, at);
        }
    }
}
