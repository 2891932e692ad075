use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

use super::*;
use crate::key::KeyAlgorithm;

const NOW: i64 = 1_800_000_000;

struct ChainFixture {
    key: PrivateKey,
    root: String,
    signer: Issuer<'static, KeyPair>,
}

fn bed() -> ChainFixture {
    let mut parameters = CertificateParams::new(Vec::<String>::new()).unwrap();
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let root = parameters.self_signed(&key).unwrap().pem();
    let signer = Issuer::from_ca_cert_pem(&root, key).unwrap();
    ChainFixture { key: PrivateKey::generate(KeyAlgorithm::P256).unwrap(), root, signer }
}

impl ChainFixture {
    fn leaf(&self, names: &[&str], from: i64, until: i64) -> String {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut parameters = CertificateParams::new(names).unwrap();
        let at = |seconds: i64| rcgen::date_time_ymd(1970, 1, 1) + std::time::Duration::from_secs(seconds as u64);
        (parameters.not_before, parameters.not_after) = (at(from), at(until));
        parameters.use_authority_key_identifier_extension = true;
        parameters.signed_by(self.key.pair(), &self.signer).unwrap().pem()
    }

    fn good(&self) -> String {
        self.leaf(&["a.test", "*.b.test"], NOW - 10, NOW + 1000)
    }

    fn verdict(&self, pem: &str, names: &[&str]) -> String {
        let names: Vec<Str> = names.iter().map(|name| Str::from(*name)).collect();
        let judged = Chain::read(pem).map_err(Error::rejected).and_then(|chain| chain.verify(&self.key, &names, NOW));
        judged.map_or_else(|error| error.to_string(), |()| "taken".to_owned())
    }
}

#[test]
fn a_chain_that_is_what_was_ordered_is_taken() {
    let bed = bed();
    assert_eq!(bed.verdict(&bed.good(), &["*.b.test", "a.test"]), "taken");
    assert_eq!(bed.verdict(&(bed.good() + &bed.root), &["*.b.test", "a.test"]), "taken", "with the issuer behind it");
}

#[test]
fn the_kind_of_a_key_is_read_from_its_certificate() {
    for algorithm in [KeyAlgorithm::P256, KeyAlgorithm::P384, KeyAlgorithm::Rsa(2048), KeyAlgorithm::Rsa(3072)] {
        let key = PrivateKey::generate(algorithm).unwrap();
        let bed = ChainFixture { key, ..bed() };
        assert_eq!(Chain::read(&bed.good()).unwrap().leaf.algorithm, Some(algorithm));
    }
    let key = KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
    let odd = CertificateParams::new(vec!["a.test".to_owned()]).unwrap().self_signed(&key).unwrap().pem();
    assert_eq!(Chain::read(&odd).unwrap().leaf.algorithm, None, "not a kind that is made here");
}

#[test]
fn everything_else_is_refused_by_name() {
    let bed = bed();
    let names = ["*.b.test", "a.test"];
    let other = self::bed();
    let table = [
        (bed.good(), &["a.test", "c.test"][..], "`c.test` was ordered and is not among its names"),
        (bed.good(), &["a.test"][..], "`*.b.test` is among its names and was not ordered"),
        (bed.leaf(&names, NOW - 10, NOW), &names[..], "it has expired already"),
        (bed.leaf(&names, NOW + 4000, NOW + 5000), &names[..], "it is not valid yet"),
        (other.good(), &names[..], "it is for another key"),
        (bed.good() + &other.root, &names[..], "certificate 1 of the chain is not signed by the next one"),
        (bed.root.clone() + &bed.good(), &names[..], "it is for another key"),
        (bed.good() + &bed.key.to_secret_pem(), &names[..], "holds something that is not a certificate"),
        (String::new(), &names[..], "there is no certificate in it"),
    ];
    for (pem, names, why) in table {
        let verdict = bed.verdict(&pem, names);
        assert!(verdict.contains(why), "{verdict}, not {why}");
    }
}

#[test]
fn hostile_texts_are_refused_quickly_and_without_being_repeated() {
    let block = "-----BEGIN CERTIFICATE-----\nQ0FOQVJZ\n-----END CERTIFICATE-----\n";
    let texts = [
        "-----BEGIN CERTIFICATE-----\n".repeat(40_000),
        "A".repeat(1 << 20),
        block.repeat(1000),
        block.to_owned(),
        "-----BEGIN CERTIFICATE-----\n\n-----END CERTIFICATE-----\n".to_owned(),
    ];
    for text in texts {
        let error = Chain::read(&text).unwrap_err();
        assert!(error.len() < 120 && !error.contains("Q0FO"), "{error}");
    }
}

#[test]
fn leaves_say_what_they_cover_and_how_they_are_called() {
    let bed = bed();
    let leaf = Chain::read(&bed.good()).unwrap().leaf;
    for (name, covered) in [
        ("a.test", true),
        ("x.b.test", true),
        ("*.b.test", true),
        ("b.test", false),
        ("x.y.b.test", false),
        ("c.test", false),
    ] {
        assert_eq!(leaf.covers(name), covered, "{name}");
    }
    let id = leaf.renewal_id.clone().unwrap();
    assert_eq!(id.split('.').count(), 2);
    assert_eq!(leaf.lifetime(), 1010);
}

proptest::proptest! {
    /// Whatever a chain is turned into, it is read or refused, and never more.
    #[test]
    fn mutated_chains_do_no_harm(cuts in proptest::collection::vec((0_usize..2000, 0_u8..128), 0..20), end in 0_usize..2000) {
        let mut bytes = SAMPLE.get_or_init(|| { let bed = bed(); bed.good() + &bed.root }).clone().into_bytes();
        for (at, byte) in cuts {
            let at = at % bytes.len();
            bytes[at] = byte;
        }
        bytes.truncate(end.max(1));
        let _ = Chain::read(&String::from_utf8_lossy(&bytes));
    }
}

static SAMPLE: std::sync::OnceLock<String> = std::sync::OnceLock::new();
