//! Answers about lists that many objects share, so that each is worked out once.
//!
//! A list is known by its block of memory, which is held for as long as its answer is. What is not found is worked out
//! again, so that a memo changes nothing but what an answer costs. It has a bound, and nothing in it is ever walked.

use std::sync::Arc;

use crate::list::List;
use crate::model::Str;

/// The most answers that are kept.
const MOST: usize = 256;

/// The least, once there is any.
const LEAST: usize = 4;

/// The latest answers about lists.
pub(crate) struct Recent<T, A> {
    /// A power of two of them, or none; each list has one place.
    slots: Vec<Option<Entry<T, A>>>,
}

struct Entry<T, A> {
    list: List<T>,
    /// The namespace that the answer is for, where it matters.
    namespace: Option<Str>,
    answer: A,
}

impl<T, A> Recent<T, A> {
    /// The answer about a list of an object in a namespace. `make` works it out, and says whether the namespace matters.
    pub(crate) fn answer(&mut self, list: &List<T>, namespace: &Str, make: impl FnOnce() -> (A, bool)) -> &A {
        if !self.is_known(list, namespace) {
            let (answer, matters) = make();
            let namespace = matters.then(|| namespace.clone());
            self.keep(Entry { list: list.clone(), namespace, answer });
        }
        let place = self.place(list);
        // It was there or has been put there.
        &self.slots[place].as_ref().expect("the answer about this list").answer
    }

    fn is_known(&self, list: &List<T>, namespace: &Str) -> bool {
        let Some(Some(entry)) = self.slots.get(self.place(list)) else { return false };
        let is_same = |known: &Str| Arc::ptr_eq(known, namespace) || known == namespace;
        entry.list.is_one_with(list) && entry.namespace.as_ref().is_none_or(is_same)
    }

    fn keep(&mut self, entry: Entry<T, A>) {
        let is_taken = |slot: &Option<Entry<T, A>>| slot.as_ref().is_some_and(|old| !old.list.is_one_with(&entry.list));
        let is_full = self.slots.get(self.place(&entry.list)).is_none_or(is_taken);
        if is_full && self.slots.len() < MOST {
            self.grow();
        }
        let place = self.place(&entry.list);
        self.slots[place] = Some(entry);
    }

    fn grow(&mut self) {
        let width = LEAST.max(2 * self.slots.len());
        let before = std::mem::replace(&mut self.slots, std::iter::repeat_with(|| None).take(width).collect());
        for entry in before.into_iter().flatten() {
            let place = self.place(&entry.list);
            self.slots[place] = Some(entry);
        }
    }

    /// Where the answer about a list is kept.
    fn place(&self, list: &List<T>) -> usize {
        let spread = (list.place() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        spread as usize & self.slots.len().wrapping_sub(1)
    }
}

impl<T, A> Default for Recent<T, A> {
    fn default() -> Self {
        Recent { slots: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_kept_the_answer_is_that_of_the_list() {
        let lists: Vec<List<usize>> = (0..1000).map(|n| List::from([n])).collect();
        let namespaces: [Str; 2] = ["a".into(), "b".into()];
        let mut recent = Recent::default();
        for round in 0..3 {
            for (n, list) in lists.iter().enumerate() {
                let namespace = &namespaces[(n + round) % 2];
                let matters = n % 3 == 0;
                let expected = (list[0], matters.then(|| namespace.clone()));
                let found = recent.answer(list, namespace, || (expected.clone(), matters));
                assert_eq!(*found, expected);
            }
        }
    }

    #[test]
    fn an_answer_is_worked_out_once() {
        let (list, namespace): (List<u8>, Str) = (List::from([1]), "a".into());
        let mut recent = Recent::default();
        assert_eq!(*recent.answer(&list, &namespace, || (1, false)), 1);
        assert_eq!(*recent.answer(&list.clone(), &"b".into(), || unreachable!()), 1);
        assert_eq!(*recent.answer(&List::from([1]), &namespace, || (2, true)), 2);
    }
}
