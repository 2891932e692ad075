//! Timestamps that others wrote, kept to be written back unchanged and never compared with a clock.

use std::fmt;

use super::Str;

/// A timestamp as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Time(Form);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Form {
    /// Seconds since 1970, for a text in the format of Kubernetes: `2026-03-01T10:00:00Z`.
    Seconds(i64),
    /// Any other text.
    Text(Str),
}

impl Time {
    /// Parses the text of a field.
    pub fn new(text: &str) -> Self {
        Time(seconds(text).map_or_else(|| Form::Text(text.into()), Form::Seconds))
    }

    /// The timestamp of a number of seconds since 1970.
    pub(super) fn of_seconds(seconds: i64) -> Self {
        Time(Form::Seconds(seconds))
    }

    /// Seconds since 1970, if they represent the text exactly.
    pub(super) fn seconds(&self) -> Option<i64> {
        match self.0 {
            Form::Seconds(seconds) => Some(seconds),
            Form::Text(_) => None,
        }
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Form::Seconds(seconds) => f.write_str(&written(*seconds)),
            Form::Text(text) => f.write_str(text),
        }
    }
}

/// Seconds since 1970 of a text that [`written`] produces; `None` for any other text.
fn seconds(text: &str) -> Option<i64> {
    let is_shaped = text.len() == SHAPE.len()
        && text
            .bytes()
            .zip(SHAPE.bytes())
            .all(|(byte, shape)| byte == shape || (shape == b'0' && byte.is_ascii_digit()));
    if !is_shaped {
        return None;
    }
    let part = |from: usize, to: usize| text.get(from..to)?.parse::<i64>().ok();
    let (year, month, day) = (part(0, 4)?, part(5, 7)?, part(8, 10)?);
    let (hour, minute, second) = (part(11, 13)?, part(14, 16)?, part(17, 19)?);
    let days = days_before(year, month, day);
    let is_real = date(days) == (year, month, day) && hour < 24 && minute < 60 && second < 60;
    is_real.then_some(days * 86_400 + hour * 3600 + minute * 60 + second)
}

/// The format of Kubernetes, with `0` for each digit.
const SHAPE: &str = "0000-00-00T00:00:00Z";

/// Days from 1970-01-01 to a date. Years start in March, so that a leap day is the last day of a year.
fn days_before(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    year * 365 + leap_days + month_start(month) + day - 1 - EPOCH
}

/// 1970-01-01 in days since March 1st of year 0.
const EPOCH: i64 = 719_468;

/// Days from March 1st to the first of a month, where March is 0. Month lengths repeat as 31, 30, 31, 30, 31.
fn month_start(month: i64) -> i64 {
    (153 * month + 2) / 5
}

fn written(seconds: i64) -> String {
    let (days, rest) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = date(days);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", rest / 3600, rest / 60 % 60, rest % 60)
}

/// The date that is a number of days after 1970-01-01.
fn date(days: i64) -> (i64, i64, i64) {
    let days = days + EPOCH;
    // The estimate is at most one year too high; the remaining days show it.
    let guess = (days * 400).div_euclid(146_097);
    let start = |year: i64| year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    let year = if start(guess) > days {
        guess - 1
    } else if start(guess + 1) <= days {
        guess + 1
    } else {
        guess
    };
    let left = days - start(year);
    let month = (5 * left + 2) / 153;
    let day = left - month_start(month) + 1;
    if month < 10 { (year, month + 3, day) } else { (year + 1, month - 9, day) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn times_of_kubernetes_are_numbers() {
        for (text, seconds) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2026-03-01T10:00:05Z", 1_772_359_205),
            ("2000-02-29T23:59:59Z", 951_868_799),
            ("1969-12-31T23:59:59Z", -1),
            ("9999-12-31T23:59:59Z", 253_402_300_799),
            ("0000-01-01T00:00:00Z", -62_167_219_200),
        ] {
            assert_eq!(Time::new(text).seconds(), Some(seconds), "{text}");
            assert_eq!(Time::of_seconds(seconds).to_string(), text);
        }
    }

    #[test]
    fn whatever_was_written_is_written_again() {
        for text in [
            "",
            "yesterday",
            "2026-03-01T10:00:05+00:00",
            "2026-03-01T10:00:05.5Z",
            "2026-02-29T00:00:00Z",
            "2026-03-01t10:00:05Z",
            "2026-03-01T24:00:00Z",
            "+026-03-01T10:00:05Z",
            "٢026-03-01T10:00:05Z",
            "99999999999999999999",
        ] {
            let time = Time::new(text);
            assert_eq!((time.seconds(), time.to_string()), (None, text.to_owned()));
        }
    }

    proptest! {
        #[test]
        fn every_second_of_ten_thousand_years(seconds in -62_167_219_200_i64..=253_402_300_799) {
            let time = Time::new(&written(seconds));
            prop_assert_eq!(time.seconds(), Some(seconds));
        }

        #[test]
        fn every_text(text in ".{0,24}|[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z") {
            prop_assert_eq!(Time::new(&text).to_string(), text);
        }
    }
}
