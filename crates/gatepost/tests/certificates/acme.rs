//! `--issuer acme` against Pebble, proven through the embedded server and through BIND.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use gatepost_testkit::servers::pebble::{self, Pebble, PebbleSetup};
use gatepost_testkit::servers::{DnsServer, KEY_NAME, KEY_SECRET, Kind, Primary, free_address};
use gatepost_testkit::{Failed, Trial};

use crate::bed::{Bed, Test, ask};
use crate::running::{Running, comes_true, get};

pub(crate) fn trials() -> Vec<Trial> {
    let rows: [(&str, Test); 6] = [
        ("through_the_embedded_server", embedded),
        ("through_bind", bind),
        ("a_server_that_lags_is_waited_for", lagging),
        ("killed_again_and_again", killed),
        ("no_name_stops_resolving_below_a_wildcard", shadow),
        ("a_name_that_goes_leaves_nothing_behind", detached),
    ];
    rows.into_iter().map(|(name, test)| pebble::trial(&format!("certificates::acme::{name}"), test)).collect()
}

fn acme(pebble: &Pebble) -> String {
    format!(
        "--issuer acme --acme-directory {} --acme-ca-file '{}' --acme-profile default",
        pebble.directory(),
        pebble.root_file().display()
    )
}

fn embedded() -> Result<(), Failed> {
    let dns = free_address()?;
    let pebble = Pebble::start(PebbleSetup { dns: Some(dns), ..PebbleSetup::default() })?;
    let bed = Bed::new(&["www.example.org", "api.example.org"]);
    bed.policy("TLSPolicy", "allowWildcardHosts: false");
    let line = format!("serve --dns-addr {dns} --http-addr 127.0.0.1:0 {} {}", acme(&pebble), bed.flags());
    let running = Running::start(&line);
    bed.comes_to(&["api.example.org", "www.example.org"]);
    comes_true("no TXT is left", || {
        ["www", "api"]
            .iter()
            .all(|name| ask(dns, &format!("_acme-challenge.{name}.example.org"), 16).is_some_and(|(_, n)| n == 0))
    });
    assert_eq!((pebble.orders(), pebble.certificates()), (1, 1), "{}", running.said());
    comes_true("it is told", || running.said().contains("ordered for api.example.org, www.example.org"));
    no_key_is_shown(&bed, running)
}

/// Nothing that anybody can read without the right to read keys holds a part of one.
fn no_key_is_shown(bed: &Bed, running: Running) -> Result<(), Failed> {
    let key = std::fs::read_to_string(bed.certificates().join("infra/edge-tls/tls.key"))?;
    let http = running.address("http");
    let mut shown = running.said();
    for path in ["/plan.json", "/metrics", "/readyz"] {
        shown += &get(http, path);
    }
    for format in ["text", "json"] {
        let line = format!(
            "explain www.example.org {} -o {format} --cert-dir '{}'",
            bed.input(),
            bed.certificates().display()
        );
        let answer = bed.run(&line);
        shown += &(answer.output + &answer.errors);
    }
    drop(running);
    // A page that is damaged must not be quoted either.
    let notes = bed.certificates().join(".gatepost/certificates.json");
    std::fs::write(&notes, format!("{{\"version\": 1, \"orders\": {key:?}}}"))?;
    let answer =
        bed.run(&format!("explain www.example.org {} --cert-dir '{}'", bed.input(), bed.certificates().display()));
    assert_eq!(answer.exit, 2, "{}", answer.output);
    shown += &(answer.output + &answer.errors);
    for line in key.lines() {
        assert!(!shown.contains(line), "`{line}` is shown");
    }
    Ok(())
}

const ZONE: &str = "$TTL 60\n@ IN SOA ns1.example.org. root.example.org. 1 60 60 60 1\n@ IN NS ns1.example.org.\nns1 IN A 127.0.0.1\n\
                    _acme-challenge.www IN TXT \"somebody-elses-value\"\n";

fn primary() -> Result<DnsServer, Failed> {
    let primary = Primary { zones: vec![("example.org".to_owned(), ZONE.to_owned())], ..Primary::default() };
    Ok(Kind::Bind.start(&primary)?)
}

fn apply(bed: &Bed, server: &DnsServer) -> Result<String, Failed> {
    let secret = bed.folder.file("secret", KEY_SECRET)?;
    Ok(format!(
        "apply --provider rfc2136 --rfc2136-host {} --rfc2136-zone example.org --rfc2136-tsig-keyname {KEY_NAME} \
         --rfc2136-tsig-secret-file '{secret}' --txt-owner-id me {}",
        server.address,
        bed.flags()
    ))
}

fn lagging() -> Result<(), Failed> {
    let (server, late) = (primary()?, primary()?);
    let pebble = Pebble::start(PebbleSetup { dns: Some(server.address), ..PebbleSetup::default() })?;
    let bed = Bed::new(&["www.example.org"]);
    let line = format!("{} {}", apply(&bed, &server)?, acme(&pebble));
    let both = format!("{line} --challenge-server {},{} --issuer-timeout 5s", server.address, late.address);
    let answer = bed.run(&both);
    assert_eq!(answer.exit, 4, "{} {}", answer.output, answer.errors);
    let said = format!("{}: it does not have the value", late.address);
    assert!(answer.errors.contains(&said) && answer.errors.contains("challenge-not-answered"), "{}", answer.errors);
    assert!(!pebble.log().contains("validations"), "the issuer was told too early");
    let answer = bed.run(&format!("{line} --challenge-server {}", server.address));
    assert_eq!(answer.exit, 0, "{} {}", answer.output, answer.errors);
    assert_eq!((pebble.orders(), pebble.certificates()), (1, 1), "the same order goes on");
    Ok(())
}

fn bind() -> Result<(), Failed> {
    let server = primary()?;
    let pebble = Pebble::start(PebbleSetup { dns: Some(server.address), ..PebbleSetup::default() })?;
    let bed = Bed::new(&["www.example.org", "*.shop.example.org"]);
    bed.policy("TLSPolicy", "allowWildcardHosts: true");
    let line = format!("{} {}", apply(&bed, &server)?, acme(&pebble));
    let answer = bed.run(&line);
    assert_eq!(answer.exit, 0, "{} {}", answer.output, answer.errors);
    let leaf = bed.leaf().ok_or("there is no certificate")?;
    assert_eq!(leaf.names.join(" "), "*.example.org *.shop.example.org");
    let left: Vec<_> =
        server.dump("example.org")?.into_iter().filter(|line| line.contains("_acme-challenge")).collect();
    assert_eq!(left.len(), 1, "{left:?}");
    assert!(left[0].contains("somebody-elses-value"), "{left:?}");
    let again = bed.run(&line);
    assert_eq!((again.exit, pebble.certificates()), (0, 1), "{}", again.errors);
    Ok(())
}

fn killed() -> Result<(), Failed> {
    let dns = free_address()?;
    let pebble = Pebble::start(PebbleSetup { dns: Some(dns), ..PebbleSetup::default() })?;
    let bed = Bed::new(&["www.example.org"]);
    let line = format!("serve --dns-addr {dns} --http-addr 127.0.0.1:0 {} {}", acme(&pebble), bed.flags());
    for tenths in 0..40 {
        let running = Running::start(&line);
        // A fixed time, another one in each round: the moment at which it is killed is what is tried.
        std::thread::sleep(Duration::from_millis(40 * tenths));
        // Dropping it kills it without a word of warning.
        drop(running);
        if bed.leaf().is_some() {
            break;
        }
    }
    let _running = Running::start(&line);
    bed.comes_to(&["www.example.org"]);
    comes_true("no TXT is left", || ask(dns, "_acme-challenge.www.example.org", 16).is_some_and(|(_, n)| n == 0));
    assert_eq!(pebble.certificates(), 1, "{}", pebble.log());
    Ok(())
}

/// The wildcard answers for the name until something exists below it (RFC 4592): then the name must have records of its own.
fn shadow() -> Result<(), Failed> {
    let dns = free_address()?;
    let pebble = Pebble::start(PebbleSetup { dns: Some(dns), slowness: Some(2), ..PebbleSetup::default() })?;
    let bed = Bed::new(&["www.example.org"]);
    bed.policy("DNSPolicy", "allowWildcardHosts: true");
    bed.policy("TLSPolicy", "allowWildcardHosts: false");
    let first = Running::start(&format!("serve --dns-addr {dns} --http-addr 127.0.0.1:0 {}", bed.input()));
    assert_eq!(ask(dns, "other.example.org", 1), Some((0, 1)), "the wildcard is published");
    drop(first);
    let line = format!("serve --dns-addr {dns} --http-addr 127.0.0.1:0 {} {}", acme(&pebble), bed.flags());
    let _running = Running::start(&line);
    let (done, seen) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (is_done, has_seen) = (done.clone(), seen.clone());
    let watcher = std::thread::spawn(move || {
        let mut gaps = 0;
        while !is_done.load(Ordering::Relaxed) {
            gaps += usize::from(ask(dns, "www.example.org", 1) != Some((0, 1)));
            if ask(dns, "_acme-challenge.www.example.org", 16).is_some_and(|(_, n)| n == 1) {
                has_seen.store(true, Ordering::Relaxed);
            }
        }
        gaps
    });
    bed.comes_to(&["www.example.org"]);
    done.store(true, Ordering::Relaxed);
    let gaps = watcher.join().map_err(|_| "the watcher fell over")?;
    assert!(seen.load(Ordering::Relaxed), "the challenge was never seen");
    assert_eq!(gaps, 0, "the name stopped resolving");
    Ok(())
}

fn detached() -> Result<(), Failed> {
    let dns = free_address()?;
    // This server never comes to look at the values, so the order stays open.
    let pebble =
        Pebble::start(PebbleSetup { dns: Some(free_address()?), slowness: pebble::NEVER, ..PebbleSetup::default() })?;
    let bed = Bed::new(&["www.example.org", "gone.example.org"]);
    let line = format!("serve --dns-addr {dns} --http-addr 127.0.0.1:0 {} {}", acme(&pebble), bed.flags());
    let running = Running::start(&line);
    let has = |name: &str| ask(dns, &format!("_acme-challenge.{name}.example.org"), 16).is_some_and(|(_, n)| n == 1);
    comes_true("both challenges are published", || has("www") && has("gone"));
    let explained =
        bed.run(&format!("explain gone.example.org {} --cert-dir '{}'", bed.input(), bed.certificates().display()));
    for part in
        ["order        ", "challenge    _acme-challenge.gone.example.org TXT ", "gone.example.org has no certificate"]
    {
        assert!(explained.output.contains(part), "{}", explained.output);
    }
    bed.routes(&["www.example.org"]);
    comes_true("the challenge of the name that went is gone", || !has("gone"));
    comes_true("the other name is ordered anew", || has("www"));
    comes_true("it is told", || running.said().contains("`gone.example.org` is no longer wanted"));
    assert!(bed.leaf().is_none());
    Ok(())
}
