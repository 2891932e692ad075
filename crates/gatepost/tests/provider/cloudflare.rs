//! `--provider cloudflare`, as people run it, against a server that speaks its API.

use gatepost_testkit::scratch::Scratch;
use gatepost_testkit::servers::cloudflare::{CloudflareApi, HostedZones, TOKEN};

use super::bed::{run, world};

fn zone() -> HostedZones {
    let mut zones = HostedZones::new(&["example.org", "sub.example.org", "example.net"]);
    zones.add("example.org", "hand.example.org", 120, "A", "192.0.2.7");
    zones
}

fn dump(api: &CloudflareApi, zone: &str) -> Vec<String> {
    api.with(|zones| zones.zone(zone).unwrap().dump())
}

#[test]
fn the_first_record_comes_and_the_second_plan_is_empty() {
    let (api, folder) = (CloudflareApi::start(zone()).unwrap(), Scratch::new().unwrap());
    let token = folder.file("token", &format!("{TOKEN}\n")).unwrap();
    let flags = format!(
        "--provider cloudflare --cloudflare-api-url {} --cloudflare-api-token-file '{token}' --txt-owner-id me \
         --domain-filter example.org",
        api.url()
    );
    let annotation = "name: route-0, annotations: {external-dns.alpha.kubernetes.io/cloudflare-proxied: \"true\"}";
    let first = world("192.0.2.10", &["www.example.org", "a.sub.example.org"]);
    let first = first.replace("name: route-0", annotation);
    let mut shown = String::new();
    for command in ["plan", "plan -o json", "apply", "plan --expect-no-changes"] {
        let answer = run(&format!("{command} {flags}"), &first);
        shown += &format!("{}{}", answer.output, answer.errors);
        assert_eq!(answer.exit, 0, "{command}: {}{}", answer.output, answer.errors);
    }
    let zone = dump(&api, "example.org");
    assert!(zone.contains(&"www.example.org. 1 in a 192.0.2.10".to_owned()), "{zone:?}");
    assert!(zone.contains(&"hand.example.org. 120 in a 192.0.2.7".to_owned()) && zone.len() == 3, "{zone:?}");
    let below = dump(&api, "sub.example.org");
    assert!(below.iter().any(|line| line.starts_with("a.sub.example.org. ")) && below.len() == 2, "{below:?}");
    // Without rights everything is left as it is, and the message names them.
    api.with(|zones| zones.is_token_revoked = true);
    let answer = run(&format!("apply {flags}"), &world("192.0.2.11", &["www.example.org"]));
    shown += &format!("{}{}", answer.output, answer.errors);
    assert!(answer.exit != 0 && shown.contains("Zone / DNS / Edit"), "{}{}", answer.output, answer.errors);
    api.with(|zones| zones.is_token_revoked = false);
    assert_eq!(dump(&api, "example.org"), zone);
    let last = world("192.0.2.11", &["other.example.org"]);
    let answer = run(&format!("apply --confirm-deletes {flags}"), &last);
    shown += &format!("{}{}", answer.output, answer.errors);
    let zone = dump(&api, "example.org");
    assert!(zone.iter().any(|line| line.ends_with(" in a 192.0.2.11")) && zone.len() == 3, "{zone:?}");
    assert!(dump(&api, "example.net").is_empty() && dump(&api, "sub.example.org").is_empty());
    assert!(!shown.contains(TOKEN), "{shown}");
}
