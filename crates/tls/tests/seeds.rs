//! Runs the body of the fuzz target for certificate chains over its seeds, over beginnings of each, and over each with one byte
//! changed.

use gatepost_testkit::tree;

#[path = "../../../fuzz/src/chain.rs"]
mod laws;

#[test]
fn certificate_chains() {
    let seeds = tree::files(&tree::root().join("fuzz/seeds/chain"));
    assert!(seeds.len() >= 5, "{seeds:?}");
    for seed in seeds {
        let seed = std::fs::read(seed).unwrap_or_default();
        laws::chain(&seed);
        (0..seed.len()).step_by(7).for_each(|end| laws::chain(&seed[..end]));
        for odd in [0, 1, b'-', 0x30, 0x7f, 0x80, 0xff] {
            (0..seed.len()).step_by(3).for_each(|at| laws::chain(&changed(&seed, at, odd)));
        }
    }
}

#[test]
fn what_is_large_is_not_looked_at() {
    let block = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n";
    for count in [11, 2000, 50_000] {
        laws::chain(block.repeat(count).as_bytes());
    }
}

fn changed(seed: &[u8], at: usize, odd: u8) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    bytes[at] = odd;
    bytes
}
