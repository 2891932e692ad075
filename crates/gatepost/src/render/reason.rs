//! The page of a reason: its document, which is part of the binary.

use gatepost_core::reason::Reason;
use include_dir::{Dir, include_dir};

static PAGES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../docs/diagnostics");

/// The document of a reason; its row of the catalog where there is none.
pub fn page(reason: Reason) -> String {
    let row = reason.row();
    let (kind, word) = row.condition;
    let condition = if kind.is_empty() { String::new() } else { format!(", shows as {kind}/{word}") };
    let head = format!("{} {} ({}{condition})\n\n{}\n{}\n", row.code, row.name, row.severity, row.summary, row.help);
    match PAGES.get_file(format!("{}.md", row.name)).and_then(|file| file.contents_utf8()) {
        Some(document) => format!("{head}\n{document}"),
        None => head,
    }
}
