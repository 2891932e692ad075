//! Servers and keepers that die, with no signal they could catch, at any moment of a change. The zone ends where it would have
//! ended, byte for byte, and nothing that others wrote is touched on the way.

use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use gatepost_dns::providers::rfc2136::Rfc2136;
use gatepost_testkit::servers::Kind;
use gatepost_testkit::servers::relay::{Direction, Fate, Relay, is_update};

use crate::beds::{BedKind, Behind, rfc2136_config};
use crate::faults::{Stage, without_faults};
use crate::keeper::Keeper;
use crate::states::{full, precise};

/// Makes this program a keeper instead of a test: where, and which zone.
const KEEPER: &str = "GATEPOST_TEST_KEEPER";

/// The server dies after we read and before we write; nothing is written, and nothing is lost.
pub(crate) async fn server_dies_in_the_gap(kind: BedKind) {
    let mut stage = Stage::set(kind, "gap-kill.test").await;
    let plan = stage.keeper.plan(&stage.wish).await;
    stage.bed.primary().kill();
    let results = stage.keeper.write(&plan.steps).await;
    assert!(!results.is_empty() && results.iter().all(|result| result.as_ref().is_err_and(|e| e.is_transient())));
    assert!(
        stage.keeper.pass(&stage.wish).await.plan.steps.is_empty(),
        "a zone that cannot be read is not planned for"
    );
    stage.bed.primary().run().unwrap();
    assert_eq!(stage.bed.dump(), stage.before);
    stage.converges(kind).await;
}

/// The server dies while it takes an update, each time a little later. `GATEPOST_ROUNDS=100` for a thorough run.
pub(crate) async fn server_dies_while_it_writes(kind: BedKind) {
    let rounds = std::env::var("GATEPOST_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(4);
    let mut stage = Stage::set(kind, "kill.test").await;
    let ends = [without_faults(kind, "kill.test").await, stage.before.clone()];
    let wishes = [precise().wish("kill.test"), full().wish("kill.test")];
    let server = stage.bed.address;
    for round in 0..rounds {
        let (wish, end) = (&wishes[round % 2], &ends[round % 2]);
        let id = stage.bed.primary().id().unwrap();
        let delay = Duration::from_micros(round as u64 * 613 % 12_000);
        let relay = Relay::start(server, move |way, message| {
            if way == Direction::There && is_update(message) {
                thread::spawn(move || {
                    // A fixed time, another one in each round: the moment of the kill is what is tried.
                    thread::sleep(delay);
                    end_process(id);
                });
            }
            Fate::Pass
        });
        let relay = relay.unwrap();
        stage.keeper.through(opened(relay.address, "kill.test"));
        stage.keeper.pass(wish).await;
        end_process(id);
        stage.bed.primary().run().unwrap();
        stage.keeper.through(stage.bed.provider.clone());
        stage.keeper.settle(wish).await;
        assert_eq!(&stage.bed.dump(), end, "round {round}");
    }
}

/// The keeper's process dies at each message that goes or comes, before it arrives, with half of it, and after it.
pub(crate) async fn keeper_dies_at_every_step(kind: BedKind) {
    let mut stage = Stage::set(kind, "step.test").await;
    let (before, end) = (stage.before.clone(), without_faults(kind, "step.test").await);
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    let relay = Relay::start(stage.bed.address, move |_, _| {
        counted.fetch_add(1, Ordering::Relaxed);
        Fate::Pass
    });
    assert!(keeper(relay.unwrap().address, "step.test").status().unwrap().success());
    assert_eq!(stage.bed.dump(), end);
    let messages = count.load(Ordering::Relaxed);
    assert!(messages > 15, "{messages} messages are hardly every step");
    let foreign: Vec<String> = before.iter().filter(|line| end.contains(line)).cloned().collect();
    // All three on the fastest server, one of them in turn on the others.
    let is_fast = kind.behind == Behind::Primary(Kind::Bind);
    let points = (0..messages).flat_map(|at| [(at, 0), (at, 1), (at, 2)]);
    for (at, share) in points.filter(|(at, share)| is_fast || at % 3 == *share) {
        stage.keeper.settle(&full().wish("step.test")).await;
        assert_eq!(stage.bed.dump(), before);
        die_at(stage.bed.address, at, share);
        let now = stage.bed.dump();
        let gone: Vec<_> = foreign.iter().filter(|line| !now.contains(line)).collect();
        assert!(gone.is_empty(), "message {at}: {gone:?}");
        // Whoever comes after it knows nothing of it.
        // An update may still be on its way, so what it reads may change under it.
        Keeper::new("step.test", stage.bed.provider.clone()).settle_all_but(&stage.wish, 0).await;
        assert_eq!(stage.bed.dump(), end, "message {at}, {share}/2 of it arrived");
    }
}

/// Runs a keeper that dies when its message of this number is on the way; so many halves of it arrive.
fn die_at(server: SocketAddr, at: usize, halves: usize) {
    let (count, process) = (AtomicUsize::new(0), Arc::new(Mutex::new(None::<u32>)));
    let known = process.clone();
    let relay = Relay::start(server, move |_, message| {
        if count.fetch_add(1, Ordering::Relaxed) != at {
            return Fate::Pass;
        }
        known.lock().unwrap().into_iter().for_each(end_process);
        if halves == 2 { Fate::Pass } else { Fate::Cut((message.len() + 2) * halves / 2) }
    });
    let relay = relay.unwrap();
    // The relay waits for the number of the process, which is not known before it runs.
    let mut number = process.lock().unwrap();
    let mut child = keeper(relay.address, "step.test").spawn().unwrap();
    *number = Some(child.id());
    drop(number);
    assert!(!child.wait().unwrap().success(), "it was to die at message {at}");
}

/// This program as a keeper.
fn keeper(server: SocketAddr, zone: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.env(KEEPER, format!("{server} {zone}")).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Whether this process is to be a keeper; then it has been one.
pub(crate) fn was_keeper() -> bool {
    let Ok(words) = std::env::var(KEEPER) else { return false };
    let (server, zone) = words.split_once(' ').unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut keeper = Keeper::new(zone, opened(server.parse().unwrap(), zone));
    keeper.one_by_one = true;
    runtime.block_on(keeper.settle(&precise().wish(zone)));
    true
}

fn opened(server: SocketAddr, zone: &str) -> gatepost_dns::provider::Shared {
    Arc::new(Rfc2136::new(rfc2136_config(server, zone)).unwrap())
}

fn end_process(id: u32) {
    // It may be gone already.
    let _ = Command::new("kill").args(["-KILL", &id.to_string()]).stderr(Stdio::null()).status();
}
