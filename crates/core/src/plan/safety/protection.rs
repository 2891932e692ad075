//! Which records must not be deleted because it is not known whether they ought to be gone.
//!
//! A route whose verdict is unknown holds the names that it lists and whatever was made for it, and no record of another
//! route (D32). Nothing here reads a zone: who a record was made for is given.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

use crate::model::{Kind, ObjectRef, Str};
use crate::plan::answers::at_and_above;
use crate::plan::wanted::WantedByZone;
use crate::plan::{Hold, HoldScope, Intent, Unseen, canonical};
use crate::publication::Record;
use crate::reason::{self, Reason};

/// Records that must not be deleted, and why.
pub(in crate::plan) struct Protection<'a> {
    unseen: &'a [Unseen],
    records: &'a [Record],
    /// The names of the records, where somebody asked.
    wanted: OnceCell<BTreeSet<Str>>,
    /// The first hold of each hostname.
    exact: BTreeMap<&'a str, &'a Hold>,
    /// The first hold of a hostname below each name.
    held_below: BTreeMap<&'a str, &'a Hold>,
    routes: BTreeMap<&'a ObjectRef, &'a Hold>,
    namespaces: BTreeMap<&'a str, &'a Hold>,
    /// What holds names whoever they were made for.
    all: WideHolds<'a>,
    /// What holds records of which nothing tells what they were made for.
    unmarked: WideHolds<'a>,
    stuck: BTreeMap<Str, (Reason, String)>,
}

/// The first holds that concern more names than one.
#[derive(Default)]
struct WideHolds<'a> {
    below: BTreeMap<&'a str, &'a Hold>,
    everything: Option<&'a Hold>,
}

/// Why the records of a name must not be deleted.
pub(in crate::plan) struct Cause {
    /// Which row of the catalog.
    pub(in crate::plan) reason: Reason,
    /// The reason behind it.
    pub(in crate::plan) cause: Option<Reason>,
    /// The object to look at.
    pub(in crate::plan) object: Option<ObjectRef>,
    pub(super) why: String,
}

impl Cause {
    /// The message for a name.
    pub(in crate::plan) fn message(&self, name: &str) -> String {
        format!("`{name}` is kept as it is: {}", self.why)
    }
}

impl<'a> WideHolds<'a> {
    fn add(&mut self, hold: &'a Hold) {
        if &*hold.hostname == "*" {
            self.everything.get_or_insert(hold);
        } else if let Some(base) = hold.hostname.strip_prefix("*.") {
            self.below.entry(base).or_insert(hold);
        }
    }

    fn of(&self, name: &str) -> Option<&'a Hold> {
        let above = at_and_above(name).skip(1).find_map(|base| self.below.get(base).copied());
        above.or(self.everything)
    }
}

impl<'a> Protection<'a> {
    /// What the intent does not know, and what is wanted but cannot be published.
    pub(in crate::plan) fn new(intent: &Intent<'a>, all_wanted: &WantedByZone<'_>) -> Self {
        let mut protection = Protection {
            unseen: intent.unseen,
            records: intent.records,
            wanted: OnceCell::new(),
            exact: BTreeMap::new(),
            held_below: BTreeMap::new(),
            routes: BTreeMap::new(),
            namespaces: BTreeMap::new(),
            all: WideHolds::default(),
            unmarked: WideHolds::default(),
            stuck: all_wanted.stuck.clone(),
        };
        let mut holds: Vec<&Hold> = intent.holds.iter().collect();
        holds.sort();
        holds.into_iter().for_each(|hold| protection.add(hold));
        protection
    }

    fn add(&mut self, hold: &'a Hold) {
        self.exact.entry(&hold.hostname).or_insert(hold);
        for base in at_and_above(&hold.hostname).skip(1) {
            self.held_below.entry(base).or_insert(hold);
        }
        match &hold.scope {
            HoldScope::Names => self.all.add(hold),
            HoldScope::Route(route) => {
                self.routes.entry(route).or_insert(hold);
                self.unmarked.add(hold);
            }
            HoldScope::Namespace(namespace) => {
                self.namespaces.entry(namespace).or_insert(hold);
                self.unmarked.add(hold);
            }
        }
    }

    /// Why records of a name that were made for an object must not be deleted; `None` if they may be.
    pub(in crate::plan) fn of(&self, name: &str, made_for: Option<&ObjectRef>) -> Option<Cause> {
        if let Some(unseen) = self.unseen.iter().min() {
            let why = format!("{} could not be seen ({})", unseen.what, unseen.why);
            return Some(Cause { reason: reason::KIND_NOT_VISIBLE, cause: None, object: None, why });
        }
        if let Some((reason, why)) = self.stuck.get(name) {
            return Some(Cause {
                reason: reason::SOURCE_UNKNOWN,
                cause: Some(*reason),
                object: None,
                why: why.clone(),
            });
        }
        let hold = self.hold(name, made_for)?;
        Some(Cause {
            reason: reason::SOURCE_UNKNOWN,
            cause: Some(hold.reason),
            object: hold.object.clone(),
            why: hold.message.clone(),
        })
    }

    /// Whether records ask for a name.
    pub(super) fn is_wanted(&self, name: &str) -> bool {
        let names = || self.records.iter().map(|record| canonical::name(&record.name)).collect();
        self.wanted.get_or_init(names).contains(name)
    }

    /// The hold of a name, of one that only this wildcard may answer, or of what the records were made for.
    fn hold(&self, name: &str, made_for: Option<&ObjectRef>) -> Option<&'a Hold> {
        let answered = || self.held_below.get(name.strip_prefix("*.")?).copied();
        let by_maker = || match made_for {
            None => self.unmarked.of(name),
            Some(route) => self.routes.get(route).copied().or_else(|| match route.kind {
                Kind::Route(_) => self.namespaces.get(&*route.key.namespace).copied(),
                _ => None,
            }),
        };
        let hold = self.exact.get(name).copied().or_else(|| self.all.of(name));
        hold.or_else(answered).or_else(by_maker)
    }
}
