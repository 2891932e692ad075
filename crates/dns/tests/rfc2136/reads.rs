//! Reading: all of a zone, or an error.

use gatepost_dns::provider::{Provider, ProviderProblem};

use crate::bed::{Bed, Scenario, values};
use crate::proxy::{Fault, Proxy};

pub(crate) const ALL: &[Scenario] = &[
    Scenario::new("reads_everything", |bed| Box::pin(everything(bed))),
    Scenario { filling: 1500, ..Scenario::new("reads_many_messages", |bed| Box::pin(many(bed))) },
    Scenario { filling: 1500, ..Scenario::new("read_cut_anywhere_fails", |bed| Box::pin(cut(bed))) },
    Scenario { filling: 1500, ..Scenario::new("read_without_last_message_fails", |bed| Box::pin(last(bed))) },
    Scenario { filling: 1500, ..Scenario::new("read_with_a_changed_byte_fails", |bed| Box::pin(forged(bed))) },
    Scenario::new("read_of_another_zone_fails", |bed| Box::pin(missing(bed))),
    Scenario::new("read_moves_on_to_the_next_server", |bed| Box::pin(next_server(bed))),
];

async fn everything(bed: Bed<'_>) {
    let content = bed.read().await;
    let found: Vec<String> = content
        .sets()
        .iter()
        .map(|set| {
            let name = set.name.strip_suffix(bed.zone.as_str()).unwrap().trim_end_matches('.');
            format!("{name} {} {} {}", set.ttl.unwrap(), set.kind, set.values.join(" | ").replace(&bed.zone, "Z"))
        })
        .collect();
    let expected = [
        " 300 TXT \"v=spf1 -all\"",
        " 300 MX 10 mail.Z.",
        " 3600 NS ns1.Z",
        "*.wild 60 A 192.0.2.9",
        "_sip._tcp 300 SRV 1 2 5060 mail.Z.",
        "hand 120 A 192.0.2.7 | 192.0.2.8",
        "long 300 TXT \"one\" \"two; three\" \"quo\\\"te\"",
        "mail 300 A 192.0.2.25",
        "ns1 3600 A 192.0.2.53",
    ];
    for line in expected {
        assert!(found.iter().any(|found| found == line), "{line:?} is not in {found:#?}");
    }
    // Some servers keep the case of a name, some do not.
    assert!(found.iter().any(|line| line.eq_ignore_ascii_case("mixed 300 CNAME hand.Z")), "{found:#?}");
    assert_eq!(found.len(), expected.len() + 1, "{found:#?}");
    assert_eq!(&*content.epoch, "1");
}

async fn many(bed: Bed<'_>) {
    let content = bed.read().await;
    assert_eq!(content.sets().len(), 3010);
    assert_eq!(values(&content, &bed.name("fill-1499"), "A"), ["192.0.2.249"]);
}

async fn cut(bed: Bed<'_>) {
    for bytes in [0, 1, 2, 30, 5_000, 40_000, 120_000] {
        let proxy = Proxy::start(bed.server.address, Fault::CutAfter(bytes)).await;
        let error = bed.through(&[proxy.address()]).read(&bed.zone).await.unwrap_err();
        assert!(matches!(error.problem, ProviderProblem::Incomplete(_)), "{bytes}: {error}");
        assert!(error.is_transient() && error.to_string().contains(&bed.zone), "{error}");
    }
}

async fn last(bed: Bed<'_>) {
    let proxy = Proxy::start(bed.server.address, Fault::WithoutLastMessage).await;
    let error = bed.through(&[proxy.address()]).read(&bed.zone).await.unwrap_err();
    assert!(matches!(error.problem, ProviderProblem::Incomplete(_)), "{error}");
}

async fn forged(bed: Bed<'_>) {
    let proxy = Proxy::start(bed.server.address, Fault::FlipByte(30_000)).await;
    let error = bed.through(&[proxy.address()]).read(&bed.zone).await.unwrap_err();
    assert!(
        matches!(
            error.problem,
            ProviderProblem::Forged(_) | ProviderProblem::Incomplete(_) | ProviderProblem::Protocol(_)
        ),
        "{error}"
    );
}

async fn missing(bed: Bed<'_>) {
    let config =
        gatepost_dns::providers::rfc2136::Rfc2136Config { zones: vec!["no-such-zone.test".into()], ..bed.config() };
    let provider = gatepost_dns::providers::rfc2136::Rfc2136::new(config).unwrap();
    let error = provider.read("no-such-zone.test").await.unwrap_err();
    let refused = matches!(&error.problem, ProviderProblem::Refused { .. } | ProviderProblem::Unsigned { .. });
    assert!(refused && error.to_string().contains("no-such-zone.test"), "{error}");
}

async fn next_server(bed: Bed<'_>) {
    let silent = Proxy::start(bed.server.address, Fault::Silence).await;
    let cutting = Proxy::start(bed.server.address, Fault::CutAfter(100)).await;
    let closed = gatepost_testkit::servers::free_address().unwrap().to_string();
    let provider = bed.through(&[closed, silent.address(), cutting.address(), bed.server.address.to_string()]);
    assert_eq!(provider.read(&bed.zone).await.unwrap().sets().len(), 10);
}
