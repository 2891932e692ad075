//! Every row of the document "Hostnames in Gateway API" (000) with TLS: what is certified, and whether a client that asks for a name
//! by SNI takes the certificate.

use std::net::SocketAddr;

use gatepost_testkit::handshake::{Pair, is_taken};
use gatepost_testkit::{Failed, Trial};

use crate::bed::Bed;

/// Listener, mode, kind of route, its hostname, what is common, SNI, and whether that matches.
type Row = (&'static str, &'static str, &'static str, &'static str, &'static str, &'static str, bool);

/// A route without hostnames.
const UNSET: &str = "";

const ROWS: [Row; 11] = [
    ("*.example.com", "Terminate", "HTTPRoute", "www.example.com", "www.example.com", "www.example.com", true),
    (
        "*.example.com",
        "Terminate",
        "HTTPRoute",
        "foo.bar.example.com",
        "foo.bar.example.com",
        "foo.bar.example.com",
        true,
    ),
    ("*.example.com", "Terminate", "HTTPRoute", "*.example.com", "*.example.com", "foo.bar.example.com", false),
    ("*.example.com", "Terminate", "HTTPRoute", "foo.example.com", "foo.example.com", "foo.example.com", true),
    ("www.example.com", "Passthrough", "TLSRoute", "www.example.com", "www.example.com", "www.example.com", true),
    ("*.example.com", "Passthrough", "TLSRoute", "www.example.com", "www.example.com", "www.example.com", true),
    ("*.example.com", "Passthrough", "TLSRoute", "www.example.com", "www.example.com", "foo.example.com", false),
    (
        "*.example.com",
        "Passthrough",
        "TLSRoute",
        "foo.bar.example.com",
        "foo.bar.example.com",
        "www.example.com",
        false,
    ),
    ("*.example.com", "Passthrough", "TLSRoute", UNSET, "*.example.com", "www.example.com", true),
    ("*.example.com", "Passthrough", "TLSRoute", UNSET, "*.example.com", "foo.bar.example.com", false),
    ("www.example.com", "Terminate", "TLSRoute", "www.example.com", "www.example.com", "www.example.com", true),
];

/// The rules of RFC 2818, row by row: what stands in a certificate, what is asked for, and whether it matches.
const MATCHES: [(&str, &str, bool); 5] = [
    ("www.example.com", "www.example.com", true),
    ("www.example.com", "foo.example.com", false),
    ("*.example.com", "www.example.com", true),
    ("*.example.com", "foo.example.com", true),
    ("*.example.com", "foo.bar.example.com", false),
];

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials: Vec<Trial> = Vec::new();
    for (i, row) in ROWS.into_iter().enumerate() {
        let name = format!("certificates::document_000::expected_match_{:02}_{}_{}", i + 7, row.1, row.5);
        trials.push(Trial::test(name, move || expected(row)));
    }
    for (i, (held, asked, matches)) in MATCHES.into_iter().enumerate() {
        let name = format!("certificates::document_000::sni_{}_{held}_{asked}", i + 1);
        let row = ("*.example.com", "Terminate", "HTTPRoute", held, held, asked, matches);
        trials.push(Trial::test(name, move || expected(row)));
    }
    trials
}

fn manifests(row: Row, address: SocketAddr) -> String {
    let (listener, mode, kind, hostname, ..) = row;
    let protocol = if kind == "TLSRoute" { "TLS" } else { "HTTPS" };
    let secret = if mode == "Terminate" { ", certificateRefs: [{name: edge-tls}]" } else { "" };
    let version = "gateway.networking.k8s.io/v1";
    // A TLSRoute of v1 needs hostnames; an older one may leave them out.
    let route_version = if hostname == UNSET { "gateway.networking.k8s.io/v1alpha2" } else { version };
    let hostnames = if hostname == UNSET { String::new() } else { format!("  hostnames: ['{hostname}']\n") };
    format!(
        "apiVersion: {version}\nkind: Gateway\nmetadata: {{namespace: infra, name: edge}}\nspec:\n  gatewayClassName: standard\n  \
         addresses: [{{value: {}}}]\n  listeners:\n  - name: tls\n    port: {}\n    protocol: {protocol}\n    hostname: '{listener}'\n    \
         tls: {{mode: {mode}{secret}}}\n---\napiVersion: {route_version}\nkind: {kind}\nmetadata: {{namespace: infra, name: web}}\nspec:\n  \
         parentRefs: [{{name: edge}}]\n{hostnames}  rules: [{{backendRefs: [{{name: web, port: 443}}]}}]\n",
        address.ip(),
        address.port()
    )
}

/// Has the certificates of a row made, and gives back the names in them.
fn certify(bed: &Bed, row: Row, address: SocketAddr) -> Result<Option<Vec<String>>, Failed> {
    for old in ["gateway.yaml", "route.yaml"] {
        let _ = std::fs::remove_file(bed.folder.path().join("in").join(old));
    }
    bed.folder.file("in/row.yaml", &manifests(row, address))?;
    bed.policy("TLSPolicy", "allowWildcardHosts: true");
    let state = bed.folder.path().join("state");
    let answer = bed.run(&format!(
        "apply --provider embedded --zone example.com --state-dir '{}' --issuer embedded {}",
        state.display(),
        bed.flags()
    ));
    assert_eq!(answer.exit, 0, "{} {}", answer.output, answer.errors);
    Ok(bed.leaf().map(|leaf| leaf.names.iter().map(|name| name.to_string()).collect()))
}

fn expected(row: Row) -> Result<(), Failed> {
    let (listener, mode, kind, hostname, intersected, asked, matches) = row;
    let address: SocketAddr = "192.0.2.7:443".parse()?;
    let bed = Bed::new(&[]);
    if mode == "Passthrough" {
        assert_eq!(certify(&bed, row, address)?, None, "the backend has the certificate");
    }
    // TLSRoutes behave the same where TLS ends at the Gateway, says the document.
    let bed = Bed::new(&[]);
    let names = certify(&bed, (listener, "Terminate", kind, hostname, intersected, asked, matches), address)?;
    // A wildcard listener whose policy allows it is certified as a whole, beside names that its wildcard does not cover.
    let names = names.ok_or("there is no certificate")?;
    let is_represented = names.iter().any(|name| name == intersected)
        || intersected.split_once('.').is_some_and(|(_, rest)| names.contains(&format!("*.{rest}")));
    assert!(is_represented, "{intersected} is not in {names:?}");
    // What is asked about is the intersected hostname alone, so it gets a certificate of its own.
    let alone = alone(intersected)?;
    assert_eq!(handshake(&alone, asked)?, matches, "{asked} with a certificate for {intersected}");
    Ok(())
}

/// A certificate for exactly one name: precise listeners have no other, and wildcards are asked for as such.
fn alone(name: &str) -> Result<Bed, Failed> {
    let bed = Bed::new(&[]);
    let row = (leak(name), "Terminate", "HTTPRoute", leak(name), leak(name), "", false);
    let names = certify(&bed, row, "192.0.2.7:443".parse()?)?;
    assert_eq!(names, Some(vec![name.to_owned()]));
    Ok(bed)
}

fn leak(text: &str) -> &'static str {
    ROWS.iter().map(|row| row.4).chain(MATCHES.map(|row| row.0)).find(|known| *known == text).unwrap_or("")
}

/// Whether a client that trusts the root takes what a server with the pair presents for a name.
fn handshake(bed: &Bed, name: &str) -> Result<bool, Failed> {
    let read = |file: &str| std::fs::read_to_string(bed.certificates().join(file));
    let (chain, key) = (read("infra/edge-tls/tls.crt")?, read("infra/edge-tls/tls.key")?);
    Ok(is_taken(Pair { chain: &chain, key: &key }, &read("ca.crt")?, name)?)
}
