//! Writing: with preconditions, together or not at all, and nothing beside.

use gatepost_core::plan::{PlanStep, Precondition, Verb};
use gatepost_core::publication::RecordType;
use gatepost_dns::provider::{Provider, ProviderProblem};
use gatepost_dns::providers::rfc2136::{Rfc2136, Rfc2136Config};
use gatepost_testkit::servers::Kind;

use crate::bed::{Bed, MARKER, Scenario, all_ok};

pub(crate) const ALL: &[Scenario] = &[
    Scenario::new("create_update_delete", |bed| Box::pin(life(bed))),
    Scenario::new("stale_steps_change_nothing", |bed| Box::pin(stale(bed))),
    Scenario::new("hand_edit_in_the_gap_stays", |bed| Box::pin(hand_edit(bed))),
    Scenario::new("record_and_marker_together", |bed| Box::pin(together(bed))),
    Scenario::new("group_is_one_transaction", |bed| Box::pin(group(bed))),
    Scenario::new("group_larger_than_a_message", |bed| Box::pin(large_group(bed))),
    Scenario::new("cname_to_addresses_and_back", |bed| Box::pin(kinds(bed))),
    Scenario::new("odd_values", |bed| Box::pin(odd(bed))),
    Scenario::new("thousands_in_batches", |bed| Box::pin(thousands(bed))),
    Scenario::new("one_stale_among_many", |bed| Box::pin(one_stale(bed))),
    Scenario::new("lowest_ttl", |bed| Box::pin(lowest_ttl(bed))),
    Scenario {
        fits: |kind| kind == Kind::Bind,
        ..Scenario::new("one_refused_among_many", |bed| Box::pin(one_refused(bed)))
    },
];

async fn life(bed: Bed<'_>) {
    let foreign = bed.server.dump(&bed.zone).unwrap();
    all_ok(&bed.write(&[bed.create("www", "192.0.2.1"), bed.create("*.apps", "192.0.2.2")]).await);
    assert_eq!(bed.values("www", "A").await, ["192.0.2.1"]);
    assert_eq!(bed.values("a-www", "TXT").await, [MARKER]);
    assert_eq!(bed.values("*.apps", "A").await, ["192.0.2.2"]);
    all_ok(&bed.write(&[bed.update("www", "192.0.2.1", "192.0.2.3")]).await);
    assert_eq!(bed.values("www", "A").await, ["192.0.2.3"]);
    all_ok(&bed.write(&[bed.delete("*.apps", "192.0.2.2"), bed.delete("www", "192.0.2.3")]).await);
    assert_eq!(bed.server.dump(&bed.zone).unwrap(), foreign);
}

async fn stale(bed: Bed<'_>) {
    all_ok(&bed.write(&[bed.create("www", "192.0.2.1")]).await);
    let before = bed.server.dump(&bed.zone).unwrap();
    let steps = [
        bed.create("www", "192.0.2.9"),
        bed.create("hand", "192.0.2.9"),
        bed.update("www", "192.0.2.2", "192.0.2.9"),
        bed.update("gone", "192.0.2.1", "192.0.2.9"),
        bed.delete("www", "192.0.2.2"),
        bed.delete("gone", "192.0.2.2"),
    ];
    for result in bed.write(&steps).await {
        let error = result.unwrap_err();
        assert!(matches!(error.problem, ProviderProblem::Stale(_)) && error.needs_read(), "{error}");
        assert!(error.record.is_some() && error.to_string().contains("RRSET"), "{error}");
    }
    assert_eq!(bed.server.dump(&bed.zone).unwrap(), before);
}

async fn hand_edit(bed: Bed<'_>) {
    all_ok(&bed.write(&[bed.create("www", "192.0.2.1")]).await);
    let (name, provider) = (bed.name("www"), bed.provider());
    provider.read(&bed.zone).await.unwrap();
    bed.server.edit(&bed.zone, &[&format!("update add {name}. 60 A 192.0.2.77")]).unwrap();
    for step in [bed.update("www", "192.0.2.1", "192.0.2.2"), bed.delete("www", "192.0.2.1")] {
        let error = provider.write(&bed.zone, &[step]).await.remove(0).unwrap_err();
        assert!(matches!(error.problem, ProviderProblem::Stale(_)), "{error}");
    }
    assert_eq!(bed.values("www", "A").await, ["192.0.2.1", "192.0.2.77"]);
}

async fn together(bed: Bed<'_>) {
    bed.server.edit(&bed.zone, &[&format!("update add {}. 60 TXT \"foreign\"", bed.name("a-www"))]).unwrap();
    let error = bed.write(&[bed.create("www", "192.0.2.1")]).await.remove(0).unwrap_err();
    assert!(matches!(error.problem, ProviderProblem::Stale(_)), "{error}");
    assert!(bed.values("www", "A").await.is_empty());
    assert_eq!(bed.values("a-www", "TXT").await, ["\"foreign\""]);
}

async fn group(bed: Bed<'_>) {
    let mut steps = [bed.create("one", "192.0.2.1"), bed.create("two", "192.0.2.2"), bed.create("hand", "192.0.2.3")];
    steps.iter_mut().for_each(|step| step.group = 7);
    for result in bed.write(&steps).await {
        assert!(matches!(result.unwrap_err().problem, ProviderProblem::Stale(_)));
    }
    assert!(bed.values("one", "A").await.is_empty() && bed.values("two", "A").await.is_empty());
    all_ok(&bed.write(&steps[..2]).await);
    assert_eq!(bed.values("two", "A").await, ["192.0.2.2"]);
}

/// A group that no message holds is written all the same.
async fn large_group(bed: Bed<'_>) {
    let mut steps: Vec<PlanStep> = (0..400).map(|n| bed.create(&format!("host-{n}"), "192.0.2.1")).collect();
    steps.iter_mut().for_each(|step| step.group = 7);
    all_ok(&bed.write(&steps).await);
    assert_eq!(bed.read().await.sets().len(), 10 + 800);
}

async fn kinds(bed: Bed<'_>) {
    let target: &[&str] = &["edge.example.net"];
    let cname = |old, new| bed.change("www", RecordType::Cname, old, new);
    let addresses = |old, new| bed.change("www", RecordType::A, old, new);
    let unused = Precondition::Unused { name: bed.name("www").into() };
    let make = bed.step(Verb::Create, vec![cname(None, Some(target))], Vec::new());
    let make = PlanStep { guards: vec![unused], ..make };
    all_ok(&bed.write(std::slice::from_ref(&make)).await);
    let again = bed.write(&[make]).await.remove(0).unwrap_err();
    assert!(matches!(again.problem, ProviderProblem::Stale(_)), "{again}");
    let both: &[&str] = &["192.0.2.1", "192.0.2.2"];
    let swap = bed.step(Verb::Update, vec![addresses(None, Some(both)), cname(Some(target), None)], Vec::new());
    all_ok(&bed.write(&[swap]).await);
    assert_eq!(bed.values("www", "A").await, ["192.0.2.1", "192.0.2.2"]);
    assert!(bed.values("www", "CNAME").await.is_empty());
    let back = bed.step(Verb::Update, vec![cname(None, Some(target)), addresses(Some(both), None)], Vec::new());
    all_ok(&bed.write(&[back]).await);
    assert_eq!(bed.values("www", "CNAME").await, target);
}

/// Whatever a zone holds, a precondition can name it as it was read.
async fn odd(bed: Bed<'_>) {
    let content = bed.read().await;
    for (label, kind) in [("long", RecordType::Txt), ("mixed", RecordType::Cname)] {
        let values = crate::bed::values(&content, &bed.name(label), kind.as_str());
        let old: Vec<&str> = values.iter().map(String::as_str).collect();
        let step = bed.step(Verb::Delete, vec![bed.change(label, kind, Some(&old), None)], Vec::new());
        all_ok(&bed.write(&[step]).await);
        assert!(bed.values(label, kind.as_str()).await.is_empty());
    }
    let long = format!("\"{}\" \"b\\\\c \\\"d\\\" \\200\"", "x".repeat(255));
    let texts = bed.change("texts", RecordType::Txt, None, Some(&[&long, "\"\""]));
    let six = bed.change("six", RecordType::Aaaa, None, Some(&["2001:db8::1", "2001:db8::2"]));
    all_ok(
        &bed.write(&[bed.step(Verb::Create, vec![texts], Vec::new()), bed.step(Verb::Create, vec![six], Vec::new())])
            .await,
    );
    assert_eq!(bed.values("texts", "TXT").await, ["\"\"", long.as_str()]);
    assert_eq!(bed.values("six", "AAAA").await, ["2001:db8::1", "2001:db8::2"]);
    let outside = PlanStep { name: "www.example.org".into(), ..bed.create("www", "192.0.2.1") };
    let mut outside = outside;
    outside.changes[0].name = "www.example.org".into();
    let broken =
        bed.step(Verb::Create, vec![bed.change("x", RecordType::A, None, Some(&["not an address"]))], Vec::new());
    let results = bed.write(&[outside, broken, bed.create("fine", "192.0.2.1")]).await;
    assert!(matches!(results[0].as_ref().unwrap_err().problem, ProviderProblem::Unwritable(_)));
    assert!(matches!(results[1].as_ref().unwrap_err().problem, ProviderProblem::Unwritable(_)));
    results[2].as_ref().unwrap();
}

async fn thousands(bed: Bed<'_>) {
    let steps: Vec<PlanStep> = (0..1200).map(|n| bed.create(&format!("host-{n}"), "192.0.2.1")).collect();
    all_ok(&bed.write(&steps).await);
    assert_eq!(bed.read().await.sets().len(), 10 + 2400);
    let steps: Vec<PlanStep> = (0..1200).map(|n| bed.delete(&format!("host-{n}"), "192.0.2.1")).collect();
    all_ok(&bed.write(&steps).await);
    assert_eq!(bed.read().await.sets().len(), 10);
}

async fn one_stale(bed: Bed<'_>) {
    let mut steps: Vec<PlanStep> = (0..60).map(|n| bed.create(&format!("host-{n}"), "192.0.2.1")).collect();
    steps.insert(41, bed.create("hand", "192.0.2.1"));
    let results = bed.write(&steps).await;
    let failed: Vec<usize> = (0..61).filter(|at| results[*at].is_err()).collect();
    assert_eq!(failed, [41]);
    assert_eq!(bed.values("hand", "A").await, ["192.0.2.7", "192.0.2.8"]);
}

async fn one_refused(bed: Bed<'_>) {
    let mut steps: Vec<PlanStep> = (0..199).map(|n| bed.create(&format!("host-{n}"), "192.0.2.1")).collect();
    steps.insert(77, bed.create("refused", "192.0.2.1"));
    let results = bed.write(&steps).await;
    let failed: Vec<usize> = (0..200).filter(|at| results[*at].is_err()).collect();
    assert_eq!(failed, [77]);
    let error = results[77].as_ref().unwrap_err();
    assert!(matches!(&error.problem, ProviderProblem::Refused { code, .. } if code == "REFUSED"), "{error}");
    assert_eq!(error.record.as_deref(), Some(format!("refused.{} A", bed.zone).as_str()));
    assert_eq!(bed.read().await.sets().len(), 10 + 2 * 199);
}

async fn lowest_ttl(bed: Bed<'_>) {
    let provider = Rfc2136::new(Rfc2136Config { min_ttl: 120, ..bed.config() }).unwrap();
    assert_eq!(provider.capabilities().plan.min_ttl, 120);
    all_ok(&provider.write(&bed.zone, &[bed.create("www", "192.0.2.1")]).await);
    let content = provider.read(&bed.zone).await.unwrap();
    let set = content.sets().iter().find(|set| *set.name == *bed.name("www")).unwrap();
    assert_eq!(set.ttl, Some(120));
}
