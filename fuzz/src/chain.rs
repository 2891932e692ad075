//! What must hold for any bytes that stand where a certificate chain would: in a Secret, in an answer of an issuer, in a
//! handshake. Shared by the fuzz target and an ordinary test that runs the seeds.

use std::sync::OnceLock;

use gatepost_tls::chain::{Chain, Leaf, MAX_CHAIN, MAX_LENGTH};
use gatepost_tls::key::{KeyAlgorithm, PrivateKey};
use gatepost_tls::renewal;

/// Reads bytes as a chain, as one certificate and as a key: nothing panics, what is read says the same when it is read again,
/// nothing that is too large is looked at, and a chain of somebody else's key is never taken.
pub(crate) fn chain(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let read = Chain::read(&text);
    assert!(read.is_err() || text.len() <= MAX_CHAIN);
    if let Ok(chain) = read {
        assert_eq!(Chain::read(&chain.pem).as_ref(), Ok(&chain));
        assert!(chain.pem.matches("BEGIN CERTIFICATE").count() <= MAX_LENGTH);
        leaf(&chain.leaf);
        assert!(chain.verify(ours(), &chain.leaf.names, chain.leaf.not_before).is_err());
    }
    if let Ok(read) = Leaf::read(bytes) {
        leaf(&read);
    }
    if let Err(error) = PrivateKey::from_pem(&text) {
        assert!(error.to_string().len() < 200, "what is no key is not repeated");
    }
}

fn leaf(leaf: &Leaf) {
    assert!(leaf.names.is_sorted() && leaf.names.iter().all(|name| leaf.covers(name)));
    assert!(leaf.lifetime() >= 0);
    let due = renewal::due(leaf, None, None);
    assert!(due <= leaf.not_after.max(leaf.not_before), "{due} is behind the end");
    assert!(renewal::due(leaf, Some((i64::MIN, i64::MAX)), Some(u64::MAX)) <= leaf.not_after);
}

/// A key that nobody has a certificate for.
fn ours() -> &'static PrivateKey {
    static OURS: OnceLock<PrivateKey> = OnceLock::new();
    OURS.get_or_init(|| PrivateKey::generate(KeyAlgorithm::P256).unwrap_or_else(|error| panic!("{error}")))
}
