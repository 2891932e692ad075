//! Everything that is remembered across restarts, saved as one document, so that it changes as a whole.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::history::IssuanceHistory;
use crate::order::{Challenge, Order};
use crate::store::StateStore;

/// The page it is kept on.
const PAGE: &str = "certificates";
/// The format that is written.
const VERSION: u32 = 1;
/// More values are not remembered as retired; the oldest are forgotten.
const MOST_RETIRED: usize = 10_000;

/// The orders that are open, and what else is remembered.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct SavedState {
    version: u32,
    /// By Secret, as `NAMESPACE/NAME`.
    pub(super) orders: BTreeMap<String, Order>,
    /// Saved as `ledger`, the name it had when the format was fixed.
    #[serde(rename = "ledger")]
    pub(super) history: IssuanceHistory,
    /// Values that were published for orders that are done.
    #[serde(default)]
    pub(super) retired: Vec<Challenge>,
}

impl SavedState {
    pub(super) async fn read(state_store: &dyn StateStore) -> Result<SavedState> {
        let Some(text) = state_store.read(PAGE).await? else { return Ok(SavedState::default()) };
        // The cause would repeat parts of the text, and there are keys in it.
        let damaged = |why: &str| Error::storage("be read", format!("{PAGE}.json"), why);
        let saved: SavedState = serde_json::from_str(&text)
            .map_err(|_| damaged("it is damaged; remove it to begin anew: certificates that are stored stay"))?;
        match saved.version {
            VERSION => Ok(saved),
            other => Err(damaged(&format!("it has format {other}, and this program knows {VERSION}"))),
        }
    }

    pub(super) async fn write(&mut self, state_store: &dyn StateStore) -> Result<()> {
        self.version = VERSION;
        let text = serde_json::to_string(self);
        let text = text.map_err(|_| Error::storage("be written", format!("{PAGE}.json"), "it is not JSON"))?;
        state_store.write(PAGE, &text).await
    }

    /// Takes an order out; its values are no longer needed.
    pub(super) fn close(&mut self, secret: &str) -> Option<Order> {
        let order = self.orders.remove(secret)?;
        self.retired.extend(order.challenges.iter().cloned());
        self.retired.drain(..self.retired.len().saturating_sub(MOST_RETIRED));
        Some(order)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_saved_names_are_those_of_format_one() {
        let saved = serde_json::to_value(SavedState { version: VERSION, ..SavedState::default() }).unwrap();
        let names: Vec<&String> = saved.as_object().unwrap().keys().collect();
        assert_eq!(names, ["ledger", "orders", "retired", "version"]);
    }
}
