//! Routing from hand-built objects, and against a model that only knows plain loops.

mod filters;
mod listeners;
mod model;
mod precedence;
mod world;
