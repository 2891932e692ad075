//! Combines the computed acceptance of an attachment with the status that a Gateway implementation wrote.
//!
//! One function gives a [`Verdict`] from the computed result, the observed status and the trust setting. A "no" comes
//! only from our own computation; anything else that is not a "yes" is unknown, which creates nothing and deletes
//! nothing.

use crate::model::{Condition, condition};
use crate::reason::{self, Reason};

/// A decision that can be unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Accepted.
    Yes,
    /// Not accepted, by our own computation.
    No(Reason),
    /// Not known; nothing may be created or deleted because of it.
    Unknown(Reason),
}

/// Which source decides about acceptance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trust {
    /// The implementation if the Gateway has conditions, else the computation.
    #[default]
    Auto,
    /// The implementation only.
    Trust,
    /// The computation only.
    Compute,
}

/// What an implementation wrote about acceptance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Observed {
    /// No condition.
    Silent,
    /// A condition about an older generation.
    Stale,
    /// `Accepted: True`.
    Accepted,
    /// `Accepted: Unknown`, the initial value of the API server: not decided yet.
    Undecided,
    /// `Accepted: False`.
    Refused,
}

impl Observed {
    /// Reads the conditions of a listener: one that is in conflict serves nothing, whatever `Accepted` says.
    pub fn of_listener(conditions: &[Condition], generation: Option<i64>) -> Observed {
        let observed = Observed::of(conditions, generation);
        let is_stale = |c: &Condition| c.observed_generation.zip(generation).is_some_and(|(of, now)| of < now);
        let conflict = condition(conditions, "Conflicted").filter(|c| c.is_true() && !is_stale(c));
        if observed == Observed::Accepted && conflict.is_some() { Observed::Refused } else { observed }
    }

    /// Reads the `Accepted` condition of an object of this generation.
    pub fn of(conditions: &[Condition], generation: Option<i64>) -> Observed {
        let Some(accepted) = condition(conditions, "Accepted") else { return Observed::Silent };
        let lags = match (accepted.observed_generation, generation) {
            (Some(observed), Some(current)) => observed < current,
            _ => false,
        };
        match &*accepted.status {
            _ if lags => Observed::Stale,
            "True" => Observed::Accepted,
            "Unknown" => Observed::Undecided,
            _ => Observed::Refused,
        }
    }
}

/// The verdict. `has_conditions` says whether the Gateway's status has any conditions; [`Trust::Auto`] depends on it.
pub fn decide(computed: Result<(), Reason>, observed: Observed, trust: Trust, has_conditions: bool) -> Verdict {
    let believe = match trust {
        Trust::Compute => false,
        Trust::Trust => true,
        Trust::Auto => has_conditions,
    };
    match (believe, computed, observed) {
        (false, Ok(()), _) => Verdict::Yes,
        (false, Err(reason), _) => Verdict::No(reason),
        (true, Ok(()), Observed::Accepted) => Verdict::Yes,
        (true, Ok(()), Observed::Refused) => Verdict::Unknown(reason::STATUS_REFUSED),
        (true, Err(_), Observed::Accepted) => Verdict::Unknown(reason::STATUS_DISAGREES),
        (true, Err(reason), _) => Verdict::No(reason),
        (true, Ok(()), Observed::Silent | Observed::Undecided) => Verdict::Unknown(reason::STATUS_MISSING),
        (true, Ok(()), Observed::Stale) => Verdict::Unknown(reason::STATUS_STALE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reason::NAMESPACE_NOT_ALLOWED as NO;

    #[test]
    fn the_whole_table() {
        use Observed::*;
        let (yes, no) = (Verdict::Yes, Verdict::No(NO));
        let unknown = Verdict::Unknown;
        let table = [
            // Columns: computed, observed, verdict with `Trust`, verdict with `Compute`.
            (Ok(()), Silent, unknown(reason::STATUS_MISSING), yes),
            (Ok(()), Undecided, unknown(reason::STATUS_MISSING), yes),
            (Ok(()), Stale, unknown(reason::STATUS_STALE), yes),
            (Ok(()), Accepted, yes, yes),
            (Ok(()), Refused, unknown(reason::STATUS_REFUSED), yes),
            (Err(NO), Silent, no, no),
            (Err(NO), Undecided, no, no),
            (Err(NO), Stale, no, no),
            (Err(NO), Accepted, unknown(reason::STATUS_DISAGREES), no),
            (Err(NO), Refused, no, no),
        ];
        for (computed, observed, trusting, computing) in table {
            let row = format!("{computed:?} {observed:?}");
            assert_eq!(decide(computed, observed, Trust::Trust, false), trusting, "trust {row}");
            assert_eq!(decide(computed, observed, Trust::Compute, true), computing, "compute {row}");
            assert_eq!(decide(computed, observed, Trust::Auto, true), trusting, "auto, speaking {row}");
            assert_eq!(decide(computed, observed, Trust::Auto, false), computing, "auto, silent {row}");
        }
    }

    #[test]
    fn a_condition_of_an_older_generation_is_stale() {
        let mut accepted = Condition::new("Accepted", true, "Accepted", "");
        assert_eq!(Observed::of(&[accepted.clone()], Some(3)), Observed::Accepted);
        accepted.observed_generation = Some(2);
        assert_eq!(Observed::of(&[accepted.clone()], Some(3)), Observed::Stale);
        assert_eq!(Observed::of(&[accepted.clone()], Some(2)), Observed::Accepted);
        accepted.status = "Unknown".into();
        assert_eq!(Observed::of(&[accepted.clone()], None), Observed::Undecided);
        accepted.status = "False".into();
        assert_eq!(Observed::of(&[accepted], None), Observed::Refused);
        assert_eq!(Observed::of(&[], None), Observed::Silent);
    }
}
