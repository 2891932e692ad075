//! The `ttl` annotation: seconds, or a duration in Go syntax.
//!
//! Go accepts any sequence of decimal numbers with units, and stores nanoseconds in 64 bits. Rounding follows Go, so
//! that the result equals that of external-dns. Nothing else is read here.

use std::fmt;

/// Why a text is not a TTL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TtlError {
    /// Neither a number nor a duration.
    NotADuration,
    /// Not between 1 and 2147483647 seconds.
    OutOfRange,
}

impl fmt::Display for TtlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TtlError::NotADuration => write!(f, "write seconds (`300`) or a duration (`5m`, `1h30m`)"),
            TtlError::OutOfRange => write!(f, "a TTL is 1 to 2147483647 seconds"),
        }
    }
}

/// The seconds of a duration text; a fraction of a second is truncated.
pub fn ttl(text: &str) -> Result<u32, TtlError> {
    let seconds = match nanoseconds(text) {
        Some(nanoseconds) => whole_seconds(nanoseconds),
        None => text.parse::<i64>().map_err(|_| TtlError::NotADuration)?,
    };
    let seconds = i32::try_from(seconds).map_err(|_| TtlError::OutOfRange)?;
    u32::try_from(seconds).ok().filter(|seconds| *seconds > 0).ok_or(TtlError::OutOfRange)
}

/// Whole seconds, by the same floating point computation as in Go.
fn whole_seconds(nanoseconds: i64) -> i64 {
    let whole = (nanoseconds / 1_000_000_000) as f64;
    let rest = (nanoseconds % 1_000_000_000) as f64;
    (whole + rest / 1e9) as i64
}

/// A duration in nanoseconds; `None` if the text is not a duration.
fn nanoseconds(text: &str) -> Option<i64> {
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut sum: u64 = 0;
    while !rest.is_empty() {
        let (part, after) = term(rest)?;
        sum = sum.checked_add(part).filter(|sum| *sum <= 1 << 63)?;
        rest = after;
    }
    signed(sum, negative)
}

fn signed(sum: u64, negative: bool) -> Option<i64> {
    if negative { 0i64.checked_sub_unsigned(sum) } else { i64::try_from(sum).ok() }
}

/// One number with its unit, and the remaining text.
fn term(text: &str) -> Option<(u64, &str)> {
    let (whole, rest) = split_digits(text);
    let (fraction, rest) = rest.strip_prefix('.').map_or(("", rest), split_digits);
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let end = rest.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(rest.len());
    let unit = unit(&rest[..end])?;
    let whole = if whole.is_empty() { 0 } else { whole.parse::<u64>().ok().filter(|n| *n <= 1 << 63)? };
    let value = whole.checked_mul(unit).filter(|value| *value <= 1 << 63)?;
    let value = value.checked_add(fraction_of(fraction, unit)).filter(|value| *value <= 1 << 63)?;
    Some((value, &rest[end..]))
}

/// The nanoseconds of a decimal fraction; digits beyond 63 bits are ignored.
fn fraction_of(digits: &str, unit: u64) -> u64 {
    let (mut number, mut scale) = (0u64, 1f64);
    for digit in digits.bytes().map(|b| u64::from(b - b'0')) {
        let Some(next) = number.checked_mul(10).and_then(|n| n.checked_add(digit)).filter(|n| *n <= 1 << 63) else {
            break;
        };
        number = next;
        scale *= 10.0;
    }
    (number as f64 * (unit as f64 / scale)) as u64
}

fn split_digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

fn unit(text: &str) -> Option<u64> {
    match text {
        "ns" => Some(1),
        "us" | "µs" | "μs" => Some(1_000),
        "ms" => Some(1_000_000),
        "s" => Some(1_000_000_000),
        "m" => Some(60_000_000_000),
        "h" => Some(3_600_000_000_000),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_and_durations_are_read() {
        let table = [
            ("1", 1),
            ("600", 600),
            ("+600", 600),
            ("2147483647", 2147483647),
            ("10m", 600),
            ("1h30m", 5400),
            ("1h1m1s", 3661),
            ("2.9s", 2),
            ("1.5h", 5400),
            (".5h", 1800),
            ("1.h", 3600),
            ("90000ms", 90),
            ("1500ms", 1),
            ("60000000us", 60),
            ("60000000µs", 60),
            ("60000000μs", 60),
            ("1000000000ns", 1),
            ("+1m", 60),
            ("1m1m", 120),
            ("0.1m", 6),
            ("0.3333333333333333333333333333h", 1200),
        ];
        for (text, expected) in table {
            assert_eq!(ttl(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn values_out_of_range_are_refused() {
        for text in [
            "0",
            "0s",
            "-0",
            "-1",
            "-1m",
            "900ms",
            "2147483648",
            "600000h",
            "2147483647.999999999s",
            "9223372036854775807",
        ] {
            assert_eq!(ttl(text), Err(TtlError::OutOfRange), "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_is_too_odd(text in "[-+]?([0-9]{0,25}\\.?[0-9]{0,25}(h|m|s|ms|us|µs|ns|x|)){0,4}|.{0,20}") {
            if let Ok(seconds) = ttl(&text) {
                proptest::prop_assert!((1..=i32::MAX as u32).contains(&seconds));
            }
        }
    }

    #[test]
    fn anything_else_is_no_duration() {
        let texts = [
            "",
            " ",
            "+",
            "-",
            ".",
            ".s",
            "1.",
            "1d",
            "1 h",
            "1h 30m",
            "h",
            "1h-30m",
            "1_000",
            "0x10",
            "1e3",
            "1.5",
            "3000000000h",
            "9223372036854775808",
            "soon",
            "５m",
            "+-1s",
            "1hh",
        ];
        for text in texts {
            assert_eq!(ttl(text), Err(TtlError::NotADuration), "{text}");
        }
    }
}
