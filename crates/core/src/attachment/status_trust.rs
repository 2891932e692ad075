//! What others say about an attachment, and whether it counts.
//!
//! One function: our own computed answer, what a Gateway implementation wrote, and whom to believe, give a [`Verdict`]. A "no"
//! comes only from our own computation; anything else that is not a "yes" is unknown, which creates nothing and deletes
//! nothing.

use crate::model::{Condition, condition};
use crate::reason::{self, Reason};

/// Yes, no, or not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is so.
    Yes,
    /// It is not so, by our own computation.
    No(Reason),
    /// It cannot be told; nothing may be created or deleted because of it.
    Unknown(Reason),
}

/// Whom to believe about acceptance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trust {
    /// The implementation where it speaks, else the computation.
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
    /// Nothing.
    Silent,
    /// Something about an older generation.
    Stale,
    /// `Accepted: True`.
    Accepted,
    /// `Accepted: Unknown`: seen, and not decided yet. Objects begin so.
    Undecided,
    /// `Accepted: False`.
    Refused,
}

impl Observed {
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

/// The verdict. `speaks` says whether the Gateway carries conditions at all, which is what `auto` goes by.
pub fn decide(computed: Result<(), Reason>, observed: Observed, trust: Trust, speaks: bool) -> Verdict {
    let believe = match trust {
        Trust::Compute => false,
        Trust::Trust => true,
        Trust::Auto => speaks,
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
            // computed, observed, trusting, computing
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
