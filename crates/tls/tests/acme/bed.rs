//! What the tests share: Pebble, BIND, and a loop that does what the program does between them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use gatepost_core::model::{Key, Str};
use gatepost_core::publication::Record;
use gatepost_testkit::Failed;
use gatepost_testkit::servers::pebble::{Pebble, PebbleSetup};
use gatepost_testkit::servers::{DnsServer, Kind, Primary, Scratch};
use gatepost_tls::certifier::{Answers, Certifier, Round};
use gatepost_tls::chain::{Chain, Leaf};
use gatepost_tls::decide::{IssuanceRules, WantedCertificate};
use gatepost_tls::issuer::Issuer;
use gatepost_tls::issuers::acme::{Acme, AcmeSettings};
use gatepost_tls::key::PrivateKey;
use gatepost_tls::store::{FileStateStore, FileStore, StateStore, Store, TlsKeyPair};
use gatepost_tls::{Call, Error};

pub(crate) type Outcome = Result<(), Failed>;
pub(crate) type Test = fn() -> Outcome;

/// The zone that all names are in.
pub(crate) const ZONE: &str = "dyn.test";
const TEXT: &str =
    "$TTL 60\n@ IN SOA ns1.dyn.test. root.dyn.test. 1 60 60 60 1\n@ IN NS ns1.dyn.test.\nns1 IN A 127.0.0.1\n";

/// Real servers, and a place for what is kept.
pub(crate) struct Bed {
    pub(crate) pebble: Pebble,
    pub(crate) bind: DnsServer,
    pub(crate) scratch: Scratch,
    /// What is published, so that only differences are written.
    published: Mutex<BTreeMap<Str, BTreeSet<Str>>>,
    /// Names whose values are kept back, while it is claimed that they are answered.
    pub(crate) withheld: Vec<String>,
}

impl Bed {
    pub(crate) fn new(setup: PebbleSetup) -> Result<Bed, Failed> {
        let bind =
            Kind::Bind.start(&Primary { zones: vec![(ZONE.to_owned(), TEXT.to_owned())], ..Primary::default() })?;
        let pebble = Pebble::start(PebbleSetup { dns: Some(bind.address), ..setup })?;
        Ok(Bed { pebble, bind, scratch: Scratch::new("acme")?, published: Mutex::default(), withheld: Vec::new() })
    }

    pub(crate) fn settings(&self) -> AcmeSettings {
        // Asked for no profile in particular, this server picks one by chance.
        let profile = Some("default".to_owned());
        AcmeSettings {
            authority: Some(self.pebble.root().to_owned()),
            profile,
            ..AcmeSettings::new(self.pebble.directory())
        }
    }

    pub(crate) fn state_store(&self) -> Arc<dyn StateStore> {
        Arc::new(FileStateStore::new(self.scratch.path().join("state")))
    }

    pub(crate) fn store(&self) -> Arc<FileStore> {
        Arc::new(FileStore::new(self.scratch.path().join("certs")))
    }

    pub(crate) async fn open(&self, settings: AcmeSettings) -> Result<Certifier, Error> {
        let issuer: Arc<dyn Issuer> = Arc::new(Acme::new(settings, self.state_store())?);
        let rules = IssuanceRules { limits: issuer.limits(), settle: 0, grace: 0, ..IssuanceRules::default() };
        Certifier::open(issuer, self.store(), self.state_store(), rules).await
    }

    /// Publishes and advances until nothing is to be done within the next seconds.
    pub(crate) async fn work(
        &self,
        certifier: &mut Certifier,
        wants: &BTreeMap<Key, WantedCertificate>,
    ) -> Result<Round, Failed> {
        self.work_at(certifier, wants, 0).await
    }

    /// The same with a clock that is ahead.
    pub(crate) async fn work_at(
        &self,
        certifier: &mut Certifier,
        wants: &BTreeMap<Key, WantedCertificate>,
        ahead: i64,
    ) -> Result<Round, Failed> {
        for _ in 0..200 {
            let round = certifier.advance(wants, self, now() + ahead).await?;
            self.publish(certifier).await?;
            match round.wake {
                Some(wake) if wake > now() + ahead + 20 => return Ok(round),
                None => return Ok(round),
                Some(_) => tokio::time::sleep(Duration::from_millis(200)).await,
            }
        }
        Err("it does not come to an end".into())
    }

    /// Advances until an order needs values in the zone, and does not publish them.
    pub(crate) async fn begin(&self, certifier: &mut Certifier, wants: &BTreeMap<Key, WantedCertificate>) -> Outcome {
        let mut round = Round::default();
        for _ in 0..100 {
            round = certifier.advance(wants, self, now()).await?;
            if !certifier.challenges().is_empty() {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        Err(format!("no order needs values: {round:?}").into())
    }

    /// Has a certificate made that the server can find again.
    ///
    /// This one looks serial numbers up without the zero that some begin with, as one in 256 does; those it cannot replace.
    pub(crate) async fn replaceable(
        &self,
        certifier: &mut Certifier,
        wants: &BTreeMap<Key, WantedCertificate>,
    ) -> Result<Round, Failed> {
        for _ in 0..5 {
            let round = self.work(certifier, wants).await?;
            if !self.leaf().await?.serial.starts_with("00") {
                return Ok(round);
            }
            std::fs::remove_dir_all(self.scratch.path().join("certs"))?;
        }
        Err("five serial numbers in a row begin with a zero".into())
    }

    /// Brings the zone in line with what the orders need, as the plan would.
    pub(crate) async fn publish(&self, certifier: &mut Certifier) -> Result<(), Failed> {
        self.write(certifier.challenges().iter().map(entry).collect())?;
        Ok(certifier.forget_retired().await?)
    }

    fn write(&self, wanted: BTreeMap<Str, BTreeSet<Str>>) -> Outcome {
        let mut published = self.published.lock().map_err(|error| error.to_string())?;
        let owners: BTreeSet<Str> = wanted.keys().chain(published.keys()).cloned().collect();
        let mut lines = Vec::new();
        for owner in owners.into_iter().filter(|owner| wanted.get(owner) != published.get(owner)) {
            lines.push(format!("update delete {owner}. TXT"));
            let kept = self.withheld.iter().any(|name| *owner == format!("_acme-challenge.{name}"));
            for value in wanted.get(&owner).into_iter().flatten().filter(|_| !kept) {
                lines.push(format!("update add {owner}. 60 TXT \"{value}\""));
            }
        }
        if !lines.is_empty() {
            self.bind.edit(ZONE, &lines.iter().map(String::as_str).collect::<Vec<_>>())?;
        }
        *published = wanted;
        Ok(())
    }

    /// The TXT records of challenges that are in the zone.
    pub(crate) fn leftovers(&self) -> Result<Vec<String>, Failed> {
        Ok(self.bind.dump(ZONE)?.into_iter().filter(|line| line.contains("_acme-challenge")).collect())
    }

    pub(crate) async fn pair(&self) -> Result<TlsKeyPair, Failed> {
        Ok(self.store().read(&secret()).await?.ok_or("there is no pair")?.pair?)
    }

    /// What is stored, which must be whole.
    pub(crate) async fn leaf(&self) -> Result<Leaf, Failed> {
        let pair = self.pair().await?;
        let chain = Chain::read(&pair.chain)?;
        chain.verify(&PrivateKey::from_pem(&pair.secret_key)?, &chain.leaf.names, now())?;
        Ok(chain.leaf)
    }
}

impl Answers for Bed {
    fn answers<'a>(&'a self, owner: &'a str, values: &'a [Str]) -> Call<'a, Result<(), String>> {
        Box::pin(async move {
            if self.withheld.iter().any(|name| owner == format!("_acme-challenge.{name}")) {
                return Ok(());
            }
            let zone = self.bind.dump(ZONE).map_err(|error| error.to_string())?;
            let is_there = |value: &Str| zone.iter().any(|line| line.starts_with(owner) && line.contains(&**value));
            if values.iter().all(is_there) { Ok(()) } else { Err("the zone has no such value".to_owned()) }
        })
    }
}

fn entry(record: &Record) -> (Str, BTreeSet<Str>) {
    (record.name.clone(), record.targets.iter().cloned().collect())
}

pub(crate) fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64)
}

pub(crate) fn secret() -> Key {
    Key::new("infra", "edge-tls")
}

pub(crate) fn names(text: &str) -> Vec<Str> {
    let mut names: Vec<Str> = text.split_whitespace().map(|name| Str::from(format!("{name}.{ZONE}"))).collect();
    names.sort();
    names
}

pub(crate) fn wants(text: &str) -> BTreeMap<Key, WantedCertificate> {
    BTreeMap::from([(secret(), WantedCertificate { names: names(text), ..WantedCertificate::default() })])
}

/// Runs a test to its end on a runtime of its own.
pub(crate) fn block<F: Future<Output = Outcome>>(test: F) -> Outcome {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(test)
}

/// A claim that may fail.
pub(crate) fn ensure(holds: bool, why: impl std::fmt::Display) -> Outcome {
    if holds { Ok(()) } else { Err(why.to_string().into()) }
}
