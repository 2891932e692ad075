//! Faults on the way between keeper and zone. While one lasts nothing that stands is lost; once it is over the zone becomes
//! what it would have been without it, byte for byte.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use gatepost_core::reason;
use gatepost_dns::provider::{ProviderProblem, Shared};
use gatepost_dns::providers::rfc2136::{KeyConfig, Rfc2136, Rfc2136Config};
use gatepost_testkit::servers::relay::{Direction, Fate, Relay, is_update};
use gatepost_testkit::servers::{KEY_ALGORITHM, KEY_NAME};

use crate::beds::{Bed, BedKind, Hand, rfc2136_config};
use crate::keeper::{Keeper, Wish};
use crate::states::{full, precise};

/// A zone that a keeper has filled, and what it is to become.
pub(crate) struct Stage {
    pub(crate) bed: Bed,
    pub(crate) keeper: Keeper,
    pub(crate) before: Vec<String>,
    pub(crate) wish: Wish,
}

impl Stage {
    pub(crate) async fn set(kind: BedKind, zone: &str) -> Stage {
        let bed = kind.start(zone).await;
        let mut keeper = Keeper::new(zone, bed.provider.clone());
        keeper.settle(&full().wish(zone)).await;
        let before = bed.dump();
        let wish = precise().wish(zone);
        Stage { bed, keeper, before, wish }
    }

    /// A pass with a provider that fails at everything; nothing may have changed.
    async fn is_unharmed_by(&mut self, provider: Shared, what: &str) {
        self.keeper.through(provider);
        let pass = self.keeper.pass(&self.wish).await;
        assert!(pass.plan.steps.is_empty() || pass.results.iter().all(Result::is_err), "{what}: {:?}", pass.results);
        assert_eq!(self.bed.dump(), self.before, "{what}");
    }

    /// Settles without a fault, and compares with a zone that never had one.
    pub(crate) async fn converges(mut self, kind: BedKind) {
        self.keeper.through(self.bed.provider.clone());
        self.keeper.settle(&self.wish).await;
        assert_eq!(self.bed.dump(), without_faults(kind, &self.bed.zone).await);
    }

    fn config(&self) -> Rfc2136Config {
        rfc2136_config(self.bed.address, &self.bed.zone)
    }
}

/// The zone after the same two states on a server of its own, without any fault.
pub(crate) async fn without_faults(kind: BedKind, zone: &str) -> Vec<String> {
    let mut stage = Stage::set(kind, zone).await;
    stage.keeper.settle(&stage.wish).await;
    stage.bed.dump()
}

fn rfc2136(config: Rfc2136Config) -> Shared {
    Arc::new(Rfc2136::new(config).unwrap())
}

/// A transfer that is cut anywhere is no zone: nothing is planned from it.
pub(crate) async fn cut_transfer(kind: BedKind) {
    let mut stage = Stage::set(kind, "cut.test").await;
    for bytes in [0, 1, 40, 400, 1500] {
        let cut = move |way: Direction, message: &[u8]| match way {
            Direction::Back if !is_update(message) => Fate::Cut(bytes),
            _ => Fate::Pass,
        };
        let relay = Relay::start(stage.bed.address, cut).unwrap();
        stage.keeper.through(rfc2136(rfc2136_config(relay.address, &stage.bed.zone)));
        let plan = stage.keeper.plan(&stage.wish).await;
        assert!(plan.steps.is_empty(), "{bytes}: {:?}", plan.steps);
        let reasons: Vec<_> = plan.held.iter().map(|held| held.reason).collect();
        assert_eq!(reasons, [reason::ZONE_UNREADABLE], "{bytes}");
        assert_eq!(stage.bed.dump(), stage.before);
    }
    stage.converges(kind).await;
}

/// An update that is cut, there or back, was written or was not; the next pass sees which.
pub(crate) async fn cut_update(kind: BedKind) {
    for (way, bytes) in [
        (Direction::There, 0),
        (Direction::There, 1),
        (Direction::There, 300),
        (Direction::Back, 0),
        (Direction::Back, 10),
    ] {
        let mut stage = Stage::set(kind, "cut-update.test").await;
        let cut = move |going: Direction, message: &[u8]| match is_update(message) && going == way {
            true => Fate::Cut(bytes),
            false => Fate::Pass,
        };
        let relay = Relay::start(stage.bed.address, cut).unwrap();
        stage.keeper.through(rfc2136(rfc2136_config(relay.address, &stage.bed.zone)));
        let pass = stage.keeper.pass(&stage.wish).await;
        assert!(pass.results.iter().all(|result| result.as_ref().is_err_and(|error| error.is_transient())));
        if way == Direction::There {
            assert_eq!(stage.bed.dump(), stage.before);
        }
        stage.converges(kind).await;
    }
}

pub(crate) async fn wrong_key(kind: BedKind) {
    let mut stage = Stage::set(kind, "key.test").await;
    let key = Some(KeyConfig::new(KEY_NAME, "d3Jvbmcgc2VjcmV0", KEY_ALGORITHM));
    stage.is_unharmed_by(rfc2136(Rfc2136Config { key, ..stage.config() }), "a wrong secret").await;
    let key = Some(KeyConfig::new("nobody", gatepost_testkit::servers::KEY_SECRET, KEY_ALGORITHM));
    stage.is_unharmed_by(rfc2136(Rfc2136Config { key, ..stage.config() }), "an unknown key").await;
    stage.converges(kind).await;
}

pub(crate) async fn clock_off(kind: BedKind) {
    let mut stage = Stage::set(kind, "clock.test").await;
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs();
    let clock = Arc::new(move || now() + 1000);
    stage.is_unharmed_by(rfc2136(Rfc2136Config { clock, ..stage.config() }), "a clock that is off").await;
    stage.converges(kind).await;
}

/// Somebody writes between our reading and our writing: what was read no longer holds, so nothing is written over it.
pub(crate) async fn hand_edit_in_the_gap(kind: BedKind) {
    let mut stage = Stage::set(kind, "gap.test").await;
    let plan = stage.keeper.plan(&stage.wish).await;
    let is_there = |label: &str| plan.steps.iter().any(|step| *step.name == *format!("{label}.gap.test"));
    assert!(is_there("host-8") && is_there("a.apps"), "{:?}", plan.steps);
    // One that is about to go, and one that is about to come.
    stage.bed.add(Hand { label: "host-8", kind: "A", value: "192.0.2.200" });
    stage.bed.add(Hand { label: "a.apps", kind: "A", value: "192.0.2.201" });
    let results = stage.keeper.write(&plan.steps).await;
    for (step, result) in plan.steps.iter().zip(&results) {
        let is_edited = ["host-8.gap.test", "a.apps.gap.test"].contains(&&*step.name);
        let is_stale =
            matches!(result, Err(error) if matches!(error.problem, ProviderProblem::Stale(_)) && error.needs_read());
        // What waits for an edited one was not written either.
        assert!(is_stale || !is_edited, "{}: {result:?}", step.name);
    }
    let dump = stage.bed.dump();
    // A server has one TTL for all addresses of a name, so only names and values are looked at.
    for (name, value) in [("host-8", "8"), ("host-8", "200"), ("a.apps", "201")] {
        let is_it = |line: &String| {
            line.starts_with(&format!("{name}.gap.test. ")) && line.ends_with(&format!(" in a 192.0.2.{value}"))
        };
        assert!(dump.iter().any(is_it), "{name} {value}: {dump:#?}");
    }
    // The name that came by hand stays whoever's it is, and is named.
    let last = stage.keeper.settle_all_but(&stage.wish, 0).await;
    assert!(last.held.iter().any(|held| *held.name == *"a.apps.gap.test"), "{:?}", last.held);
    assert!(stage.bed.dump().iter().any(|line| line == "a.apps.gap.test. 77 in a 192.0.2.201"));
}

/// One record that the server never takes does not stop the others, and is tried alone from then on.
pub(crate) async fn always_refused(kind: BedKind) {
    let mut stage = Stage::set(kind, "one.test").await;
    let mut wish = stage.wish.clone();
    let mut refused = wish.records[0].clone();
    refused.name = "refused.one.test".into();
    wish.records.push(refused);
    let last = stage.keeper.settle_all_but(&wish, 1).await;
    let names: Vec<&str> = last.steps.iter().map(|step| &*step.name).collect();
    assert_eq!(names, ["refused.one.test"]);
    let dump = stage.bed.dump();
    let pass = stage.keeper.pass(&wish).await;
    let error = pass.results[0].as_ref().unwrap_err();
    let refusal = if stage.bed.api().is_some() || stage.bed.aws().is_some() { "not allowed here" } else { "REFUSED" };
    assert!(error.to_string().contains("refused.one.test") && error.to_string().contains(refusal), "{error}");
    assert_eq!(stage.bed.dump(), dump);
    stage.converges(kind).await;
}

/// A second instance with our owner id sees who was there first, and writes nothing; the first goes on.
pub(crate) async fn twins(kind: BedKind) {
    let mut stage = Stage::set(kind, "twin.test").await;
    let mut twin = Keeper::twin(&stage.bed.zone, stage.bed.provider.clone());
    for wish in [Wish::default(), stage.wish.clone(), full().wish(&stage.bed.zone)] {
        let pass = twin.pass(&wish).await;
        assert!(pass.plan.steps.is_empty(), "{:?}", pass.plan.steps);
        assert!(pass.plan.held.iter().any(|held| held.reason == reason::OWNER_CONFLICT), "{:?}", pass.plan.held);
        assert_eq!(stage.bed.dump(), stage.before);
    }
    stage.keeper.settle(&stage.wish).await;
    assert!(twin.pass(&Wish::default()).await.plan.steps.is_empty());
    stage.converges(kind).await;
}

/// How many updates went through a relay.
pub(crate) fn counting(count: &Arc<AtomicUsize>) -> impl Fn(Direction, &[u8]) -> Fate + Send + Sync + 'static {
    let count = count.clone();
    move |way, message| {
        if way == Direction::There && is_update(message) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        Fate::Pass
    }
}

/// A zone at rest is not written to, whoever looks, and observing sends nothing.
pub(crate) async fn rest_is_silent(kind: BedKind) {
    let mut stage = Stage::set(kind, "rest.test").await;
    stage.keeper.settle(&stage.wish).await;
    let count = Arc::new(AtomicUsize::new(0));
    let relay = Relay::start(stage.bed.address, counting(&count)).unwrap();
    stage.keeper.through(rfc2136(rfc2136_config(relay.address, &stage.bed.zone)));
    for _ in 0..3 {
        assert!(stage.keeper.pass(&stage.wish).await.plan.steps.is_empty());
        stage.keeper.plan(&Wish::default()).await;
    }
    assert_eq!(count.load(Ordering::Relaxed), 0);
    stage.keeper.pass(&full().wish(&stage.bed.zone)).await;
    assert!(count.load(Ordering::Relaxed) > 0, "the relay counts");
}
