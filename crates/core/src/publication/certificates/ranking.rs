//! Which names a certificate has room for: those that the oldest routes ask for.
//!
//! There may be many more than there is room for. Of those only the next are kept in order and the others are counted, so that
//! a name that comes or goes among them costs nothing but that. When the next have all gone, everything is looked at once more.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::Arc;

use crate::lint::SHOWN;
use crate::model::{Key, Route};
use crate::names::Hostname;
use crate::table::{Spelling, Spelt};

/// Who asks for a name; the oldest comes first.
#[derive(Clone)]
pub(super) struct Claimant {
    created: i64,
    pub(super) route: Arc<Route>,
}

/// A name and who asks for it first. By age, then by name: the youngest have to go first where there is no room.
pub(super) type Ranked = (Claimant, Hostname);

/// Names by rank.
#[derive(Default)]
pub(super) struct Ranking {
    /// Those that there is room for; all others come behind them.
    chosen: BTreeSet<Ranked>,
    /// The same by name.
    made: BTreeSet<Hostname>,
    /// Those that come next, up to the border.
    next: BTreeSet<Ranked>,
    /// Where the last of them stands, or stood. There is one for as long as there are names behind it.
    border: Option<(i64, Key, Hostname)>,
    /// How many those are; they are only counted.
    more: usize,
}

impl Ranking {
    /// The names that there is room for, by name.
    pub(super) fn made(&self) -> &BTreeSet<Hostname> {
        &self.made
    }

    /// How many names there is no room for.
    pub(super) fn left_out(&self) -> usize {
        self.next.len() + self.more
    }

    /// The first of those, as many as are told of at least.
    pub(super) fn first_left_out(&self) -> impl Iterator<Item = &Hostname> {
        self.next.iter().map(|(_, name)| name)
    }

    /// Puts a name in that is not there.
    pub(super) fn insert(&mut self, rank: Ranked) {
        if self.left_out() == 0 || self.is_chosen(&rank) {
            self.made.insert(rank.1.clone());
            self.chosen.insert(rank);
        } else if self.is_known(&rank) {
            self.next.insert(rank);
        } else {
            self.more += 1;
        }
    }

    /// Takes a name out that is there.
    pub(super) fn remove(&mut self, rank: &Ranked) {
        if self.is_chosen(rank) {
            self.made.remove(&rank.1);
            self.chosen.remove(rank);
        } else if self.is_known(rank) {
            self.next.remove(rank);
        } else {
            self.more -= 1;
            self.border = self.border.take().filter(|_| self.more > 0);
        }
    }

    /// Fills the room that there is, and takes out what there is none for. `all` gives the names that are in, with who asks for
    /// each first; it is asked only where too few are known.
    pub(super) fn settle<'a, I>(&mut self, limit: usize, all: impl FnOnce() -> I)
    where
        I: Iterator<Item = (&'a Arc<Route>, &'a Hostname)>,
    {
        while self.chosen.len() > limit
            && let Some(last) = self.chosen.pop_last()
        {
            self.made.remove(&last.1);
            self.next.insert(last);
        }
        let room = limit - self.chosen.len();
        if self.next.len() < room + SHOWN && self.more > 0 {
            self.refill(room + reach(limit), all());
        } else if self.next.len() > 2 * reach(limit) {
            self.forget_all_but(reach(limit));
        }
        while self.chosen.len() < limit
            && let Some(first) = self.next.pop_first()
        {
            self.made.insert(first.1.clone());
            self.chosen.insert(first);
        }
    }

    fn is_chosen(&self, rank: &Ranked) -> bool {
        self.chosen.last().is_some_and(|last| rank <= last)
    }

    fn is_known(&self, rank: &Ranked) -> bool {
        self.border.as_ref().is_none_or(|(created, key, name)| stand(rank) <= ((*created, key), name))
    }

    fn forget_all_but(&mut self, count: usize) {
        let Some(first) = self.next.iter().nth(count).cloned() else { return };
        self.more += self.next.split_off(&first).len();
        self.draw_border();
    }

    fn draw_border(&mut self) {
        let last = self.next.last().filter(|_| self.more > 0).map(stand);
        self.border = last.map(|((created, key), name)| (created, key.clone(), name.clone()));
    }

    fn refill<'a>(&mut self, count: usize, all: impl Iterator<Item = (&'a Arc<Route>, &'a Hostname)>) {
        let last = self.chosen.last().map(stand);
        let all = all.map(|(route, name)| ((route.meta.seniority(), name), route));
        let mut left: Vec<_> = all.filter(|(stand, _)| Some(*stand) > last).collect();
        debug_assert_eq!(left.len(), self.left_out());
        if left.len() > count {
            left.select_nth_unstable_by(count, |(a, _), (b, _)| a.cmp(b));
        }
        self.more = left.len().saturating_sub(count);
        self.next = left.iter().take(count).map(|((_, name), route)| (Claimant::of(route), (*name).clone())).collect();
        self.draw_border();
    }
}

/// What a rank is told from others by.
fn stand((claimant, name): &Ranked) -> ((i64, &Key), &Hostname) {
    ((claimant.created, &claimant.route.meta.key), name)
}

/// How many names behind those that there is room for are known.
fn reach(limit: usize) -> usize {
    (16 * limit).max(2 * SHOWN)
}

impl Claimant {
    pub(super) fn of(route: &Arc<Route>) -> Self {
        let (created, _) = route.meta.seniority();
        Claimant { created, route: route.clone() }
    }
}

impl Spelt for Claimant {
    fn spelling(&self) -> Spelling<'_> {
        Spelling::aged(self.created, &self.route.meta.key)
    }
}

impl Ord for Claimant {
    fn cmp(&self, other: &Self) -> Ordering {
        self.created.cmp(&other.created).then_with(|| self.route.meta.key.cmp(&other.route.meta.key))
    }
}

impl PartialOrd for Claimant {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Claimant {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Claimant {}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::model::{List, Meta, RouteKind, RouteStatus};

    fn route(number: u8) -> Arc<Route> {
        let meta = Meta { created: Some(i64::from(number / 3)).into(), ..Meta::named("a", format!("r{number}")) };
        let (parents, rules, status) = (List::new(), List::new(), RouteStatus::default());
        Arc::new(Route { kind: RouteKind::Http, meta, parents, hostnames: Default::default(), rules, status })
    }

    /// A ranking, and the names that are in it.
    #[derive(Default)]
    struct Both {
        ranking: Ranking,
        model: BTreeMap<Hostname, Arc<Route>>,
    }

    impl Both {
        fn set(&mut self, name: Hostname, route: Option<Arc<Route>>) {
            if let Some(known) = self.model.remove(&name) {
                self.ranking.remove(&(Claimant::of(&known), name.clone()));
            }
            if let Some(route) = route {
                self.ranking.insert((Claimant::of(&route), name.clone()));
                self.model.insert(name, route);
            }
        }

        fn settle(&mut self, limit: usize) {
            self.ranking.settle(limit, || self.model.iter().map(|(name, route)| (route, name)));
        }

        fn ranked(&self) -> Vec<Hostname> {
            let ranked = self.model.iter().map(|(name, route)| (Claimant::of(route), name.clone()));
            ranked.collect::<BTreeSet<Ranked>>().into_iter().map(|(_, name)| name).collect()
        }
    }

    #[derive(Clone, Debug)]
    enum Step {
        /// Names come, or are asked for by others.
        Come(Vec<(u8, u8)>),
        /// All but so many go, the oldest first or the youngest.
        Go(usize, bool),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let come = prop::collection::vec((any::<u8>(), 0u8..240), 1..200).prop_map(Step::Come);
        let go = (0usize..60, any::<bool>()).prop_map(|(left, is_oldest)| Step::Go(left, is_oldest));
        prop::collection::vec(prop_oneof![2 => come, 1 => go], 1..24)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]
        #[test]
        fn the_oldest_get_the_room_however_many_come_and_go(
            limit in 0usize..4,
            steps in steps(),
            is_settled_often: bool,
        ) {
            let mut both = Both::default();
            for step in steps {
                let changes: Vec<(Hostname, Option<Arc<Route>>)> = match step {
                    Step::Come(names) => {
                        let name = |name: u8| Hostname::parse(&format!("n{name}.example.org")).unwrap();
                        names.into_iter().map(|(age, number)| (name(number), Some(route(age)))).collect()
                    }
                    Step::Go(left, is_oldest) => {
                        let mut names = both.ranked();
                        if !is_oldest {
                            names.reverse();
                        }
                        names.truncate(names.len().saturating_sub(left));
                        names.into_iter().map(|name| (name, None)).collect()
                    }
                };
                for (name, route) in changes {
                    both.set(name, route);
                    if is_settled_often {
                        both.settle(limit);
                    }
                }
                both.settle(limit);
                let names = both.ranked();
                let (made, left) = names.split_at(limit.min(names.len()));
                prop_assert_eq!(both.ranking.made(), &made.iter().cloned().collect());
                prop_assert_eq!(both.ranking.left_out(), left.len());
                let told: Vec<Hostname> = both.ranking.first_left_out().take(SHOWN).cloned().collect();
                prop_assert_eq!(&told[..], &left[..SHOWN.min(left.len())]);
            }
        }
    }
}
