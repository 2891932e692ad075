//! `serve` with a provider: the loop over files against BIND.

use super::bed::{Bed, world};
use super::running::{Running, comes_true, get};

fn start(bed: &Bed, more: &str) -> Running {
    let folder = bed.folder.path().join("objects");
    Running::start(&format!("serve -f '{}' --http-addr 127.0.0.1:0 {} {more}", folder.display(), bed.flags()))
}

fn put(bed: &Bed, hostnames: &[&str]) {
    bed.folder.file("objects/all.yaml", &world("192.0.2.10", hostnames)).unwrap();
}

#[test]
fn files_are_followed_on_a_server_of_updates() {
    let Some(bed) = Bed::new() else { return };
    put(&bed, &["a.example.org", "b.example.org"]);
    let served = start(&bed, "");
    assert_eq!(bed.addresses("a.example.org"), ["192.0.2.10"], "it is there when it is ready");
    comes_true("it says so", || served.said().contains("+ a.example.org A 192.0.2.10"));
    put(&bed, &["a.example.org", "c.example.org"]);
    comes_true("c is published", || bed.addresses("c.example.org") == ["192.0.2.10"]);
    comes_true("b is gone", || bed.addresses("b.example.org").is_empty());
    assert!(get(served.address("http"), "/plan.json").contains("\"outcome\": \"written\""));
    // Who edits a file while it is followed means it, also for the last name; who starts without any does not.
    put(&bed, &[]);
    comes_true("a and c are gone", || ["a", "c"].iter().all(|n| bed.addresses(&format!("{n}.example.org")).is_empty()));
    put(&bed, &["a.example.org"]);
    comes_true("a is published", || bed.addresses("a.example.org") == ["192.0.2.10"]);
    assert_eq!(served.stop(), Some(0));
    put(&bed, &[]);
    let served = start(&bed, "");
    comes_true("the brake is told", || served.said().contains("source-empty"));
    assert_eq!(bed.addresses("a.example.org"), ["192.0.2.10"]);
    assert_eq!(served.stop(), Some(0));
}

#[test]
fn what_others_break_is_mended_and_a_server_that_is_gone_is_told() {
    let Some(bed) = Bed::new() else { return };
    put(&bed, &["a.example.org"]);
    let served = start(&bed, "--interval 1s");
    bed.server.edit("example.org", &["update delete a.example.org A"]).unwrap();
    comes_true("a is back", || bed.addresses("a.example.org") == ["192.0.2.10"]);
    let ready = || get(served.address("http"), "/readyz");
    assert!(ready().starts_with("HTTP/1.1 200"));
    bed.server.kill();
    comes_true("it is not ready", || ready().starts_with("HTTP/1.1 503"));
    assert!(ready().contains("cannot be reached"), "{}", ready());
    bed.server.run().unwrap();
    comes_true("it is ready again", || ready().starts_with("HTTP/1.1 200"));
}

#[test]
fn a_dry_run_observes() {
    let Some(bed) = Bed::new() else { return };
    put(&bed, &["a.example.org"]);
    let before = bed.zone();
    let served = start(&bed, "--dry-run --interval 1s");
    put(&bed, &["a.example.org", "b.example.org"]);
    comes_true("the change is seen", || get(served.address("http"), "/plan.json").contains("b.example.org"));
    assert_eq!((bed.zone(), bed.updates()), (before, 0));
}

/// The server is frozen, so that a pass hangs: who is told to stop stops all the same.
#[test]
fn a_stop_is_heard_while_a_provider_hangs() {
    let Some(bed) = Bed::new() else { return };
    put(&bed, &["a.example.org"]);
    let served = start(&bed, "--interval 1s --provider-timeout 600s");
    bed.server.signal("STOP");
    // A fixed time: a name server that is stopped shows nobody that a question waits for it. A pass comes every second.
    std::thread::sleep(std::time::Duration::from_secs(2));
    assert_eq!(served.stop(), Some(0));
    bed.server.signal("CONT");
}

#[test]
fn the_embedded_server_answers_with_the_addresses_behind_a_name() {
    let Some(bed) = Bed::new() else { return };
    let objects = world("lb.example.net", &["example.org", "www.example.org"]);
    bed.folder.file("objects/all.yaml", &objects).unwrap();
    let folder = bed.folder.path().join("objects");
    let served = Running::start(&format!(
        "serve -f '{}' --dns-addr 127.0.0.1:0 --http-addr 127.0.0.1:0 --zone example.org --resolve-targets --resolver {}",
        folder.display(),
        bed.server.address
    ));
    comes_true("the top has addresses", || served.said().contains("+ example.org A 198.51.100.1"));
    comes_true("www is a CNAME", || served.said().contains("+ www.example.org CNAME lb.example.net"));
    let resolved = world("198.51.100.1", &["example.org"])
        .replace("addresses: [", "addresses: [{type: IPAddress, value: \"2001:db8::51\"}, ");
    let answer = super::bed::run(&format!("verify --server {}", served.address("dns")), &resolved);
    assert_eq!(answer.exit, 0, "{}", answer.output);
}
