//! `gatepost apply`, ended with no signal it could catch, at each message that goes or comes. Whoever runs it again ends where
//! an undisturbed run ends, byte for byte, and nothing that others wrote is touched on the way.

use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use gatepost_testkit::program::words;
use gatepost_testkit::servers::relay::{Fate, Relay};

use super::bed::{Bed, world};

/// Starts `apply` through a relay.
fn apply(bed: &Bed, relay: &Relay, objects: &str) -> Child {
    let flags = bed.flags().replace(&bed.server.address.to_string(), &relay.address.to_string());
    let file = bed.folder.file("objects.yaml", objects).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_gatepost"));
    command.args(words(&format!("apply -f '{file}' --confirm-deletes {flags}")));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Runs `apply` and ends it when its message of this number is on the way, of which so many halves arrive.
fn die_at(bed: &Bed, objects: &str, at: usize, halves: usize) {
    let (count, process) = (AtomicUsize::new(0), Arc::new(Mutex::new(None::<u32>)));
    let known = process.clone();
    let relay = Relay::start(bed.server.address, move |_, message| {
        if count.fetch_add(1, Ordering::Relaxed) != at {
            return Fate::Pass;
        }
        let id = known.lock().unwrap().unwrap().to_string();
        let _ = Command::new("kill").args(["-KILL", &id]).status();
        if halves == 2 { Fate::Pass } else { Fate::Cut((message.len() + 2) * halves / 2) }
    });
    let relay = relay.unwrap();
    // The relay waits for the number of the process, which is not known before it runs.
    let mut number = process.lock().unwrap();
    let mut child = apply(bed, &relay, objects);
    *number = Some(child.id());
    drop(number);
    assert!(!child.wait().unwrap().success(), "it was to die at message {at}");
}

/// Runs `apply` until it says that everything is done; what died before may still be on its way.
fn settle(bed: &Bed, objects: &str) {
    let last = (0..4).map(|_| bed.run("apply --confirm-deletes", objects)).find(|answer| answer.exit == 0);
    assert!(last.is_some(), "{}", bed.run("apply --confirm-deletes", objects).output);
    let plan = bed.run("plan --expect-no-changes", objects);
    assert_eq!(plan.exit, 0, "{}", plan.output);
}

#[test]
fn apply_may_die_at_every_message() {
    let Some(bed) = Bed::new() else { return };
    let names: Vec<String> = (0..12).map(|n| format!("host-{n}.example.org")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    // A wildcard and an alias, which become names and addresses; half of the hosts go.
    let first = world("192.0.2.10", &[&names[..], &["*.apps.example.org"]].concat());
    let first = first
        + "---\n"
        + &world("lb.example.net", &["alias.example.org"]).replace("edge", "named").replace("route-", "alias-");
    let second = world("192.0.2.11", &[&names[..6], &["a.apps.example.org", "alias.example.org"]].concat());
    let foreign = bed.zone();
    settle(&bed, &first);
    let before = bed.zone();
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    let relay = Relay::start(bed.server.address, move |_, _| {
        counted.fetch_add(1, Ordering::Relaxed);
        Fate::Pass
    });
    assert!(apply(&bed, &relay.unwrap(), &second).wait().unwrap().success());
    let messages = count.load(Ordering::Relaxed);
    settle(&bed, &second);
    let end = bed.zone();
    assert!(messages >= 4 && before != end, "{messages}");
    for (at, halves) in (0..messages).flat_map(|at| [(at, 0), (at, 1), (at, 2)]) {
        settle(&bed, &first);
        assert_eq!(bed.zone(), before);
        die_at(&bed, &second, at, halves);
        let now = bed.zone();
        assert!(foreign.iter().all(|line| now.contains(line)), "message {at}: {now:#?}");
        settle(&bed, &second);
        assert_eq!(bed.zone(), end, "message {at}, {halves}/2 of it arrived");
    }
}
