//! Conditions and statuses, as read and as made.
//!
//! Most objects have the same conditions at different times. So times are kept apart: objects share equal lists of
//! conditions. A time is the text that somebody wrote, kept to be written again and never compared with a clock.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use super::{ParentRef, SharedList, Str};

/// One condition of a status, without its time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Condition {
    /// Its type, such as `Accepted`.
    pub kind: Str,
    /// `True`, `False` or `Unknown`.
    pub status: Str,
    /// CamelCase reason.
    pub reason: Str,
    /// For people.
    pub message: Str,
    /// The generation it speaks of.
    pub observed_generation: Option<i64>,
}

impl Condition {
    /// A condition of our own; times and generations are stamped by who writes it.
    pub fn new(kind: &str, status: bool, reason: &str, message: impl Into<Str>) -> Self {
        let status = if status { "True" } else { "False" };
        Condition {
            kind: kind.into(),
            status: status.into(),
            reason: reason.into(),
            message: message.into(),
            observed_generation: None,
        }
    }

    /// Whether it holds.
    pub fn is_true(&self) -> bool {
        &*self.status == "True"
    }
}

/// The first condition of a type.
pub fn condition<'a>(conditions: &'a [Condition], kind: &str) -> Option<&'a Condition> {
    conditions.iter().find(|c| &*c.kind == kind)
}

/// Conditions, and when the status of each last flipped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conditions {
    said: SharedList<Condition>,
    times: SharedList<Option<Str>>,
}

impl Conditions {
    /// Conditions with their times; where there are fewer times than conditions, the last ones have none.
    pub fn new(said: SharedList<Condition>, times: impl IntoIterator<Item = Option<Str>>) -> Self {
        Conditions { said, times: times.into_iter().collect() }
    }

    /// The conditions with their times.
    pub fn timed(&self) -> impl Iterator<Item = (&Condition, Option<Str>)> {
        self.said.iter().enumerate().map(|(place, condition)| (condition, self.times.get(place).cloned().flatten()))
    }
}

impl Deref for Conditions {
    type Target = [Condition];

    fn deref(&self) -> &[Condition] {
        &self.said
    }
}

impl DerefMut for Conditions {
    fn deref_mut(&mut self) -> &mut [Condition] {
        Arc::make_mut(&mut self.said)
    }
}

impl<'a> IntoIterator for &'a Conditions {
    type Item = &'a Condition;
    type IntoIter = std::slice::Iter<'a, Condition>;

    fn into_iter(self) -> Self::IntoIter {
        self.said.iter()
    }
}

impl From<Vec<Condition>> for Conditions {
    /// Conditions whose times are not known.
    fn from(said: Vec<Condition>) -> Self {
        Conditions { said: said.into(), times: SharedList::default() }
    }
}

impl FromIterator<(Condition, Option<Str>)> for Conditions {
    fn from_iter<I: IntoIterator<Item = (Condition, Option<Str>)>>(timed: I) -> Self {
        let (said, times): (Vec<_>, Vec<_>) = timed.into_iter().unzip();
        Conditions::new(said.into(), times)
    }
}

/// `status.parents` of a route: what was said of it, parent by parent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RouteStatus {
    parents: SharedList<ParentStatus>,
    times: SharedList<Option<Str>>,
}

/// `status.parents[]`, without the times of its conditions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ParentStatus {
    /// Which parent it speaks of.
    pub parent: ParentRef,
    /// Who wrote it.
    pub controller: Str,
    /// Conditions.
    pub conditions: SharedList<Condition>,
}

impl RouteStatus {
    /// What was said, with the times of all conditions, parent by parent.
    pub fn new(parents: SharedList<ParentStatus>, times: impl IntoIterator<Item = Option<Str>>) -> Self {
        RouteStatus { parents, times: times.into_iter().collect() }
    }

    /// The conditions of one parent with their times; none where there is no such parent.
    pub fn conditions(&self, parent: usize) -> Conditions {
        let Some(status) = self.parents.get(parent) else { return Conditions::default() };
        let before: usize = self.parents[..parent].iter().map(|status| status.conditions.len()).sum();
        let times = (before..before + status.conditions.len()).map(|place| self.times.get(place).cloned().flatten());
        Conditions::new(status.conditions.clone(), times)
    }

    /// Adds what was said of one more parent; nobody knows when.
    pub fn push(&mut self, status: ParentStatus) {
        let known: usize = self.parents.iter().map(|status| status.conditions.len()).sum();
        let times = (0..known).map(|place| self.times.get(place).cloned().flatten());
        self.times = times.chain(status.conditions.iter().map(|_| None)).collect();
        self.parents = self.parents.iter().cloned().chain([status]).collect();
    }
}

impl From<Vec<ParentStatus>> for RouteStatus {
    /// What was said at times that are not known.
    fn from(parents: Vec<ParentStatus>) -> Self {
        RouteStatus { parents: parents.into(), times: SharedList::default() }
    }
}

impl Deref for RouteStatus {
    type Target = [ParentStatus];

    fn deref(&self) -> &[ParentStatus] {
        &self.parents
    }
}

impl DerefMut for RouteStatus {
    fn deref_mut(&mut self) -> &mut [ParentStatus] {
        Arc::make_mut(&mut self.parents)
    }
}

impl<'a> IntoIterator for &'a RouteStatus {
    type Item = &'a ParentStatus;
    type IntoIter = std::slice::Iter<'a, ParentStatus>;

    fn into_iter(self) -> Self::IntoIter {
        self.parents.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(count: usize) -> SharedList<Condition> {
        (0..count).map(|n| Condition::new(&format!("C{n}"), true, "Fine", "")).collect()
    }

    fn status(conditions: usize) -> ParentStatus {
        let target = crate::model::Reference { group: "".into(), kind: "K".into(), namespace: None, name: "n".into() };
        let parent = ParentRef { target, section: None, port: None };
        ParentStatus { parent, controller: "c".into(), conditions: said(conditions) }
    }

    #[test]
    fn each_condition_keeps_its_time_whether_others_have_the_same() {
        let (one, other) = (Some("2026-03-01T10:00:05Z"), Some("on a Sunday"));
        for times in [[None, None], [one, one], [one, None], [None, other], [other, other], [one, other]] {
            let conditions = Conditions::new(said(2), times.map(|time| time.map(Str::from)));
            let told: Vec<Option<String>> = conditions.timed().map(|(_, time)| time.map(|t| t.to_string())).collect();
            assert_eq!(told, times.map(|time| time.map(str::to_owned)));
        }
    }

    #[test]
    fn the_times_of_one_parent_are_found_among_those_of_all() {
        let times = (0..4).map(|n| Some(Str::from(format!("2026-03-01T10:00:0{n}Z"))));
        let mut route = RouteStatus::new([status(1), status(0), status(3)].into(), times);
        route.push(status(1));
        let told = |parent| {
            let conditions = route.conditions(parent);
            conditions.timed().map(|(_, time)| time.map_or(9, |t| t.as_bytes()[18] - b'0')).collect::<Vec<_>>()
        };
        assert_eq!([told(0), told(1), told(2), told(3), told(4)], [vec![0], vec![], vec![1, 2, 3], vec![9], vec![]]);
    }
}
