//! A cluster whose Gateway ends TLS, and looks at what its Secret holds.

use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gatepost_testkit::Failed;
use gatepost_testkit::handshake::{Pair, is_taken};
use gatepost_testkit::servers::DnsServer;
use gatepost_testkit::servers::kube::{Cluster, Setup};
use gatepost_testkit::servers::pebble::Pebble;
use gatepost_tls::chain::{Chain, Leaf};
use gatepost_tls::key::PrivateKey;
use serde_json::Value;

use super::files::gateway;
use crate::controller::bed::{self, Controller, accept, until};

/// What every controller of these tests is started with.
pub(crate) const WORDS: [&str; 8] =
    ["--policy", "sync", "--lease-duration", "3s", "--certificate-settle", "1s", "--certificate-grace", "1s"];

/// A cluster with a Gateway that ends TLS.
pub(crate) fn cluster(setup: &Setup) -> Result<Cluster, Failed> {
    let cluster = bed::cluster(setup)?;
    cluster.kubectl(&["delete", "gateway/edge", "-n", "infra"])?;
    cluster.apply(&gateway("test", ""))?;
    accept(&cluster, "edge", &["192.0.2.1"])?;
    Ok(cluster)
}

/// A TLSPolicy on the Gateway.
pub(crate) fn policy(cluster: &Cluster, spec: &str) -> Result<(), Failed> {
    cluster.apply(&format!(
        "apiVersion: gatepost.dev/v1alpha1\nkind: TLSPolicy\nmetadata: {{namespace: infra, name: tls}}\nspec:\n  \
         targetRef: {{group: gateway.networking.k8s.io, kind: Gateway, name: edge}}\n  {spec}\n"
    ))?;
    Ok(())
}

/// The words of a controller that has Pebble issue.
pub(crate) fn acme(directory: &str, root: &Path, zone: &DnsServer) -> Vec<String> {
    let root = root.display().to_string();
    let server = zone.address.to_string();
    let own =
        ["--issuer", "acme", "--acme-directory", directory, "--acme-ca-file", &root, "--challenge-server", &server];
    WORDS.iter().chain(own.iter()).map(|word| (*word).to_owned()).collect()
}

/// A controller that proves names to Pebble through BIND.
pub(crate) fn on_pebble(cluster: &Cluster, zone: &DnsServer, pebble: &Pebble, words: &[&str]) -> Controller {
    let acme = acme(&pebble.directory(), &pebble.root_file(), zone);
    Controller::on_bind(
        cluster,
        zone,
        &acme.iter().map(String::as_str).chain(words.iter().copied()).collect::<Vec<_>>(),
    )
}

/// The Secret of the listener, as it is.
pub(crate) fn secret(cluster: &Cluster) -> Option<Value> {
    cluster.json(&["secret", "edge-tls", "-n", "infra"]).ok()
}

/// A text in the data of a Secret.
pub(crate) fn text(secret: &Value, key: &str) -> Option<String> {
    String::from_utf8(STANDARD.decode(secret["data"][key].as_str()?).ok()?).ok()
}

/// What the Secret holds, where that can serve; key and chain must belong together.
pub(crate) fn leaf(cluster: &Cluster) -> Option<Leaf> {
    let secret = secret(cluster)?;
    let chain = Chain::read(&text(&secret, "tls.crt")?).ok()?;
    let key = PrivateKey::from_pem(&text(&secret, "tls.key")?).unwrap();
    assert!(chain.is_for(&key), "the key is another one's");
    Some(chain.leaf)
}

/// Waits until the Secret holds a certificate for exactly these names.
pub(crate) fn comes_to(cluster: &Cluster, names: &[&str], controllers: &[&Controller]) -> Leaf {
    let is_it = |leaf: &Leaf| leaf.names.iter().map(|name| &**name).eq(names.iter().copied());
    until(
        &format!("the Secret holds {names:?}"),
        || leaf(cluster).as_ref().is_some_and(is_it),
        || format!("{:?}\n{}", leaf(cluster), logs(controllers)),
    );
    leaf(cluster).unwrap()
}

pub(crate) fn logs(controllers: &[&Controller]) -> String {
    controllers.iter().map(|controller| controller.log()).collect::<Vec<_>>().join("\n--\n")
}

/// A condition of the policy: its status and reason.
pub(crate) fn condition(cluster: &Cluster, kind: &str) -> String {
    let policy = cluster.json(&["tlspolicy", "tls", "-n", "infra"]).unwrap_or_default();
    let conditions = policy["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let found = conditions.iter().find(|condition| condition["type"] == kind);
    found.map(|found| format!("{} {}", found["status"], found["reason"]).replace('"', "")).unwrap_or_default()
}

/// The Events with a reason, as `KIND NAME: note`.
pub(crate) fn events(cluster: &Cluster, reason: &str) -> Vec<String> {
    let all = cluster.json(&["events.events.k8s.io", "-A"]).unwrap_or_default();
    let all = all["items"].as_array().cloned().unwrap_or_default();
    let of_reason = all.iter().filter(|event| event["reason"] == reason);
    let line = |event: &Value| {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        format!("{} {}: {}", text(&event["regarding"]["kind"]), text(&event["regarding"]["name"]), text(&event["note"]))
    };
    of_reason.map(line).collect()
}

/// The TXT values of challenges in the zone.
pub(crate) fn challenges(zone: &DnsServer) -> Vec<String> {
    zone.dump("example.org").unwrap_or_default().into_iter().filter(|line| line.contains("_acme-challenge")).collect()
}

/// Waits until no TXT value is left in the zone.
pub(crate) fn no_challenge_is_left(zone: &DnsServer, controllers: &[&Controller]) {
    until(
        "no TXT value is left",
        || challenges(zone).is_empty(),
        || format!("{:?}\n{}", challenges(zone), logs(controllers)),
    );
}

/// Everything that people without the right to read Secrets can see.
pub(crate) fn everything_shown(cluster: &Cluster, controllers: &[&Controller]) -> String {
    let mut shown = logs(controllers);
    for controller in controllers {
        for path in ["/plan.json", "/metrics", "/readyz"] {
            shown += &controller.get(path);
        }
    }
    for kind in ["tlspolicies", "gateways", "httproutes", "events.events.k8s.io", "leases", "configmaps"] {
        shown += &cluster.kubectl(&["get", kind, "-A", "-o", "json"]).unwrap();
    }
    shown
}

/// Nothing shown holds a part of a private key: of the listener's, of open orders, of accounts and authorities.
pub(crate) fn no_key_is_shown(cluster: &Cluster, shown: &str) {
    let mut lines: Vec<String> = Vec::new();
    for secret in cluster.json(&["secrets", "-A"]).unwrap()["items"].as_array().unwrap() {
        let data = secret["data"].as_object().cloned().unwrap_or_default();
        for (key, value) in data.iter().filter(|(key, _)| *key == "tls.key" || key.ends_with(".gz")) {
            // Wherever a value comes from, its encoded form must not be there either.
            lines.extend(value.as_str().map(|value| value.chars().take(60).collect()));
            lines.extend(
                text(secret, key).into_iter().flat_map(|key| key.lines().map(str::to_owned).collect::<Vec<_>>()),
            );
        }
    }
    assert!(lines.len() >= 3, "there are keys to look for");
    assert!(!shown.contains("PRIVATE KEY"));
    for line in lines.iter().filter(|line| line.len() > 20 && !line.starts_with("-----")) {
        assert!(!shown.contains(line.as_str()), "`{line}` is shown");
    }
}

/// Whether a client that trusts `root` takes what a server with the Secret's pair presents for a name.
pub(crate) fn serves(secret: &Value, root: &str, name: &str) -> Result<bool, Failed> {
    let (chain, key) = (text(secret, "tls.crt").unwrap_or_default(), text(secret, "tls.key").unwrap_or_default());
    Ok(is_taken(Pair { chain: &chain, key: &key }, root, name)?)
}
