//! `verify --tls`: the certificates that addresses show, against a real TLS server.

use std::net::TcpListener;
use std::sync::Arc;

use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection};

use super::bed::{Bed, world};

/// A server that shows one certificate to everybody; says its port and the certificate in PEM.
fn server(names: &[&str]) -> (u16, String) {
    let made =
        rcgen::generate_simple_self_signed(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()).unwrap();
    let pem = made.cert.pem();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = Arc::new(builder.with_no_client_auth().with_single_cert(vec![made.cert.der().clone()], key).unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut connection = ServerConnection::new(config.clone()).unwrap();
            let _ = connection.complete_io(&mut stream);
        }
    });
    (port, pem)
}

/// The world of a listener that ends TLS at a port of this machine.
fn served_at(port: u16, hostnames: &[&str]) -> String {
    let tls = format!("port: {port}, protocol: HTTPS, tls: {{certificateRefs: [{{name: edge-tls}}]}}}}");
    world("127.0.0.1", hostnames).replace("port: 80, protocol: HTTP}", &tls)
        + "---\napiVersion: v1\nkind: Secret\nmetadata: {namespace: infra, name: edge-tls}\ntype: kubernetes.io/tls\ndata: {}\n"
}

#[test]
fn certificates_are_looked_at_where_a_listener_ends_tls() {
    let Some(bed) = Bed::new() else { return };
    let (port, pem) = server(&["www.example.org", "*.shop.example.org"]);
    let objects = served_at(port, &["www.example.org", "*.shop.example.org"]);
    let answer = bed.run("apply", &objects);
    assert_eq!(answer.exit, 0, "{}{}", answer.output, answer.errors);
    let answer = bed.run("verify --tls", &objects);
    assert_eq!(answer.exit, 0, "{}{}", answer.output, answer.errors);
    assert!(answer.output.contains("✓ www.example.org  A 127.0.0.1  TLS until "), "{}", answer.output);
    let trusted = bed.folder.file("ca.pem", &pem).unwrap();
    assert_eq!(bed.run(&format!("verify --tls --tls-trust '{trusted}'"), &objects).exit, 0);
    let stranger = bed.folder.file("other.pem", &server(&["other.example.org"]).1).unwrap();
    let answer = bed.run(&format!("verify --tls --tls-trust '{stranger}'"), &objects);
    assert_eq!(answer.exit, 1);
    assert!(answer.output.contains("it is not trusted"), "{}", answer.output);
}

#[test]
fn a_certificate_for_another_name_is_not_right() {
    let Some(bed) = Bed::new() else { return };
    let (port, _) = server(&["other.example.org"]);
    let objects = served_at(port, &["www.example.org"]);
    assert_eq!(bed.run("apply", &objects).exit, 0);
    assert_eq!(bed.run("verify", &objects).exit, 0, "without --tls nobody looks");
    let answer = bed.run("verify --tls", &objects);
    assert_eq!(answer.exit, 1);
    let told =
        format!("127.0.0.1:{port} shows a certificate, but it is for other.example.org, and not for www.example.org");
    assert!(answer.output.contains(&told), "{}", answer.output);
    let (exit, json) = bed.json("verify --tls", &objects);
    let shown = &json["names"][0]["tls"][0];
    assert_eq!((exit, &shown["right"], &shown["dnsNames"][0]), (1, &false.into(), &"other.example.org".into()));
}

#[test]
fn an_address_where_nobody_ends_tls_is_told() {
    let Some(bed) = Bed::new() else { return };
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let objects = served_at(closed, &["www.example.org"]);
    assert_eq!(bed.run("apply", &objects).exit, 0);
    let answer = bed.run("verify --tls", &objects);
    assert_eq!(answer.exit, 1);
    assert!(answer.output.contains(&format!("127.0.0.1:{closed} shows no certificate: ")), "{}", answer.output);
}
