//! What tests of this issuer share.

/// A certificate of somebody to trust.
pub(crate) fn root() -> String {
    let key = rcgen::KeyPair::generate().unwrap();
    rcgen::CertificateParams::new(vec!["root.test".to_owned()]).unwrap().self_signed(&key).unwrap().pem()
}
