//! Who issues certificates: one trait, and what an issuer may answer.
//!
//! An issuer moves one order one step further and says what it needs. It never decides whether a certificate is needed, never
//! writes DNS, never stores a certificate, and keeps no budget: those who call it do.

use std::fmt;
use std::time::Duration;

use gatepost_core::model::Str;

use crate::Call;
use crate::budget::RateLimits;
use crate::chain::Leaf;
use crate::error::Result;
use crate::order::Order;

/// Somebody who issues certificates.
pub trait Issuer: Send + Sync + fmt::Debug {
    /// What it is called: `acme`.
    fn kind(&self) -> &'static str;

    /// What it allows.
    fn limits(&self) -> RateLimits;

    /// Moves an order one step further. `published` says whether all its challenges are answered.
    ///
    /// Whatever changed in the order is written down before the next call, and after a restart the next call is made with what
    /// was written down.
    fn advance<'a>(&'a self, order: &'a mut Order, published: bool, now: i64) -> Call<'a, Result<Progress>>;

    /// When it would have a certificate renewed, and when to ask again; nothing where it has no opinion.
    fn suggestion<'a>(&'a self, _leaf: &'a Leaf, _now: i64) -> Call<'a, Result<Option<Suggestion>>> {
        Box::pin(async { Ok(None) })
    }

    /// The certificate to trust, where it is an authority of its own.
    fn root(&self) -> Option<&str> {
        None
    }
}

/// What became of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The next step may follow at once.
    Again,
    /// The challenges of the order are to be published first.
    Publish,
    /// The issuer needs time.
    Wait(Duration),
    /// The chain is in the order.
    Issued,
    /// The order failed for good.
    Failed(Failed),
}

/// Why an order failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failed {
    /// The names that are to blame, each with what is wrong with it; none where it is the order as a whole.
    pub names: Vec<(Str, String)>,
    /// In words.
    pub why: String,
}

/// When an issuer would have a certificate renewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Suggestion {
    /// Begin and end, in seconds since 1970.
    pub window: Option<(i64, i64)>,
    /// When to ask again.
    pub again: i64,
}
