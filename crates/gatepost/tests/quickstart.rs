//! `make run` as CI can run it: every command on the example, then a server that is started, asked and stopped.

#![allow(clippy::unwrap_used, reason = "a failure here is a failed test")]

use std::process::Command;

use gatepost_testkit::tree;

#[test]
fn the_quickstart_ends_with_names_that_are_answered() {
    let script = tree::root().join("scripts/quickstart");
    let mut command = Command::new("bash");
    command.arg(script).arg(env!("CARGO_BIN_EXE_gatepost")).current_dir(tree::root());
    let done = command.env("QUICKSTART_ONCE", "1").env("NO_COLOR", "1").output().unwrap();
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success(), "{said}{}", String::from_utf8_lossy(&done.stderr));
    for part in [
        "✗ blog.example.org does not work",
        "dig @127.0.0.1 -p ",
        "look: http://127.0.0.1:",
        "gatepost explain blog.example.org -f examples/quickstart",
        "✓ www.example.org  A 192.0.2.10  AAAA 2001:db8::10",
        "4 of 4 names are right on 1 server",
    ] {
        assert!(said.contains(part), "no {part:?} in\n{said}");
    }
}
