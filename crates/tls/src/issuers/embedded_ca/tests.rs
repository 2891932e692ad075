use gatepost_core::model::Key;
use gatepost_testkit::servers::Scratch;

use super::*;
use crate::order::OrderRequest;
use crate::store::FileStateStore;

const NOW: i64 = 1_800_000_000;

async fn issue(authority: &EmbeddedCa, names: &[&str], duration: Option<u64>, now: i64) -> (Order, Chain) {
    let key = PrivateKey::generate(KeyAlgorithm::P256).unwrap();
    let names = names.iter().map(|name| (*name).into()).collect();
    let request = OrderRequest { names, replaces: None, duration };
    let mut order = Order::new(&Key::new("infra", "tls"), &request, &key, now);
    assert_eq!(authority.advance(&mut order, false, now).await.unwrap(), Progress::Issued);
    let chain = Chain::read(order.chain.as_deref().unwrap()).unwrap();
    (order, chain)
}

#[tokio::test]
async fn leaves_are_taken_and_signed_by_the_same_root_after_a_restart() {
    let scratch = Scratch::new("authority").unwrap();
    let state_store = FileStateStore::new(scratch.path());
    let first = EmbeddedCa::open(&state_store, NOW).await.unwrap();
    let (order, chain) = issue(&first, &["*.b.test", "a.test"], None, NOW).await;
    chain.verify(&order.key().unwrap(), &order.dns_names(), NOW).unwrap();
    let again = EmbeddedCa::open(&state_store, NOW + 1000 * DAY).await.unwrap();
    assert_eq!(first.root(), again.root());
    let whole = chain.pem.clone() + again.root().unwrap();
    Chain::read(&whole).unwrap().verify(&order.key().unwrap(), &order.dns_names(), NOW).unwrap();
    assert_eq!(chain.leaf.not_after, NOW + LEAF_LIFETIME);
    let (_, short) = issue(&again, &["a.test"], Some(7200), NOW).await;
    assert_eq!(short.leaf.not_after, NOW + 7200);
}

#[tokio::test]
async fn a_root_that_is_about_to_end_is_replaced_and_no_leaf_outlives_it() {
    let scratch = Scratch::new("old-authority").unwrap();
    let state_store = FileStateStore::new(scratch.path());
    let first = EmbeddedCa::open(&state_store, NOW).await.unwrap();
    let late = NOW + ROOT_LIFETIME - 10 * DAY;
    let (_, chain) = issue(&first, &["a.test"], None, late).await;
    assert_eq!(chain.leaf.not_after, NOW + ROOT_LIFETIME);
    let second = EmbeddedCa::open(&state_store, late).await.unwrap();
    assert_ne!(first.root(), second.root());
}

#[tokio::test]
async fn a_damaged_page_is_named_and_not_repeated() {
    let scratch = Scratch::new("damaged-authority").unwrap();
    let state_store = FileStateStore::new(scratch.path());
    for text in [
        "CANARY",
        r#"{"version": 1, "root": "CANARY", "secretKey": "CANARY"}"#,
        r#"{"version": 2, "root": "", "secretKey": ""}"#,
    ] {
        state_store.write(PAGE, text).await.unwrap();
        let error = EmbeddedCa::open(&state_store, NOW).await.unwrap_err().to_string();
        assert!(error.contains("authority.json") && !error.contains("CANARY"), "{error}");
    }
}
