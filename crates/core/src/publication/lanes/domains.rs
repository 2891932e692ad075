//! Where names right below a domain are served: the latest answers, so that a domain is looked up once for many names.
//!
//! What is not found is worked out again, so that this changes nothing but what an answer costs. It has a bound.

use crate::seed::Seed;

/// So many domains are remembered at most, and one for so many routes.
const MOST: usize = 16384;
const ROUTES_OF_DOMAIN: usize = 2;

/// The latest answers.
pub(super) struct Domains<'a> {
    seed: Seed,
    /// A domain has one of two places next to each other. A power of two.
    slots: Vec<Option<Kept<'a>>>,
}

/// For whom an answer is good.
#[derive(Clone, Copy)]
pub(super) struct Whose {
    /// The lane, by its number.
    pub(super) lane: u32,
    /// The namespace, by its number, where that matters.
    pub(super) namespace: Option<u32>,
}

#[derive(Clone, Copy)]
struct Kept<'a> {
    domain: &'a str,
    whose: Whose,
    serving: u32,
}

impl<'a> Domains<'a> {
    /// Room for the domains of so many routes.
    pub(super) fn new(routes: usize) -> Self {
        let room = routes.div_ceil(ROUTES_OF_DOMAIN).next_power_of_two().clamp(2, MOST);
        Domains { seed: Seed::new(), slots: vec![None; room] }
    }

    /// The first place of a domain; the other is beside it.
    pub(super) fn place(&self, lane: u32, domain: &str) -> usize {
        let number = self.seed.of(domain.as_bytes()).wrapping_add(u64::from(lane) << 7);
        number as usize & (self.slots.len() - 1)
    }

    /// What was kept at a place for the routes of a lane and a namespace.
    pub(super) fn serving(&self, place: usize, domain: &str, lane: u32, namespace: u32) -> Option<u32> {
        let kept = [place, place ^ 1].into_iter().filter_map(|place| self.slots[place].as_ref());
        let mut kept = kept.filter(|kept| kept.whose.is(lane, namespace));
        kept.find(|kept| kept.domain == domain).map(|kept| kept.serving)
    }

    /// Keeps an answer at a place of its domain, or beside it.
    pub(super) fn keep(&mut self, place: usize, domain: &'a str, whose: Whose, serving: u32) {
        let is_beside = self.slots[place].is_some() && self.slots[place ^ 1].is_none();
        self.slots[if is_beside { place ^ 1 } else { place }] = Some(Kept { domain, whose, serving });
    }
}

impl Whose {
    fn is(self, lane: u32, namespace: u32) -> bool {
        self.lane == lane && self.namespace.is_none_or(|number| number == namespace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_for_one_domain_and_those_they_are_good_for() {
        let mut domains = Domains::new(1000);
        let mut keep = |domain, lane, namespace, serving| {
            domains.keep(domains.place(lane, domain), domain, Whose { lane, namespace }, serving);
        };
        keep("a.com", 1, None, 7);
        keep("b.com", 1, Some(3), 8);
        let found =
            |domain: &str, lane, namespace| domains.serving(domains.place(lane, domain), domain, lane, namespace);
        assert_eq!((found("a.com", 1, 3), found("a.com", 1, 4), found("a.com", 2, 3)), (Some(7), Some(7), None));
        assert_eq!((found("b.com", 1, 3), found("b.com", 1, 4), found("c.com", 1, 3)), (Some(8), None, None));
    }

    #[test]
    fn the_latest_stay() {
        let mut domains = Domains::new(0);
        let whose = Whose { lane: 1, namespace: None };
        let found = |domains: &Domains<'_>, domain| domains.serving(domains.place(1, domain), domain, 1, 1);
        let names = ["a.com", "b.com", "c.com"];
        for (serving, domain) in (0..).zip(names) {
            domains.keep(domains.place(1, domain), domain, whose, serving);
            assert_eq!(found(&domains, domain), Some(serving));
        }
        assert_eq!(names.iter().filter(|domain| found(&domains, domain).is_some()).count(), 2);
    }
}
