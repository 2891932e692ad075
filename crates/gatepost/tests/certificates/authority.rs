//! `--issuer embedded`: an authority of our own.

use std::time::Duration;

use gatepost_testkit::{Failed, Trial};
use gatepost_tls::chain::Chain;
use gatepost_tls::key::{KeyAlgorithm, PrivateKey};

use crate::bed::{Bed, Test};
use crate::running::{Running, comes_true, get};

pub(crate) fn trials() -> Vec<Trial> {
    let rows: [(&str, Test); 7] = [
        ("plan_says_what_a_change_takes", forecast),
        ("two_runs_do_not_share_a_directory", alone),
        ("serve_certifies_what_is_attached_and_nothing_else", serve),
        ("apply_certifies_and_a_second_run_does_nothing", apply),
        ("a_policy_is_enforced_when_its_names_are_held", policy),
        ("a_changed_policy_is_followed_at_once", changed),
        ("flags_that_do_not_go_together_are_refused", flags),
    ];
    rows.into_iter().map(|(name, test)| Trial::test(format!("certificates::embedded::{name}"), test)).collect()
}

const SERVE: &str = "serve --dns-addr 127.0.0.1:0 --http-addr 127.0.0.1:0 --issuer embedded";

fn serve() -> Result<(), Failed> {
    let bed = Bed::new(&["www.example.org", "*.shop.example.org"]);
    let running = Running::start(&format!("{SERVE} {}", bed.flags()));
    // Nobody allows wildcards in certificates.
    let first = bed.comes_to(&["www.example.org"]);
    let root = std::fs::read_to_string(bed.certificates().join("ca.crt"))?;
    let chain = std::fs::read_to_string(bed.certificates().join("infra/edge-tls/tls.crt"))?;
    let key = std::fs::read_to_string(bed.certificates().join("infra/edge-tls/tls.key"))?;
    // The root behind the leaf makes a chain: it is what clients are to trust.
    Chain::read(&(chain + &root))?.verify(&PrivateKey::from_pem(&key)?, &first.names, first.not_before + 1)?;
    // A certificate that serves grows only when the names have been the same for a while.
    drop(running);
    std::fs::remove_dir_all(bed.certificates().join("infra"))?;
    bed.routes(&["www.example.org", "api.example.org"]);
    let _running = Running::start(&format!("{SERVE} {}", bed.flags()));
    let second = bed.comes_to(&["api.example.org", "www.example.org"]);
    assert_eq!(first.issuer, second.issuer, "the authority is the same after a restart");
    assert_eq!(root, std::fs::read_to_string(bed.certificates().join("ca.crt"))?);
    Ok(())
}

fn apply() -> Result<(), Failed> {
    let bed = Bed::new(&["www.example.org"]);
    let state = bed.folder.path().join("state");
    let line = format!(
        "apply --provider embedded --zone example.org --state-dir '{}' --issuer embedded {}",
        state.display(),
        bed.flags()
    );
    let answer = bed.run(&line);
    assert_eq!(answer.exit, 0, "{} {}", answer.output, answer.errors);
    let first = bed.leaf().ok_or("there is no certificate")?;
    let answer = bed.run(&line);
    assert_eq!((answer.exit, bed.leaf().map(|leaf| leaf.serial)), (0, Some(first.serial)), "{}", answer.errors);
    let dry = Bed::new(&["www.example.org"]);
    let state = dry.folder.path().join("state");
    let answer = dry.run(&format!(
        "apply --dry-run --provider embedded --zone example.org --state-dir '{}' --issuer embedded {}",
        state.display(),
        dry.flags()
    ));
    assert_eq!((answer.exit, dry.leaf().is_none()), (0, true), "{}", answer.errors);
    Ok(())
}

fn policy() -> Result<(), Failed> {
    let bed = Bed::new(&["www.example.org", "*.shop.example.org"]);
    bed.policy("TLSPolicy", "allowWildcardHosts: true");
    let running = Running::start(&format!("{SERVE} {}", bed.flags()));
    bed.comes_to(&["*.example.org", "*.shop.example.org"]);
    let http = running.address("http");
    let enforced = || {
        let plan = get(http, "/plan.json");
        let body = plan.split_once("\r\n\r\n").map(|(_, body)| body).unwrap_or_default();
        let plan: serde_json::Value = serde_json::from_str(body).unwrap_or_default();
        let conditions = plan["policies"][0]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.iter().any(|condition| condition["type"] == "Enforced" && condition["reason"] == "Enforced")
    };
    comes_true("the policy is enforced", enforced);
    let explained =
        bed.run(&format!("explain www.example.org {} --cert-dir '{}'", bed.input(), bed.certificates().display()));
    assert!(explained.output.contains("held         *.example.org, *.shop.example.org until "), "{}", explained.output);
    let elsewhere = Bed::new(&["www.example.org"]);
    elsewhere.policy("TLSPolicy", "issuerRef: {kind: ClusterIssuer, name: public}");
    let running = Running::start(&format!("{SERVE} {}", elsewhere.flags()));
    let plan = get(running.address("http"), "/plan.json");
    assert!(plan.contains("issuer-unusable") && plan.contains("ClusterIssuer public is to issue it"), "{plan}");
    assert!(elsewhere.leaf().is_none(), "somebody else is to issue it");
    Ok(())
}

/// Names that go are waited for as long as is usual, which is longer than this test: a wildcard and a key are not among them.
fn changed() -> Result<(), Failed> {
    let bed = Bed::new(&["www.example.org"]);
    bed.policy("TLSPolicy", "allowWildcardHosts: true");
    let _running = Running::start(&format!("{SERVE} --certificate-settle 1s {}", bed.flags()));
    let first = bed.comes_to(&["*.example.org"]);
    assert_eq!(first.algorithm, Some(KeyAlgorithm::P256));
    bed.policy("TLSPolicy", "allowWildcardHosts: false");
    bed.comes_to(&["www.example.org"]);
    bed.policy("TLSPolicy", "allowWildcardHosts: false\n  privateKey: {algorithm: RSA, size: 2048}");
    let algorithm = || bed.leaf().and_then(|leaf| leaf.algorithm);
    comes_true("it has a key of the other kind", || algorithm() == Some(KeyAlgorithm::Rsa(2048)));
    let last = bed.comes_to(&["www.example.org"]);
    // Keys that cannot be made are told, and what serves is not exchanged for another kind.
    bed.policy("TLSPolicy", "allowWildcardHosts: false\n  privateKey: {algorithm: Ed25519}");
    // A fixed time: an order that is not placed has no event. It would be placed a second after the policy was read.
    std::thread::sleep(Duration::from_secs(4));
    assert_eq!(bed.leaf().map(|leaf| leaf.serial), Some(last.serial));
    Ok(())
}

fn forecast() -> Result<(), Failed> {
    let bed = Bed::new(&["www.example.org"]);
    let line =
        format!("plan --issuer acme --acme-directory https://acme-v02.api.letsencrypt.org/directory {}", bed.flags());
    let answer = bed.run(&line);
    let said = "certificates: this change needs 1 order; 5 left this week for these names";
    assert!(answer.output.contains(said), "{} {}", answer.output, answer.errors);
    let json: serde_json::Value = serde_json::from_str(&bed.run(&format!("{line} -o json")).output)?;
    assert_eq!((&json["orders"]["needed"], &json["orders"]["left"]), (&1.into(), &5.into()));
    Ok(())
}

fn alone() -> Result<(), Failed> {
    let bed = Bed::new(&["www.example.org"]);
    let running = Running::start(&format!("{SERVE} {}", bed.flags()));
    let second = bed.run(&format!("{SERVE} {}", bed.flags()));
    assert_eq!(second.exit, 2, "{}", second.output);
    assert!(second.errors.contains("another run of gatepost works on it"), "{}", second.errors);
    // Looking is always allowed, and a run that is killed keeps nobody out.
    let line = format!("explain www.example.org {} --cert-dir '{}'", bed.input(), bed.certificates().display());
    assert_eq!(bed.run(&line).exit, 0);
    drop(running);
    Running::start(&format!("{SERVE} {}", bed.flags()));
    Ok(())
}

fn flags() -> Result<(), Failed> {
    let bed = Bed::new(&["www.example.org"]);
    let table = [
        ("--issuer embedded", "add --cert-dir"),
        ("--issuer acme --cert-dir x", "needs --acme-directory"),
        ("--issuer acme --cert-dir x --acme-directory http://ca.test/dir", "must begin with https://"),
        ("--acme-email a@example.org", "add --issuer acme"),
        ("--issuer embedded --cert-dir x --issuer-ref Issuer/x", "add --issuer cert-manager"),
        ("--issuer cert-manager --cert-dir x", "needs a cluster"),
        ("--issuer acme --cert-dir x --acme-directory https://ca.test/dir --acme-eab-kid k", "--acme-eab-hmac-file"),
        (
            "--issuer acme --cert-dir x --acme-directory https://ca.test/dir --acme-ca-file nowhere",
            "--acme-ca-file nowhere",
        ),
    ];
    for (flags, said) in table {
        let line = format!("serve --dns-addr 127.0.0.1:0 --http-addr 127.0.0.1:0 {} {flags}", bed.input());
        let answer = bed.run(&line);
        assert_eq!(answer.exit, 2, "{flags}: {}", answer.errors);
        assert!(answer.errors.contains(said), "{flags}: {}", answer.errors);
    }
    Ok(())
}
