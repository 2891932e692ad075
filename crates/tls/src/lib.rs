//! Certificates: who issues them, how an order goes from nothing to a key pair that serves, and where that is kept.
//!
//! One driver, [`certifier`], takes what ought to exist, asks [`decide`] what to do about each Secret, and moves [`order`]s
//! through an [`issuer`] step by step; every step is written down before the next one, so that a restart goes on where
//! it was. What comes back is judged by [`chain`] before [`store`] replaces what serves. This crate never writes DNS: a
//! challenge is a value that the ordinary plan publishes, and whether it is answered is asked of somebody outside. Time is
//! a parameter everywhere. No private key gets into an error, a debug output or a log.

pub mod budget;
pub mod certifier;
pub mod chain;
pub mod decide;
mod error;
pub mod history;
pub mod issuer;
pub mod issuers;
pub mod key;
pub mod order;
pub mod renewal;
pub mod store;

pub use error::{Error, IssuanceProblem, Result};

/// An answer that is still to come.
pub type Call<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;
