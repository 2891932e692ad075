//! Runs the body of the fuzz target for ownership values over its seeds, over every beginning of each, and over each with one
//! byte changed.

#[path = "../../../fuzz/src/ownership.rs"]
mod laws;

const SEEDS: [&[u8]; 5] = [
    include_bytes!("../../../fuzz/seeds/ownership/plain"),
    include_bytes!("../../../fuzz/seeds/ownership/quoted"),
    include_bytes!("../../../fuzz/seeds/ownership/sealed"),
    include_bytes!("../../../fuzz/seeds/ownership/stamped"),
    include_bytes!("../../../fuzz/seeds/ownership/two"),
];

#[test]
fn ownership_values() {
    for seed in SEEDS {
        laws::ownership(seed);
        (0..seed.len()).for_each(|end| laws::ownership(&seed[..end]));
        for odd in [0, b'"', b'\\', b',', b'=', b'\n', 0xff] {
            (0..seed.len()).for_each(|at| laws::ownership(&changed(seed, at, odd)));
        }
    }
}

fn changed(seed: &[u8], at: usize, odd: u8) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    bytes[at] = odd;
    bytes
}
