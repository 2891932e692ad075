//! Conditions and statuses, as read from objects and as written by us.
//!
//! Most objects have equal conditions that differ only in their times. Conditions and times are therefore stored
//! separately: equal conditions can share one allocation, and the times of an object are usually one number.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use super::{ParentRef, SharedList, Str, Time};

/// One condition of a status, without its time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Condition {
    /// Its type, such as `Accepted`.
    pub kind: Str,
    /// `True`, `False` or `Unknown`.
    pub status: Str,
    /// CamelCase reason.
    pub reason: Str,
    /// A message for people.
    pub message: Str,
    /// The generation it is about.
    pub observed_generation: Option<i64>,
}

impl Condition {
    /// A condition of our own; the writer adds time and generation.
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

    /// Whether its status is `True`.
    pub fn is_true(&self) -> bool {
        &*self.status == "True"
    }
}

/// The first condition of a type.
pub fn condition<'a>(conditions: &'a [Condition], kind: &str) -> Option<&'a Condition> {
    conditions.iter().find(|c| &*c.kind == kind)
}

/// Conditions with the time of each one's last transition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conditions {
    conditions: SharedList<Condition>,
    since: Since,
}

impl Conditions {
    /// Conditions with their times; if there are fewer times than conditions, the last conditions have none.
    pub fn new(conditions: SharedList<Condition>, times: impl IntoIterator<Item = Option<Time>>) -> Self {
        Conditions { conditions, since: times.into_iter().collect() }
    }

    /// The conditions with their times.
    pub fn timed(&self) -> impl Iterator<Item = (&Condition, Option<Time>)> {
        self.conditions.iter().enumerate().map(|(place, condition)| (condition, self.since.at(place)))
    }
}

impl Deref for Conditions {
    type Target = [Condition];

    fn deref(&self) -> &[Condition] {
        &self.conditions
    }
}

impl DerefMut for Conditions {
    fn deref_mut(&mut self) -> &mut [Condition] {
        Arc::make_mut(&mut self.conditions)
    }
}

impl<'a> IntoIterator for &'a Conditions {
    type Item = &'a Condition;
    type IntoIter = std::slice::Iter<'a, Condition>;

    fn into_iter(self) -> Self::IntoIter {
        self.conditions.iter()
    }
}

impl From<Vec<Condition>> for Conditions {
    /// Conditions without times.
    fn from(conditions: Vec<Condition>) -> Self {
        Conditions { conditions: conditions.into(), since: Since::Unknown }
    }
}

impl FromIterator<(Condition, Option<Time>)> for Conditions {
    fn from_iter<I: IntoIterator<Item = (Condition, Option<Time>)>>(timed: I) -> Self {
        let (conditions, times): (Vec<_>, Vec<_>) = timed.into_iter().unzip();
        Conditions::new(conditions.into(), times)
    }
}

/// `status.parents` of a route.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RouteStatus {
    parents: SharedList<ParentStatus>,
    since: Since,
}

/// `status.parents[]`, without the times of its conditions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ParentStatus {
    /// The parentRef it is about.
    pub parent: ParentRef,
    /// The controller that wrote it.
    pub controller: Str,
    /// Conditions.
    pub conditions: SharedList<Condition>,
}

impl RouteStatus {
    /// Entries with the times of all their conditions, in order.
    pub fn new(parents: SharedList<ParentStatus>, times: impl IntoIterator<Item = Option<Time>>) -> Self {
        RouteStatus { parents, since: times.into_iter().collect() }
    }

    /// The conditions of one entry with their times; empty if there is no such entry.
    pub fn conditions(&self, parent: usize) -> Conditions {
        let Some(status) = self.parents.get(parent) else { return Conditions::default() };
        let before: usize = self.parents[..parent].iter().map(|status| status.conditions.len()).sum();
        let times = (before..before + status.conditions.len()).map(|place| self.since.at(place));
        Conditions::new(status.conditions.clone(), times)
    }

    /// Adds an entry without times.
    pub fn push(&mut self, status: ParentStatus) {
        let known: usize = self.parents.iter().map(|status| status.conditions.len()).sum();
        self.since =
            (0..known).map(|place| self.since.at(place)).chain(status.conditions.iter().map(|_| None)).collect();
        self.parents = self.parents.iter().cloned().chain([status]).collect();
    }
}

impl From<Vec<ParentStatus>> for RouteStatus {
    /// Entries without times.
    fn from(parents: Vec<ParentStatus>) -> Self {
        RouteStatus { parents: parents.into(), since: Since::Unknown }
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

/// The times of conditions, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Since {
    /// No condition has a time.
    #[default]
    Unknown,
    /// All conditions have this time, in seconds since 1970.
    All(i64),
    /// Individual times.
    Each(Arc<Vec<Option<Time>>>),
}

impl Since {
    fn at(&self, place: usize) -> Option<Time> {
        match self {
            Since::Unknown => None,
            Since::All(seconds) => Some(Time::of_seconds(*seconds)),
            Since::Each(times) => times.get(place)?.clone(),
        }
    }
}

impl FromIterator<Option<Time>> for Since {
    fn from_iter<I: IntoIterator<Item = Option<Time>>>(times: I) -> Self {
        let times: Vec<Option<Time>> = times.into_iter().collect();
        let first = times.first().cloned().flatten();
        let is_one = times.iter().all(|time| *time == first);
        match first {
            None if is_one => Since::Unknown,
            Some(time) if is_one => time.seconds().map_or_else(|| Since::Each(times.into()), Since::All),
            _ => Since::Each(times.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(count: usize) -> SharedList<Condition> {
        (0..count).map(|n| Condition::new(&format!("C{n}"), true, "Fine", "")).collect()
    }

    fn status(conditions: usize) -> ParentStatus {
        let target = crate::model::Reference { group: "".into(), kind: "K".into(), namespace: None, name: "n".into() };
        let parent = ParentRef { target, section: None, port: None };
        ParentStatus { parent, controller: "c".into(), conditions: list(conditions) }
    }

    #[test]
    fn each_condition_keeps_its_time_whether_others_have_the_same() {
        let (one, other) = (Some("2026-03-01T10:00:05Z"), Some("on a Sunday"));
        for times in [[None, None], [one, one], [one, None], [None, other], [other, other], [one, other]] {
            let conditions = Conditions::new(list(2), times.map(|time| time.map(Time::new)));
            let found: Vec<Option<String>> = conditions.timed().map(|(_, time)| time.map(|t| t.to_string())).collect();
            assert_eq!(found, times.map(|time| time.map(str::to_owned)));
        }
    }

    #[test]
    fn the_times_of_one_parent_are_found_among_those_of_all() {
        let times = (0..4).map(|n| Some(Time::new(&format!("2026-03-01T10:00:0{n}Z"))));
        let mut route = RouteStatus::new([status(1), status(0), status(3)].into(), times);
        route.push(status(1));
        let found = |parent| {
            let conditions = route.conditions(parent);
            conditions.timed().map(|(_, time)| time.map_or(9, |t| t.seconds().unwrap() % 60)).collect::<Vec<_>>()
        };
        assert_eq!(
            [found(0), found(1), found(2), found(3), found(4)],
            [vec![0], vec![], vec![1, 2, 3], vec![9], vec![]]
        );
    }
}
