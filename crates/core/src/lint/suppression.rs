//! Findings that the owner of an object takes responsibility for, by an annotation on it.
//!
//! The annotation names reasons, and says why: `gatepost.dev/ignore: "listener-open-to-all: everybody may use this Gateway"`.
//! Several lines are possible. A line without a reason that exists, or without a why, suppresses nothing and is a finding itself.

use std::collections::BTreeSet;

use super::closest;
use crate::diagnostic::{Diagnostic, FieldPath};
use crate::model::ObjectRef;
use crate::reason::{self, Reason};
use crate::snapshot::Snapshot;

/// The annotation that suppresses findings of its object.
pub const IGNORE: &str = "gatepost.dev/ignore";

/// The findings that annotations suppress, and what is wrong with annotations.
#[derive(Debug, Default)]
pub struct Suppressions {
    suppressed: BTreeSet<(ObjectRef, Reason)>,
    /// Annotations that suppress nothing.
    pub problems: Vec<Diagnostic>,
}

impl Suppressions {
    /// What the annotations of all objects say.
    pub fn of(snapshot: &Snapshot) -> Suppressions {
        let mut all = Suppressions::default();
        for (object, meta) in snapshot.metas() {
            for line in meta.annotation(IGNORE).iter().flat_map(|value| value.lines()).map(str::trim) {
                if !line.is_empty() {
                    all.line(&object, line);
                }
            }
        }
        all
    }

    /// Whether the owner of its object takes responsibility for a finding.
    pub fn covers(&self, diagnostic: &Diagnostic) -> bool {
        let object = diagnostic.object.as_ref();
        object.is_some_and(|object| self.suppressed.contains(&(object.clone(), diagnostic.reason)))
    }

    /// One line: reasons, and why their findings are no fault here.
    fn line(&mut self, object: &ObjectRef, line: &str) {
        let Some((names, _)) = line.split_once(':').filter(|(_, why)| !why.trim().is_empty()) else {
            let message = format!("`{}` does not say why: a colon and a sentence follow the reasons", shortened(line));
            return self.problem(object, message, None);
        };
        for name in names.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            match Reason::find(name).filter(|reason| *reason != reason::SUPPRESSION_INVALID) {
                Some(reason) => _ = self.suppressed.insert((object.clone(), reason)),
                None => {
                    let near = closest(name, Reason::all().map(Reason::name));
                    let help = near.map(|near| format!("Did you mean `{near}`?"));
                    self.problem(object, format!("`{}` is not a reason that can be ignored", shortened(name)), help);
                }
            }
        }
    }

    fn problem(&mut self, object: &ObjectRef, message: String, help: Option<String>) {
        let field = FieldPath::of("metadata.annotations").key(IGNORE);
        let diagnostic = Diagnostic::new(reason::SUPPRESSION_INVALID, object, field, message);
        self.problems.push(Diagnostic { help, ..diagnostic });
    }
}

/// A text as it may stand in a message.
fn shortened(text: &str) -> String {
    text.chars().take(60).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{GatewayClass, Kind, Meta};
    use crate::snapshot::Object;

    fn suppressions(annotation: &str) -> (Suppressions, ObjectRef) {
        let mut meta = Meta::named("", "standard");
        meta.annotations = [(IGNORE.into(), annotation.into())].into_iter().collect();
        let class =
            GatewayClass { meta, controller: "x/y".into(), features: Vec::new(), conditions: Default::default() };
        (
            Suppressions::of(&Snapshot::of([Object::GatewayClass(class)])),
            ObjectRef::new(Kind::GatewayClass, "", "standard"),
        )
    }

    fn covers(annotation: &str, reason: Reason) -> bool {
        let (suppressions, object) = suppressions(annotation);
        suppressions.covers(&Diagnostic::new(reason, &object, FieldPath::root(), ""))
    }

    #[test]
    fn reasons_with_a_why_are_suppressed() {
        let text = "hostname-held, GP0705: we know\n\n unknown-field : an extension";
        for reason in [reason::HOSTNAME_HELD, reason::LISTENER_OPEN_TO_ALL, reason::UNKNOWN_FIELD] {
            assert!(covers(text, reason), "{reason}");
        }
        assert!(!covers(text, reason::INVALID_FIELD));
        assert!(suppressions(text).0.problems.is_empty());
    }

    #[test]
    fn what_suppresses_nothing_is_told() {
        for (text, told) in [
            ("hostname-held", "does not say why"),
            ("hostname-held:  ", "does not say why"),
            ("hostname-holds: why", "is not a reason"),
            ("suppression-invalid: why", "is not a reason"),
        ] {
            assert!(!covers(text, reason::HOSTNAME_HELD), "{text}");
            let problems = suppressions(text).0.problems;
            assert!(problems.len() == 1 && problems[0].message.contains(told), "{text}: {problems:?}");
        }
        let near = suppressions("hostname-holds: why").0.problems.remove(0).help;
        assert_eq!(near.as_deref(), Some("Did you mean `hostname-held`?"));
    }
}
