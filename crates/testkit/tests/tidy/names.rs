//! Names of types, variables and files: plain words, and one meaning for each.

use std::collections::{BTreeMap, BTreeSet};

use super::super::{read, sources};

/// Words that were once names for mechanisms and said nothing about them.
const BANNED: &[&str] = &[
    // Types and variants.
    "Ask",
    "Beside",
    "Bid",
    "Board",
    "Book",
    "Cabinet",
    "Campaign",
    "Claim",
    "Contribution",
    "Crowd",
    "Desk",
    "Doors",
    "Due",
    "Follow",
    "Followed",
    "Follower",
    "Following",
    "Gate",
    "Gathering",
    "Goods",
    "Guide",
    "Hall",
    "Lanes",
    "Letters",
    "Line",
    "Marks",
    "Named",
    "Opinion",
    "Outlet",
    "Post",
    "Rest",
    "Roster",
    "Seat",
    "Serving",
    "Shelter",
    "Sought",
    "Spelling",
    "Spoken",
    "Standing",
    "Surroundings",
    "Table",
    "Teller",
    "Terms",
    "Told",
    "Want",
    "Way",
    "Wish",
    // Fields, variables, functions and modules.
    "behind",
    "cabinet",
    "campaign",
    "crowd",
    "deaf_since",
    "desk",
    "doors",
    "hall",
    "halls",
    "in_vain",
    "lanes",
    "outlet",
    "outlets",
    "roster",
    "seat",
    "seats",
    "servings",
    "shelter",
    "spoken",
    "standing",
    "surroundings",
    "twin",
    "twins",
];

/// Files that were named after nothing they hold.
const BANNED_FILES: &[&str] = &["again.rs", "behind.rs", "doors.rs", "few.rs", "rare.rs", "recent.rs"];

/// Banned words and files that may stay, each with its reason.
const ALLOWED: &[(&str, &str)] = &[];

/// Names that more than two types have, each with its reason.
const SHARED: &[(&str, &str)] = &[];

/// How many types may have the same name.
const MOST: usize = 2;

/// The files below `crates/*/src`.
fn code() -> impl Iterator<Item = String> {
    sources().into_iter().filter(|name| name.split('/').nth(2) == Some("src"))
}

/// The identifiers of a Rust source, without those in comments and literals.
fn identifiers(text: &str) -> BTreeSet<&str> {
    let mut found = BTreeSet::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let skipped = match first {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
            '"' => literal(rest),
            '\'' => character(rest),
            'r' if raw_literal(rest).is_some() => raw_literal(rest).unwrap_or(1),
            first if is_part_of_word(first) => {
                let word = rest.split(|c| !is_part_of_word(c)).next().unwrap_or_default();
                found.insert(word);
                word.len()
            }
            other => other.len_utf8(),
        };
        rest = &rest[skipped..];
    }
    found
}

fn is_part_of_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// The length of a text literal.
fn literal(text: &str) -> usize {
    let mut is_escaped = false;
    let end = text.char_indices().skip(1).find(|(_, character)| {
        let is_end = *character == '"' && !is_escaped;
        is_escaped = *character == '\\' && !is_escaped;
        is_end
    });
    end.map_or(text.len(), |(at, _)| at + 1)
}

/// The length of a raw text literal, if there is one.
fn raw_literal(text: &str) -> Option<usize> {
    let hashes = text[1..].chars().take_while(|c| *c == '#').count();
    let body = text[1 + hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    Some(body.find(&end).map_or(text.len(), |at| 2 + hashes + at + end.len()))
}

/// The length of a character literal, or of the mark of a lifetime.
fn character(text: &str) -> usize {
    if let Some(escaped) = text.strip_prefix("'\\") {
        return escaped.char_indices().skip(1).find(|(_, c)| *c == '\'').map_or(text.len(), |(at, _)| at + 3);
    }
    let mut characters = text.char_indices().skip(2);
    characters.next().filter(|(_, c)| *c == '\'').map_or(1, |(at, _)| at + 1)
}

/// The names of the structs, enums and traits that a source declares.
fn declared(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let mut words = line.split_whitespace().skip_while(|word| word.starts_with("pub") || word.ends_with(')'));
        let is_type = matches!(words.next()?, "struct" | "enum" | "trait");
        let name = words.next().filter(|_| is_type)?;
        name.split(|c| !is_part_of_word(c)).next().filter(|name| name.starts_with(char::is_uppercase))
    })
}

/// The names that a list of exceptions does not need any more.
fn unneeded<'l>(list: &'l [(&str, &str)], found: impl Fn(&str) -> bool) -> Vec<&'l str> {
    list.iter().map(|(name, _)| *name).filter(|name| !found(name)).collect()
}

#[test]
fn no_metaphor_is_a_name() {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for path in code() {
        let (text, file) = (read(&path), path.rsplit('/').next().unwrap_or_default());
        let words = identifiers(&text).into_iter().filter(|word| BANNED.contains(word));
        for word in words.chain(BANNED_FILES.iter().copied().filter(|banned| *banned == file)) {
            found.entry(word.to_owned()).or_default().push(path.clone());
        }
    }
    let unneeded = unneeded(ALLOWED, |word| found.contains_key(word));
    found.retain(|word, _| !ALLOWED.iter().any(|(allowed, _)| allowed == word));
    assert!(found.is_empty(), "call these after what they are: {found:#?}");
    assert!(unneeded.is_empty(), "nothing is called so any more; take them off the list: {unneeded:?}");
}

#[test]
fn a_type_name_has_one_meaning() {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for path in code() {
        for name in declared(&read(&path)) {
            found.entry(name.to_owned()).or_default().push(path.clone());
        }
    }
    found.retain(|_, paths| paths.len() > MOST);
    let unneeded = unneeded(SHARED, |name| found.contains_key(name));
    found.retain(|name, _| !SHARED.iter().any(|(shared, _)| shared == name));
    assert!(found.is_empty(), "more than {MOST} types have the same name: {found:#?}");
    assert!(unneeded.is_empty(), "few types are called so any more; take them off the list: {unneeded:?}");
}

#[test]
fn every_exception_has_a_reason() {
    for (name, reason) in ALLOWED.iter().chain(SHARED) {
        assert!(!reason.is_empty(), "{name} is allowed without a reason");
    }
    for list in [ALLOWED, SHARED] {
        assert!(list.is_sorted_by(|a, b| a.0 < b.0), "sort the exceptions by name");
    }
}

#[test]
fn words_in_comments_and_literals_are_no_identifiers() {
    let text =
        "/// Told\nfn a<'x>(b: &'x str) -> char { /* Hall */ let c = \"Seat \\\" Bid\"; r#\"Desk\"#; '\\''; 'W'; d }\n";
    let expected = ["a", "b", "c", "char", "d", "fn", "let", "str", "x"];
    assert_eq!(identifiers(text), BTreeSet::from(expected));
    let text = "pub(in crate::a) struct One<T>(T);\n  enum Two {\npub trait Three: Clone {}\nlet enum_ = struct_;\n";
    assert_eq!(declared(text).collect::<Vec<_>>(), ["One", "Two", "Three"]);
}
