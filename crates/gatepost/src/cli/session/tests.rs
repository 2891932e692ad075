use std::time::Duration;

use clap::Parser;
use gatepost_core::publication::{NameSource, RecordType};
use gatepost_core::snapshot::{Change, Object};

use super::*;

#[derive(Parser)]
struct SessionFlags {
    #[command(flatten)]
    publishing: Publishing,
    #[command(flatten)]
    provider: ProviderFlags,
    #[command(flatten)]
    planning: PlanningFlags,
}

const ROUTES: usize = 2000;

fn world() -> Snapshot {
    let mut text = "apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {name: edge, namespace: a}\n\
         spec: {gatewayClassName: x, listeners: [{name: web, port: 80, protocol: HTTP}]}\n\
         status: {addresses: [{type: IPAddress, value: 192.0.2.1}]}\n"
        .to_owned();
    for number in 0..ROUTES {
        text.push_str(&format!(
            "---\napiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\n\
             metadata: {{name: r{number}, namespace: a}}\n\
             spec: {{parentRefs: [{{name: edge}}], hostnames: [n{number}.example.org]}}\n"
        ));
    }
    gatepost_objects::collect([("world".into(), text.into_bytes())], &Default::default()).snapshot
}

/// One pass; says whether everything was made for it, and the names that were written.
async fn pass(session: &mut Session, engine: &mut Engine, delta: Delta) -> (bool, Vec<String>) {
    let decision = session.follow(engine, delta, &[]).await.unwrap();
    let is_whole = decision.desired.whole().is_some();
    let (pass, kept) = session.write(decision, &mut |_, _| ()).await;
    kept.unwrap();
    assert!(pass.outcome.is_complete());
    assert!(*pass.desired.read() == session.pipeline.desired_in(engine.world()), "what is kept is what would be made");
    (is_whole, pass.plan.steps.iter().map(|step| step.name.to_string()).collect())
}

/// The pass after a very large write: the zone is read again instead of being kept up to date.
async fn reread(session: &mut Session, engine: &mut Engine) {
    assert_eq!(pass(session, engine, Delta::default()).await, (true, Vec::new()));
}

fn challenge(name: &str) -> Record {
    Record {
        name: name.into(),
        kind: RecordType::Txt,
        targets: ["value".into()].into_iter().collect(),
        ttl: Some(60),
        set_identifier: None,
        provider_specific: Vec::new(),
        routes: Default::default(),
        listeners: Default::default(),
        source: NameSource::Intersected,
        provider: None,
    }
}

#[test]
fn one_changed_route_among_many_makes_nothing_whole_also_while_an_order_is_open() {
    let work = async {
        let SessionFlags { publishing, provider, planning } =
            SessionFlags::parse_from(["serve", "--provider", "embedded", "--policy", "sync"]);
        let flags = Flags { publishing: &publishing, provider: &provider, planning: &planning };
        let mut session = Session::with(flags, Some(NOWHERE), true)?;
        session.zones = ZoneCache::new(Duration::from_secs(600));
        let (mut engine, world) = (session.engine(Origin::Files), world());
        let mut route = (**world.routes.values().nth(7).unwrap()).clone();
        let delta = engine.apply(Change::between(&Snapshot::new(), &world));
        assert_eq!(pass(&mut session, &mut engine, delta).await.1.len(), ROUTES);
        reread(&mut session, &mut engine).await;
        assert_eq!(pass(&mut session, &mut engine, Delta::default()).await, (false, Vec::new()));

        route.hostnames = vec![gatepost_core::model::WrittenHostname::new("new.example.org")].into();
        let old = world.routes.get(&route.object()).unwrap().hostnames[0].name().unwrap().to_string();
        let delta = engine.apply([Change::Upsert(Object::Route(route.clone()))]);
        let (is_whole, mut names) = pass(&mut session, &mut engine, delta).await;
        names.sort();
        assert_eq!((is_whole, names), (false, vec![old, "new.example.org".to_owned()]));

        let order = "_acme-challenge.new.example.org";
        session.challenge_records.challenges = vec![challenge(order)];
        assert_eq!(pass(&mut session, &mut engine, Delta::default()).await, (false, vec![order.to_owned()]));
        route.hostnames = vec![gatepost_core::model::WrittenHostname::new("newer.example.org")].into();
        let delta = engine.apply([Change::Upsert(Object::Route(route))]);
        let (is_whole, mut names) = pass(&mut session, &mut engine, delta).await;
        names.sort();
        assert_eq!((is_whole, names), (false, vec!["new.example.org".to_owned(), "newer.example.org".to_owned()]));
        session.challenge_records = ChallengeRecords { challenges: Vec::new(), retired: vec![challenge(order)] };
        assert_eq!(pass(&mut session, &mut engine, Delta::default()).await, (false, vec![order.to_owned()]));
        session.challenge_records = ChallengeRecords::default();
        assert_eq!(pass(&mut session, &mut engine, Delta::default()).await, (false, Vec::new()));
        Ok(())
    };
    block_on(work).unwrap();
}
