//! Orders that do not go well.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use gatepost_testkit::servers::pebble::{self, PebbleSetup};
use gatepost_testkit::{Failed, Trial};
use gatepost_tls::certifier::Certifier;
use gatepost_tls::decide::IssuanceRules;
use gatepost_tls::issuers::acme::{Acme, AcmeSettings};
use gatepost_tls::store::{FileStateStore, StateStore};
use gatepost_tls::{Call, Error};
use rcgen::{CertificateParams, CertificateSigningRequestParams, Issuer, KeyPair};

use crate::bed::{Bed, Outcome, Test, block, ensure, names, now, wants};
use crate::proxy::{Answer, Proxy};

const DAY: i64 = 86_400;

pub(crate) fn trials() -> Vec<Trial> {
    let rows: [(&str, Test); 11] = [
        ("killed_at_each_step", || block(killed())),
        ("a_name_that_cannot_be_proven_is_left_out", || block(isolation())),
        ("a_server_that_asks_for_rest", || block(limited())),
        ("another_key", || block(cheated(Cheat::Key))),
        ("a_missing_name", || block(cheated(Cheat::Name))),
        ("an_expired_leaf", || block(cheated(Cheat::Date))),
        ("a_hostile_chain", || block(cheated(Cheat::Hostile))),
        ("a_directory_that_points_elsewhere", || block(elsewhere())),
        ("a_server_that_forgot_everything", || block(forgetful())),
        ("a_server_that_cannot_find_what_is_replaced", || block(unfound())),
        ("a_name_that_goes_while_it_is_ordered", || block(detached())),
    ];
    rows.into_iter().map(|(name, test)| pebble::trial(&format!("acme::fault::{name}"), test)).collect()
}

/// A notebook that stops working after so many writes, as a process that is killed would.
#[derive(Debug)]
struct Mortal(FileStateStore, AtomicUsize);

impl StateStore for Mortal {
    fn read<'a>(&'a self, page: &'a str) -> Call<'a, Result<Option<String>, Error>> {
        self.0.read(page)
    }

    fn write<'a>(&'a self, page: &'a str, text: &'a str) -> Call<'a, Result<(), Error>> {
        Box::pin(async move {
            if self.1.load(Ordering::Relaxed) == 0 {
                return Err(Error::storage("be written", page, "killed"));
            }
            self.1.fetch_sub(1, Ordering::Relaxed);
            self.0.write(page, text).await
        })
    }
}

async fn killed() -> Outcome {
    let bed = Bed::new(PebbleSetup::default())?;
    let mut lives = 0;
    loop {
        let state = bed.scratch.path().join("state");
        let before = (bed.pebble.orders(), bed.pebble.certificates());
        let state_store = Arc::new(Mortal(FileStateStore::new(&state), AtomicUsize::new(lives)));
        let issuer = Arc::new(Acme::new(bed.settings(), state_store.clone())?);
        let mut certifier = Certifier::open(
            issuer,
            bed.store(),
            state_store,
            IssuanceRules { settle: 0, grace: 0, ..IssuanceRules::default() },
        )
        .await?;
        let is_whole = bed.work(&mut certifier, &wants("a b")).await.is_ok();
        drop(certifier);
        let mut certifier = bed.open(bed.settings()).await?;
        bed.work(&mut certifier, &wants("a b")).await?;
        let (orders, certificates) = (bed.pebble.orders() - before.0, bed.pebble.certificates() - before.1);
        ensure(bed.leaf().await?.names == names("a b"), format!("killed at write {lives}"))?;
        ensure(certificates == 1, format!("killed at write {lives}: {certificates} certificates"))?;
        // Between placing an order and noting where it is, an order can be lost; it was never proven, so it costs nothing.
        ensure(orders <= 2, format!("killed at write {lives}: {orders} orders"))?;
        ensure(bed.leftovers()?.is_empty(), format!("killed at write {lives}: {:?}", bed.leftovers()?))?;
        if is_whole {
            return ensure(lives > 6, format!("an order has more steps than {lives}"));
        }
        std::fs::remove_dir_all(bed.scratch.path().join("certs"))?;
        std::fs::remove_dir_all(&state)?;
        lives += 1;
    }
}

async fn isolation() -> Outcome {
    let mut bed = Bed::new(PebbleSetup::default())?;
    bed.withheld = vec!["bad.dyn.test".to_owned()];
    let mut certifier = bed.open(bed.settings()).await?;
    let round = bed.work(&mut certifier, &wants("a bad b")).await?;
    ensure(bed.leaf().await?.names == names("a b"), format!("{round:?}"))?;
    let (reason, why) = round.states[0].obstacle("bad.dyn.test").ok_or("it serves")?;
    ensure(reason.name() == "certificate-order-failed" && why.contains("TXT"), why)?;
    ensure(bed.pebble.orders() == 2, "one order with it, one without")?;
    ensure(bed.leftovers()?.is_empty(), "values are left in the zone")
}

async fn proxied() -> Result<(Bed, Proxy, AcmeSettings), Failed> {
    let bed = Bed::new(PebbleSetup::default())?;
    let proxy = Proxy::start(bed.pebble.address(), bed.pebble.root()).await?;
    let directory = format!("https://{}/dir", proxy.address);
    let settings = AcmeSettings { authority: Some(proxy.root.clone()), directory, ..bed.settings() };
    Ok((bed, proxy, settings))
}

async fn limited() -> Outcome {
    let (bed, proxy, settings) = proxied().await?;
    proxy.lie("/order-plz", |answer| Answer {
        status: 429,
        headers: vec![("retry-after".to_owned(), "3600".to_owned())],
        body: br#"{"type": "urn:ietf:params:acme:error:rateLimited", "detail": "too many new orders recently"}"#
            .to_vec(),
        ..answer
    });
    let begin = now();
    let mut asked = 0;
    for restart in 0..10 {
        let mut certifier = bed.open(settings.clone()).await?;
        let round = certifier.advance(&wants("a"), &bed, now()).await?;
        let (_, why) = round.states[0].obstacle("a.dyn.test").ok_or("it serves")?;
        ensure(why.contains("too many new orders recently"), why)?;
        ensure(round.wake.is_some_and(|wake| wake >= begin + 3600), format!("{round:?}"))?;
        asked = if restart == 0 { proxy.asked() } else { asked };
    }
    ensure(proxy.asked() == asked, "a restart asks nobody")?;
    proxy.repent();
    let mut certifier = bed.open(settings).await?;
    bed.work_at(&mut certifier, &wants("a"), 4000).await?;
    ensure(bed.leaf().await?.names == names("a"), "it goes on with time")
}

#[derive(Clone, Copy)]
enum Cheat {
    Key,
    Name,
    Date,
    Hostile,
}

impl Cheat {
    /// What is said of it.
    fn said(self) -> &'static str {
        match self {
            Cheat::Key => "it is for another key",
            Cheat::Name => "`b.dyn.test` was ordered and is not among its names",
            Cheat::Date => "it has expired already",
            Cheat::Hostile => "the chain is larger than 64 KiB",
        }
    }
}

async fn cheated(cheat: Cheat) -> Outcome {
    let (bed, proxy, settings) = proxied().await?;
    let mut certifier = bed.open(settings).await?;
    bed.work(&mut certifier, &wants("a")).await?;
    let old = bed.pair().await?;
    let request = proxy.request();
    proxy.lie("/certZ/", move |answer| Answer { body: forged(cheat, &answer.body, &request()), ..answer });
    let round = bed.work(&mut certifier, &wants("a b")).await?;
    let (reason, why) = round.states[0].obstacle("b.dyn.test").ok_or("it serves")?;
    ensure(reason.name() == "certificate-rejected" && why.contains(cheat.said()), &why)?;
    ensure(bed.pair().await? == old, "what serves was replaced")?;
    ensure(round.states[0].serves("a.dyn.test"), "what serves goes on")?;
    ensure(bed.pebble.orders() == 2 && round.wake.is_some_and(|wake| wake > now() + 20), "no tight loop")?;
    proxy.repent();
    bed.work_at(&mut certifier, &wants("a b"), 3600).await?;
    ensure(bed.leaf().await?.names == names("a b"), "it goes on with time")
}

/// A chain that is not what was ordered; all but the first are for the right key.
fn forged(cheat: Cheat, body: &[u8], request: &[u8]) -> Vec<u8> {
    let key = KeyPair::generate().unwrap();
    let authority = CertificateParams::new(vec!["authority.test".to_owned()]).unwrap();
    let issuer = Issuer::new(authority, &key);
    let mut request = CertificateSigningRequestParams::from_der(&request.to_vec().into()).unwrap();
    match cheat {
        Cheat::Key => return request.params.self_signed(&key).unwrap().pem().into_bytes(),
        Cheat::Name => _ = request.params.subject_alt_names.pop(),
        Cheat::Date => request.params.not_after = rcgen::date_time_ymd(2020, 1, 1),
        Cheat::Hostile => return body.repeat(100),
    }
    request.signed_by(&issuer).unwrap().pem().into_bytes()
}

async fn elsewhere() -> Outcome {
    let (bed, proxy, settings) = proxied().await?;
    let real = bed.pebble.address().to_string();
    let ours = proxy.address.to_string();
    for (path, said) in [("/dir", "directory points to another host"), ("/sign-me-up", "where the account is")] {
        let (from, to) = (ours.clone(), real.clone());
        proxy.lie(path, move |answer| Answer {
            body: String::from_utf8_lossy(&answer.body).replace(&from, &to).into_bytes(),
            headers: answer.headers.into_iter().map(|(name, value)| (name, value.replace(&from, &to))).collect(),
            ..answer
        });
        let mut certifier = bed.open(settings.clone()).await?;
        let round = certifier.advance(&wants("a"), &bed, now()).await?;
        let (_, why) = round.states[0].obstacle("a.dyn.test").ok_or("it serves")?;
        ensure(why.contains(said), why)?;
        std::fs::remove_dir_all(bed.scratch.path().join("state"))?;
        proxy.repent();
    }
    Ok(())
}

async fn forgetful() -> Outcome {
    let bed = Bed::new(PebbleSetup::default())?;
    let mut certifier = bed.open(bed.settings()).await?;
    bed.work(&mut certifier, &wants("a")).await?;
    let old = bed.pair().await?;
    // An order is open when the server loses its memory: accounts, orders, everything.
    bed.begin(&mut certifier, &wants("a b")).await?;
    bed.pebble.restart()?;
    for _ in 0..3 {
        certifier.advance(&wants("a b"), &bed, now() + 10).await?;
    }
    ensure(bed.pair().await? == old, "what serves goes on")?;
    bed.work_at(&mut certifier, &wants("a b"), 3 * DAY).await?;
    ensure(bed.leaf().await?.names == names("a b"), "a new account, a new order")?;
    ensure(bed.leftovers()?.is_empty(), "values are left in the zone")
}

/// Some servers fail over an order whose predecessor they cannot find: Pebble does where its serial number begins with a zero.
async fn unfound() -> Outcome {
    let (bed, proxy, settings) = proxied().await?;
    let mut certifier = bed.open(settings).await?;
    bed.work(&mut certifier, &wants("a")).await?;
    let failures = Arc::new(AtomicUsize::new(0));
    let counter = failures.clone();
    proxy.lie("/order-plz", move |answer| {
        if !String::from_utf8_lossy(&answer.question).contains("replaces") {
            return answer;
        }
        counter.fetch_add(1, Ordering::Relaxed);
        let body = br#"{"type": "urn:ietf:params:acme:error:serverInternal", "detail": "could not find it"}"#.to_vec();
        Answer { status: 500, body, ..answer }
    });
    let round = bed.work(&mut certifier, &wants("a b")).await?;
    ensure(bed.leaf().await?.names == names("a b"), format!("it is ordered without a predecessor: {round:?}"))?;
    let failures = failures.load(Ordering::Relaxed);
    ensure(failures == 3, format!("with a predecessor it was tried {failures} times"))
}

async fn detached() -> Outcome {
    let bed = Bed::new(PebbleSetup::default())?;
    let mut certifier = bed.open(bed.settings()).await?;
    certifier.advance(&wants("a b"), &bed, now()).await?;
    bed.publish(&mut certifier).await?;
    ensure(bed.leftovers()?.len() == 2, "two values")?;
    bed.work(&mut certifier, &wants("a")).await?;
    ensure(bed.leaf().await?.names == names("a"), "one name")?;
    ensure(bed.leftovers()?.is_empty(), "values are left in the zone")?;
    ensure(bed.pebble.certificates() == 1, "no certificate for a name that went")
}
