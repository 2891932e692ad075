//! The issuance history kept across restarts: issued certificates, placed orders, failures and their backoff.
//!
//! Values with the time as a parameter. A clock that jumped must not silence anybody for ever: what rests longer than any
//! rule would have it counts as rested.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Issued certificates, orders and failures, as far back as limits and backoff need them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct IssuanceHistory {
    /// Certificates of the last week.
    pub issued: Vec<IssuedCertificate>,
    /// When orders were placed, in the last week.
    pub orders: Vec<i64>,
    /// What failed, by Secret.
    pub failures: BTreeMap<String, FailureBackoff>,
    /// What failed, by name.
    pub names: BTreeMap<String, FailureBackoff>,
    /// Until when the issuer asks to be left alone.
    pub pause: Option<FailureBackoff>,
    /// Which names and which key a Secret was last to have, and since when.
    pub wanted: BTreeMap<String, WantedSince>,
    /// When the issuer would have certificates renewed, by Secret.
    pub windows: BTreeMap<String, RenewalWindow>,
}

/// One issued certificate, as it counts against the rate limits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IssuedCertificate {
    /// When.
    pub at: i64,
    /// For which names, sorted.
    pub names: Vec<String>,
    /// Whether it replaced another in the eyes of the issuer, and so does not count.
    pub replaces: bool,
}

/// The last failure of a Secret, a name or the issuer, and until when it is not tried again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailureBackoff {
    /// How often in a row.
    pub count: u32,
    /// When last.
    pub at: i64,
    /// Until when it is not tried again.
    pub until: i64,
    /// What was said.
    pub why: String,
    /// The row of the catalog.
    pub reason: String,
}

/// The names and the key that a Secret is to have, and since when.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WantedSince {
    /// The names, sorted.
    pub names: Vec<String>,
    /// Which key, where that is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Since when.
    pub at: i64,
}

/// The renewal window that the issuer suggests for one certificate (ACME renewal information).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RenewalWindow {
    /// Which certificate, as the issuer calls it.
    pub id: String,
    /// Begin and end of the window; nothing where the issuer has no opinion.
    pub window: Option<(i64, i64)>,
    /// When to ask again.
    pub again: i64,
}

/// Seconds.
pub const MINUTE: i64 = 60;
/// Seconds.
pub const HOUR: i64 = 3600;
/// Seconds.
pub const DAY: i64 = 86_400;

/// Pauses after the first, second, third and every further failure.
const PAUSES: [i64; 4] = [MINUTE, 10 * MINUTE, 100 * MINUTE, DAY];
/// Nothing rests longer, whatever an issuer asks for or a clock did.
pub const LONGEST: i64 = 7 * DAY;
/// More entries are not kept.
const MOST: usize = 10_000;

impl FailureBackoff {
    /// One failure more, which rests longer than the last. `asked` is what the issuer asks for; `roll` spreads the rest of many.
    pub fn after(
        last: Option<&FailureBackoff>,
        why: String,
        reason: &str,
        asked: Option<i64>,
        roll: f64,
        now: i64,
    ) -> FailureBackoff {
        let count = last.map_or(0, |last| last.count).saturating_add(1);
        let pause = PAUSES[(count as usize - 1).min(PAUSES.len() - 1)];
        let pause = pause + (pause as f64 * 0.2 * roll.clamp(0.0, 1.0)) as i64;
        let until = now.saturating_add(pause.max(asked.unwrap_or(0)).min(LONGEST));
        FailureBackoff { count, at: now, until, why, reason: reason.to_owned() }
    }

    /// Whether it still rests. A clock that went back does not make it rest longer than the rules would.
    pub fn rests(&self, now: i64) -> bool {
        self.until > now && self.at <= now + HOUR && self.until - now <= LONGEST
    }
}

impl IssuanceHistory {
    /// Forgets what is too old to matter, and Secrets that nobody wants any more.
    pub fn tidy(&mut self, now: i64, is_wanted: impl Fn(&str) -> bool) {
        let week = |at: &i64| *at > now - 7 * DAY && *at <= now + DAY;
        self.issued.retain(|issue| week(&issue.at));
        self.orders.retain(week);
        let (issued, orders) = (self.issued.len().saturating_sub(MOST), self.orders.len().saturating_sub(MOST));
        self.issued.drain(..issued);
        self.orders.drain(..orders);
        self.names.retain(|_, failure| failure.rests(now) || failure.at > now - 2 * DAY);
        self.failures.retain(|secret, _| is_wanted(secret));
        self.wanted.retain(|secret, _| is_wanted(secret));
        self.windows.retain(|secret, _| is_wanted(secret));
        self.pause = self.pause.take().filter(|pause| pause.rests(now));
    }

    /// Notes which names and which key a Secret is to have; says since when.
    pub fn settle(&mut self, secret: &str, names: Vec<String>, key: Option<String>, now: i64) -> i64 {
        let new = WantedSince { names, key, at: now };
        let since = self.wanted.entry(secret.to_owned()).or_insert_with(|| new.clone());
        if (&since.names, &since.key) != (&new.names, &new.key) || since.at > now {
            *since = new;
        }
        since.at
    }
}

/// A fraction between 0 and 1 that hangs on a text alone: the same after a restart, spread over many texts.
pub fn spread(text: &str) -> f64 {
    let digest = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
    let head: [u8; 4] = digest.as_ref()[..4].try_into().unwrap_or_default();
    f64::from(u32::from_be_bytes(head)) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_rest_longer_and_longer_and_no_longer_than_a_week() {
        let mut last = None;
        let mut pauses = Vec::new();
        for _ in 0..6 {
            let next = FailureBackoff::after(last.as_ref(), "no".to_owned(), "r", None, 0.0, 1000);
            pauses.push(next.until - 1000);
            last = Some(next);
        }
        assert_eq!(pauses, [60, 600, 6000, DAY, DAY, DAY]);
        let asked = |asked| FailureBackoff::after(None, String::new(), "r", Some(asked), 0.0, 0).until;
        assert_eq!((asked(10), asked(HOUR), asked(i64::MAX)), (60, HOUR, LONGEST));
        assert_eq!(FailureBackoff::after(None, String::new(), "r", None, 1.0, 0).until, 72);
    }

    #[test]
    fn a_clock_that_jumps_silences_nobody_for_ever() {
        let failure = FailureBackoff::after(None, String::new(), "r", None, 0.0, 1_000_000_000);
        assert!(failure.rests(1_000_000_030) && !failure.rests(1_000_000_060));
        assert!(!failure.rests(1_000_000_000 - 30 * DAY), "the clock went back by a month");
        let mut history = IssuanceHistory {
            orders: vec![5, 100 * DAY, 400 * DAY],
            pause: Some(failure),
            ..IssuanceHistory::default()
        };
        history.tidy(100 * DAY, |_| true);
        assert_eq!(history.orders, [100 * DAY], "neither the distant past nor a future that never was");
        assert_eq!(history.pause, None);
    }

    #[test]
    fn a_changed_wish_begins_anew() {
        let mut history = IssuanceHistory::default();
        let names = |text: &str| vec![text.to_owned()];
        assert_eq!(history.settle("a/b", names("x"), None, 10), 10);
        assert_eq!(history.settle("a/b", names("x"), None, 20), 10);
        assert_eq!(history.settle("a/b", names("y"), None, 30), 30);
        let key = Some("RSA 2048".to_owned());
        assert_eq!(history.settle("a/b", names("y"), key.clone(), 40), 40, "another key");
        assert_eq!(history.settle("a/b", names("y"), key, 5), 5, "the clock went back");
    }

    #[test]
    fn spread_is_stable_and_wide() {
        assert_eq!(spread("a"), spread("a"));
        let all: Vec<f64> = (0..200).map(|i| spread(&i.to_string())).collect();
        assert!(all.iter().any(|x| *x < 0.1) && all.iter().any(|x| *x > 0.9));
    }
}
