use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use gatepost_testkit::servers::Scratch;

use super::*;
use crate::budget::RateLimits;
use crate::chain::Chain;
use crate::error::{Error, IssuanceProblem};
use crate::history::{DAY, HOUR};
use crate::issuer::{Failed, Progress};
use crate::issuers::embedded_ca::EmbeddedCa;
use crate::order::{Challenge, Order, OrderStep};
use crate::store::{FileStateStore, FileStore, TlsKeyPair};

const NOW: i64 = 1_800_000_000;

/// Says that everything is answered, or that nothing is.
struct FakeZone(bool);

impl Answers for FakeZone {
    fn answers<'a>(&'a self, _owner: &'a str, _values: &'a [Str]) -> Call<'a, std::result::Result<(), String>> {
        Box::pin(async move { if self.0 { Ok(()) } else { Err("ns1 says nothing".to_owned()) } })
    }
}

/// An issuer that takes a challenge, and fails as it is told to.
#[derive(Debug)]
struct Moody {
    authority: EmbeddedCa,
    placed: AtomicUsize,
    asked: AtomicUsize,
    mood: Mutex<Option<Mood>>,
}

#[derive(Clone, Debug)]
enum Mood {
    Blames(&'static str),
    Limited(u64),
    Away,
    Cheats(&'static str),
    Refuses,
}

impl Issuer for Moody {
    fn kind(&self) -> &'static str {
        "moody"
    }

    fn limits(&self) -> RateLimits {
        RateLimits::default()
    }

    fn advance<'a>(&'a self, order: &'a mut Order, published: bool, now: i64) -> Call<'a, Result<Progress>> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let mood = self.mood.lock().unwrap().clone();
        Box::pin(async move {
            match (&mood, order.step) {
                (Some(Mood::Away), _) => return Err(Error::new(IssuanceProblem::Unreachable("away".to_owned()))),
                (Some(Mood::Limited(seconds)), _) => {
                    let error = Error::new(IssuanceProblem::RateLimited("too many".to_owned()));
                    return Err(Error { retry_after: Some(Duration::from_secs(*seconds)), ..error });
                }
                (Some(Mood::Refuses), _) => {
                    return Ok(Progress::Failed(Failed { names: Vec::new(), why: "never".to_owned() }));
                }
                (_, OrderStep::New) => {
                    self.placed.fetch_add(1, Ordering::Relaxed);
                    order.url = Some("https://moody.test/1".to_owned());
                    order.step = OrderStep::Placed;
                    return Ok(Progress::Again);
                }
                (_, OrderStep::Placed) => {
                    let challenge = |name: &String| Challenge { name: name.clone(), value: format!("v-{name}") };
                    order.challenges = order.names.iter().map(challenge).collect();
                    order.step = OrderStep::Publishing;
                    return Ok(Progress::Publish);
                }
                (_, OrderStep::Publishing) if !published => return Ok(Progress::Publish),
                (Some(Mood::Blames(name)), _) if order.names.iter().any(|one| one == name) => {
                    let names = vec![(Str::from(*name), "CAA forbids".to_owned())];
                    return Ok(Progress::Failed(Failed { names, why: "CAA forbids".to_owned() }));
                }
                _ => {}
            }
            let mut other = order.clone();
            match mood {
                Some(Mood::Cheats("key")) => {
                    let key = crate::key::PrivateKey::generate(Default::default())?;
                    let request = crate::order::OrderRequest { names: order.dns_names(), ..Default::default() };
                    other = Order::new(&order.secret(), &request, &key, now);
                }
                Some(Mood::Cheats("name")) => _ = other.names.pop(),
                _ => {}
            }
            let then = if matches!(mood, Some(Mood::Cheats("date"))) { now - 400 * DAY } else { now };
            let progress = self.authority.advance(&mut other, published, then).await?;
            order.chain = other.chain;
            order.step = OrderStep::Issued;
            Ok(progress)
        })
    }
}

struct CertifierFixture {
    scratch: Scratch,
    moody: Arc<Moody>,
}

impl CertifierFixture {
    async fn new() -> CertifierFixture {
        let scratch = Scratch::new("certifier").unwrap();
        let authority = EmbeddedCa::open(&FileStateStore::new(scratch.path().join("moody")), NOW).await.unwrap();
        let moody =
            Moody { authority, placed: AtomicUsize::new(0), asked: AtomicUsize::new(0), mood: Mutex::default() };
        CertifierFixture { scratch, moody: Arc::new(moody) }
    }

    fn feel(&self, mood: Option<Mood>) {
        *self.moody.mood.lock().unwrap() = mood;
    }

    fn state_store(&self) -> Arc<dyn StateStore> {
        Arc::new(FileStateStore::new(self.scratch.path().join("state")))
    }

    fn store(&self) -> Arc<FileStore> {
        Arc::new(FileStore::new(self.scratch.path().join("certs")))
    }

    async fn open(&self) -> Certifier {
        Certifier::open(self.moody.clone(), self.store(), self.state_store(), IssuanceRules::default()).await.unwrap()
    }

    /// Rounds until nothing more is to be done before this many seconds have passed; the last one.
    async fn run(&self, wants: &BTreeMap<Key, WantedCertificate>, from: i64, seconds: i64) -> Round {
        let mut certifier = self.open().await;
        let mut now = from;
        loop {
            let round = certifier.advance(wants, &FakeZone(true), now).await.unwrap();
            match round.wake {
                Some(wake) if wake <= from + seconds => now = wake.max(now + 1),
                _ => return round,
            }
        }
    }

    async fn chain(&self) -> Option<String> {
        let kept = self.store().read(&secret()).await.unwrap();
        kept.map(|kept| kept.pair.unwrap().chain)
    }
}

fn secret() -> Key {
    Key::new("infra", "tls")
}

fn wants(names: &str) -> BTreeMap<Key, WantedCertificate> {
    let names = names.split_whitespace().map(Str::from).collect();
    BTreeMap::from([(secret(), WantedCertificate { names, ..WantedCertificate::default() })])
}

#[tokio::test]
async fn an_order_goes_through_and_its_values_go_away() {
    let bed = CertifierFixture::new().await;
    let mut certifier = bed.open().await;
    let round = certifier.advance(&wants("a.test b.test"), &FakeZone(false), NOW).await.unwrap();
    assert!(round.needs_publishing);
    let names: Vec<_> = certifier.challenges().iter().map(|record| record.name.to_string()).collect();
    assert_eq!(names, ["_acme-challenge.a.test", "_acme-challenge.b.test"]);
    let round = certifier.advance(&wants("a.test b.test"), &FakeZone(false), NOW + 1).await.unwrap();
    assert!(!round.needs_publishing);
    let (reason, why) = round.states[0].obstacle("a.test").unwrap();
    assert_eq!(reason.name(), "challenge-not-answered");
    assert!(why.contains("ns1 says nothing"), "{why}");
    let round = certifier.advance(&wants("a.test b.test"), &FakeZone(true), NOW + 300).await.unwrap();
    assert!(round.needs_publishing && certifier.challenges().is_empty());
    assert_eq!(certifier.retired().len(), 2);
    certifier.forget_retired().await.unwrap();
    assert!(certifier.retired().is_empty());
    assert!(round.states[0].serves("a.test") && !round.states[0].serves("c.test"));
    assert_eq!(bed.moody.placed.load(Ordering::Relaxed), 1);
    let asked = bed.moody.asked.load(Ordering::Relaxed);
    bed.run(&wants("a.test b.test"), NOW + 301, DAY).await;
    assert_eq!(bed.moody.asked.load(Ordering::Relaxed), asked, "a restart asks for nothing");
}

/// A notebook that stops working after so many writes, as a process that is killed would.
#[derive(Debug)]
struct Mortal {
    inner: FileStateStore,
    left: AtomicUsize,
    writes_first: bool,
}

impl StateStore for Mortal {
    fn read<'a>(&'a self, page: &'a str) -> Call<'a, Result<Option<String>>> {
        self.inner.read(page)
    }

    fn write<'a>(&'a self, page: &'a str, text: &'a str) -> Call<'a, Result<()>> {
        Box::pin(async move {
            if self.left.load(Ordering::Relaxed) == 0 {
                if self.writes_first {
                    self.inner.write(page, text).await?;
                }
                return Err(Error::storage("be written", page, "killed"));
            }
            self.left.fetch_sub(1, Ordering::Relaxed);
            self.inner.write(page, text).await
        })
    }
}

#[tokio::test]
async fn killed_at_any_step_it_goes_on_with_the_same_order() {
    for (life, writes_first) in (0..8).flat_map(|life| [(life, true), (life, false)]) {
        let bed = CertifierFixture::new().await;
        let inner = FileStateStore::new(bed.scratch.path().join("state"));
        let mortal = Arc::new(Mortal { inner, left: AtomicUsize::new(life), writes_first });
        let mut certifier =
            Certifier::open(bed.moody.clone(), bed.store(), mortal, IssuanceRules::default()).await.unwrap();
        for second in 0..6 {
            if certifier.advance(&wants("a.test"), &FakeZone(true), NOW + second).await.is_err() {
                break;
            }
        }
        drop(certifier);
        let round = bed.run(&wants("a.test"), NOW + 10, HOUR).await;
        assert!(round.states[0].serves("a.test"), "killed at write {life}");
        // Only the kill between asking for an order and noting where it is can lose one, and an issuer gives that one again.
        let lost = usize::from(life == 1 && !writes_first);
        assert!(bed.moody.placed.load(Ordering::Relaxed) <= 1 + lost, "killed at write {life}");
        let certifier = bed.open().await;
        assert!(certifier.challenges().is_empty(), "killed at write {life}");
        let retired: Vec<_> = certifier.retired().iter().map(|record| record.name.to_string()).collect();
        assert_eq!(retired, ["_acme-challenge.a.test"], "its value is told to go");
    }
}

#[tokio::test]
async fn a_name_that_fails_is_left_out_and_the_others_are_certified() {
    let bed = CertifierFixture::new().await;
    bed.feel(Some(Mood::Blames("b.test")));
    let round = bed.run(&wants("a.test b.test c.test"), NOW, 30).await;
    let state = &round.states[0];
    assert!(state.serves("a.test") && state.serves("c.test") && !state.serves("b.test"));
    assert_eq!(state.obstacle("b.test").unwrap().1, "CAA forbids");
    assert_eq!(bed.moody.placed.load(Ordering::Relaxed), 2);
    bed.run(&wants("a.test b.test c.test"), NOW + 31, 2 * HOUR).await;
    assert!(bed.moody.placed.load(Ordering::Relaxed) <= 5, "it is tried again, and not often");
    bed.feel(None);
    let round = bed.run(&wants("a.test b.test c.test"), NOW + 3 * DAY, DAY).await;
    assert!(round.states[0].serves("b.test"));
}

fn many(count: usize) -> BTreeMap<Key, WantedCertificate> {
    let one = |i: usize| {
        let names = vec![Str::from(format!("n{i}.test"))];
        (Key::new("infra", format!("tls-{i:04}")), WantedCertificate { names, ..WantedCertificate::default() })
    };
    (0..count).map(one).collect()
}

#[tokio::test]
async fn an_issuer_that_does_not_answer_holds_up_a_round_once() {
    let bed = CertifierFixture::new().await;
    bed.feel(Some(Mood::Away));
    let mut certifier = bed.open().await;
    let round = certifier.advance(&many(50), &FakeZone(true), NOW).await.unwrap();
    assert_eq!(bed.moody.asked.load(Ordering::Relaxed), 1);
    assert!(round.states.iter().all(|state| state.obstacle(&state.wanted[0]).unwrap().1.contains("away")));
    assert!(round.wake.unwrap() > NOW);
}

#[tokio::test]
async fn a_round_comes_to_an_end_and_many_rounds_certify_everybody() {
    let bed = CertifierFixture::new().await;
    let mut certifier = bed.open().await;
    let wants = many(40);
    let mut now = NOW;
    loop {
        let before = bed.moody.asked.load(Ordering::Relaxed);
        let round = certifier.advance(&wants, &FakeZone(true), now).await.unwrap();
        assert!(bed.moody.asked.load(Ordering::Relaxed) - before <= IssuanceRules::default().calls);
        if round.states.iter().all(|state| state.serves(&state.wanted[0])) {
            break;
        }
        now = round.wake.unwrap().max(now + 1);
        assert!(now < NOW + HOUR);
    }
    assert_eq!(bed.moody.placed.load(Ordering::Relaxed), 40);
}

/// Says that everything but one name is answered.
struct Hole(&'static str);

impl Answers for Hole {
    fn answers<'a>(&'a self, owner: &'a str, _values: &'a [Str]) -> Call<'a, std::result::Result<(), String>> {
        let is_hole = owner.ends_with(self.0);
        Box::pin(async move { if is_hole { Err("nobody serves the zone".to_owned()) } else { Ok(()) } })
    }
}

#[tokio::test]
async fn a_name_whose_zone_nobody_serves_does_not_hold_up_the_others() {
    let bed = CertifierFixture::new().await;
    let mut certifier = bed.open().await;
    let mut now = NOW;
    let state = loop {
        let round = certifier.advance(&wants("a.test b.elsewhere"), &Hole("b.elsewhere"), now).await.unwrap();
        let state = round.states[0].clone();
        if state.serves("a.test") {
            break state;
        }
        now = round.wake.unwrap().max(now + 1);
        assert!(now < NOW + HOUR, "{state:?}");
    };
    let (reason, why) = state.obstacle("b.elsewhere").unwrap();
    assert_eq!(reason.name(), "certificate-order-failed");
    assert!(why.contains("nobody serves the zone"), "{why}");
    assert!(certifier.challenges().is_empty());
    assert_eq!(bed.moody.placed.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn when_nothing_is_answered_no_name_is_to_blame() {
    let bed = CertifierFixture::new().await;
    let mut certifier = bed.open().await;
    let mut now = NOW;
    while now < NOW + 2 * HOUR {
        let round = certifier.advance(&wants("a.test b.test"), &FakeZone(false), now).await.unwrap();
        assert!(round.states[0].failing.is_empty());
        now = round.wake.unwrap().max(now + 1);
    }
    let placed = bed.moody.placed.load(Ordering::Relaxed);
    assert!((2..6).contains(&placed), "{placed} orders in two hours");
    let round = bed.run(&wants("a.test b.test"), now, DAY).await;
    assert!(round.states[0].serves("a.test") && round.states[0].serves("b.test"));
}

#[tokio::test]
async fn an_issuer_that_asks_for_rest_gets_it_whatever_restarts() {
    let bed = CertifierFixture::new().await;
    bed.feel(Some(Mood::Limited(7200)));
    for restart in 0..10 {
        let round = bed.open().await.advance(&wants("a.test"), &FakeZone(true), NOW + restart).await.unwrap();
        let state = &round.states[0];
        assert_eq!(state.wake(), Some(NOW + 7200));
        assert!(state.obstacle("a.test").unwrap().1.contains("too many"));
    }
    assert_eq!(bed.moody.asked.load(Ordering::Relaxed), 1);
    bed.feel(None);
    let round = bed.run(&wants("a.test"), NOW + 7200, HOUR).await;
    assert!(round.states[0].serves("a.test"));
}

#[tokio::test]
async fn an_issuer_that_is_away_is_looked_for_less_and_less() {
    let bed = CertifierFixture::new().await;
    bed.feel(Some(Mood::Away));
    bed.run(&wants("a.test"), NOW, DAY).await;
    let asked = bed.moody.asked.load(Ordering::Relaxed);
    assert!((10..400).contains(&asked), "{asked}");
    bed.feel(None);
    assert!(bed.run(&wants("a.test"), NOW + DAY + 1, HOUR).await.states[0].serves("a.test"));
}

#[tokio::test]
async fn what_is_not_what_was_ordered_never_replaces_what_serves() {
    for (cheat, why) in [("key", "another key"), ("name", "is not among its names"), ("date", "expired already")] {
        let bed = CertifierFixture::new().await;
        bed.run(&wants("a.test"), NOW, HOUR).await;
        let old = bed.chain().await.unwrap();
        bed.feel(Some(Mood::Cheats(cheat)));
        let round = bed.run(&wants("a.test b.test"), NOW + HOUR, HOUR).await;
        let (reason, said) = round.states[0].obstacle("b.test").unwrap();
        assert_eq!(reason.name(), "certificate-rejected", "{said}");
        assert!(said.contains(why), "{cheat}: {said}");
        assert_eq!(bed.chain().await.unwrap(), old, "{cheat}");
        assert!(round.states[0].serves("a.test"), "{cheat}");
        assert!(bed.moody.placed.load(Ordering::Relaxed) <= 4, "no tight loop");
    }
}

#[tokio::test]
async fn a_name_that_goes_takes_its_order_with_it() {
    let bed = CertifierFixture::new().await;
    let mut certifier = bed.open().await;
    certifier.advance(&wants("a.test b.test"), &FakeZone(false), NOW).await.unwrap();
    let round = certifier.advance(&wants("a.test"), &FakeZone(false), NOW + 1).await.unwrap();
    assert!(round.events.iter().any(|news| news.text.contains("`b.test` is no longer wanted")), "{round:?}");
    let owners = |records: Vec<Record>| records.iter().map(|record| record.name.to_string()).collect::<Vec<_>>();
    assert_eq!(owners(certifier.challenges()), ["_acme-challenge.a.test"]);
    certifier.advance(&BTreeMap::new(), &FakeZone(false), NOW + 2).await.unwrap();
    assert!(certifier.challenges().is_empty(), "nobody wants the Secret");
    assert_eq!(owners(certifier.retired()), ["_acme-challenge.a.test", "_acme-challenge.b.test"]);
}

#[tokio::test]
async fn a_store_that_cannot_be_written_keeps_the_certificate_for_later() {
    let bed = CertifierFixture::new().await;
    std::fs::write(bed.scratch.path().join("certs"), "a file where a folder should be").unwrap();
    let mut certifier = bed.open().await;
    let round = certifier.advance(&wants("a.test"), &FakeZone(true), NOW).await.unwrap();
    let (reason, why) = round.states[0].obstacle("a.test").unwrap();
    assert_eq!(reason.name(), "certificate-not-stored");
    assert!(why.contains("certs/infra/tls") && round.wake == Some(NOW + 60), "{why}");
    assert_eq!(bed.moody.placed.load(Ordering::Relaxed), 0, "what cannot be seen is not ordered");
}

#[tokio::test]
async fn hostile_contents_are_replaced_and_the_clock_may_jump() {
    let bed = CertifierFixture::new().await;
    let hostile = TlsKeyPair { chain: "A".repeat(1 << 20), secret_key: "B".repeat(1 << 20) };
    bed.store().write(&secret(), &hostile).await.unwrap();
    let round = bed.run(&wants("a.test"), NOW, HOUR).await;
    assert!(round.states[0].serves("a.test"));
    let placed = || bed.moody.placed.load(Ordering::Relaxed);
    bed.run(&wants("a.test"), NOW - 1000 * DAY, HOUR).await;
    assert_eq!(placed(), 1, "back in time nothing is to be done");
    bed.run(&wants("a.test"), NOW + 300 * DAY, HOUR).await;
    assert_eq!(placed(), 2, "in the future it has expired");
    bed.run(&wants("a.test"), NOW, HOUR).await;
    assert!(placed() <= 3, "and back again there is no loop");
}

#[tokio::test]
async fn growth_replaces_and_a_forecast_tells_of_it() {
    let bed = CertifierFixture::new().await;
    bed.run(&wants("a.test"), NOW, HOUR).await;
    let certifier = bed.open().await;
    let forecast = certifier.forecast(&wants("a.test b.test"), NOW + HOUR).await.unwrap();
    assert_eq!(forecast.to_string(), "this change needs 1 order");
    assert_eq!(certifier.forecast(&wants("a.test"), NOW + HOUR).await.unwrap().orders, 0);
    let round = bed.run(&wants("a.test b.test"), NOW + HOUR, HOUR).await;
    assert!(round.states[0].serves("b.test"));
    let chain = Chain::read(&bed.chain().await.unwrap()).unwrap();
    assert_eq!(chain.leaf.names.len(), 2);
}

/// Everything that could be printed anywhere is printed, after everything went wrong.
#[tokio::test]
async fn no_private_key_is_ever_shown() {
    let bed = CertifierFixture::new().await;
    let mut shown = String::new();
    for mood in [Some(Mood::Away), Some(Mood::Cheats("key")), Some(Mood::Refuses), None] {
        bed.feel(mood);
        let mut certifier = bed.open().await;
        let round = certifier.advance(&wants("a.test"), &FakeZone(true), NOW + 3 * DAY).await;
        shown += &format!("{certifier:?} {round:?} {:?}", certifier.look(&wants("a.test"), NOW).await);
        shown += &format!("{:?}", certifier.saved);
    }
    let round = bed.run(&wants("a.test"), NOW + 9 * DAY, DAY).await;
    assert!(round.states[0].serves("a.test"));
    let pair = bed.store().read(&secret()).await.unwrap().unwrap().pair.unwrap();
    shown += &format!("{pair:?} {round:?}");
    let state = std::fs::read_to_string(bed.scratch.path().join("state/certificates.json")).unwrap();
    let body: Vec<&str> = pair.secret_key.lines().filter(|line| !line.contains("-----")).collect();
    assert!(!shown.contains("PRIVATE KEY") && body.iter().all(|line| !shown.contains(line)));
    assert!(!state.contains("PRIVATE KEY"), "a key that is stored is kept once");
}
