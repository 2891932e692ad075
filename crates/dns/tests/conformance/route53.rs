//! Faults of the API of Route 53, alias records, routing policies, zones and credentials. While a fault lasts nothing that
//! stands is lost; once it is over the zone becomes what it would have been without it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use gatepost_core::model::Str;
use gatepost_core::publication::{Record, RecordType};
use gatepost_core::reason;
use gatepost_dns::provider::{Provider, ProviderError, ProviderProblem, Result, Shared};
use gatepost_dns::providers::route53::{AwsEnvironment, Route53, Route53Config};
use gatepost_testkit::scratch::Scratch;
use gatepost_testkit::servers::route53::{
    AwsAnswer, AwsCall, CONTAINER_TOKEN, CallFate, KEY_ID, ROLE, ROLE_SECRET, Route53Api, SECRET, StoredSet,
    WEB_IDENTITY,
};

use crate::beds::{Bed, BedKind, route53_config};
use crate::faults::{Stage, without_faults};
use crate::keeper::{Keeper, Wish};
use crate::states::full;

fn api(bed: &Bed) -> Arc<Route53Api> {
    bed.aws().unwrap()
}

fn opened(config: Route53Config) -> Shared {
    Arc::new(Route53::new(config).unwrap())
}

fn is_stale(error: &ProviderError) -> bool {
    matches!(error.problem, ProviderProblem::Stale(_))
}

fn record_of(wish: &Wish, name: &str) -> Record {
    Record { name: name.into(), ..wish.records[0].clone() }
}

fn sets_at(api: &Route53Api, zone: &str, name: &str) -> Vec<StoredSet> {
    api.with(|account| account.zone(zone).unwrap().at(name).cloned().collect())
}

/// Pages that do not make one list are an unreadable zone: nothing is planned from them.
pub(crate) async fn odd_pages(kind: BedKind) {
    type Judge = fn(&AwsCall) -> CallFate;
    fn is_third(call: &AwsCall) -> bool {
        call.is_list() && call.number % 10 == 3
    }
    const FAULTS: &[(&str, Judge)] = &[
        ("a page that repeats", |call| match is_third(call) {
            true => CallFate::Query(vec![("maxitems".to_owned(), "5".to_owned())]),
            false => CallFate::Pass,
        }),
        ("5xx in the middle", |call| match is_third(call) {
            true => CallFate::Answer(AwsAnswer::error(503, "ServiceUnavailable", "Service Unavailable")),
            false => CallFate::Pass,
        }),
        ("a connection that ends", |call| if is_third(call) { CallFate::Drop } else { CallFate::Pass }),
        ("an empty page before the end", |call| match is_third(call) {
            true => {
                let body = "<ResourceRecordSets/><IsTruncated>false</IsTruncated>";
                CallFate::Answer(AwsAnswer::ok("ListResourceRecordSetsResponse", body))
            }
            false => CallFate::Pass,
        }),
        ("a list without an end", |call| match is_third(call) {
            true => CallFate::Answer(AwsAnswer::ok("ListResourceRecordSetsResponse", "<ResourceRecordSets/>")),
            false => CallFate::Pass,
        }),
        ("a page of HTML", |call| match is_third(call) {
            true => CallFate::Answer(AwsAnswer { status: 200, headers: Vec::new(), body: "<html>".to_owned() }),
            false => CallFate::Pass,
        }),
        ("another document", |call| match is_third(call) {
            true => CallFate::Answer(AwsAnswer::ok("ListHostedZonesResponse", "<IsTruncated>false</IsTruncated>")),
            false => CallFate::Pass,
        }),
    ];
    let mut stage = Stage::set(kind, "pages.test").await;
    let api = api(&stage.bed);
    api.with(|account| account.sets_per_page = 5);
    for (title, judge) in FAULTS {
        let hits = Arc::new(AtomicUsize::new(0));
        let counter = hits.clone();
        api.take_calls();
        api.judge(move |call, _| {
            let fate = judge(call);
            counter.fetch_add(usize::from(!matches!(fate, CallFate::Pass)), Ordering::Relaxed);
            fate
        });
        stage.keeper.through(opened(route53_config(&api)));
        let plan = stage.keeper.plan(&stage.wish).await;
        let reasons: Vec<_> = plan.held.iter().map(|held| held.reason).collect();
        assert!(plan.steps.is_empty() && reasons == [reason::ZONE_UNREADABLE], "{title}: {plan:?}");
        assert!(hits.load(Ordering::Relaxed) > 0, "{title}");
        assert_eq!(stage.bed.dump(), stage.before, "{title}");
    }
    api.judge(|_, _| CallFate::Pass);
    stage.converges(kind).await;
}

/// Who is told to come back later does, and writes nothing before.
pub(crate) async fn busy(kind: BedKind) {
    let mut stage = Stage::set(kind, "busy.test").await;
    let api = api(&stage.bed);
    let steps = stage.keeper.plan(&stage.wish).await.steps;
    for (status, code, header) in [
        (400, "Throttling", None),
        (400, "PriorRequestNotComplete", None),
        (503, "ServiceUnavailable", Some("70")),
        (429, "TooManyRequestsException", Some("7")),
    ] {
        let answer = AwsAnswer::error(status, code, "Rate exceeded");
        let answer = header.into_iter().fold(answer, |answer, seconds| answer.with("retry-after", seconds));
        api.judge(move |call, _| if call.is_batch() { CallFate::Answer(answer.clone()) } else { CallFate::Pass });
        let provider = opened(Route53Config { calls_per_second: 100_000, ..route53_config(&api) });
        for result in provider.write("busy.test", &steps).await {
            let error = result.unwrap_err();
            assert!(error.is_transient() && error.needs_read(), "{error}");
            let wait = error.retry_after().unwrap().as_secs();
            assert!(header.map_or((1..=3).contains(&wait), |seconds| wait.to_string() == seconds), "{error}: {wait}");
        }
        assert_eq!(stage.bed.dump(), stage.before);
    }
    api.judge(|_, _| CallFate::Pass);
    stage.converges(kind).await;
}

/// Credentials that expire, and rights that are not there, write nothing; the right that is missing is named.
pub(crate) async fn expired(kind: BedKind) {
    let mut stage = Stage::set(kind, "expired.test").await;
    let api = api(&stage.bed);
    let plan = stage.keeper.plan(&stage.wish).await;
    api.with(|account| account.is_expired = true);
    for result in stage.keeper.write(&plan.steps).await {
        let error = result.unwrap_err();
        assert!(error.is_transient() && error.to_string().contains("ExpiredToken"), "{error}");
    }
    api.with(|account| account.is_expired = false);
    for action in ["ListHostedZones", "ListResourceRecordSets", "ChangeResourceRecordSets"] {
        api.with(|account| account.denied = vec![format!("route53:{action}")]);
        let provider = opened(route53_config(&api));
        let error = match provider.read("expired.test").await {
            Err(error) => error,
            Ok(_) => provider.write("expired.test", &plan.steps).await[0].clone().unwrap_err(),
        };
        assert!(!error.is_transient() || matches!(error.problem, ProviderProblem::NotTried(_)), "{error}");
        assert!(error.to_string().contains(action) && error.to_string().contains("docs/providers"), "{error}");
        assert_eq!(stage.bed.dump(), stage.before);
    }
    api.with(|account| account.denied.clear());
    stage.converges(kind).await;
}

/// A zone that is gone takes nothing with it, and is not among the zones any more.
pub(crate) async fn zone_goes(kind: BedKind) {
    let mut stage = Stage::set(kind, "gone.test").await;
    let api = api(&stage.bed);
    let plan = stage.keeper.plan(&stage.wish).await;
    let gone = api.with(|account| {
        let at = account.zones.iter().position(|zone| zone.name == "gone.test").unwrap();
        account.zones.remove(at)
    });
    assert!(stage.keeper.write(&plan.steps).await.iter().all(Result::is_err));
    assert_eq!(stage.bed.provider.zones().await.unwrap(), [Str::from("other.test")]);
    let error = stage.bed.provider.read("gone.test").await.unwrap_err();
    assert!(error.to_string().contains("gone.test"), "{error}");
    // It comes back under another id.
    api.with(|account| {
        account.zones.push(gatepost_testkit::servers::route53::AwsZone { id: "ZNEW".to_owned(), ..gone })
    });
    stage.bed.provider.zones().await.unwrap();
    stage.converges(kind).await;
}

/// Whatever somebody changes of a record between reading and writing, and at the very moment of writing: it stays, and
/// every other change is made.
pub(crate) async fn edits(kind: BedKind) {
    type Edit = fn(&mut StoredSet);
    const EDITS: &[Edit] = &[
        |set| set.ttl = Some(600),
        |set| set.values.push("192.0.2.250".to_owned()),
        |set| {
            (set.ttl, set.values, set.alias) = (None, Vec::new(), Some(("ZX".to_owned(), "lb.test".to_owned(), true)))
        },
        |set| (set.set_identifier, set.fields) = ("one".to_owned(), [("Weight".to_owned(), "1".to_owned())].into()),
    ];
    for edit in EDITS {
        let mut stage = Stage::set(kind, "edit.test").await;
        let api = api(&stage.bed);
        let plan = stage.keeper.plan(&stage.wish).await;
        let mut is_done = false;
        api.judge(move |call, account| {
            if call.is_batch() && !std::mem::replace(&mut is_done, true) {
                let zone = account.zone("edit.test").unwrap();
                let order = zone.sets.iter().find(|(_, set)| set.name == "host-4.edit.test").unwrap().0.clone();
                let mut set = zone.sets.remove(&order).unwrap();
                edit(&mut set);
                zone.sets.insert((order.0, set.kind.clone(), set.set_identifier.clone()), set);
            }
            CallFate::Pass
        });
        let results = stage.keeper.write(&plan.steps).await;
        for (step, result) in plan.steps.iter().zip(&results) {
            assert_eq!(result.is_err(), &*step.name == "host-4.edit.test", "{}: {result:?}", step.name);
            assert!(result.as_ref().err().is_none_or(is_stale), "{result:?}");
        }
    }
    // The marker of a record that changes is part of what must be as it was read.
    let mut stage = Stage::set(kind, "edit.test").await;
    let plan = stage.keeper.plan(&stage.wish).await;
    api(&stage.bed).with(|account| {
        let zone = account.zone("edit.test").unwrap();
        let marker = zone.sets.values_mut().find(|set| set.name == "a-host-4.edit.test").unwrap();
        marker.values = vec!["\"heritage=external-dns,external-dns/owner=other\"".to_owned()];
    });
    let results = stage.keeper.write(&plan.steps).await;
    for (step, result) in plan.steps.iter().zip(&results) {
        assert_eq!(result.is_err(), &*step.name == "host-4.edit.test", "{}: {result:?}", step.name);
    }
}

/// Whatever question a keeper dies at, carried out or not: who comes after it brings the zone to the same end.
pub(crate) async fn dies_at_every_question(kind: BedKind) {
    let expected = without_faults(kind, "dies.test").await;
    for is_done in [false, true] {
        for number in 0.. {
            let mut stage = Stage::set(kind, "dies.test").await;
            let api = api(&stage.bed);
            api.with(|account| account.sets_per_page = 20);
            api.take_calls();
            api.judge(move |call, _| match call.number {
                at if at < number => CallFate::Pass,
                at if at == number && is_done => CallFate::Lose,
                _ => CallFate::Drop,
            });
            stage.keeper.through(opened(Route53Config { batch: 20, ..route53_config(&api) }));
            let pass = stage.keeper.pass(&stage.wish).await;
            let is_whole = !pass.plan.steps.is_empty() && pass.results.iter().all(Result::is_ok);
            api.judge(|_, _| CallFate::Pass);
            stage.keeper.through(stage.bed.provider.clone());
            stage.keeper.settle(&stage.wish).await;
            assert_eq!(stage.bed.dump(), expected, "{number} {is_done}");
            if is_whole {
                assert!(number > 5, "{number}");
                break;
            }
        }
    }
}

/// Names of load balancers become alias records at the top of the zone and below it, come to rest, and become addresses and
/// CNAME records again.
pub(crate) async fn aliases(kind: BedKind) {
    const LB: &str = "web-1.eu-west-1.elb.amazonaws.com";
    let bed = kind.start("alias.test").await;
    let api = api(&bed);
    let before = bed.dump();
    let mut keeper = Keeper::new("alias.test", bed.provider.clone());
    // The marker of the top of a zone has to stand below it.
    keeper.txt_prefix = "%{record_type}-owner.";
    let base = full().wish("alias.test");
    let cname = |name: &str, target: &str| Record {
        kind: RecordType::Cname,
        targets: [target.into()].into(),
        ..record_of(&base, name)
    };
    let with = |mut record: Record, name: &str, value: &str| {
        record.provider_specific.push((name.into(), value.into()));
        record
    };
    let mut wish = Wish { records: vec![cname("alias.test", LB), cname("*.app.alias.test", LB)], ..Wish::default() };
    wish.records.push(record_of(&base, "real.alias.test"));
    wish.records.push(with(cname("own.alias.test", "real.alias.test"), "alias", "true"));
    wish.records.push(with(cname("ill.alias.test", LB), "aws/evaluate-target-health", "false"));
    wish.records.push(with(cname("plain.alias.test", LB), "alias", "false"));
    keeper.settle(&wish).await;
    let zone_id = api.with(|account| account.zone("alias.test").unwrap().id.clone());
    let dump = bed.dump();
    for line in [
        format!("alias.test. in a alias Z32O12XQLNTSW2 {LB} true"),
        format!("alias.test. in aaaa alias Z32O12XQLNTSW2 {LB} true"),
        format!("*.app.alias.test. in a alias Z32O12XQLNTSW2 {LB} true"),
        format!("own.alias.test. in a alias {zone_id} real.alias.test true"),
        format!("ill.alias.test. in aaaa alias Z32O12XQLNTSW2 {LB} false"),
        format!("plain.alias.test. 60 in cname {LB}."),
    ] {
        assert!(dump.contains(&line), "{line}: {dump:#?}");
    }
    assert!(!dump.iter().any(|line| line.starts_with("own.alias.test. in aaaa")), "{dump:#?}");
    assert!(keeper.pass(&wish).await.plan.steps.is_empty());
    // An alias becomes an address, and another CNAME becomes an alias.
    wish.records[1] = record_of(&base, "*.app.alias.test");
    wish.records[5].provider_specific.clear();
    keeper.settle(&wish).await;
    let dump = bed.dump();
    let sets = sets_at(&api, "alias.test", "*.app.alias.test");
    assert!(sets.len() == 1 && sets[0].alias.is_none() && sets[0].ttl == Some(60), "{sets:?}");
    assert!(dump.contains(&format!("plain.alias.test. in a alias Z32O12XQLNTSW2 {LB} true")), "{dump:#?}");
    // What is no load balancer stays a CNAME, which the top of a zone cannot have.
    let last = keeper.settle(&Wish { records: vec![cname("alias.test", "edge.example.net")], ..Wish::default() }).await;
    assert!(last.held.iter().any(|held| held.reason == reason::CNAME_NOT_POSSIBLE), "{:?}", last.held);
    keeper.settle(&Wish::default()).await;
    assert_eq!(bed.dump(), before);
}

/// Several sets of one name and type, told apart by identifiers, by each routing policy; they come to rest and change alone.
pub(crate) async fn routing(kind: BedKind) {
    let bed = kind.start("routes.test").await;
    let api = api(&bed);
    let before = bed.dump();
    let base = full().wish("routes.test");
    let set = |name: &str, id: &str, properties: &[(&str, &str)]| Record {
        set_identifier: Some(id.into()),
        provider_specific: properties.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
        ..record_of(&base, &format!("{name}.routes.test"))
    };
    let mut keeper = Keeper::new("routes.test", bed.provider.clone());
    let mut wish = Wish::default();
    wish.records.push(set("weight", "one", &[("aws/weight", "10")]));
    wish.records.push(set("weight", "two", &[("aws/weight", "0"), ("aws/health-check-id", "hc-1")]));
    wish.records.push(set("latency", "eu", &[("aws/region", "eu-west-1")]));
    wish.records.push(set("latency", "us", &[("aws/region", "us-east-1")]));
    wish.records.push(set("over", "first", &[("aws/failover", "PRIMARY")]));
    wish.records.push(set("over", "second", &[("aws/failover", "SECONDARY")]));
    wish.records.push(set("geo", "all", &[("aws/geolocation-country-code", "*")]));
    wish.records.push(set("geo", "de", &[("aws/geolocation-country-code", "DE")]));
    wish.records.push(set("near", "x", &[("aws/geoproximity-coordinates", "51.2,-0.5")]));
    wish.records.push(set("many", "x", &[("aws/multi-value-answer", "")]));
    keeper.settle(&wish).await;
    let fields = |name: &str| -> Vec<String> {
        let sets = sets_at(&api, "routes.test", &format!("{name}.routes.test"));
        sets.iter().map(|set| format!("{} {:?}", set.set_identifier, set.fields)).collect()
    };
    assert_eq!(fields("weight"), [r#"one {"Weight": "10"}"#, r#"two {"HealthCheckId": "hc-1", "Weight": "0"}"#]);
    assert_eq!(fields("latency")[1], r#"us {"Region": "us-east-1"}"#);
    assert_eq!(fields("geo")[0], r#"all {"GeoLocation/CountryCode": "*"}"#);
    assert_eq!(fields("many"), [r#"x {"MultiValueAnswer": "true"}"#]);
    assert!(fields("near")[0].contains("Coordinates/Latitude\": \"51.2\""), "{:?}", fields("near"));
    assert!(keeper.pass(&wish).await.plan.steps.is_empty());
    // One weight changes, and its set only.
    wish.records[0].provider_specific[0].1 = "20".into();
    api.take_calls();
    keeper.settle(&wish).await;
    let batch = api.take_calls().into_iter().find(AwsCall::is_batch).unwrap().body;
    assert!(batch.contains("<SetIdentifier>one<") && !batch.contains("<SetIdentifier>two<"), "{batch}");
    // One goes, the other stays.
    wish.records.remove(1);
    keeper.settle(&wish).await;
    assert_eq!(fields("weight"), [r#"one {"Weight": "20"}"#]);
    // Another policy, with a set that was not there: the markers follow, or theirs would be refused.
    wish.records[0] = set("weight", "one", &[("aws/region", "eu-west-1")]);
    wish.records.push(set("weight", "three", &[("aws/region", "us-east-1")]));
    keeper.settle(&wish).await;
    assert_eq!(fields("weight"), [r#"one {"Region": "eu-west-1"}"#, r#"three {"Region": "us-east-1"}"#]);
    assert_eq!(fields("a-weight"), fields("weight"));
    // What the service would refuse says which annotation to set.
    for (properties, told) in [
        (&[][..], "exactly one of the annotations"),
        (&[("aws/weight", "1"), ("aws/region", "eu-west-1")], "exactly one of the annotations"),
        (&[("aws/weight", "many")], "from 0 to 255"),
        (&[("aws/failover", "primary")], "PRIMARY or SECONDARY"),
    ] {
        let mut wish = wish.clone();
        wish.records.push(set("wrong", "x", properties));
        let pass = keeper.pass(&wish).await;
        let error = pass.results[0].clone().unwrap_err();
        assert!(error.to_string().contains(told) && !error.is_transient(), "{error}");
    }
    keeper.settle(&Wish::default()).await;
    assert_eq!(bed.dump(), before);
}

/// More records than a batch may have are several batches; a set that is larger than a batch fails alone.
pub(crate) async fn limits(kind: BedKind) {
    let mut stage = Stage::set(kind, "limits.test").await;
    let api = api(&stage.bed);
    let mut wish = stage.wish.clone();
    for number in 0..450 {
        wish.records.push(record_of(&wish, &format!("more-{number}.limits.test")));
    }
    // Values of a challenge are long enough for the other bound.
    let long = |number: usize| format!("\"{}\"", char::from(b'a' + number as u8).to_string().repeat(250));
    wish.challenges = (0..20)
        .map(|number| Record {
            kind: RecordType::Txt,
            targets: (0..10).map(|number| long(number).as_str().into()).collect::<Vec<Str>>().into(),
            ..record_of(&wish, &format!("_acme-challenge.more-{number}.limits.test"))
        })
        .collect();
    let mut large = record_of(&wish, "large.limits.test");
    large.targets = (0..1001).map(|n| format!("198.51.{}.{}", n / 250, n % 250).into()).collect::<Vec<Str>>().into();
    wish.records.push(large);
    api.take_calls();
    let last = stage.keeper.settle_all_but(&wish, 1).await;
    assert_eq!(&*last.steps[0].name, "large.limits.test");
    let error = stage.keeper.write(&last.steps).await[0].clone().unwrap_err();
    assert!(error.to_string().contains("large.limits.test A: it takes 1002 records"), "{error}");
    let dump = stage.bed.dump();
    assert_eq!(dump.iter().filter(|line| line.starts_with("more-")).count(), 450);
    let batches: Vec<AwsCall> = api.take_calls().into_iter().filter(AwsCall::is_batch).collect();
    // 900 records with their markers, and 20 times 2,500 characters beside them.
    assert!((3..=8).contains(&batches.len()), "{}", batches.len());
    wish.challenges.clear();
    stage.keeper.settle_all_but(&wish, 1).await;
    stage.converges(kind).await;
}

/// Ten thousand names: what a pass asks for is counted, not timed.
pub(crate) async fn many(kind: BedKind) {
    let bed = kind.start("many.test").await;
    let api = api(&bed);
    let mut keeper = Keeper::new("many.test", opened(route53_config(&api)));
    let base = full().wish("many.test");
    let mut wish = Wish::default();
    wish.records.extend((0..10_000).map(|number| record_of(&base, &format!("host-{number}.many.test"))));
    api.take_calls();
    let pass = keeper.pass(&wish).await;
    assert!(pass.results.iter().all(Result::is_ok));
    assert_eq!(bed.dump().iter().filter(|line| line.starts_with("host-")).count(), 10_000);
    // The zones, one page, and 20,000 records in batches of 32,000 characters, which most markers have 125 of.
    let calls = api.take_calls();
    assert_eq!((calls.len(), calls.iter().filter(|call| call.is_batch()).count()), (48, 46));
    assert!(keeper.pass(&wish).await.plan.steps.is_empty());
    assert_eq!(api.take_calls().len(), 67);
    wish.records[77].targets = ["192.0.2.222".into()].into();
    assert_eq!(keeper.pass(&wish).await.plan.steps.len(), 1);
    assert_eq!(api.take_calls().len(), 68);
}

/// Zones of several pages, of one name, of one type, by id, by tags and by domain.
pub(crate) async fn zones(kind: BedKind) {
    let bed = kind.start("zones.test").await;
    let api = api(&bed);
    api.with(|account| {
        (0..23).for_each(|number| account.add_zone(&format!("z{number}.test"), false));
        account.add_zone("zones.test", true);
        account.zones_per_page = 5;
        account.zones[7].tags = [("team".to_owned(), "dns".to_owned()), ("env".to_owned(), "prod".to_owned())].into();
        account.zones[8].tags = [("team".to_owned(), "web".to_owned())].into();
    });
    let ids: Vec<(String, String)> =
        api.with(|account| account.zones.iter().map(|zone| (zone.name.clone(), zone.id.clone())).collect());
    let names = |config: Route53Config| async move {
        match opened(config).zones().await {
            Ok(zones) => zones.iter().map(Str::to_string).collect::<Vec<_>>().join(" "),
            Err(error) => error.to_string(),
        }
    };
    let plain = || route53_config(&api);
    let both = names(plain()).await;
    assert!(both.contains("several zones `zones.test`") && both.contains("--aws-zone-type"), "{both}");
    let private = Route53Config { only_private: Some(true), ..plain() };
    assert_eq!(names(private).await, "zones.test");
    let public = names(Route53Config { only_private: Some(false), ..plain() }).await;
    assert_eq!(public.split(' ').count(), 25);
    assert_eq!(names(Route53Config { zone_ids: vec![ids[3].1.clone()], ..plain() }).await, ids[3].0);
    let domains = vec!["z3.test".to_owned(), "a.z4.test".to_owned()];
    assert_eq!(names(Route53Config { domains, ..plain() }).await, "z3.test z4.test");
    let tags = |tags: &[(&str, Option<&str>)]| Route53Config {
        only_private: Some(false),
        zone_tags: tags.iter().map(|(key, value)| ((*key).to_owned(), value.map(str::to_owned))).collect(),
        ..plain()
    };
    assert_eq!(names(tags(&[("team", None)])).await.split(' ').count(), 2);
    assert_eq!(names(tags(&[("team", Some("dns")), ("env", None)])).await, ids[7].0);
    let none = names(tags(&[("team", Some("nobody"))])).await;
    assert!(none.contains("none of the 26 hosted zones"), "{none}");
    // Records go to the private zone of the two, and the other one stays as it is.
    let mut keeper = Keeper::new("zones.test", opened(Route53Config { only_private: Some(true), ..plain() }));
    let before = bed.dump();
    keeper.settle(&full().wish("zones.test")).await;
    assert_eq!(bed.dump(), before);
    let last = api.with(|account| account.zones.last().unwrap().dump());
    assert!(last.iter().any(|line| line.starts_with("host-0.zones.test. ")), "{last:?}");
}

/// Credentials from each place where the programs of AWS look, and a role assumed with them.
pub(crate) async fn credentials(kind: BedKind) {
    let bed = kind.start("keys.test").await;
    let api = api(&bed);
    let folder = Scratch::new().unwrap();
    let token = folder.file("token", &format!("{WEB_IDENTITY}\n")).unwrap();
    let proof = folder.file("proof", &format!("{CONTAINER_TOKEN}\n")).unwrap();
    let keys = format!("[base]\naws_access_key_id = {KEY_ID}\naws_secret_access_key = {SECRET}\n");
    let keys = folder.file("credentials", &keys).unwrap();
    let profiles = format!("[profile role]\nrole_arn = {ROLE}\nsource_profile = base\nexternal_id = external\n");
    let profiles = folder.file("config", &profiles).unwrap();
    let container = format!("{}/container", api.url());
    let url = api.url();
    let sts = ("AWS_ENDPOINT_URL_STS", url.as_str());
    let files = [("AWS_CONFIG_FILE", profiles.as_str()), ("AWS_SHARED_CREDENTIALS_FILE", keys.as_str())];
    let read = |variables: Vec<(&'static str, String)>, role: Option<&str>, external_id: Option<&str>| {
        let environment = AwsEnvironment::of(variables.iter().map(|(name, value)| (*name, value.as_str())));
        let config = Route53Config {
            environment,
            role: role.map(str::to_owned),
            external_id: external_id.map(str::to_owned),
            ..route53_config(&api)
        };
        async move { opened(config).read("keys.test").await }
    };
    let owned = |variables: &[(&'static str, &str)]| -> Vec<(&'static str, String)> {
        variables.iter().map(|(name, value)| (*name, (*value).to_owned())).collect()
    };
    let plain = [("AWS_ACCESS_KEY_ID", KEY_ID), ("AWS_SECRET_ACCESS_KEY", SECRET)];
    let instance = [("AWS_EC2_METADATA_SERVICE_ENDPOINT", url.as_str())];
    let good = [
        (owned(&plain), None, None),
        (owned(&[plain[0], plain[1], sts]), Some(ROLE), Some("external")),
        (owned(&[("AWS_ROLE_ARN", ROLE), ("AWS_WEB_IDENTITY_TOKEN_FILE", &token), sts]), None, None),
        (owned(&[files[0], files[1], ("AWS_PROFILE", "base")]), None, None),
        (owned(&[files[0], files[1], ("AWS_PROFILE", "role"), sts]), None, None),
        (
            owned(&[
                ("AWS_CONTAINER_CREDENTIALS_FULL_URI", &container),
                ("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", &proof),
            ]),
            None,
            None,
        ),
        (owned(&instance), None, None),
    ];
    for (variables, role, external_id) in good {
        let shown = format!("{variables:?}");
        let read = read(variables, role, external_id).await;
        assert!(read.is_ok(), "{shown}: {}", read.unwrap_err());
    }
    let off = ("AWS_EC2_METADATA_DISABLED", "true");
    let wrong_token = folder.file("wrong", "canary.wrong").unwrap();
    let bad = [
        (owned(&[off]), None, "no AWS credentials"),
        (owned(&[plain[0], plain[1], sts]), Some("arn:other"), "the role `arn:other` could not be assumed"),
        (owned(&[("AWS_ROLE_ARN", ROLE), ("AWS_WEB_IDENTITY_TOKEN_FILE", &wrong_token), sts]), None, "AccessDenied"),
        (owned(&[files[0], files[1], ("AWS_PROFILE", "nobody")]), None, "AWS profile `nobody`"),
        (owned(&[("AWS_CONTAINER_CREDENTIALS_FULL_URI", &container)]), None, "status 401"),
        (owned(&[plain[0], ("AWS_SECRET_ACCESS_KEY", "canary-wrong")]), None, "is not that of its id"),
    ];
    for (variables, role, told) in bad {
        let error = read(variables, role, None).await.unwrap_err();
        assert!(error.to_string().contains(told) && !format!("{error:?}").contains("canary"), "{told}: {error}");
    }
    // Keys that expired are fetched again, as soon as they were refused.
    let config = Route53Config { environment: AwsEnvironment::of(instance), ..route53_config(&api) };
    let provider = opened(config);
    api.take_calls();
    provider.read("keys.test").await.unwrap();
    provider.read("keys.test").await.unwrap();
    let issued = |calls: Vec<AwsCall>| calls.iter().filter(|call| call.path.starts_with("/latest/")).count();
    assert_eq!(issued(api.take_calls()), 3);
    api.with(|account| account.is_expired = true);
    assert!(provider.read("keys.test").await.unwrap_err().is_transient());
    api.with(|account| account.is_expired = false);
    provider.read("keys.test").await.unwrap();
    assert_eq!(issued(api.take_calls()), 3);
}

/// Neither errors nor anything that can be printed shows a key or a token, even where a server sends it back.
pub(crate) async fn canary(kind: BedKind) {
    let stage = Stage::set(kind, "canary.test").await;
    let api = api(&stage.bed);
    let mut keeper = Keeper::new("canary.test", opened(route53_config(&api)));
    let plan = keeper.plan(&stage.wish).await;
    let instance = AwsEnvironment::of([("AWS_EC2_METADATA_SERVICE_ENDPOINT", api.url().as_str())]);
    for environment in [None, Some(instance)] {
        let config = || Route53Config {
            environment: environment.clone().unwrap_or_else(|| route53_config(&api).environment),
            ..route53_config(&api)
        };
        for (status, code) in [
            (200, "x"),
            (302, "x"),
            (400, "InvalidChangeBatch"),
            (400, "InvalidInput"),
            (400, "Throttling"),
            (403, "AccessDenied"),
            (403, "SignatureDoesNotMatch"),
            (404, "NoSuchHostedZone"),
            (500, "InternalError"),
        ] {
            api.judge(move |call, _| {
                let sent = format!("{:?} {SECRET} {ROLE_SECRET}", call.headers);
                let is_api = call.path.starts_with("/2013") && (call.is_batch() || !call.path.ends_with("/hostedzone"));
                if is_api { CallFate::Answer(AwsAnswer::error(status, code, &sent)) } else { CallFate::Pass }
            });
            let provider = Route53::new(config()).unwrap();
            let mut shown = format!("{provider:?}");
            let error = provider.read("canary.test").await.unwrap_err();
            shown.push_str(&format!("{error} {error:?}"));
            for result in provider.write("canary.test", &plan.steps).await {
                let error = result.unwrap_err();
                shown.push_str(&format!("{error} {error:?}"));
            }
            let secrets = if environment.is_some() { [ROLE_SECRET, "canary-session"] } else { [SECRET, KEY_ID] };
            assert!(secrets.iter().all(|secret| !shown.contains(secret)), "{status} {code}: {shown}");
        }
    }
    let unreachable = Route53Config { url: Some("http://127.0.0.1:1".to_owned()), ..route53_config(&api) };
    let error = Route53::new(unreachable).unwrap().zones().await.unwrap_err();
    assert!(error.is_transient() && !format!("{error:?}").contains("canary"), "{error}");
    assert_eq!(stage.bed.dump(), stage.before);
}
