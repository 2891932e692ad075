//! `--provider route53`, as people run it, against a server that speaks its API: a Gateway whose address is the name of a load
//! balancer gets alias records.

use gatepost_testkit::program::{Program, ProgramOutput, words};
use gatepost_testkit::servers::route53::{AwsAccount, AwsZone, KEY_ID, Route53Api, SECRET};

use super::bed::world;

const LB: &str = "web-1.eu-west-1.elb.amazonaws.com";

fn dump(api: &Route53Api, zone: &str) -> Vec<String> {
    api.with(|account| account.zone(zone).map(|zone| AwsZone::dump(zone)).unwrap())
}

fn run(line: &str, objects: &str) -> ProgramOutput {
    let (command, rest) = line.split_once(' ').unwrap_or((line, ""));
    let program = Program::at(env!("CARGO_BIN_EXE_gatepost"))
        .with("AWS_ACCESS_KEY_ID", KEY_ID)
        .with("AWS_SECRET_ACCESS_KEY", SECRET);
    program.run(&words(&format!("{command} -f - {rest}")), objects).unwrap()
}

fn flags(api: &Route53Api) -> String {
    format!(
        "--provider route53 --aws-endpoint-url {} --domain-filter example.org --txt-owner-id me \
         --txt-prefix %{{record_type}}-owner.",
        api.url()
    )
}

#[test]
fn load_balancers_get_alias_records_and_the_second_plan_is_empty() {
    let mut account = AwsAccount::new(&["example.org", "sub.example.org", "example.net"]);
    account.add("example.org", "hand.example.org", 120, "A", "192.0.2.7");
    let api = Route53Api::start(account).unwrap();
    let untouched = [dump(&api, "example.net"), dump(&api, "example.org")];
    let flags = flags(&api);
    let first = world(LB, &["example.org", "*.apps.example.org", "a.sub.example.org"]);
    let mut shown = String::new();
    for command in ["plan", "plan -o json", "apply", "plan --expect-no-changes"] {
        let answer = run(&format!("{command} {flags}"), &first);
        shown += &format!("{}{}", answer.output, answer.errors);
        assert_eq!(answer.exit, 0, "{command}: {}{}", answer.output, answer.errors);
    }
    for line in ["+ example.org A", "+ example.org AAAA", "+ *.apps.example.org AAAA"] {
        assert!(shown.contains(&format!("{line} {LB}")), "{line}: {shown}");
    }
    let zone = dump(&api, "example.org");
    for name in ["example.org", "*.apps.example.org"] {
        for kind in ["a", "aaaa"] {
            let line = format!("{name}. in {kind} alias Z32O12XQLNTSW2 {LB} true");
            assert!(zone.contains(&line), "{line}: {zone:#?}");
        }
    }
    assert!(zone.contains(&"hand.example.org. 120 in a 192.0.2.7".to_owned()));
    assert_eq!(dump(&api, "sub.example.org").len(), 5, "NS, two records, two markers");
    // Without rights everything is left as it is, and the message names the one that is missing.
    api.with(|account| account.denied = vec!["route53:ListHostedZones".to_owned()]);
    let answer = run(&format!("apply {flags}"), &world("192.0.2.11", &["www.example.org"]));
    shown += &format!("{}{}", answer.output, answer.errors);
    assert!(answer.exit != 0 && shown.contains("route53:ListHostedZones"), "{}{}", answer.output, answer.errors);
    api.with(|account| account.denied.clear());
    assert_eq!(dump(&api, "example.org"), zone);
    // Aliases become addresses, and at last all goes.
    let last = world("192.0.2.11", &["example.org"]);
    let answer = run(&format!("apply --confirm-deletes {flags}"), &last);
    shown += &format!("{}{}", answer.output, answer.errors);
    assert_eq!(answer.exit, 0, "{}{}", answer.output, answer.errors);
    assert!(dump(&api, "example.org").contains(&"example.org. 300 in a 192.0.2.11".to_owned()), "{shown}");
    let answer = run(&format!("apply --confirm-deletes {flags}"), &world("192.0.2.11", &[]));
    shown += &format!("{}{}", answer.output, answer.errors);
    assert_eq!([dump(&api, "example.net"), dump(&api, "example.org")], untouched, "{shown}");
    assert!(!shown.contains(SECRET) && !shown.contains(KEY_ID), "{shown}");
}

/// What external-dns wrote, in its newer and its older layout of markers, is ours without a change.
#[test]
fn records_of_external_dns_are_taken_over_as_they_are() {
    let value = "\"heritage=external-dns,external-dns/owner=me,external-dns/resource=httproute/infra/route-0\"";
    for markers in [&["a-", "aaaa-"][..], &["a-", "aaaa-", "cname-"]] {
        let mut account = AwsAccount::new(&["example.org"]);
        for prefix in markers {
            account.add("example.org", &format!("{prefix}www.example.org"), 300, "TXT", value);
        }
        for kind in ["A", "AAAA"] {
            account.add("example.org", "www.example.org", 300, kind, "x");
        }
        let zone = account.zone("example.org").unwrap();
        for set in zone.sets.values_mut().filter(|set| set.name == "www.example.org") {
            let alias = Some(("Z32O12XQLNTSW2".to_owned(), LB.to_owned(), true));
            (set.ttl, set.values, set.alias) = (None, Vec::new(), alias);
        }
        let api = Route53Api::start(account).unwrap();
        let flags = format!(
            "--provider route53 --aws-endpoint-url {} --domain-filter example.org --txt-owner-id me",
            api.url()
        );
        let before = dump(&api, "example.org");
        let records = |lines: &[String]| -> Vec<String> {
            lines.iter().filter(|line| line.contains(" alias ")).cloned().collect()
        };
        let answer = run(&format!("apply {flags}"), &world(LB, &["www.example.org"]));
        assert_eq!(answer.exit, 0, "{}{}", answer.output, answer.errors);
        assert_eq!(records(&dump(&api, "example.org")), records(&before), "{}", answer.output);
        let answer = run(&format!("plan --expect-no-changes {flags}"), &world(LB, &["www.example.org"]));
        assert_eq!(answer.exit, 0, "{}{}", answer.output, answer.errors);
    }
}
