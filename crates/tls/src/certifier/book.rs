//! Everything that is remembered, on one page, so that it changes as a whole.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::ledger::Ledger;
use crate::order::{Challenge, Order};
use crate::store::Notebook;

/// The page it is kept on.
const PAGE: &str = "certificates";
/// The format that is written.
const VERSION: u32 = 1;
/// More values are not remembered as retired; the oldest are forgotten.
const MOST_RETIRED: usize = 10_000;

/// The orders that are open, and what else is remembered.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Book {
    version: u32,
    /// By Secret, as `NAMESPACE/NAME`.
    pub(super) orders: BTreeMap<String, Order>,
    pub(super) ledger: Ledger,
    /// Values that were published for orders that are done.
    #[serde(default)]
    pub(super) retired: Vec<Challenge>,
}

impl Book {
    pub(super) async fn read(notebook: &dyn Notebook) -> Result<Book> {
        let Some(text) = notebook.read(PAGE).await? else { return Ok(Book::default()) };
        // The cause would repeat parts of the text, and there are keys in it.
        let damaged = |why: &str| Error::storage("be read", format!("{PAGE}.json"), why);
        let book: Book = serde_json::from_str(&text)
            .map_err(|_| damaged("it is damaged; remove it to begin anew: certificates that are stored stay"))?;
        match book.version {
            VERSION => Ok(book),
            other => Err(damaged(&format!("it has format {other}, and this program knows {VERSION}"))),
        }
    }

    pub(super) async fn write(&mut self, notebook: &dyn Notebook) -> Result<()> {
        self.version = VERSION;
        let text = serde_json::to_string(self);
        let text = text.map_err(|_| Error::storage("be written", format!("{PAGE}.json"), "it is no JSON"))?;
        notebook.write(PAGE, &text).await
    }

    /// Takes an order out; its values are no longer needed.
    pub(super) fn close(&mut self, secret: &str) -> Option<Order> {
        let order = self.orders.remove(secret)?;
        self.retired.extend(order.challenges.iter().cloned());
        self.retired.drain(..self.retired.len().saturating_sub(MOST_RETIRED));
        Some(order)
    }
}
