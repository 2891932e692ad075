//! Which names a Certificate object is to have at this moment, and for how long one is kept that nobody wants.
//!
//! Each change of an object is an order at its issuer. So names that come are gathered for a moment, and names that go stay
//! for a while, because what blinks comes back. A wildcard that is no longer wanted goes at once: nobody may have one that no
//! policy allows. What is remembered is lost with the process, which then waits anew.

use std::collections::{BTreeMap, BTreeSet};

use gatepost_core::model::{Key, Str};
use gatepost_core::names::Hostname;

/// Delays before a Certificate object gains or loses names, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NameDelays {
    /// How long further names are waited for before an object grows.
    pub settle: i64,
    /// How long names, and objects, stay that are no longer wanted.
    pub grace: i64,
}

/// The names requested for a Secret, whatever it has now.
#[derive(Clone, Copy, Debug)]
pub struct RequestedNames<'a> {
    /// The names that are wanted.
    pub wanted: &'a [Str],
    /// Names that stay if they are there, because it is not known that they ought to be gone.
    pub kept: &'a [Str],
    /// The most names that an issuer takes.
    pub most: usize,
}

/// The names that a Certificate object is to have now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateNames {
    /// The names, sorted.
    pub names: Vec<Str>,
    /// When they will be others, if nothing else happens.
    pub wake: Option<i64>,
}

/// Pending changes of names: since when they are missing or no longer wanted.
#[derive(Debug)]
pub struct NameChanges {
    waits: NameDelays,
    missing: BTreeMap<Key, i64>,
    gone: BTreeMap<(Key, Str), i64>,
    idle: BTreeMap<Key, i64>,
}

impl NameChanges {
    /// Nothing is remembered yet.
    pub fn new(waits: NameDelays) -> NameChanges {
        NameChanges { waits, missing: BTreeMap::new(), gone: BTreeMap::new(), idle: BTreeMap::new() }
    }

    /// The names that the object of a Secret is to have now; `current` are those it has, where there is one.
    pub fn target(
        &mut self,
        secret: &Key,
        asked: RequestedNames<'_>,
        current: Option<&[Str]>,
        now: i64,
    ) -> CertificateNames {
        let wanted: BTreeSet<&Str> = asked.wanted.iter().collect();
        let current: BTreeSet<&Str> = current.unwrap_or(asked.wanted).iter().collect();
        let (leaving, is_urgent) = self.leaving(secret, &wanted, &current, asked.kept, now);
        let missing: Vec<&Str> = wanted.difference(&current).copied().collect();
        let grows_at = self.grows_at(secret, missing.is_empty(), now);
        let has_grown = is_urgent || grows_at.is_none_or(|at| at <= now);
        let mut names: BTreeSet<&Str> = wanted.intersection(&current).copied().collect();
        names.extend(missing.iter().filter(|_| has_grown));
        let staying = leaving.iter().filter(|(name, until)| *until > now && !is_covered(name, &names));
        let staying: Vec<&Str> = staying.map(|(name, _)| *name).collect();
        if names.len() + staying.len() <= asked.most {
            names.extend(staying);
        }
        let times = leaving.iter().map(|(_, until)| *until).chain(grows_at.filter(|_| !has_grown));
        let wake = times.filter(|time| *time > now && *time < i64::MAX).min();
        CertificateNames { names: names.into_iter().cloned().collect(), wake }
    }

    /// Whether an object may go that nobody wants, or when it may.
    pub fn may_go(&mut self, secret: &Key, now: i64) -> Result<(), i64> {
        let since = since(self.idle.entry(secret.clone()).or_insert(now), now);
        let until = since.saturating_add(self.waits.grace);
        if until <= now { Ok(()) } else { Err(until) }
    }

    /// Forgets since when an object is not wanted: it is.
    pub fn is_wanted(&mut self, secret: &Key) {
        self.idle.remove(secret);
    }

    /// Forgets what is remembered about all other Secrets.
    pub fn forget_others(&mut self, is_known: impl Fn(&Key) -> bool) {
        self.missing.retain(|secret, _| is_known(secret));
        self.gone.retain(|(secret, _), _| is_known(secret));
        self.idle.retain(|secret, _| is_known(secret));
    }

    /// When the object may grow; nothing where it needs not.
    fn grows_at(&mut self, secret: &Key, is_whole: bool, now: i64) -> Option<i64> {
        if is_whole {
            self.missing.remove(secret);
            return None;
        }
        let since = since(self.missing.entry(secret.clone()).or_insert(now), now);
        Some(since.saturating_add(self.waits.settle))
    }

    /// Names that the object has and nobody wants, with the moment when they go; and whether one of them goes at once, so
    /// that what takes its place is not waited for.
    fn leaving<'a>(
        &mut self,
        secret: &Key,
        wanted: &BTreeSet<&'a Str>,
        current: &BTreeSet<&'a Str>,
        kept: &[Str],
        now: i64,
    ) -> (Vec<(&'a Str, i64)>, bool) {
        self.gone.retain(|(key, name), _| key != secret || (current.contains(name) && !wanted.contains(name)));
        let mut leaving = Vec::new();
        let mut is_urgent = false;
        for name in current.difference(wanted).copied() {
            let until = if kept.contains(name) {
                i64::MAX
            } else if name.starts_with("*.") {
                is_urgent = true;
                now
            } else {
                let since = since(self.gone.entry((secret.clone(), name.clone())).or_insert(now), now);
                since.saturating_add(self.waits.grace)
            };
            leaving.push((name, until));
        }
        (leaving, is_urgent)
    }
}

/// A clock that was set back does not make anybody wait longer than from now.
fn since(noted: &mut i64, now: i64) -> i64 {
    *noted = (*noted).min(now);
    *noted
}

/// Whether a wildcard among the names stands for another one; beside it an issuer would refuse that.
fn is_covered(name: &str, names: &BTreeSet<&Str>) -> bool {
    let covers =
        |held: &&Str| Hostname::parse(held).is_ok_and(|held| held.is_wildcard() && held.covers_in_certificate(name));
    names.iter().any(covers)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1000;

    fn strs(names: &[&str]) -> Vec<Str> {
        names.iter().map(|name| (*name).into()).collect()
    }

    /// A Secret whose object has names, and what it is to have at some moments.
    struct NamesCase {
        names: NameChanges,
        current: Vec<Str>,
    }

    impl NamesCase {
        fn new(current: &[&str]) -> NamesCase {
            NamesCase { names: NameChanges::new(NameDelays { settle: 30, grace: 3600 }), current: strs(current) }
        }

        fn at(&mut self, now: i64, wanted: &[&str], kept: &[&str]) -> (String, Option<i64>) {
            let (wanted, kept) = (strs(wanted), strs(kept));
            let asked = RequestedNames { wanted: &wanted, kept: &kept, most: 4 };
            let target = self.names.target(&Key::new("infra", "tls"), asked, Some(&self.current), now);
            (target.names.join(" "), target.wake)
        }
    }

    #[test]
    fn the_first_names_are_taken_at_once() {
        let mut names = NameChanges::new(NameDelays { settle: 30, grace: 3600 });
        let wanted = strs(&["a.test", "b.test"]);
        let asked = RequestedNames { wanted: &wanted, kept: &[], most: 4 };
        let target = names.target(&Key::new("infra", "tls"), asked, None, NOW);
        assert_eq!(target, CertificateNames { names: wanted, wake: None });
    }

    #[test]
    fn names_that_come_are_gathered() {
        let mut case = NamesCase::new(&["a.test"]);
        assert_eq!(case.at(NOW, &["a.test", "b.test"], &[]), ("a.test".to_owned(), Some(NOW + 30)));
        assert_eq!(case.at(NOW + 20, &["a.test", "b.test", "c.test"], &[]), ("a.test".to_owned(), Some(NOW + 30)));
        let gathered = ("a.test b.test c.test".to_owned(), None);
        assert_eq!(case.at(NOW + 30, &["a.test", "b.test", "c.test"], &[]), gathered, "a stream of names is no delay");
    }

    #[test]
    fn names_that_go_stay_for_a_while_and_those_nobody_knows_about_for_ever() {
        let mut case = NamesCase::new(&["a.test", "b.test", "c.test"]);
        let all = "a.test b.test c.test".to_owned();
        assert_eq!(case.at(NOW, &["a.test"], &["c.test"]), (all.clone(), Some(NOW + 3600)));
        assert_eq!(case.at(NOW + 3599, &["a.test"], &["c.test"]), (all.clone(), Some(NOW + 3600)));
        assert_eq!(case.at(NOW + 3600, &["a.test"], &["c.test"]), ("a.test c.test".to_owned(), None));
        case.at(NOW + 3601, &["a.test", "b.test"], &["c.test"]);
        assert_eq!(case.at(NOW + 3602, &["a.test"], &["c.test"]), (all, Some(NOW + 7202)), "what came back waits anew");
    }

    #[test]
    fn a_wildcard_goes_at_once_and_what_takes_its_place_comes_at_once() {
        let mut case = NamesCase::new(&["*.a.test"]);
        assert_eq!(case.at(NOW, &["x.a.test", "y.a.test"], &[]), ("x.a.test y.a.test".to_owned(), None));
    }

    #[test]
    fn what_a_new_wildcard_covers_does_not_stay_beside_it() {
        let mut case = NamesCase::new(&["x.a.test", "x.b.test"]);
        case.at(NOW, &["*.a.test"], &[]);
        assert_eq!(case.at(NOW + 30, &["*.a.test"], &[]), ("*.a.test x.b.test".to_owned(), Some(NOW + 3600)));
    }

    #[test]
    fn names_that_go_do_not_take_the_room_of_others() {
        let mut case = NamesCase::new(&["a.test", "b.test", "c.test"]);
        case.at(NOW, &["a.test", "d.test", "e.test"], &[]);
        assert_eq!(case.at(NOW + 30, &["a.test", "d.test", "e.test"], &[]).0, "a.test d.test e.test");
    }

    #[test]
    fn an_object_goes_when_nobody_wanted_it_for_a_while() {
        let mut names = NameChanges::new(NameDelays { settle: 30, grace: 3600 });
        let secret = Key::new("infra", "tls");
        assert_eq!(names.may_go(&secret, NOW), Err(NOW + 3600));
        names.is_wanted(&secret);
        assert_eq!(names.may_go(&secret, NOW + 3600), Err(NOW + 7200));
        assert_eq!(names.may_go(&secret, NOW + 7200), Ok(()));
        assert_eq!(names.may_go(&secret, 5), Err(3605), "a clock that was set back");
    }
}
