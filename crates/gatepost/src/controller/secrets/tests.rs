use super::*;

fn secret() -> Key {
    Key::new("infra", "edge-tls")
}

fn object(label: &str, kind: &str, chain: &str) -> Value {
    json!({
        "type": kind, "metadata": {"labels": {OWNER_LABEL: label}},
        "data": {"tls.crt": STANDARD.encode(chain), "tls.key": STANDARD.encode("key")},
    })
}

#[test]
fn what_is_ours_has_our_label_and_the_type_of_key_pairs() {
    let ours = kept(&secret(), &object(OWNER, TYPE, "chain"), None);
    assert_eq!(
        ours,
        StoredPair { pair: Ok(TlsKeyPair { chain: "chain".into(), secret_key: "key".into() }), keeper: None }
    );
    for (value, words) in [
        (object("helm", TYPE, ""), "made by somebody else: give it the label gatepost.dev/managed-by=gatepost"),
        (json!({"type": TYPE}), "made by somebody else"),
        (object(OWNER, "Opaque", ""), "has the type Opaque"),
    ] {
        let keeper = kept(&secret(), &value, None).keeper.unwrap();
        assert!(keeper.contains(words) && keeper.contains("infra/edge-tls"), "{keeper}");
    }
    let mut fixed = object(OWNER, TYPE, "");
    fixed["immutable"] = true.into();
    assert!(keeper(&secret(), &fixed, None).unwrap().contains("immutable"));
    let mut filled = fixed.clone();
    filled["metadata"]["annotations"] = json!({"cert-manager.io/certificate-name": "edge-tls"});
    assert!(
        keeper(&secret(), &filled, Some("edge-tls"))
            .unwrap()
            .contains("for Certificate edge-tls: remove that Certificate")
    );
}

#[test]
fn hostile_contents_are_bounded_and_not_quoted() {
    let large = "CANARY".repeat(1 << 18);
    assert_eq!(kept(&secret(), &object(OWNER, TYPE, &large), None).pair.unwrap_err(), "tls.crt is larger than 64 KiB");
    for (data, words) in [("***", "tls.crt is not base64"), ("/////w==", "tls.crt is not text")] {
        let value = json!({"type": TYPE, "data": {"tls.crt": data}});
        assert_eq!(kept(&secret(), &value, None).pair.unwrap_err(), words);
    }
    let key = json!({"data": {"tls.key": STANDARD.encode(&large)}});
    assert_eq!(kept(&secret(), &key, None).pair.unwrap_err(), "tls.key is larger than 16 KiB");
}

#[test]
fn a_secret_that_holds_nothing_is_an_empty_pair() {
    let pair = kept(&secret(), &json!({"type": TYPE, "data": null}), None).pair.unwrap();
    assert!(pair.chain.is_empty() && pair.secret_key.is_empty());
}
