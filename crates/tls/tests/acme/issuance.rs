//! Orders that go well.

use gatepost_testkit::Trial;
use gatepost_testkit::servers::pebble::{self, PebbleSetup};
use gatepost_tls::issuers::acme::{AcmeSettings, ExternalAccount};

use crate::bed::{Bed, Outcome, Test, block, ensure, names, secret, wants};

const DAY: i64 = 86_400;

pub(crate) fn trials() -> Vec<Trial> {
    let rows: [(&str, Test); 8] = [
        ("several_names_and_a_wildcard_in_one_certificate", || block(several_names())),
        ("valid_authorizations_are_used_again", || block(reuse())),
        ("half_of_all_nonces_are_refused", || block(nonces())),
        ("a_server_that_takes_its_time", || block(slow())),
        ("a_renewal_replaces", || block(renewal())),
        ("profiles_are_asked_for_and_unknown_ones_are_named", || block(profiles())),
        ("an_external_account_is_bound", || block(external())),
        ("a_certificate_grows_and_shrinks", || block(growth())),
    ];
    rows.into_iter().map(|(name, test)| pebble::trial(&format!("acme::{name}"), test)).collect()
}

async fn several_names() -> Outcome {
    let bed = Bed::new(PebbleSetup::default())?;
    let mut certifier = bed.open(bed.settings()).await?;
    // A name and the wildcard below it are proven by two values at one name.
    let wanted = wants("a *.a b *.c");
    let round = bed.work(&mut certifier, &wanted).await?;
    ensure(bed.leaf().await?.names == names("a *.a b *.c"), format!("{round:?}"))?;
    ensure(bed.pebble.orders() == 1 && bed.pebble.certificates() == 1, bed.pebble.log())?;
    ensure(bed.leftovers()?.is_empty(), "values are left in the zone")?;
    ensure(round.states[0].serves("x.a.dyn.test"), format!("{round:?}"))
}

async fn reuse() -> Outcome {
    let bed = Bed::new(PebbleSetup { reused_authorizations: 100, ..PebbleSetup::default() })?;
    let mut certifier = bed.open(bed.settings()).await?;
    bed.work(&mut certifier, &wants("a b")).await?;
    // Nothing can be published any more, and nothing has to be.
    bed.bind.kill();
    std::fs::remove_dir_all(bed.scratch.path().join("certs"))?;
    let round = certifier.advance(&wants("a b"), &bed, crate::bed::now()).await?;
    ensure(certifier.challenges().is_empty(), format!("{round:?}"))?;
    for _ in 0..50 {
        if certifier.advance(&wants("a b"), &bed, crate::bed::now()).await?.states[0].serves("a.dyn.test") {
            return ensure(bed.pebble.certificates() == 2, bed.pebble.log());
        }
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    }
    Err("the second order does not end".into())
}

async fn nonces() -> Outcome {
    let bed = Bed::new(PebbleSetup { refused_nonces: 50, ..PebbleSetup::default() })?;
    let mut certifier = bed.open(bed.settings()).await?;
    bed.work(&mut certifier, &wants("a b c d")).await?;
    ensure(bed.leaf().await?.names.len() == 4, "four names")?;
    ensure(bed.pebble.certificates() == 1, bed.pebble.log())
}

async fn slow() -> Outcome {
    let bed = Bed::new(PebbleSetup { slowness: Some(4), ..PebbleSetup::default() })?;
    let mut certifier = bed.open(bed.settings()).await?;
    bed.work(&mut certifier, &wants("a b")).await?;
    ensure(bed.leaf().await?.names.len() == 2, "two names")?;
    ensure(bed.pebble.orders() == 1, bed.pebble.log())
}

async fn renewal() -> Outcome {
    let bed = Bed::new(PebbleSetup::default())?;
    let mut certifier = bed.open(bed.settings()).await?;
    let round = bed.replaceable(&mut certifier, &wants("a")).await?;
    let (first, made) = (bed.leaf().await?, bed.pebble.certificates());
    let renewal = round.states[0].renewal.ok_or("it is not to be renewed")?;
    ensure(renewal > crate::bed::now() + 30 * DAY, "much too early")?;
    // The issuer suggests a window, which is asked for with the next round.
    let round = bed.work_at(&mut certifier, &wants("a"), DAY).await?;
    ensure(bed.leaf().await?.serial == first.serial, format!("too early: {round:?}"))?;
    let round = bed.work_at(&mut certifier, &wants("a"), 80 * DAY).await?;
    let second = bed.leaf().await?;
    ensure(second.serial != first.serial, format!("{round:?}"))?;
    ensure(bed.pebble.certificates() == made + 1, bed.pebble.log())?;
    // The server knows that the first one was replaced: it would have it renewed at once.
    let notes = std::fs::read_to_string(bed.scratch.path().join("state/certificates.json"))?;
    ensure(notes.contains("\"replaces\":true"), notes)
}

async fn profiles() -> Outcome {
    let bed = Bed::new(PebbleSetup::default())?;
    let settings = AcmeSettings { profile: Some("shortlived".to_owned()), ..bed.settings() };
    let mut certifier = bed.open(settings).await?;
    bed.work(&mut certifier, &wants("a")).await?;
    ensure(bed.leaf().await?.lifetime() < 7 * DAY, "six days")?;
    let settings = AcmeSettings { profile: Some("golden".to_owned()), ..bed.settings() };
    let mut certifier = bed.open(settings).await?;
    let round = certifier.advance(&wants("a b"), &bed, crate::bed::now()).await?;
    let (reason, why) = round.states[0].obstacle("b.dyn.test").ok_or("it serves")?;
    ensure(reason.name() == "issuer-unusable", &why)?;
    ensure(why.contains("--acme-profile `golden`") && why.contains("default, shortlived"), why)?;
    ensure(round.states[0].serves("a.dyn.test"), "what serves goes on")
}

async fn external() -> Outcome {
    let key = "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W";
    let bed = Bed::new(PebbleSetup { external: Some(("kid-1".to_owned(), key.to_owned())), ..PebbleSetup::default() })?;
    let mut certifier = bed.open(bed.settings()).await?;
    let round = certifier.advance(&wants("a"), &bed, crate::bed::now()).await?;
    let (_, why) = round.states[0].obstacle("a.dyn.test").ok_or("it serves")?;
    ensure(why.contains("--acme-eab-kid"), why)?;
    std::fs::remove_dir_all(bed.scratch.path().join("state"))?;
    let account = ExternalAccount::new("kid-1", key)?;
    let mut certifier = bed.open(AcmeSettings { external: Some(account), ..bed.settings() }).await?;
    bed.work(&mut certifier, &wants("a")).await?;
    ensure(bed.leaf().await?.names == names("a"), "one name")
}

async fn growth() -> Outcome {
    let bed = Bed::new(PebbleSetup::default())?;
    let mut certifier = bed.open(bed.settings()).await?;
    for wanted in ["a", "a b", "b", "b *.c"] {
        bed.work(&mut certifier, &wants(wanted)).await?;
        ensure(bed.leaf().await?.names == names(wanted), wanted)?;
    }
    ensure(bed.pebble.certificates() == 4, bed.pebble.log())?;
    ensure(bed.store().folder(&secret())?.join("tls.key").is_file(), "the key is beside it")?;
    ensure(bed.leftovers()?.is_empty(), "values are left in the zone")
}
