//! Words that can be spoken, and times: what objects and hostnames are called.

use jiff::SignedDuration;
use jiff::civil::date;

const ONSETS: [&str; 16] = ["b", "d", "f", "g", "h", "k", "l", "m", "n", "p", "r", "s", "t", "v", "w", "z"];
const VOWELS: [&str; 5] = ["a", "e", "i", "o", "u"];
const SYLLABLES: usize = ONSETS.len() * VOWELS.len();
const TOP_LEVELS: [&str; 3] = ["example", "test", "shop.example"];
const SERVICES: [&str; 16] = [
    "www", "api", "app", "auth", "store", "news", "panel", "help", "files", "media", "mail", "chat", "find", "pay",
    "build", "graphs",
];

/// A word for a number; different numbers have different words.
pub(crate) fn word(number: usize) -> String {
    let mut rest = number;
    let mut word = String::new();
    for at in 0.. {
        if at >= 2 && rest == 0 {
            break;
        }
        // A number that is spread, so that neighbours do not look alike; 80 and 37 have no common factor.
        let syllable = (rest % SYLLABLES * 37 + at * 11) % SYLLABLES;
        word.push_str(ONSETS[syllable % ONSETS.len()]);
        word.push_str(VOWELS[syllable / ONSETS.len()]);
        rest /= SYLLABLES;
    }
    word
}

/// The name of a domain, below names that are reserved for examples.
pub(crate) fn domain(number: usize) -> String {
    format!("{}.{}", word(number), TOP_LEVELS[number % TOP_LEVELS.len()])
}

/// What an application may be called, by any number.
pub(crate) fn service(number: usize) -> &'static str {
    SERVICES[number % SERVICES.len()]
}

/// So many seconds into the year 2026, as objects write it; later ones stay at its end.
pub(crate) fn time(seconds: usize) -> String {
    let seconds = i64::try_from(seconds).unwrap_or(i64::MAX).min(365 * 86_400 - 1);
    let time = date(2026, 1, 1).at(0, 0, 0, 0) + SignedDuration::from_secs(seconds);
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn words_differ() {
        let words: BTreeSet<String> = (0..20_000).map(word).collect();
        assert_eq!(words.len(), 20_000);
        assert!(words.iter().all(|word| word.len() >= 4 && word.bytes().all(|b| b.is_ascii_lowercase())));
    }

    #[test]
    fn times_are_those_of_a_calendar() {
        assert_eq!(time(0), "2026-01-01T00:00:00Z");
        assert_eq!(time(31 * 86_400 + 3_723), "2026-02-01T01:02:03Z");
        assert_eq!(time(usize::MAX), "2026-12-31T23:59:59Z");
    }
}
