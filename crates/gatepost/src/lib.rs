//! Gatepost as a library: command line, reading of files, views and renderings.
//!
//! This is the outermost crate: the only one that reads files and the environment, prints, and knows which shape output has.
//! It decides nothing: the rules are in `gatepost-core`, the wire shapes in `gatepost-objects`.

pub mod admission;
pub mod api;
pub mod apply;
pub mod certificates;
pub mod cli;
pub mod controller;
pub mod error;
pub mod health;
pub mod metrics;
pub mod progress;
pub mod render;
pub mod requests;
pub mod rights;
pub mod run;
pub mod source;
pub mod state;
pub mod verify;
pub mod view;
pub mod web;
