//! Keys, secrets and clocks that do not fit, and what the failure says.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use gatepost_dns::provider::{Provider, ProviderError, ProviderProblem};
use gatepost_dns::providers::rfc2136::{Authority, KeyConfig, Rfc2136, Rfc2136Config};
use gatepost_testkit::servers::{KEY_ALGORITHM, KEY_NAME, KEY_SECRET, Kind, Primary, Scratch, free_address};

use crate::bed::{Bed, Scenario, zone_text};

pub(crate) const ALL: &[Scenario] = &[
    Scenario::new("unknown_key", |bed| Box::pin(unknown_key(bed))),
    Scenario::new("wrong_secret", |bed| Box::pin(wrong_secret(bed))),
    Scenario::new("clock_off", |bed| Box::pin(clock_off(bed))),
    Scenario {
        open: true,
        fits: |kind| kind == Kind::Bind,
        ..Scenario::new("without_key", |bed| Box::pin(without_key(bed)))
    },
    Scenario { fits: |kind| kind == Kind::Bind, ..Scenario::new("over_tls", |bed| Box::pin(over_tls(bed))) },
];

/// The failures of a read and of a write with other settings; nothing may have changed.
async fn failures(bed: &Bed<'_>, config: Rfc2136Config) -> [ProviderError; 2] {
    let before = bed.server.dump(&bed.zone).unwrap();
    let provider = Rfc2136::new(config).unwrap();
    let read = provider.read(&bed.zone).await.unwrap_err();
    let written = provider.write(&bed.zone, &[bed.create("new", "192.0.2.1")]).await.remove(0).unwrap_err();
    assert_eq!(bed.server.dump(&bed.zone).unwrap(), before);
    [read, written]
}

async fn unknown_key(bed: Bed<'_>) {
    let key = Some(KeyConfig::new("nobody", KEY_SECRET, KEY_ALGORITHM));
    for error in failures(&bed, Rfc2136Config { key, ..bed.config() }).await {
        match bed.server.kind {
            Kind::Pdns => assert!(matches!(error.problem, ProviderProblem::Unsigned { .. }), "{error}"),
            _ => assert!(matches!(error.problem, ProviderProblem::BadKey { .. }), "{error}"),
        }
        assert!(error.to_string().contains("nobody"), "{error}");
    }
}

async fn wrong_secret(bed: Bed<'_>) {
    let key = Some(KeyConfig::new(KEY_NAME, "d3Jvbmcgc2VjcmV0", KEY_ALGORITHM));
    for error in failures(&bed, Rfc2136Config { key, ..bed.config() }).await {
        match bed.server.kind {
            Kind::Pdns => assert!(matches!(error.problem, ProviderProblem::Unsigned { .. }), "{error}"),
            _ => assert!(matches!(error.problem, ProviderProblem::BadSignature { .. }), "{error}"),
        }
        assert!(!error.is_transient() && error.to_string().contains(KEY_NAME), "{error}");
    }
}

async fn clock_off(bed: Bed<'_>) {
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs();
    let clock = Arc::new(move || now() + 1000);
    for error in failures(&bed, Rfc2136Config { clock, ..bed.config() }).await {
        match &error.problem {
            ProviderProblem::Unsigned { .. } => assert_eq!(bed.server.kind, Kind::Pdns, "{error}"),
            ProviderProblem::BadTime { ours, theirs } => assert!((950..=1050).contains(&(ours - theirs)), "{error}"),
            _ => panic!("{error}"),
        }
    }
}

async fn without_key(bed: Bed<'_>) {
    let provider = Rfc2136::new(Rfc2136Config { key: None, insecure: true, ..bed.config() }).unwrap();
    assert_eq!(provider.read(&bed.zone).await.unwrap().sets().len(), 10);
    provider.write(&bed.zone, &[bed.create("new", "192.0.2.1")]).await.remove(0).unwrap();
    assert_eq!(provider.read(&bed.zone).await.unwrap().sets().len(), 12);
}

/// A server of its own, with a certificate that one authority vouches for.
async fn over_tls(bed: Bed<'_>) {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let address = free_address().unwrap();
    let tls = Some((address, made.cert.pem(), made.signing_key.serialize_pem()));
    let scenario = ALL.iter().find(|scenario| scenario.name == "over_tls").unwrap();
    let zones = vec![(bed.zone.clone(), zone_text(scenario))];
    let _server = Kind::Bind.start(&Primary { zones, tls, ..Primary::default() }).unwrap();
    let scratch = Scratch::new("tls").unwrap();
    let file = scratch.path().join("ca.pem");
    std::fs::write(&file, made.cert.pem()).unwrap();
    let config = |host: &str, authority| Rfc2136Config {
        hosts: vec![format!("{host}:{}", address.port())],
        tls: Some(authority),
        ..bed.config()
    };
    let provider = Rfc2136::new(config("localhost", Authority::File(file.clone()))).unwrap();
    assert_eq!(provider.read(&bed.zone).await.unwrap().sets().len(), 10);
    provider.write(&bed.zone, &[bed.create("new", "192.0.2.1")]).await.remove(0).unwrap();
    assert_eq!(provider.read(&bed.zone).await.unwrap().sets().len(), 12);
    let other = Rfc2136::new(config("127.0.0.1", Authority::File(file))).unwrap();
    let error = other.read(&bed.zone).await.unwrap_err();
    assert!(error.to_string().contains("certificate"), "{error}");
    // A plain server does not speak TLS.
    let (tls, timeout) = (Some(Authority::File(scratch.path().join("ca.pem"))), Duration::from_secs(1));
    let plain = Rfc2136Config { tls, timeout, ..bed.config() };
    let error = Rfc2136::new(plain).unwrap().read(&bed.zone).await.unwrap_err();
    assert!(matches!(error.problem, ProviderProblem::Unreachable(_)), "{error}");
}
