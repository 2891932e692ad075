//! State shared by all cursors into one object: its problems, the pool its values are shared in, and paths of fields.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use gatepost_core::diagnostic::{Diagnostic, FieldPath};
use gatepost_core::model::{Labels, ObjectRef, SharedList, Str};
use gatepost_core::reason::{INVALID_FIELD, Reason};

use crate::pool::{Pool, Pooled};

/// The most that is told about one object; a text that is wrong everywhere is told so once.
const MAX_PROBLEMS: usize = 100;

/// Collects the problems of one object, at most a hundred.
pub(crate) struct ProblemCollector {
    object: ObjectRef,
    diagnostics: RefCell<Vec<Diagnostic>>,
    left_out: Cell<usize>,
    pub(super) wrong_types: Cell<usize>,
    pool: RefCell<Pool>,
    /// Every field that was asked for.
    #[cfg(test)]
    pub(super) asked: RefCell<std::collections::BTreeSet<String>>,
}

impl ProblemCollector {
    /// An empty collector for one object.
    #[cfg(test)]
    pub(crate) fn new(object: ObjectRef) -> Self {
        ProblemCollector::with_pool(object, Pool::new())
    }

    /// An empty collector for one object whose values are shared through a pool.
    pub(crate) fn with_pool(object: ObjectRef, pool: Pool) -> Self {
        ProblemCollector {
            object,
            diagnostics: RefCell::default(),
            left_out: Cell::new(0),
            wrong_types: Cell::new(0),
            pool: RefCell::new(pool),
            #[cfg(test)]
            asked: RefCell::default(),
        }
    }

    /// Every field that was asked for so far.
    #[cfg(test)]
    pub(crate) fn asked(&self) -> std::collections::BTreeSet<String> {
        self.asked.borrow().clone()
    }

    /// The object that problems are told about.
    pub(crate) fn object(&self) -> &ObjectRef {
        &self.object
    }

    /// A text, shared with those of other objects. Its name an object only shares with itself: a pool would be full of them.
    pub(crate) fn text(&self, text: &str) -> Str {
        let name = self.object.name();
        if **name == *text { name.clone() } else { self.pool.borrow_mut().text(text) }
    }

    /// Labels, shared with those of other objects unless they tell the name of this one.
    pub(super) fn labels(&self, labels: Labels) -> Labels {
        let is_own = labels.iter().any(|(_, value)| Arc::ptr_eq(value, self.object.name()));
        if is_own { labels } else { self.pool.borrow_mut().labels(labels) }
    }

    /// A list, shared with those of other objects.
    pub(super) fn list<T: Pooled>(&self, items: Vec<T>) -> SharedList<T> {
        self.pool.borrow_mut().list(items)
    }

    /// Takes one problem, which is only worded where there is room for it.
    pub(super) fn push(
        &self,
        reason: Reason,
        field: impl FnOnce() -> FieldPath,
        message: impl FnOnce(&FieldPath) -> String,
    ) {
        let mut diagnostics = self.diagnostics.borrow_mut();
        if diagnostics.len() >= MAX_PROBLEMS {
            return self.left_out.set(self.left_out.get() + 1);
        }
        let field = field();
        let message = message(&field);
        diagnostics.push(Diagnostic::new(reason, &self.object, field, message));
    }

    pub(super) fn is_full(&self) -> bool {
        self.diagnostics.borrow().len() >= MAX_PROBLEMS
    }

    /// How many fields had a wrong type so far. A part of an object that must not be wider than it was meant to be compares
    /// this before and after.
    pub(crate) fn wrong_types(&self) -> usize {
        self.wrong_types.get()
    }

    /// Everything that was told, and the pool.
    pub(crate) fn into_parts(self) -> (Vec<Diagnostic>, Pool) {
        let mut diagnostics = self.diagnostics.into_inner();
        if self.left_out.get() > 0 {
            let message = format!("{} has {} further problems that are not shown", self.object, self.left_out.get());
            diagnostics.push(Diagnostic::new(INVALID_FIELD, &self.object, FieldPath::root(), message));
        }
        (diagnostics, self.pool.into_inner())
    }
}

/// The path of a value, as a linked list through the cursors that led to it.
#[derive(Clone, Copy)]
pub(crate) struct ValuePath<'a> {
    parent: Option<&'a ValuePath<'a>>,
    step: PathStep<'a>,
}

#[derive(Clone, Copy)]
enum PathStep<'a> {
    Root,
    Key(&'a str),
    Index(usize),
}

impl<'a> ValuePath<'a> {
    /// The object itself.
    pub(crate) const ROOT: ValuePath<'static> = ValuePath { parent: None, step: PathStep::Root };

    /// One step into a mapping.
    pub(crate) fn key<'s>(&'s self, key: &'s str) -> ValuePath<'s> {
        ValuePath { parent: Some(self), step: PathStep::Key(key) }
    }

    /// One step into a list.
    pub(crate) fn index(&self, index: usize) -> ValuePath<'_> {
        ValuePath { parent: Some(self), step: PathStep::Index(index) }
    }

    /// The path, written out.
    pub(crate) fn field(&self) -> FieldPath {
        let above = self.parent.map_or_else(FieldPath::root, ValuePath::field);
        match self.step {
            PathStep::Root => above,
            PathStep::Key(key) => above.key(key),
            PathStep::Index(index) => above.index(index),
        }
    }
}
