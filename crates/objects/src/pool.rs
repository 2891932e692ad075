//! What objects have in common, kept once.
//!
//! Most texts of a cluster stand in thousands of objects: namespaces, names of Gateways, kinds, conditions. Whoever reads many
//! objects reads them with one pool, and equal texts and lists become one block of memory. A pool changes nothing about
//! objects but what they cost; it may be dropped at any time, and it forgets what no object holds any more.

use std::borrow::Borrow;
use std::fmt;
use std::hash::Hash;
use std::sync::Arc;

use gatepost_core::model::{
    BackendRef, Condition, Filter, HttpMatch, Labels, ParentRef, ParentStatus, Rule, SharedList, Str,
};
use hashbrown::HashSet;

/// Texts and lists that objects share.
#[derive(Default)]
pub struct Pool {
    texts: SharedValues<Str>,
    labels: SharedValues<Labels>,
    parents: SharedValues<SharedList<ParentRef>>,
    rules: SharedValues<SharedList<Rule>>,
    matches: SharedValues<SharedList<HttpMatch>>,
    filters: SharedValues<SharedList<Filter>>,
    backends: SharedValues<SharedList<BackendRef>>,
    statuses: SharedValues<SharedList<ParentStatus>>,
    conditions: SharedValues<SharedList<Condition>>,
}

impl Pool {
    /// An empty pool.
    pub fn new() -> Self {
        Pool::default()
    }

    /// A text, shared with those that are equal.
    pub(crate) fn text(&mut self, text: &str) -> Str {
        if text.is_empty() { Str::default() } else { self.texts.find(text, || text.into()) }
    }

    /// Labels, shared with those that are equal.
    pub(crate) fn labels(&mut self, labels: Labels) -> Labels {
        if labels.is_empty() { labels } else { self.labels.find(&labels, || labels.clone()) }
    }

    /// A list, shared with those that are equal.
    pub(crate) fn list<T: Pooled>(&mut self, items: Vec<T>) -> SharedList<T> {
        if items.is_empty() {
            return SharedList::default();
        }
        let shared_values = T::shared_values(self);
        match shared_values.known.get(&items[..]) {
            Some(known) => known.clone(),
            None => shared_values.keep(items.into()),
        }
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pool({} texts)", self.texts.known.len())
    }
}

/// Items whose lists are worth sharing.
pub(crate) trait Pooled: Hash + Eq + Sized {
    /// Where their lists are kept.
    fn shared_values(pool: &mut Pool) -> &mut SharedValues<SharedList<Self>>;
}

macro_rules! pooled {
    ($($item:ty => $shared_values:ident),*) => {
        $(impl Pooled for $item {
            fn shared_values(pool: &mut Pool) -> &mut SharedValues<SharedList<Self>> {
                &mut pool.$shared_values
            }
        })*
    };
}

pooled!(
    ParentRef => parents,
    Rule => rules,
    HttpMatch => matches,
    Filter => filters,
    BackendRef => backends,
    ParentStatus => statuses,
    Condition => conditions
);

/// Distinct values of one type.
pub(crate) struct SharedValues<T> {
    known: HashSet<T>,
    /// The number of values at which those that nobody else holds are thrown out.
    swept_at: usize,
}

/// A set with fewer values is not worth sweeping.
const SMALL: usize = 1024;

impl<T> Default for SharedValues<T> {
    fn default() -> Self {
        SharedValues { known: HashSet::new(), swept_at: SMALL }
    }
}

impl<T: SharedValue> SharedValues<T> {
    fn find<Q: Hash + Eq + ?Sized>(&mut self, wanted: &Q, make: impl FnOnce() -> T) -> T
    where
        T: Borrow<Q>,
    {
        match self.known.get(wanted) {
            Some(known) => known.clone(),
            None => self.keep(make()),
        }
    }

    fn keep(&mut self, value: T) -> T {
        if self.known.len() >= self.swept_at {
            self.known.retain(|value| !value.is_alone());
            self.known.shrink_to(SMALL);
            self.swept_at = SMALL.max(2 * self.known.len());
        }
        self.known.insert(value.clone());
        value
    }
}

/// A value whose copies are one block of memory.
pub(crate) trait SharedValue: Hash + Eq + Clone {
    /// Whether there is no copy of it.
    fn is_alone(&self) -> bool;
}

impl SharedValue for Str {
    fn is_alone(&self) -> bool {
        Arc::strong_count(self) == 1
    }
}

impl SharedValue for Labels {
    fn is_alone(&self) -> bool {
        self.is_unshared()
    }
}

impl<T: Hash + Eq> SharedValue for SharedList<T> {
    fn is_alone(&self) -> bool {
        Arc::strong_count(self) == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_are_one() {
        let mut pool = Pool::new();
        let (one, two) = (pool.text("infra"), pool.text("infra"));
        assert!(Arc::ptr_eq(&one, &two));
        let label = |pool: &mut Pool| {
            let labels = [(pool.text("app"), pool.text("web"))].into_iter().collect();
            pool.labels(labels)
        };
        let (one, two) = (label(&mut pool), label(&mut pool));
        assert!(std::ptr::eq(one.get("app").unwrap(), two.get("app").unwrap()));
        let said = |pool: &mut Pool| pool.list(vec![Condition::new("Accepted", true, "Accepted", "")]);
        let (one, two) = (said(&mut pool), said(&mut pool));
        assert!(std::ptr::eq(&one[..], &two[..]));
    }

    #[test]
    fn what_nobody_holds_is_forgotten() {
        let mut pool = Pool::new();
        let held = pool.text("held");
        for n in 0..100 * SMALL {
            pool.text(&format!("passing-{n}"));
        }
        assert!(pool.texts.known.len() <= SMALL, "{pool:?}");
        assert!(Arc::ptr_eq(&held, &pool.text("held")));
    }

    #[test]
    fn what_is_held_stays_however_much_it_is() {
        let mut pool = Pool::new();
        let held: Vec<Str> = (0..5 * SMALL).map(|n| pool.text(&n.to_string())).collect();
        assert!(held.iter().all(|text| Arc::ptr_eq(text, &pool.text(text))));
    }
}
