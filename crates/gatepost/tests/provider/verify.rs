//! `verify`: what is wanted, stored and answered, on every server.

use gatepost_testkit::servers::{Kind, Primary};

use super::bed::{Bed, run, world};

#[test]
fn names_that_are_right_are_one_line_each() {
    let Some(bed) = Bed::new() else { return };
    let world = world("192.0.2.10", &["www.example.org", "*.shop.example.org"]);
    assert_eq!(bed.run("apply", &world).exit, 0);
    let answer = bed.run("verify", &world);
    assert_eq!(answer.exit, 0, "{}{}", answer.output, answer.errors);
    assert!(answer.output.contains("✓ www.example.org  A 192.0.2.10\n"), "{}", answer.output);
    assert!(answer.output.contains("✓ *.shop.example.org (asked as gatepost-verify-"), "{}", answer.output);
    assert!(answer.output.ends_with("2 of 2 names are right on 1 server\n"), "{}", answer.output);
}

#[test]
fn a_name_that_is_not_right_shows_all_three_and_what_to_do() {
    let Some(bed) = Bed::new() else { return };
    let world = world("192.0.2.10", &["www.example.org", "hand.example.org"]);
    let answer = bed.run("verify", &world);
    assert_eq!(answer.exit, 1, "{}", answer.errors);
    for part in [
        "✗ www.example.org\n",
        "    wanted    A 192.0.2.10  because HTTPRoute/infra/route-0\n",
        "    stored    A nothing\n",
        "says that there is no such name (NXDOMAIN)\n",
        "`gatepost apply` with the same flags writes it\n",
        "✗ hand.example.org\n",
        "says 192.0.2.7\n",
        "[GP0403 record-unmanaged]",
        "0 of 2 names are right on 1 server\n",
    ] {
        assert!(answer.output.contains(part), "no {part:?} in\n{}", answer.output);
    }
}

#[test]
fn json_keeps_wanted_stored_and_answered_apart() {
    let Some(bed) = Bed::new() else { return };
    let world = world("192.0.2.10", &["www.example.org"]);
    assert_eq!(bed.run("apply", &world).exit, 0);
    bed.server
        .edit("example.org", &["update delete www.example.org A", "update add www.example.org 60 A 192.0.2.99"])
        .unwrap();
    let (exit, found) = bed.json("verify www.example.org", &world);
    assert_eq!((exit, &found["right"]), (1, &false.into()));
    let one = &found["names"][0]["types"][0];
    assert_eq!(
        (&one["type"], &one["wanted"][0], &one["stored"][0]),
        (&"A".into(), &"192.0.2.10".into(), &"192.0.2.99".into())
    );
    let answer = &one["answered"][0];
    assert_eq!(
        (&answer["state"], &answer["values"][0], &answer["code"]),
        (&"differs".into(), &"192.0.2.99".into(), &"NOERROR".into())
    );
    assert_eq!(answer["server"], bed.server.address.to_string());
    for (name, older) in [("wanted", "intent"), ("stored", "provider"), ("answered", "wire")] {
        assert_eq!(one[name], one[older]);
    }
}

#[test]
fn an_address_that_nobody_wants_is_not_right() {
    let Some(bed) = Bed::new() else { return };
    let world = world("192.0.2.10", &["www.example.org"]);
    assert_eq!(bed.run("apply", &world).exit, 0);
    bed.server.edit("example.org", &["update add www.example.org 60 AAAA 2001:db8::99"]).unwrap();
    let answer = bed.run("verify", &world);
    assert_eq!(answer.exit, 1);
    assert!(answer.output.contains("says 2001:db8::99, and none is wanted"), "{}", answer.output);
}

/// One server of two lags behind: the name is not right, and it is told where.
#[test]
fn every_server_is_asked() {
    let Some(bed) = Bed::new() else { return };
    let zone = "$ORIGIN example.org.\n@ 3600 IN SOA ns1 hostmaster 1 3600 600 1209600 60\n@ 3600 IN NS ns1\nns1 3600 IN A 192.0.2.53\n";
    let behind = Kind::Bind
        .start(&Primary { zones: vec![("example.org".to_owned(), zone.to_owned())], ..Primary::default() })
        .unwrap();
    let world = world("192.0.2.10", &["www.example.org"]);
    assert_eq!(bed.run("apply", &world).exit, 0);
    let both = format!("verify --server {} --server {}", bed.server.address, behind.address);
    let answer = bed.run(&both, &world);
    assert_eq!(answer.exit, 1, "{}", answer.output);
    assert!(
        answer.output.contains(&format!("{} says 192.0.2.10, as it should be", bed.server.address)),
        "{}",
        answer.output
    );
    assert!(
        answer.output.contains(&format!("{} says that there is no such name", behind.address)),
        "{}",
        answer.output
    );
    assert!(answer.output.contains("these servers lag behind"), "{}", answer.output);
    behind.kill();
    let answer = bed.run(&format!("{both} --timeout 1s"), &world);
    assert_eq!(answer.exit, 1);
    assert!(answer.output.contains(&format!("{} did not answer", behind.address)), "{}", answer.output);
}

#[test]
fn without_a_provider_answers_are_compared_with_what_is_wanted() {
    let Some(bed) = Bed::new() else { return };
    let world = world("192.0.2.10", &["www.example.org"]);
    let verify = format!("verify --server {}", bed.server.address);
    assert_eq!(run(&verify, &world).exit, 1);
    assert_eq!(bed.run("apply", &world).exit, 0);
    let answer = run(&verify, &world);
    assert_eq!(answer.exit, 0, "{}{}", answer.output, answer.errors);
    let other = run(&format!("{verify} nobody.example.org"), &world);
    assert_eq!(other.exit, 1);
    assert!(other.output.contains("gatepost explain nobody.example.org"), "{}", other.output);
}

/// BIND itself stands for the resolver: it answers for its own zones, name servers included. Those have addresses that
/// nobody answers at, which is what is told.
#[test]
fn name_servers_are_found_through_a_resolver() {
    let Some(bed) = Bed::new() else { return };
    let world = world("192.0.2.10", &["www.example.org"]);
    let answer = run(&format!("verify --timeout 1s --resolver {}", bed.server.address), &world);
    assert_eq!(answer.exit, 1);
    assert!(
        answer.output.contains("ns1.example.org (192.0.2.53) did not answer"),
        "{}{}",
        answer.output,
        answer.errors
    );
    let gone = run("verify --timeout 1s --resolver 127.0.0.1:1", &world);
    assert_eq!(gone.exit, 1);
    assert!(gone.output.contains("no server was asked: 127.0.0.1:1"), "{}", gone.output);
}

#[test]
fn a_server_that_does_not_have_the_zone_is_told_as_such() {
    let Some(bed) = Bed::new() else { return };
    let answer = run(&format!("verify --server {}", bed.server.address), &world("192.0.2.10", &["www.example.com"]));
    assert_eq!(answer.exit, 1);
    assert!(answer.output.contains("answers REFUSED"), "{}", answer.output);
}

#[test]
fn a_withheld_name_says_why() {
    let Some(bed) = Bed::new() else { return };
    let objects = world("192.0.2.10", &["www.example.org"])
        .replace("protocol: HTTP}", "protocol: HTTP, hostname: \"*.example.net\"}");
    let answer = run(&format!("verify www.example.org --server {}", bed.server.address), &objects);
    assert_eq!(answer.exit, 1);
    assert!(answer.output.contains("no-common-hostname"), "{}", answer.output);
}
