//! The page of a reason: its document, which is part of the binary.

use gatepost_core::reason::Reason;
use include_dir::{Dir, include_dir};

static PAGES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../docs/diagnostics");

/// The document of a reason; its row of the catalog where there is none.
pub fn page(reason: Reason) -> String {
    let row = reason.row();
    let document = PAGES.get_file(format!("{}.md", row.name)).and_then(|file| file.contents_utf8());
    match document {
        Some(document) => document.to_owned(),
        None => format!("# {}\n\n{}, {}.\n\n{}\n{}\n", row.name, row.code, row.severity, row.summary, row.help),
    }
}
