//! The strict profile by hand-built objects: one module per stage, and properties over random worlds.

pub(crate) mod random_world;
pub(crate) mod world;

mod attacks;
mod certificates;
mod health;
mod holders;
mod hostname_grants;
mod lost_names;
mod names;
mod policies;
mod properties;
pub(crate) mod providers;
mod records;
mod status;
mod withheld;
