//! A zone moved through states by the planner: after each the plan is empty, what is foreign is untouched, and every name
//! that was served before and after resolved all the while.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use domain::base::iana::{Rcode, Rtype};
use domain::base::{Message, MessageBuilder};
use gatepost_core::desired::{NameSource, Record, RecordType};
use gatepost_core::plan::layout::Layout;
use gatepost_core::plan::{
    self, Instance, Intent, Observed, Plan, RecordKey, Registry, Settings, Step, TxtRegistry, ZoneState,
};
use gatepost_dns::provider::{Provider, data};
use gatepost_dns::providers::webhook::server::Server;
use gatepost_dns::providers::webhook::{Config, Webhook};
use tokio::net::UdpSocket;

use crate::bed::{Bed, Scenario, all_ok};

pub(crate) const ALL: &[Scenario] = &[
    Scenario::new("moves_through_states", |bed| Box::pin(direct(bed))),
    Scenario::new("moves_through_states_by_webhook", |bed| Box::pin(by_webhook(bed))),
];

async fn direct(bed: Bed<'_>) {
    let provider = bed.provider();
    move_through(&bed, &provider).await;
}

async fn by_webhook(bed: Bed<'_>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(Server::new(Arc::new(bed.provider())).serve(listener));
    move_through(&bed, &Webhook::new(Config { url, ..Config::default() }).unwrap()).await;
}

/// Desired records by name and type.
type State = BTreeMap<(String, RecordType), Vec<String>>;

fn states() -> Vec<State> {
    let base: State = (0..20).map(|n| ((format!("host-{n}"), RecordType::A), vec![format!("192.0.2.{n}")])).collect();
    let with = |from: &State, more: &[(&str, RecordType, &str)]| {
        let more = more.iter().map(|(name, kind, value)| (((*name).to_owned(), *kind), vec![(*value).to_owned()]));
        from.clone().into_iter().chain(more).collect::<State>()
    };
    let without = |from: &State, gone: &[(&str, RecordType)]| {
        let is_gone = |key: &(String, RecordType)| gone.iter().any(|(name, kind)| *name == key.0 && *kind == key.1);
        from.clone().into_iter().filter(|(key, _)| !is_gone(key)).collect::<State>()
    };
    let six = with(&base, &[("host-1", RecordType::Aaaa, "2001:db8::1"), ("host-2", RecordType::A, "192.0.2.202")]);
    let alias =
        with(&without(&six, &[("host-3", RecordType::A)]), &[("host-3", RecordType::Cname, "host-4.example.net")]);
    let wild = with(&alias, &[("*.apps", RecordType::A, "192.0.2.50"), ("deep.x.apps", RecordType::A, "192.0.2.51")]);
    let named = with(&wild, &[("a.apps", RecordType::A, "192.0.2.50"), ("b.apps", RecordType::A, "192.0.2.50")]);
    let precise = without(&named, &[("*.apps", RecordType::A)]);
    let back = with(&without(&precise, &[("host-3", RecordType::Cname)]), &[("host-3", RecordType::A, "192.0.2.3")]);
    let fewer = without(&back, &[("host-7", RecordType::A), ("host-8", RecordType::A)]);
    vec![base, six, alias, wild, named, precise, back, fewer, State::new()]
}

async fn move_through(bed: &Bed<'_>, provider: &dyn Provider) {
    let foreign = bed.server.dump(&bed.zone).unwrap();
    let mut before = State::new();
    let mut remembered = BTreeSet::new();
    for (number, state) in states().into_iter().enumerate() {
        let watch = Watch::start(bed, &before, &state);
        let records = records(bed, &state);
        let mut rounds = 0;
        loop {
            let plan = decide(bed, provider, &records, &remembered).await;
            remembered.extend(plan.ours.iter().cloned());
            if plan.steps.is_empty() {
                assert!(plan.held.is_empty(), "state {number}: {:?}", plan.held);
                break;
            }
            rounds += 1;
            assert!(rounds <= 3, "state {number} does not come to rest: {:?}", plan.steps);
            apply(bed, provider, &plan.steps).await;
        }
        watch.stop(number).await;
        let dump = bed.server.dump(&bed.zone).unwrap();
        let gone: Vec<_> = foreign.iter().filter(|line| !dump.contains(line)).collect();
        assert!(gone.is_empty(), "state {number}: {gone:?}");
        // Every record has a marker beside it.
        assert_eq!(bed.read().await.sets().len(), 10 + 2 * state.len(), "state {number}: {dump:#?}");
        before = state;
    }
    assert_eq!(bed.server.dump(&bed.zone).unwrap(), foreign);
}

fn records(bed: &Bed<'_>, state: &State) -> Vec<Record> {
    let record = |((label, kind), values): (&(String, RecordType), &Vec<String>)| Record {
        name: bed.name(label).into(),
        kind: *kind,
        targets: values.iter().map(|value| value.as_str().into()).collect(),
        ttl: Some(60),
        set_identifier: None,
        provider_specific: Vec::new(),
        routes: Vec::new(),
        listeners: Vec::new(),
        source: NameSource::Intersected,
    };
    state.iter().map(record).collect()
}

async fn decide(bed: &Bed<'_>, provider: &dyn Provider, records: &[Record], remembered: &BTreeSet<RecordKey>) -> Plan {
    let mut registry = TxtRegistry::new("me", Instance::new("this test"));
    registry.layout = Layout::new("", "", "any").unwrap();
    let mut settings = Settings::new(Registry::Txt(Box::new(registry)));
    settings.capabilities = provider.capabilities().plan;
    settings.confirm_deletes = true;
    let mut observed = Observed::default();
    observed.insert(&bed.zone, ZoneState::Read(provider.read(&bed.zone).await.unwrap()));
    let records = provider.adjust(records.to_vec()).await.unwrap();
    let (covered, challenges, retired, holds, unseen) = (&[][..], &[][..], &[][..], &[][..], &[][..]);
    let intent = Intent { records: &records, covered, challenges, retired, holds, unseen, remembered };
    plan::decide(&intent, &observed, &settings)
}

/// Writes steps in waves: none before those it waits for.
async fn apply(bed: &Bed<'_>, provider: &dyn Provider, steps: &[Step]) {
    let mut done: BTreeSet<usize> = BTreeSet::new();
    while done.len() < steps.len() {
        let ready: Vec<usize> = (0..steps.len())
            .filter(|at| !done.contains(at) && steps[*at].after.iter().all(|needed| done.contains(needed)))
            .collect();
        assert!(!ready.is_empty(), "steps wait for each other: {steps:?}");
        let wave: Vec<Step> = ready.iter().map(|at| steps[*at].clone()).collect();
        all_ok(&provider.write(&bed.zone, &wave).await);
        done.extend(ready);
    }
}

/// A loop of queries beside the changes.
struct Watch {
    stop: Arc<AtomicBool>,
    asked: Arc<AtomicUsize>,
    task: tokio::task::JoinHandle<Vec<String>>,
}

impl Watch {
    /// Watches the names that both states serve, by themselves or by a wildcard.
    fn start(bed: &Bed<'_>, before: &State, after: &State) -> Watch {
        let all = before.keys().chain(after.keys()).map(|(name, _)| name.clone());
        let probes = all.map(|name| name.replace('*', "any")).chain(["a.apps".to_owned(), "deep.x.apps".to_owned()]);
        let served = |state: &State, name: &str| {
            let wild = name.split_once('.').map(|(_, rest)| format!("*.{rest}"));
            state.keys().any(|(other, _)| other == name || Some(other) == wild.as_ref())
        };
        let both: BTreeSet<String> = probes.filter(|name| served(before, name) && served(after, name)).collect();
        let names: Vec<String> = both.iter().map(|name| bed.name(name)).collect();
        let (stop, asked) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let task = tokio::spawn(ask_on(bed.server.address, names, stop.clone(), asked.clone()));
        Watch { stop, asked, task }
    }

    async fn stop(self, number: usize) {
        self.stop.store(true, Ordering::Relaxed);
        let failures = self.task.await.unwrap();
        let asked = self.asked.load(Ordering::Relaxed);
        assert!(failures.is_empty(), "state {number}, {asked} asked: {failures:?}");
        // Before the first state and after the last one nothing is served.
        assert!(asked > 0 || number == 0 || number + 1 == states().len(), "state {number} was not watched");
    }
}

async fn ask_on(
    server: std::net::SocketAddr,
    names: Vec<String>,
    stop: Arc<AtomicBool>,
    asked: Arc<AtomicUsize>,
) -> Vec<String> {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    socket.connect(server).await.unwrap();
    let mut failures = Vec::new();
    while !stop.load(Ordering::Relaxed) && !names.is_empty() {
        for name in &names {
            let count = asked.fetch_add(1, Ordering::Relaxed);
            match ask(&socket, name, count as u16).await {
                Some(Rcode::NOERROR) | None => {}
                Some(other) => failures.push(format!("{name}: {other}")),
            }
        }
    }
    failures
}

/// The response code to a question for A; none where the packet is lost.
async fn ask(socket: &UdpSocket, name: &str, id: u16) -> Option<Rcode> {
    let mut builder = MessageBuilder::new_vec();
    builder.header_mut().set_id(id);
    let mut builder = builder.question();
    builder.push((data::name(name).unwrap(), Rtype::A)).unwrap();
    socket.send(&builder.finish()).await.ok()?;
    let mut buffer = [0; 4096];
    let waiting = async {
        loop {
            let length = socket.recv(&mut buffer).await.ok()?;
            let message = Message::from_octets(&buffer[..length]).ok()?;
            if message.header().id() == id {
                return Some(message.header().rcode());
            }
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(2), waiting).await.ok().flatten()
}
