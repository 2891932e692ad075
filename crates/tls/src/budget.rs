//! What an issuer allows, how much of it is used, and what a change would need.
//!
//! Pure. The numbers are the issuer's own; one that names no limits has none here. Renewals of the same names, and orders that
//! replace a certificate, do not count against the weekly limits.

use std::collections::{BTreeMap, BTreeSet};

use gatepost_core::model::Str;

use crate::history::{DAY, HOUR, IssuanceHistory};

/// What an issuer allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateLimits {
    /// Names in one certificate.
    pub names: usize,
    /// New certificates per registered domain in seven days.
    pub per_domain: Option<usize>,
    /// Certificates for exactly the same names in seven days.
    pub per_set: Option<usize>,
    /// Orders in three hours.
    pub orders: Option<usize>,
}

/// What a change needs, and what is left.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Forecast {
    /// How many orders it needs.
    pub orders: usize,
    /// How many orders are left for the domain that has the fewest, where there is a limit.
    pub left: Option<usize>,
    /// That domain.
    pub domain: Option<Str>,
}

impl Default for RateLimits {
    fn default() -> Self {
        RateLimits { names: 100, per_domain: None, per_set: None, orders: None }
    }
}

impl RateLimits {
    /// What Let's Encrypt allows. Its shorter-lived profiles take fewer names.
    pub fn lets_encrypt(profile: Option<&str>) -> RateLimits {
        let names = if matches!(profile, Some("tlsserver" | "shortlived")) { 25 } else { 100 };
        RateLimits { names, per_domain: Some(50), per_set: Some(5), orders: Some(300) }
    }

    /// How many more orders for these names are allowed now, and which domain says so; nothing where there is no limit.
    pub fn left(&self, history: &IssuanceHistory, names: &[Str], replaces: bool, now: i64) -> Option<(usize, Str)> {
        let mut all = Vec::new();
        if let Some(limit) = self.orders {
            let used = history.orders.iter().filter(|at| **at > now - 3 * HOUR).count();
            all.push((limit.saturating_sub(used), Str::from("this account")));
        }
        if !replaces {
            all.extend(self.left_of_week(history, names, now));
        }
        all.into_iter().min()
    }

    fn left_of_week(&self, history: &IssuanceHistory, names: &[Str], now: i64) -> Vec<(usize, Str)> {
        let week: Vec<_> = history.issued.iter().filter(|issue| issue.at > now - 7 * DAY).collect();
        let is_same = |other: &[String]| other.iter().map(String::as_str).eq(names.iter().map(|name| &**name));
        let same = week.iter().filter(|issue| is_same(&issue.names)).count();
        let mut all = Vec::new();
        if let Some(limit) = self.per_set {
            all.push((limit.saturating_sub(same), "these names".into()));
        }
        let Some(limit) = self.per_domain.filter(|_| same == 0) else { return all };
        for domain in domains(names) {
            let counts = |names: &[String]| names.iter().any(|name| registered_domain(name) == &*domain);
            let used = week.iter().filter(|issue| !issue.replaces && counts(&issue.names)).count();
            all.push((limit.saturating_sub(used), domain));
        }
        all
    }

    /// What these orders need in all; each is its names and whether it replaces a certificate.
    pub fn forecast(&self, history: &IssuanceHistory, orders: &[(Vec<Str>, bool)], now: i64) -> Forecast {
        let lefts = orders.iter().filter_map(|(names, replaces)| self.left(history, names, *replaces, now));
        let fewest: Option<(usize, Str)> = lefts.min();
        let (left, domain) = fewest.map_or((None, None), |(left, domain)| (Some(left), Some(domain)));
        Forecast { orders: orders.len(), left, domain }
    }
}

impl std::fmt::Display for Forecast {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let noun = if self.orders == 1 { "order" } else { "orders" };
        write!(f, "this change needs {} {noun}", self.orders)?;
        match (self.left, &self.domain) {
            (Some(left), Some(domain)) => write!(f, "; {left} left this week for {domain}"),
            _ => Ok(()),
        }
    }
}

/// The registered domains of names, each once.
fn domains(names: &[Str]) -> BTreeSet<Str> {
    let by_name: BTreeMap<&str, &Str> = names.iter().map(|name| (registered_domain(name), name)).collect();
    by_name.into_keys().map(Str::from).collect()
}

/// The domain that somebody registered, by the Public Suffix List; the name itself where there is none.
pub fn registered_domain(name: &str) -> &str {
    let name = name.strip_prefix("*.").unwrap_or(name);
    psl::domain_str(name).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::IssuedCertificate;

    fn names(text: &str) -> Vec<Str> {
        text.split(' ').map(Str::from).collect()
    }

    fn issue(at: i64, text: &str, replaces: bool) -> IssuedCertificate {
        IssuedCertificate { at, names: text.split(' ').map(str::to_owned).collect(), replaces }
    }

    #[test]
    fn domains_follow_the_public_suffix_list() {
        for (name, domain) in [
            ("www.example.com", "example.com"),
            ("*.shop.example.co.uk", "example.co.uk"),
            ("a.github.io", "a.github.io"),
            ("example.com", "example.com"),
            ("localhost", "localhost"),
        ] {
            assert_eq!(registered_domain(name), domain);
        }
    }

    #[test]
    fn what_is_left_counts_what_counts() {
        let limits = RateLimits { names: 100, per_domain: Some(3), per_set: Some(2), orders: Some(10) };
        let now = 100 * DAY;
        let history = IssuanceHistory {
            issued: vec![
                issue(now - DAY, "a.example.com", false),
                issue(now - DAY, "b.example.com", true),
                issue(now - 8 * DAY, "c.example.com", false),
                issue(now - DAY, "x.example.org", false),
            ],
            orders: vec![now - HOUR, now - 4 * HOUR],
            ..IssuanceHistory::default()
        };
        let left = |text: &str, replaces| {
            limits.left(&history, &names(text), replaces, now).map(|(left, who)| (left, who.to_string()))
        };
        assert_eq!(left("n.example.com", false), Some((2, "example.com".to_owned())));
        assert_eq!(left("a.example.com", false), Some((1, "these names".to_owned())), "the same names again");
        assert_eq!(left("a.example.com", true), Some((9, "this account".to_owned())));
        assert_eq!(RateLimits::default().left(&history, &names("a.example.com"), false, now), None);
        let tight = RateLimits { per_domain: Some(1), ..limits.clone() };
        let (left, who) = tight.left(&history, &names("n.example.com n.example.net"), false, now).unwrap();
        assert_eq!((left, &*who), (0, "example.com"));
    }

    #[test]
    fn a_forecast_reads_as_a_sentence() {
        let limits = RateLimits { names: 100, per_domain: Some(3), per_set: None, orders: None };
        let orders = [(names("a.example.com"), false), (names("b.example.com"), false)];
        let forecast = limits.forecast(&IssuanceHistory::default(), &orders, 0);
        assert_eq!(forecast.to_string(), "this change needs 2 orders; 3 left this week for example.com");
        let none = RateLimits::default().forecast(&IssuanceHistory::default(), &orders[..1], 0);
        assert_eq!(none.to_string(), "this change needs 1 order");
    }
}
