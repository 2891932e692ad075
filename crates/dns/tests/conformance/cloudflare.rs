//! Faults of the API of Cloudflare, and what it keeps beside values. While a fault lasts nothing that stands is lost; once it
//! is over the zone becomes what it would have been without it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use gatepost_core::model::Str;
use gatepost_core::plan::{Content, PlanStep, SetChange, Verb};
use gatepost_core::publication::{Record, RecordType};
use gatepost_core::reason;
use gatepost_dns::provider::{Provider, ProviderProblem, Result, Shared};
use gatepost_dns::providers::cloudflare::{Cloudflare, CloudflareConfig};
use gatepost_testkit::servers::cloudflare::{ApiAnswer, ApiFate, ApiQuestion, CloudflareApi, TOKEN};
use serde_json::json;

use crate::beds::{Bed, BedKind, Hand, cloudflare_config};
use crate::faults::{Stage, without_faults};
use crate::keeper::{Keeper, Wish};
use crate::states::full;

fn api(bed: &Bed) -> Arc<CloudflareApi> {
    bed.api().unwrap()
}

fn opened(config: CloudflareConfig) -> Shared {
    Arc::new(Cloudflare::new(config).unwrap())
}

/// A provider that reads so few records at once that the zone has several pages.
fn by_pages(api: &CloudflareApi) -> Shared {
    opened(CloudflareConfig { per_page: 5, ..cloudflare_config(api) })
}

fn is_list(question: &ApiQuestion) -> bool {
    question.path.ends_with("/dns_records")
}

fn is_batch(question: &ApiQuestion) -> bool {
    question.path.ends_with("/batch")
}

fn is_page(question: &ApiQuestion, page: &str) -> bool {
    is_list(question) && question.query.iter().any(|(key, value)| key == "page" && value == page)
}

fn record_of(wish: &Wish, name: &str) -> Record {
    Record { name: name.into(), ..wish.records[0].clone() }
}

/// Pages that do not make one list are an unreadable zone: nothing is planned from them.
pub(crate) async fn odd_pages(kind: BedKind) {
    type Judge = fn(&ApiQuestion) -> ApiFate;
    const FAULTS: &[(&str, Judge)] = &[
        ("a page that repeats", |question| if is_page(question, "3") { ApiFate::Page(2) } else { ApiFate::Pass }),
        ("5xx in the middle", |question| {
            let failed = ApiFate::Answer(ApiAnswer::error(502, 0, "bad gateway"));
            if is_page(question, "3") { failed } else { ApiFate::Pass }
        }),
        ("a connection that ends", |question| if is_page(question, "4") { ApiFate::Drop } else { ApiFate::Pass }),
        ("an empty page before the end", |question| match is_page(question, "3") {
            true => ApiFate::Answer(ApiAnswer::ok(json!([]), None)),
            false => ApiFate::Pass,
        }),
        ("a total that moves", |question| match is_page(question, "2") {
            true => ApiFate::Answer(ApiAnswer::ok(
                json!([]),
                Some(json!({"page": 2, "per_page": 5, "count": 0, "total_count": 5})),
            )),
            false => ApiFate::Pass,
        }),
        ("a page of HTML", |question| match is_page(question, "2") {
            true => ApiFate::Answer(ApiAnswer { status: 200, headers: Vec::new(), body: "<html>".to_owned() }),
            false => ApiFate::Pass,
        }),
        ("success that is none", |question| match is_page(question, "1") {
            true => ApiFate::Answer(ApiAnswer {
                status: 200,
                headers: Vec::new(),
                body: json!({"success": false, "errors": [], "result": []}).to_string(),
            }),
            false => ApiFate::Pass,
        }),
    ];
    let mut stage = Stage::set(kind, "pages.test").await;
    let api = api(&stage.bed);
    for (title, judge) in FAULTS {
        let hits = Arc::new(AtomicUsize::new(0));
        let counter = hits.clone();
        api.judge(move |question, _| {
            let fate = judge(question);
            counter.fetch_add(usize::from(!matches!(fate, ApiFate::Pass)), Ordering::Relaxed);
            fate
        });
        stage.keeper.through(by_pages(&api));
        let plan = stage.keeper.plan(&stage.wish).await;
        let reasons: Vec<_> = plan.held.iter().map(|held| held.reason).collect();
        assert!(plan.steps.is_empty() && reasons == [reason::ZONE_UNREADABLE], "{title}: {plan:?}");
        assert!(hits.load(Ordering::Relaxed) > 0, "{title}");
        assert_eq!(stage.bed.dump(), stage.before, "{title}");
    }
    // A record that somebody removes while pages are read moves all others.
    let mut is_done = false;
    api.judge(move |question, zones| {
        if is_page(question, "3") && !std::mem::replace(&mut is_done, true) {
            let zone = zones.zone("pages.test").unwrap();
            zone.records.retain(|record| record.name != "ns1.pages.test");
        }
        ApiFate::Pass
    });
    stage.keeper.through(by_pages(&api));
    assert!(stage.keeper.plan(&stage.wish).await.steps.is_empty());
    api.with(|zones| zones.add("pages.test", "ns1.pages.test", 3600, "A", "192.0.2.53"));
    api.judge(|_, _| ApiFate::Pass);
    stage.converges(kind).await;
}

/// A limit that is reached says when to come back, and until then nothing is asked.
pub(crate) async fn throttled(kind: BedKind) {
    let mut stage = Stage::set(kind, "limit.test").await;
    let api = api(&stage.bed);
    for is_hit in [is_list as fn(&ApiQuestion) -> bool, is_batch] {
        let provider = opened(cloudflare_config(&api));
        api.judge(|_, _| ApiFate::Pass);
        let steps = stage.keeper.plan(&stage.wish).await.steps;
        api.judge(move |question, _| match is_hit(question) {
            true => ApiFate::Answer(
                ApiAnswer::error(429, 971, "Please wait and consider throttling.").with("retry-after", "70"),
            ),
            false => ApiFate::Pass,
        });
        let results = provider.write("limit.test", &steps).await;
        for result in results {
            let error = result.unwrap_err();
            assert!(error.is_transient() && error.needs_read(), "{error}");
            assert!(error.retry_after().is_some_and(|wait| wait.as_secs() >= 60), "{error}");
        }
        api.take_questions();
        let error = provider.read("limit.test").await.unwrap_err();
        assert!(error.retry_after().is_some() && api.take_questions().is_empty(), "{error}");
        assert_eq!(stage.bed.dump(), stage.before);
    }
    // The last question that is let through says so, too.
    api.judge(|_, zones| {
        let zones: Vec<_> = zones.zones.iter().map(|zone| json!({"id": zone.id, "name": zone.name})).collect();
        let info = json!({"page": 1, "count": zones.len(), "total_count": zones.len()});
        ApiFate::Answer(ApiAnswer::ok(zones.into(), Some(info)).with("ratelimit", "\"default\";r=0;t=90"))
    });
    let provider = opened(cloudflare_config(&api));
    assert!(provider.zones().await.is_ok());
    let error = provider.read("limit.test").await.unwrap_err();
    assert!(error.retry_after().is_some_and(|wait| wait.as_secs() >= 80), "{error}");
    api.judge(|_, _| ApiFate::Pass);
    stage.converges(kind).await;
}

/// A token that stops to be valid between reading and writing writes nothing, and is not shown.
pub(crate) async fn token_expires(kind: BedKind) {
    let mut stage = Stage::set(kind, "token.test").await;
    let api = api(&stage.bed);
    let plan = stage.keeper.plan(&stage.wish).await;
    api.with(|zones| zones.is_token_revoked = true);
    for result in stage.keeper.write(&plan.steps).await {
        let error = result.unwrap_err();
        assert!(error.to_string().contains("Authentication error") && !error.to_string().contains(TOKEN), "{error}");
    }
    assert_eq!(stage.bed.dump(), stage.before);
    let error = stage.bed.provider.zones().await.unwrap_err();
    assert!(!error.is_transient() && error.to_string().contains("Zone / DNS / Edit"), "{error}");
    api.with(|zones| zones.is_token_revoked = false);
    stage.converges(kind).await;
}

/// A zone that is gone takes nothing with it, and is not among the zones any more.
pub(crate) async fn zone_goes(kind: BedKind) {
    let mut stage = Stage::set(kind, "gone.test").await;
    let api = api(&stage.bed);
    let plan = stage.keeper.plan(&stage.wish).await;
    let gone = api.with(|zones| {
        let at = zones.zones.iter().position(|zone| zone.name == "gone.test").unwrap();
        zones.zones.remove(at)
    });
    assert!(stage.keeper.write(&plan.steps).await.iter().all(Result::is_err));
    assert_eq!(stage.bed.provider.zones().await.unwrap(), [Str::from("other.test")]);
    let error = stage.bed.provider.read("gone.test").await.unwrap_err();
    assert!(error.to_string().contains("gone.test"), "{error}");
    // It comes back under another id.
    api.with(|zones| {
        zones.zones.push(gatepost_testkit::servers::cloudflare::HostedZone { id: "f".repeat(32), ..gone })
    });
    stage.bed.provider.zones().await.unwrap();
    stage.converges(kind).await;
}

/// A record that somebody removes after the last look fails its own change, and no other.
pub(crate) async fn edit_after_look(kind: BedKind) {
    let mut stage = Stage::set(kind, "late.test").await;
    let api = api(&stage.bed);
    let plan = stage.keeper.plan(&stage.wish).await;
    api.judge(move |question, zones| {
        let deletes = question.body["deletes"].to_string();
        let records = &mut zones.zone("late.test").unwrap().records;
        let place = records.iter().position(|r| r.name == "host-8.late.test" && deletes.contains(&r.id));
        if let Some(at) = place.filter(|_| is_batch(question)) {
            records.remove(at);
            zones.add("late.test", "host-8.late.test", 77, "A", "192.0.2.200");
        }
        ApiFate::Pass
    });
    let results = stage.keeper.write(&plan.steps).await;
    for (step, result) in plan.steps.iter().zip(&results) {
        let is_edited = &*step.name == "host-8.late.test";
        assert_eq!(result.is_err(), is_edited, "{}: {result:?}", step.name);
        let is_stale =
            |error: &gatepost_dns::provider::ProviderError| matches!(error.problem, ProviderProblem::Stale(_));
        assert!(result.as_ref().err().is_none_or(is_stale), "{result:?}");
    }
    assert!(stage.bed.dump().contains(&"host-8.late.test. 77 in a 192.0.2.200".to_owned()));
}

/// TTL, proxying, comment and tags are part of what was read: a record of which somebody changed one is left alone.
pub(crate) async fn edit_of_settings(kind: BedKind) {
    type Edit = fn(&mut gatepost_testkit::servers::cloudflare::StoredRecord);
    const EDITS: &[Edit] = &[
        |record| record.ttl = 600,
        |record| (record.is_proxied, record.ttl) = (true, 1),
        |record| record.comment = "by hand".to_owned(),
        |record| record.tags = vec!["by:hand".to_owned()],
    ];
    for edit in EDITS {
        let mut stage = Stage::set(kind, "edit.test").await;
        let api = api(&stage.bed);
        let plan = stage.keeper.plan(&stage.wish).await;
        api.with(|zones| {
            let records = &mut zones.zone("edit.test").unwrap().records;
            records.iter_mut().filter(|record| record.name == "host-4.edit.test").for_each(edit);
        });
        let results = stage.keeper.write(&plan.steps).await;
        for (step, result) in plan.steps.iter().zip(&results) {
            assert_eq!(result.is_err(), &*step.name == "host-4.edit.test", "{}: {result:?}", step.name);
        }
        stage.converges(kind).await;
    }
}

/// Whatever question a keeper dies at, carried out or not: who comes after it brings the zone to the same end.
pub(crate) async fn dies_at_every_question(kind: BedKind) {
    let expected = without_faults(kind, "dies.test").await;
    for is_done in [false, true] {
        for number in 0.. {
            let mut stage = Stage::set(kind, "dies.test").await;
            let api = api(&stage.bed);
            api.take_questions();
            api.judge(move |question, _| match question.number {
                at if at < number => ApiFate::Pass,
                at if at == number && is_done => ApiFate::Lose,
                _ => ApiFate::Drop,
            });
            stage.keeper.through(opened(CloudflareConfig { per_page: 20, ..cloudflare_config(&api) }));
            let pass = stage.keeper.pass(&stage.wish).await;
            let is_whole = !pass.plan.steps.is_empty() && pass.results.iter().all(Result::is_ok);
            api.judge(|_, _| ApiFate::Pass);
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

/// Proxied records, comments and tags are written, read back, and make no difference from then on.
pub(crate) async fn properties(kind: BedKind) {
    let bed = kind.start("kept.test").await;
    let api = api(&bed);
    api.with(|zones| zones.zone("kept.test").unwrap().plan = "pro".to_owned());
    let provider = opened(cloudflare_config(&api));
    let mut keeper = Keeper::new("kept.test", provider);
    let mut wish = full().wish("kept.test");
    let pair = |name: &str, value: &str| (Str::from(name), Str::from(value));
    let place = |label: &str| wish.records.iter().position(|record| record.name.starts_with(label)).unwrap();
    let (one, two) = (place("host-0."), place("host-2."));
    wish.records[one].provider_specific = vec![
        pair("cloudflare/proxied", "true"),
        pair("cloudflare/record-comment", " made here "),
        pair("cloudflare/tags", "team:b, team:a"),
        pair("aws/weight", "10"),
    ];
    let name = wish.records[one].name.to_string();
    let find = |api: &CloudflareApi| {
        let is_it =
            |record: &&gatepost_testkit::servers::cloudflare::StoredRecord| record.name == name && record.kind != "TXT";
        api.with(|zones| zones.zone("kept.test").unwrap().records.iter().find(is_it).cloned()).unwrap()
    };
    keeper.settle(&wish).await;
    let record = find(&api);
    assert_eq!((record.is_proxied, record.ttl, &*record.comment), (true, 1, "made here"));
    assert_eq!(record.tags, ["team:a", "team:b"]);
    assert!(keeper.pass(&wish).await.plan.steps.is_empty());
    // Markers and challenges are never proxied.
    assert!(
        api.with(|zones| zones.zone("kept.test").unwrap().records.iter().all(|r| r.kind != "TXT" || !r.is_proxied))
    );
    wish.records[one].provider_specific.clear();
    keeper.settle(&wish).await;
    let record = find(&api);
    assert_eq!((record.is_proxied, record.ttl, &*record.comment, record.tags.len()), (false, 60, "", 0));
    // The flag proxies what no annotation speaks of.
    keeper.through(opened(CloudflareConfig { is_proxied: true, ..cloudflare_config(&api) }));
    keeper.settle(&wish).await;
    assert!(find(&api).is_proxied && keeper.pass(&wish).await.plan.steps.is_empty());
    // What is by hand on one record of a set is made even.
    wish.records[two].targets = ["192.0.2.90".into(), "192.0.2.91".into()].into();
    keeper.through(opened(cloudflare_config(&api)));
    keeper.settle(&wish).await;
    let before = bed.dump();
    api.with(|zones| {
        let records = &mut zones.zone("kept.test").unwrap().records;
        let record = records.iter_mut().find(|record| record.content == "192.0.2.91").unwrap();
        (record.ttl, record.comment) = (900, "by hand".to_owned());
    });
    keeper.settle(&wish).await;
    assert_eq!(bed.dump(), before);
}

/// More changes than a batch may have are several batches; a set that is larger than a batch fails alone.
pub(crate) async fn limits(kind: BedKind) {
    let mut stage = Stage::set(kind, "limits.test").await;
    let mut wish = stage.wish.clone();
    for number in 0..450 {
        wish.records.push(record_of(&wish, &format!("more-{number}.limits.test")));
    }
    let mut large = record_of(&wish, "large.limits.test");
    large.targets = (0..201).map(|number| format!("198.51.100.{number}").into()).collect::<Vec<Str>>().into();
    wish.records.push(large);
    api(&stage.bed).take_questions();
    let last = stage.keeper.settle_all_but(&wish, 1).await;
    assert_eq!(&*last.steps[0].name, "large.limits.test");
    let dump = stage.bed.dump();
    assert_eq!(dump.iter().filter(|line| line.starts_with("more-")).count(), 450);
    assert!(!dump.iter().any(|line| line.contains("198.51.100.")));
    let batches = api(&stage.bed).take_questions().into_iter().filter(is_batch);
    let sizes = batches
        .map(|batch| ["deletes", "patches", "posts"].map(|list| batch.body[list].as_array().map_or(0, Vec::len)));
    assert!(sizes.filter(|sizes| sizes.iter().sum::<usize>() > 200).count() >= 1, "the large one was tried");
    stage.converges(kind).await;
}

/// Ten thousand names: what a pass asks for is counted, not timed.
pub(crate) async fn many(kind: BedKind) {
    let bed = kind.start("many.test").await;
    let api = api(&bed);
    let mut keeper = Keeper::new("many.test", opened(CloudflareConfig { per_page: 1000, ..cloudflare_config(&api) }));
    let base = full().wish("many.test");
    let mut wish = Wish::default();
    wish.records.extend((0..10_000).map(|number| record_of(&base, &format!("host-{number}.many.test"))));
    let count = |api: &CloudflareApi| api.take_questions().len();
    keeper.settle(&wish).await;
    assert_eq!(bed.dump().iter().filter(|line| line.starts_with("host-")).count(), 10_000);
    // 20,000 records in batches of 200, and a look now and then.
    assert_eq!(api.take_questions().iter().filter(|question| is_batch(question)).count(), 100);
    assert!(keeper.pass(&wish).await.plan.steps.is_empty());
    assert_eq!(count(&api), 21);
    wish.records[77].targets = ["192.0.2.222".into()].into();
    assert_eq!(keeper.pass(&wish).await.plan.steps.len(), 1);
    // 21 pages, two names, one batch.
    assert_eq!(count(&api), 24);
}

/// Neither errors nor anything that can be printed shows the token, even where a server sends it back.
pub(crate) async fn canary(kind: BedKind) {
    let stage = Stage::set(kind, "canary.test").await;
    let api = api(&stage.bed);
    let mut keeper = Keeper::new("canary.test", opened(cloudflare_config(&api)));
    let plan = keeper.plan(&stage.wish).await;
    let echo = |status: u16| ApiAnswer::error(status, 1, &format!("you sent Bearer {TOKEN}"));
    let html = ApiAnswer { status: 200, headers: Vec::new(), body: format!("<html>{TOKEN}") };
    for answer in [echo(200), echo(302), echo(400), echo(401), echo(404), echo(429), echo(500), html] {
        let given = answer.clone();
        api.judge(move |_, _| ApiFate::Answer(given.clone()));
        let provider = Cloudflare::new(cloudflare_config(&api)).unwrap();
        let mut shown = format!("{provider:?}");
        let error = provider.zones().await.unwrap_err();
        shown.push_str(&format!("{error} {error:?}"));
        let provider = opened(cloudflare_config(&api));
        for result in provider.write("canary.test", &plan.steps).await {
            let error = result.unwrap_err();
            shown.push_str(&format!("{error} {error:?}"));
        }
        assert!(!shown.contains(TOKEN), "{answer:?}: {shown}");
    }
    let unreachable = CloudflareConfig { url: "http://127.0.0.1:1".to_owned(), ..cloudflare_config(&api) };
    let error = Cloudflare::new(unreachable).unwrap().zones().await.unwrap_err();
    assert!(error.is_transient() && !format!("{error:?}").contains(TOKEN), "{error}");
    assert_eq!(stage.bed.dump(), stage.before);
}

/// A CNAME stands at the top of the zone, beside records of other types, and nowhere else beside any.
pub(crate) async fn aliases(kind: BedKind) {
    let bed = kind.start("alias.test").await;
    bed.add(Hand { label: "beside", kind: "MX", value: "10 mail.elsewhere.test." });
    let step = |group: usize, name: &str| PlanStep {
        zone: "alias.test".into(),
        name: name.into(),
        verb: Verb::Create,
        changes: vec![SetChange {
            name: name.into(),
            kind: RecordType::Cname,
            set_identifier: None,
            old: None,
            new: Some(Content { ttl: Some(300), values: vec!["edge.example.net".into()], ..Content::default() }),
        }],
        markers: Vec::new(),
        guards: Vec::new(),
        because: String::new(),
        routes: Vec::new(),
        group,
        after: Vec::new(),
    };
    let results = bed.provider.write("alias.test", &[step(0, "alias.test"), step(1, "beside.alias.test")]).await;
    assert!(results[0].is_ok(), "{results:?}");
    let error = results[1].as_ref().unwrap_err();
    assert!(matches!(error.problem, ProviderProblem::Unwritable(_)) && error.to_string().contains("MX"), "{error}");
    assert!(bed.dump().contains(&"alias.test. 300 in cname edge.example.net.".to_owned()));
}
