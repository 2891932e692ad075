//! The embedded server against its model, against other servers, with real secondaries, and under attack.
// A test ends where something is not as it must be.
#![allow(clippy::unwrap_used)]

mod embedded {
    pub(crate) mod ask;
    pub(crate) mod attack;
    pub(crate) mod dice;
    pub(crate) mod differential;
    pub(crate) mod load;
    pub(crate) mod model;
    pub(crate) mod rights;
    pub(crate) mod secondaries;
    pub(crate) mod zones;
}

fn main() {
    use embedded::{attack, differential, load, model, rights, secondaries};
    let all = [
        model::trials(),
        differential::trials(),
        secondaries::trials(),
        rights::trials(),
        attack::trials(),
        load::trials(),
    ];
    gatepost_testkit::run(all.into_iter().flatten().collect())
}
