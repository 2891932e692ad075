//! The providers, one file each.

pub mod embedded;
pub mod rfc2136;
