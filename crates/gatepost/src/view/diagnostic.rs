//! Diagnostics as JSON.

use gatepost_core::diagnostic::{Diagnostic, SourcePosition};
use schemars::JsonSchema;
use serde::Serialize;

/// One diagnostic.
#[derive(Serialize, JsonSchema, Debug, Clone)]
pub struct DiagnosticView {
    /// Name of the reason.
    pub reason: &'static str,
    /// Number of the reason.
    pub code: &'static str,
    /// `error`, `warning` or `info`.
    pub severity: &'static str,
    /// The object, as `Kind/namespace/name`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// The field to edit.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub field: String,
    /// What is so.
    pub message: String,
    /// What to do.
    pub help: String,
    /// One command that fixes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
    /// Where it stands.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub place: Option<PlaceView>,
    /// Other places that belong to it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub related: Vec<RelatedView>,
}

/// A position in a file.
#[derive(Serialize, JsonSchema, Debug, Clone)]
pub struct PlaceView {
    /// File name, or `-`.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1.
    pub column: u32,
}

/// Another object that matters.
#[derive(Serialize, JsonSchema, Debug, Clone)]
pub struct RelatedView {
    /// The object.
    pub object: String,
    /// The field.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub field: String,
    /// What about it.
    pub note: String,
    /// Where it stands.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub place: Option<PlaceView>,
}

impl DiagnosticView {
    /// The view of a diagnostic.
    pub fn of(diagnostic: &Diagnostic) -> Self {
        let row = diagnostic.reason.row();
        let related = diagnostic.related.iter().map(|r| RelatedView {
            object: r.object.to_string(),
            field: r.field.to_string(),
            note: r.note.clone(),
            place: r.place.as_ref().map(place),
        });
        DiagnosticView {
            reason: row.name,
            code: row.code,
            severity: diagnostic.severity.as_str(),
            object: diagnostic.object.as_ref().map(ToString::to_string),
            field: diagnostic.field.to_string(),
            message: diagnostic.message.clone(),
            help: diagnostic.help.clone().unwrap_or_else(|| row.help.to_owned()),
            fix: diagnostic.fix.clone(),
            place: diagnostic.place.as_ref().map(place),
            related: related.collect(),
        }
    }
}

fn place(place: &SourcePosition) -> PlaceView {
    PlaceView { file: place.source.to_string(), line: place.line, column: place.column }
}
