//! Certificates of Secrets and ConfigMaps: what is read, what is refused, and that no key gets through.
#![allow(clippy::unwrap_used)]

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gatepost_core::model::Material;
use gatepost_core::snapshot::Object;
use gatepost_objects::{ParseSettings, read};

const CERTIFICATE: &str = include_str!("data/certificate.pem");
const KEY_BODY: &str = "bm90IGEga2V5";

fn key() -> String {
    format!("-----BEGIN PRIVATE KEY-----\n{KEY_BODY}\n-----END PRIVATE KEY-----\n")
}

fn material(entries: serde_json::Value) -> Material {
    let mut object = serde_json::json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}});
    object.as_object_mut().unwrap().extend(entries.as_object().unwrap().clone());
    let mut reading = read("input", object.to_string().as_bytes(), &ParseSettings::default());
    assert!(!format!("{reading:?}").contains(KEY_BODY));
    let Object::Secret(secret) = reading.objects.remove(0).object else { panic!() };
    secret.certificate
}

fn encoded(certificate: &str, key: &str) -> Material {
    material(serde_json::json!({"data": {"tls.crt": STANDARD.encode(certificate), "tls.key": STANDARD.encode(key)}}))
}

#[track_caller]
fn malformed(material: Material, part: &str) {
    let Material::Malformed(why) = material else { panic!("{material:?}") };
    assert!(why.contains(part), "{why}");
}

#[test]
fn a_certificate_with_its_key() {
    let plain = material(serde_json::json!({"stringData": {"tls.crt": CERTIFICATE, "tls.key": key()}}));
    for found in [encoded(CERTIFICATE, &key()), encoded(&format!("{CERTIFICATE}{CERTIFICATE}"), &key()), plain] {
        let Material::Present(certificate) = found else { panic!("{found:?}") };
        let names: Vec<&str> = certificate.dns_names.iter().map(|name| &**name).collect();
        assert_eq!(names, ["www.example.com", "*.example.com"]);
        assert_eq!((certificate.not_before, certificate.not_after), (1_794_766_810, 4_948_366_810));
        assert_eq!(certificate.issuer.as_ref(), "CN=test fixture");
    }
}

#[test]
fn what_is_missing_or_broken() {
    assert_eq!(material(serde_json::json!({})), Material::Missing);
    assert_eq!(material(serde_json::json!({"data": {"tls.key": STANDARD.encode(key())}})), Material::Missing);
    malformed(encoded("", &key()), "`tls.crt` is empty");
    malformed(encoded("Hello world\n", &key()), "`tls.crt` holds no PEM certificate");
    malformed(encoded("Hello world\n", "Hello world\n"), "`tls.key` holds no PEM private key");
    malformed(encoded(&key(), &key()), "holds no PEM certificate");
    malformed(encoded(CERTIFICATE, CERTIFICATE), "holds no PEM private key");
    malformed(material(serde_json::json!({"data": {"tls.crt": STANDARD.encode(CERTIFICATE)}})), "`tls.key` is missing");
    malformed(material(serde_json::json!({"data": {"tls.crt": "*", "tls.key": STANDARD.encode(key())}})), "not base64");
    malformed(material(serde_json::json!({"data": {"tls.crt": 5, "tls.key": STANDARD.encode(key())}})), "is not text");
    malformed(encoded("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----", &key()), "cannot be read");
    malformed(encoded("-----BEGIN CERTIFICATE-----\n****\n-----END CERTIFICATE-----", &key()), "not base64");
    malformed(encoded(&CERTIFICATE[..200], &key()), "holds no PEM certificate");
    malformed(encoded(&CERTIFICATE.repeat(120), &key()), "larger than 64 KiB");
    malformed(encoded(CERTIFICATE, &"-----BEGIN ".repeat(5000)), "holds no PEM private key");
}

#[test]
fn certificate_authorities_of_config_maps() {
    let of = |data: serde_json::Value| {
        let object =
            serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": data});
        let mut reading = read("input", object.to_string().as_bytes(), &ParseSettings::default());
        let Object::ConfigMap(map) = reading.objects.remove(0).object else { panic!() };
        map.ca
    };
    assert!(matches!(of(serde_json::json!({"ca.crt": CERTIFICATE})), Material::Present(_)));
    assert_eq!(of(serde_json::json!({"other": "x"})), Material::Missing);
    malformed(of(serde_json::json!({"ca.crt": "x"})), "`ca.crt` holds no PEM certificate");
}
