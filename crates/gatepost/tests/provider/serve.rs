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
    assert!(served.said().contains("+ a.example.org A 192.0.2.10"), "{}", served.said());
    put(&bed, &["a.example.org", "c.example.org"]);
    comes_true("c is published", || bed.addresses("c.example.org") == ["192.0.2.10"]);
    comes_true("b is gone", || bed.addresses("b.example.org").is_empty());
    assert!(get(served.address("http"), "/plan.json").contains("\"outcome\": \"written\""));
    put(&bed, &[]);
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
