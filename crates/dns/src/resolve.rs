//! `--resolve-targets`: the addresses behind hostnames that stand where no CNAME may stand (D24).
//!
//! Every name is asked for again when its TTL has passed, within bounds. An answer counts only if both address families
//! were answered; until then the last good one stays, however old. A name without any good answer is unknown, which must
//! never delete anything. Nothing here decides what is published.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use gatepost_core::model::Str;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

mod query;
mod system;

pub use system::{SYSTEM_FILE, nameservers};

/// The settings of a resolver.
#[derive(Clone, Debug)]
pub struct ResolverConfig {
    /// Resolvers in the order in which they are asked.
    pub servers: Vec<SocketAddr>,
    /// How long one question may take.
    pub timeout: Duration,
    /// How often the whole list of servers is asked.
    pub rounds: usize,
    /// No answer is asked for again sooner.
    pub min_ttl: Duration,
    /// Every answer is asked for again after this time.
    pub max_ttl: Duration,
    /// More names are not resolved.
    pub max_names: usize,
    /// More addresses are not taken, the lowest stay.
    pub max_addresses: usize,
}

/// Addresses of names, kept and refreshed.
#[derive(Debug)]
pub struct Resolver {
    config: ResolverConfig,
    known: Mutex<BTreeMap<Str, CachedName>>,
}

/// What is known about a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resolution {
    /// Its addresses, sorted; where the last look failed, also why, and then they are older.
    Known {
        /// Never empty.
        addresses: Vec<IpAddr>,
        /// Why they could not be refreshed.
        stale: Option<String>,
    },
    /// Nothing yet, and why.
    Unknown(String),
}

/// What one look at a name gave.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ResolvedName {
    addresses: Vec<IpAddr>,
    ttl: Duration,
}

#[derive(Clone, Debug)]
struct CachedName {
    addresses: Vec<IpAddr>,
    problem: Option<String>,
    due: Instant,
}

/// Names that are asked for at the same time.
const AT_ONCE: usize = 16;

/// The addresses of a name, asked for now and kept nowhere.
pub async fn addresses(config: &ResolverConfig, name: &str) -> Result<Vec<IpAddr>, String> {
    query::addresses(config, name).await.map(|found| found.addresses)
}

impl Default for ResolverConfig {
    fn default() -> Self {
        ResolverConfig {
            servers: Vec::new(),
            timeout: Duration::from_secs(2),
            rounds: 2,
            min_ttl: Duration::from_secs(30),
            max_ttl: Duration::from_secs(3600),
            max_names: 10_000,
            max_addresses: 64,
        }
    }
}

impl Resolver {
    /// A resolver that knows nothing yet.
    pub fn new(config: ResolverConfig) -> Resolver {
        Resolver { config, known: Mutex::default() }
    }

    /// What is known about each name, after asking for those that are due. Names that are not given are forgotten.
    pub async fn resolve(&self, names: &BTreeSet<Str>, now: Instant) -> BTreeMap<Str, Resolution> {
        let allowed: BTreeSet<&Str> = names.iter().take(self.config.max_names).collect();
        let due: Vec<Str> = {
            let mut known = self.known();
            known.retain(|name, _| allowed.contains(name));
            let is_due = |name: &Str| known.get(name).is_none_or(|entry| entry.due <= now);
            allowed.iter().filter(|name| is_due(name)).map(|name| (**name).clone()).collect()
        };
        for (name, found) in self.ask(due).await {
            self.learn(name, found, now);
        }
        let known = self.known();
        let too_many = || Resolution::Unknown(format!("more than {} names are to be resolved", self.config.max_names));
        names.iter().map(|name| (name.clone(), known.get(name).map_or_else(too_many, CachedName::resolution))).collect()
    }

    /// When the next name is due.
    pub fn next_due(&self) -> Option<Instant> {
        self.known().values().map(|entry| entry.due).min()
    }

    async fn ask(&self, names: Vec<Str>) -> Vec<(Str, Result<ResolvedName, String>)> {
        let places = Arc::new(Semaphore::new(AT_ONCE));
        let config = Arc::new(self.config.clone());
        let mut tasks = JoinSet::new();
        for name in names {
            let (places, config) = (places.clone(), config.clone());
            tasks.spawn(async move {
                let _place = places.acquire().await;
                let found = query::addresses(&config, &name).await;
                (name, found)
            });
        }
        let mut answers = tasks.join_all().await;
        answers.sort_by(|a, b| a.0.cmp(&b.0));
        answers
    }

    fn learn(&self, name: Str, found: Result<ResolvedName, String>, now: Instant) {
        let mut known = self.known();
        let entry = known.entry(name).or_insert_with(|| CachedName { addresses: Vec::new(), problem: None, due: now });
        let wait = match found {
            Ok(mut found) => {
                found.addresses.truncate(self.config.max_addresses);
                entry.addresses = found.addresses;
                entry.problem = None;
                found.ttl.clamp(self.config.min_ttl, self.config.max_ttl)
            }
            Err(problem) => {
                entry.problem = Some(problem);
                self.config.min_ttl
            }
        };
        entry.due = now + wait;
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<Str, CachedName>> {
        // Nothing panics while it is held, and no entry is ever half written.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CachedName {
    fn resolution(&self) -> Resolution {
        if self.addresses.is_empty() {
            return Resolution::Unknown(self.problem.clone().unwrap_or_else(|| "not asked yet".to_owned()));
        }
        Resolution::Known { addresses: self.addresses.clone(), stale: self.problem.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(address: &str, ttl: u64) -> Result<ResolvedName, String> {
        Ok(ResolvedName { addresses: vec![address.parse().unwrap()], ttl: Duration::from_secs(ttl) })
    }

    fn look(resolver: &Resolver, name: &str) -> Resolution {
        resolver.known()[name].resolution()
    }

    #[test]
    fn the_last_good_answer_stays() {
        let resolver = Resolver::new(ResolverConfig::default());
        let now = Instant::now();
        let name: Str = "edge.example.net".into();
        resolver.learn(name.clone(), Err("timed out".into()), now);
        assert_eq!(look(&resolver, &name), Resolution::Unknown("timed out".into()));
        resolver.learn(name.clone(), found("192.0.2.1", 60), now);
        let addresses = vec!["192.0.2.1".parse().unwrap()];
        assert_eq!(look(&resolver, &name), Resolution::Known { addresses: addresses.clone(), stale: None });
        resolver.learn(name.clone(), Err("SERVFAIL".into()), now);
        assert_eq!(look(&resolver, &name), Resolution::Known { addresses, stale: Some("SERVFAIL".into()) });
    }

    #[test]
    fn waits_are_bounded() {
        let resolver = Resolver::new(ResolverConfig::default());
        let now = Instant::now();
        for (ttl, wait) in [(0, 30), (60, 60), (1_000_000, 3600)] {
            resolver.learn("a".into(), found("192.0.2.1", ttl), now);
            assert_eq!(resolver.next_due(), Some(now + Duration::from_secs(wait)));
        }
    }
}
