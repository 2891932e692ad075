//! What the parsers complain about, in words that help the person who wrote the text. No part of the text is quoted except
//! keys: values may be private.

use serde_saphyr::Error;
use serde_saphyr::budget::BudgetBreach;

use crate::fields::shortened;

/// The message for an error of the YAML parser.
pub(super) fn yaml(error: &Error) -> String {
    match error {
        Error::Budget { breach, .. } => budget(breach),
        Error::AliasError { error, .. } => yaml(error),
        Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. }
        | Error::AliasReplayCounterOverflow { .. } => ALIASES.to_owned(),
        Error::RecursiveReferencesRequireWeakTypes { .. } => "an alias refers to something that contains it".to_owned(),
        Error::DuplicateMappingKey { key: Some(key), .. } => {
            format!("the key `{}` stands twice in one mapping; remove one of the two", shortened(key))
        }
        Error::NonFiniteFloat { .. } => "a number is too large; put it in quotes if it is meant as text".to_owned(),
        Error::MultipleDocuments { .. } => "the document ends, and something else follows it".to_owned(),
        Error::Eof { .. } => "the document ends too early".to_owned(),
        Error::UnknownAnchor { .. } => "an alias refers to an anchor that does not exist".to_owned(),
        other => without_position(&other.to_string()),
    }
}

/// The message for an error of the JSON parser.
pub(super) fn json(error: &serde_json::Error) -> String {
    let suffix = format!(" at line {} column {}", error.line(), error.column());
    let whole = error.to_string();
    match whole.strip_suffix(&suffix).unwrap_or(&whole) {
        "recursion limit exceeded" => TOO_DEEP.to_owned(),
        "EOF while parsing a value" => "the document ends where a value should stand".to_owned(),
        "EOF while parsing a string" => "the document ends inside a text; a `\"` is missing".to_owned(),
        "EOF while parsing a list" => "the document ends inside a list; a `]` is missing".to_owned(),
        "EOF while parsing an object" => "the document ends inside a mapping; a `}` is missing".to_owned(),
        other => other.to_owned(),
    }
}

const TOO_DEEP: &str = "the document nests too deep; objects of Kubernetes need far less than 100 levels";
const ALIASES: &str = "the aliases of the document expand to more than any object needs";

fn budget(breach: &BudgetBreach) -> String {
    match breach {
        BudgetBreach::Depth { .. } => TOO_DEEP.to_owned(),
        BudgetBreach::Aliases { .. }
        | BudgetBreach::Anchors { .. }
        | BudgetBreach::AliasAnchorRatio { .. }
        | BudgetBreach::MergeKeys { .. }
        | BudgetBreach::RecordedAnchorEvents { .. }
        | BudgetBreach::RecordedAnchorBytes { .. } => ALIASES.to_owned(),
        BudgetBreach::SequenceUnbalanced => "the document ends inside a list or mapping".to_owned(),
        _ => "the document is too large; split it up".to_owned(),
    }
}

/// The parser's message may end with a position that counts from the document; ours is shown elsewhere.
fn without_position(message: &str) -> String {
    let first = message.lines().next().unwrap_or_default();
    if first.starts_with("recursion limit exceeded") {
        return TOO_DEEP.to_owned();
    }
    let end = [" at line ", " (defined"].iter().filter_map(|mark| first.find(mark)).min().unwrap_or(first.len());
    first[..end].to_owned()
}
