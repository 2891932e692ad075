//! What other programs may rely on: the shapes of `-o json`.
//!
//! Core types are not serializable; these are their counterparts. Fields may be added, never changed. Golden files and other
//! outputs use the same shapes, so that a change of a golden file is a change of the contract.

pub mod api;
pub mod certificates;
pub mod diagnostic;
pub mod explain;
pub mod flow;
pub mod plan;
pub mod route;
mod rows;
pub mod status;
pub mod steps;
pub mod verify;

use std::io::Write;

use serde::Serialize;

/// Writes a value as JSON with a line break at the end.
pub fn write_json(out: &mut dyn Write, value: &impl Serialize) -> std::io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, value)?;
    writeln!(out)
}
