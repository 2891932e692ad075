//! The health of a name in one word: the verdict on it together with what the plan says about its records.

use super::*;
use crate::plan::Held;

/// The health of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NameHealth {
    /// It does not work, or its records cannot be written.
    Wrong,
    /// A change of its records waits: behind a safety rule, or because nothing is written now.
    Held,
    /// It is not known: its objects or its zone could not be read.
    Unknown,
    /// Its records belong to somebody else and are left alone.
    Foreign,
    /// It works, and its records are as they ought to be.
    Right,
}

/// What became of the changes of a name's records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum RecordWrites {
    /// There were none, or they were written.
    #[default]
    Done,
    /// They were not tried: nothing is written now, or something else has to be written before.
    Skipped,
    /// One failed.
    Failed,
}

impl NameHealth {
    /// Every word, the worst first.
    pub const ALL: [NameHealth; 5] =
        [NameHealth::Wrong, NameHealth::Held, NameHealth::Unknown, NameHealth::Foreign, NameHealth::Right];

    /// The text form in output.
    pub fn as_str(self) -> &'static str {
        match self {
            NameHealth::Wrong => "wrong",
            NameHealth::Held => "held",
            NameHealth::Unknown => "unknown",
            NameHealth::Foreign => "foreign",
            NameHealth::Right => "right",
        }
    }

    /// The health of a name, from the verdict on it, the first cause, what became of its writes, and everything that a plan
    /// holds for the name or its zone. A name that could not be read is never right.
    pub fn of<'h>(
        verdict: NameVerdict,
        cause: Option<&Diagnostic>,
        writes: RecordWrites,
        held: impl Iterator<Item = &'h Held>,
    ) -> Self {
        let by_verdict = match (verdict, cause) {
            (NameVerdict::Works, _) => NameHealth::Right,
            (_, Some(cause)) if cause.reason.is_unknown() => NameHealth::Unknown,
            _ => NameHealth::Wrong,
        };
        let by_writes = match writes {
            RecordWrites::Done => NameHealth::Right,
            RecordWrites::Skipped => NameHealth::Held,
            RecordWrites::Failed => NameHealth::Wrong,
        };
        let by_plan = held.map(NameHealth::of_held).chain([by_writes]).min_by_key(|health| health.precedence());
        match by_plan {
            Some(by_plan) if by_plan.precedence() < by_verdict.precedence() => by_plan,
            _ => by_verdict,
        }
    }

    /// What something that is held means for a name.
    fn of_held(held: &Held) -> Self {
        match held.reason {
            reason::ZONE_UNREADABLE | reason::SOURCE_UNKNOWN => NameHealth::Unknown,
            reason::RECORD_OWNED_BY_OTHER | reason::RECORD_UNMANAGED => NameHealth::Foreign,
            reason if reason.is_unknown() => NameHealth::Unknown,
            reason if reason.row().code.starts_with("GP05") => NameHealth::Held,
            _ => NameHealth::Wrong,
        }
    }

    /// Which word is said where several would fit: not knowing comes first, because it makes the others doubtful.
    fn precedence(self) -> u8 {
        match self {
            NameHealth::Unknown => 0,
            NameHealth::Foreign => 1,
            NameHealth::Held => 2,
            NameHealth::Wrong => 3,
            NameHealth::Right => 4,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(reason: reason::Reason) -> Held {
        Held {
            zone: None,
            name: "www.example.org".into(),
            kind: None,
            verb: None,
            reason,
            message: String::new(),
            old: Vec::new(),
            new: Vec::new(),
            object: None,
            cause: None,
            provider: None,
        }
    }

    fn health(writes: RecordWrites, held: &[Held]) -> &'static str {
        NameHealth::of(NameVerdict::Works, None, writes, held.iter()).as_str()
    }

    #[test]
    fn a_name_that_works_is_right_only_if_its_records_were_read_and_are_ours() {
        let table: [(&[reason::Reason], &str); 6] = [
            (&[], "right"),
            (&[reason::ZONE_UNREADABLE, reason::RECORD_UNMANAGED], "unknown"),
            (&[reason::RECORD_UNMANAGED], "foreign"),
            (&[reason::RECORD_OWNED_BY_OTHER, reason::TOO_MANY_DELETES], "foreign"),
            (&[reason::TOO_MANY_DELETES], "held"),
            (&[reason::ZONE_NOT_SERVED], "wrong"),
        ];
        for (reasons, expected) in table {
            let held: Vec<Held> = reasons.iter().map(|reason| held(*reason)).collect();
            assert_eq!(health(RecordWrites::Done, &held), expected, "{reasons:?}");
        }
        assert_eq!(health(RecordWrites::Skipped, &[]), "held");
        assert_eq!(health(RecordWrites::Failed, &[]), "wrong");
        assert_eq!(health(RecordWrites::Failed, &[held(reason::ZONE_UNREADABLE)]), "unknown");
    }

    #[test]
    fn a_verdict_without_knowledge_is_not_wrong() {
        let object = ObjectRef::new(Kind::Gateway, "infra", "edge");
        let of = |reason| {
            let cause = Diagnostic::new(reason, &object, FieldPath::root(), "");
            NameHealth::of(NameVerdict::NotPublished, Some(&cause), RecordWrites::Done, std::iter::empty())
        };
        assert_eq!(of(reason::STATUS_STALE), NameHealth::Unknown);
        assert_eq!(of(reason::GATEWAY_NOT_ACCEPTED), NameHealth::Wrong);
    }
}
