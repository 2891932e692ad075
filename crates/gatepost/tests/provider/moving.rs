//! Moving in and out: a zone that the real external-dns filled is taken over without a change, and what we write external-dns
//! leaves alone.

use gatepost_testkit::servers::external_dns::{ExternalDns, changes, rfc2136};

use super::bed::Bed;
use super::running::Running;

/// A Gateway with a status that external-dns trusts, and routes of many sorts.
struct World {
    /// Addresses by Gateway.
    gateways: Vec<(&'static str, Vec<&'static str>)>,
    /// Name, Gateway, hostnames, annotations.
    routes: Vec<(&'static str, &'static str, Vec<&'static str>, &'static str)>,
}

const TRUE: &str = "status: \"True\", reason: Accepted, lastTransitionTime: \"2026-01-01T00:00:00Z\", message: \"\"";

impl World {
    fn first() -> World {
        World {
            gateways: vec![
                ("four", vec!["192.0.2.10"]),
                ("both", vec!["192.0.2.11", "192.0.2.12", "2001:db8::11"]),
                ("name", vec!["lb.example.net"]),
            ],
            routes: vec![
                ("web", "four", vec!["www.example.org", "shop.example.org"], ""),
                ("api", "both", vec!["api.example.org", "deep.api.example.org"], ""),
                ("cdn", "name", vec!["cdn.example.org"], ""),
                ("wild", "four", vec!["*.apps.example.org", "in.apps.example.org"], ""),
                ("slow", "four", vec!["slow.example.org"], "external-dns.kubernetes.io/ttl: \"120\""),
                ("same", "four", vec!["www.example.org"], ""),
            ],
        }
    }

    /// Another address, a name less, a name more, an alias instead of addresses, another TTL.
    fn second() -> World {
        let mut world = World::first();
        world.gateways[0].1 = vec!["192.0.2.20"];
        world.routes[0].2 = vec!["www.example.org", "new.example.org"];
        world.routes[1].1 = "name";
        world.routes[4].3 = "external-dns.kubernetes.io/ttl: \"240\"";
        world
    }

    fn text(&self) -> String {
        let address = |value: &&str| match value.parse::<std::net::IpAddr>() {
            Ok(_) => format!("{{type: IPAddress, value: \"{value}\"}}"),
            Err(_) => format!("{{type: Hostname, value: {value}}}"),
        };
        let gateway = |(name, addresses): &(&str, Vec<&str>)| {
            let addresses: Vec<String> = addresses.iter().map(address).collect();
            format!(
                "apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {{namespace: infra, name: {name}}}\n\
                 spec: {{gatewayClassName: standard, listeners: [{{name: web, port: 80, protocol: HTTP}}]}}\n\
                 status: {{addresses: [{}], conditions: [{{type: Accepted, {TRUE}}}, {{type: Programmed, {TRUE}}}]}}\n",
                addresses.join(", ")
            )
        };
        let route = |(name, gateway, hostnames, annotations): &(&str, &str, Vec<&str>, &str)| {
            let hostnames: Vec<String> = hostnames.iter().map(|hostname| format!("\"{hostname}\"")).collect();
            format!(
                "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\n\
                 metadata: {{namespace: infra, name: {name}, annotations: {{{annotations}}}}}\n\
                 spec: {{parentRefs: [{{name: {gateway}}}], hostnames: [{}]}}\n\
                 status: {{parents: [{{controllerName: example.net/gateway, parentRef: {{name: {gateway}}}, \
                 conditions: [{{type: Accepted, {TRUE}}}]}}]}}\n",
                hostnames.join(", ")
            )
        };
        let namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: infra}\n".to_owned();
        let all = [namespace].into_iter().chain(self.gateways.iter().map(gateway)).chain(self.routes.iter().map(route));
        all.collect::<Vec<_>>().join("---\n")
    }
}

/// A bed and the real external-dns; nothing where one of them is missing.
fn both() -> Option<(Bed, ExternalDns)> {
    let bed = Bed::new()?;
    let peer = ExternalDns::find().unwrap();
    if peer.is_none() {
        let _ = std::io::Write::write_all(&mut std::io::stderr(), b"skipped: run `scripts/peer external-dns` first\n");
    }
    Some((bed, peer?))
}

/// One loop of external-dns against the bed's server; the number of changes it made.
fn sync(peer: &ExternalDns, bed: &Bed, world: &World, flags: &str) -> usize {
    let mut words = rfc2136(bed.server.address, "example.org");
    words.extend(flags.split_whitespace().map(str::to_owned));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    changes(&peer.sync(&world.text(), &words).unwrap())
}

/// Both programs with these flags of the registry: in, changed, and out again.
fn move_in_and_out(registry: &str) {
    let Some((bed, peer)) = both() else { return };
    let flags = format!("--txt-owner-id=me {registry}");
    let foreign = bed.zone();
    assert!(sync(&peer, &bed, &World::first(), &flags) > 0);
    let theirs = bed.zone();
    assert!(theirs.len() >= foreign.len() + 20, "{theirs:#?}");
    assert_eq!(sync(&peer, &bed, &World::first(), &flags), 0, "external-dns is at rest");

    let ours = format!("--profile external-dns {registry}");
    let (exit, plan) = bed.json(&format!("plan --expect-no-changes {ours}"), &World::first().text());
    assert_eq!((exit, plan["steps"].as_array().map(Vec::len)), (0, Some(0)), "{plan:#}");
    assert_eq!(bed.run(&format!("apply {ours}"), &World::first().text()).exit, 0);
    assert_eq!(bed.zone(), theirs, "the first plan is empty, so nothing was written");

    // What external-dns made goes only on somebody's word: no stamp of ours is on it.
    let answer = bed.run(&format!("apply --confirm-deletes {ours}"), &World::second().text());
    assert_eq!(answer.exit, 0, "{}{}", answer.output, answer.errors);
    let changed = bed.zone();
    assert_eq!(bed.addresses("www.example.org"), ["192.0.2.20"]);
    assert!(bed.addresses("shop.example.org").is_empty() && bed.addresses("api.example.org").is_empty());
    assert!(
        changed.iter().any(|line| line.starts_with("api.example.org. ") && line.ends_with(" cname lb.example.net."))
    );
    assert!(foreign.iter().all(|line| changed.contains(line)), "{changed:#?}");

    assert_eq!(sync(&peer, &bed, &World::second(), &flags), 0, "external-dns finds nothing to change");
    assert_eq!(bed.zone(), changed);
    // It goes on from there, and so do we. Its first loop adds addresses beside a CNAME that goes in the same message, which
    // a server ignores; the next one adds them.
    assert!(sync(&peer, &bed, &World::first(), &flags) > 0);
    assert!((0..3).any(|_| sync(&peer, &bed, &World::first(), &flags) == 0), "external-dns comes to rest");
    let (exit, plan) = bed.json(&format!("plan --expect-no-changes {ours}"), &World::first().text());
    assert_eq!(exit, 0, "{:#}", plan["steps"]);
    assert!(foreign.iter().all(|line| bed.zone().contains(line)));
}

#[test]
fn a_zone_moves_in_and_out_with_plain_markers() {
    move_in_and_out("");
}

#[test]
fn a_zone_moves_in_and_out_with_markers_below_the_names() {
    move_in_and_out("--txt-prefix=%{record_type}-own. --txt-wildcard-replacement=any");
}

#[test]
fn a_zone_moves_in_and_out_with_markers_beside_the_names() {
    move_in_and_out("--txt-suffix=-own --txt-wildcard-replacement=star");
}

#[test]
fn a_zone_moves_in_and_out_with_sealed_markers() {
    move_in_and_out("--txt-encrypt-enabled --txt-encrypt-aes-key=MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=");
}

#[test]
fn beside_another_owner_neither_touches_the_other() {
    let Some((bed, peer)) = both() else { return };
    assert!(sync(&peer, &bed, &World::first(), "--txt-owner-id=other") > 0);
    let theirs = bed.zone();
    let answer = bed.run("apply --confirm-deletes --profile external-dns", &World::second().text());
    assert_eq!(answer.exit, 0, "{}{}", answer.output, answer.errors);
    let both = bed.zone();
    let touched: Vec<_> = theirs.iter().filter(|line| !both.contains(line)).collect();
    assert!(touched.is_empty(), "{touched:#?}");
    assert_eq!(bed.addresses("new.example.org"), ["192.0.2.20"], "what nobody has is ours to make");
    assert_eq!(sync(&peer, &bed, &World::first(), "--txt-owner-id=other"), 0);
    assert_eq!(bed.zone(), both);
}

#[test]
fn external_dns_writes_through_our_webhook_server() {
    let Some((bed, peer)) = both() else { return };
    let foreign = bed.zone();
    let flags = bed.flags().replace(" --txt-owner-id me", "");
    let server = Running::start(&format!("webhook-server --webhook-addr 127.0.0.1:0 {flags}"));
    let url = format!("--webhook-provider-url=http://{}", server.address("webhook"));
    let through =
        |world: &World| changes(&peer.sync(&world.text(), &["--provider=webhook", &url, "--txt-owner-id=me"]).unwrap());
    assert!(through(&World::first()) > 0);
    let filled = bed.zone();
    assert_eq!(through(&World::first()), 0, "what it reads is what it wrote");
    // The same as by its own provider, but for the TTL of records that ask for none, and for the route that a marker names
    // where two ask for one name: external-dns takes either, run by run.
    let name_and_value = |line: &String| {
        let (name, rest) = line.split_once(' ').unwrap();
        let value = rest.split_once(' ').unwrap().1;
        format!("{name} {}", value.split("external-dns/resource=").next().unwrap_or(value))
    };
    let reference = Bed::new().unwrap();
    sync(&peer, &reference, &World::first(), "--txt-owner-id=me");
    let names = |zone: &[String]| zone.iter().map(name_and_value).collect::<Vec<_>>();
    assert_eq!(names(&filled), names(&reference.zone()));
    assert!(through(&World::second()) > 0);
    assert_eq!(through(&World::second()), 0);
    assert_eq!(bed.addresses("www.example.org"), ["192.0.2.20"]);
    assert!(bed.addresses("shop.example.org").is_empty());
    // Everything goes, and the zone is as it was.
    let nothing = World { gateways: World::first().gateways, routes: Vec::new() };
    assert!(through(&nothing) > 0);
    assert_eq!(bed.zone(), foreign);
    assert_eq!(server.stop(), Some(0));
}
