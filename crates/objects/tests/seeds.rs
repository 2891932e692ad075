//! Runs the bodies of the fuzz targets over their seeds, and over every beginning of each seed.
#![allow(clippy::disallowed_methods)]

use std::path::PathBuf;

#[path = "../../../fuzz/src/laws.rs"]
mod laws;

fn seeds(target: &str) -> Vec<Vec<u8>> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds").join(target);
    let entries = std::fs::read_dir(folder).expect("the seeds are part of the repository");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("a readable folder").path()).collect();
    paths.sort();
    assert!(paths.len() >= 5);
    paths.into_iter().map(|path| std::fs::read(path).expect("a readable seed")).collect()
}

#[test]
fn texts() {
    for seed in seeds("parse") {
        laws::parse(&seed);
        (0..seed.len()).step_by(37).for_each(|end| laws::parse(&seed[..end]));
        (0..seed.len()).step_by(41).for_each(|at| laws::parse(&changed(&seed, at)));
    }
}

#[test]
fn hostnames() {
    for seed in seeds("hostname") {
        laws::hostname(&seed);
        (0..seed.len()).for_each(|end| laws::hostname(&seed[..end]));
        (0..seed.len()).for_each(|at| laws::hostname(&changed(&seed, at)));
    }
}

/// A seed with one byte changed, each place in another way.
fn changed(seed: &[u8], at: usize) -> Vec<u8> {
    const ODD: &[u8] = b"\t\n\"'{}[]:,-&*#!|>%@`\\\0\xff 0aA.";
    let mut bytes = seed.to_vec();
    bytes[at] = ODD[at % ODD.len()];
    bytes
}
