//! Synthetic worlds of Gateway API objects, of any size, by seed, and the streams of changes that clusters show.
//!
//! A [`World`] writes the Gateways of a platform team, ListenerSets, and the routes of many teams, each with the status that a
//! healthy implementation would have given it. The same [`Size`] gives the same bytes. A [`Stream`] goes on from there: routes
//! are edited, listeners added, labels flipped, addresses changed, ListenerSets deleted, alone and in bursts.
//!
//! Worlds are made so that they are right; nothing here asks the rules. Objects become values through the border every other
//! text passes ([`values`]), so that there is one shape and not two. No files, no clock: who wants files writes them.

mod files;
mod layout;
mod names;
mod platform;
mod random;
mod route;
mod size;
mod stream;
#[cfg(test)]
mod tests;
pub mod values;
mod wire;
mod world;

pub use files::{WorldFile, files};
pub use size::{Addresses, HOLDER_LIMIT, HOSTNAME_LIMIT, PARENT_LIMIT, Size, Unfit};
pub use stream::{Event, Stream, StreamChange, StreamStep};
pub use world::{Document, Style, World};
