//! The providers, one file each.

pub mod rfc2136;
