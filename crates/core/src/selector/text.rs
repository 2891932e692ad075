//! The selector grammar of Kubernetes command lines.

use std::fmt;

use super::{Requirement, Selector, Test};
use crate::model::Str;

/// Why a text is not a selector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelectorError {
    /// Character at which it stopped making sense, counted from 0.
    pub at: usize,
    /// What was expected there.
    pub expected: &'static str,
}

impl fmt::Display for SelectorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected {} at character {}", self.expected, self.at + 1)
    }
}

pub(super) fn parse(text: &str) -> Result<Selector, SelectorError> {
    let mut parser = SelectorParser { text, at: 0 };
    let mut requirements = Vec::new();
    parser.skip_blanks();
    while !parser.is_done() {
        requirements.push(parser.requirement()?);
        if !parser.take(",") && !parser.is_done() {
            return Err(parser.expected("`,` or the end"));
        }
    }
    Ok(Selector { requirements })
}

struct SelectorParser<'a> {
    text: &'a str,
    at: usize,
}

impl SelectorParser<'_> {
    fn requirement(&mut self) -> Result<Requirement, SelectorError> {
        if self.take("!") {
            return Ok(Requirement { key: self.key()?, test: Test::DoesNotExist });
        }
        let key = self.key()?;
        Ok(Requirement { key, test: self.test()? })
    }

    fn test(&mut self) -> Result<Test, SelectorError> {
        if self.take("!=") {
            return Ok(Test::NotIn(vec![self.value()?]));
        }
        if self.take("==") || self.take("=") {
            return Ok(Test::In(vec![self.value()?]));
        }
        let before = self.at;
        match self.word() {
            "" => Ok(Test::Exists),
            "in" => Ok(Test::In(self.values()?)),
            "notin" => Ok(Test::NotIn(self.values()?)),
            _ => {
                self.at = before;
                Err(self.expected("`=`, `!=`, `in`, `notin` or `,`"))
            }
        }
    }

    fn values(&mut self) -> Result<Vec<Str>, SelectorError> {
        if !self.take("(") {
            return Err(self.expected("`(`"));
        }
        let mut values = vec![self.value()?];
        while self.take(",") {
            values.push(self.value()?);
        }
        if self.take(")") { Ok(values) } else { Err(self.expected("`,` or `)`")) }
    }

    fn key(&mut self) -> Result<Str, SelectorError> {
        let before = self.at;
        let word = self.word().to_owned();
        let name = word.rsplit('/').next().unwrap_or_default();
        if is_name(name) && word.matches('/').count() <= 1 && !word.starts_with('/') {
            return Ok(word.into());
        }
        self.at = before;
        Err(self.expected("a label key"))
    }

    fn value(&mut self) -> Result<Str, SelectorError> {
        let before = self.at;
        let word: Str = self.word().into();
        if word.is_empty() || is_name(&word) {
            return Ok(word);
        }
        self.at = before;
        Err(self.expected("a label value (letters, digits, `-`, `_`, `.`, at most 63)"))
    }

    fn word(&mut self) -> &str {
        let rest = &self.text[self.at..];
        let end = rest.find(|c: char| c.is_whitespace() || ",()=!".contains(c)).unwrap_or(rest.len());
        self.at += end;
        self.skip_blanks();
        &rest[..end]
    }

    fn take(&mut self, token: &str) -> bool {
        let found = self.text[self.at..].starts_with(token);
        if found {
            self.at += token.len();
            self.skip_blanks();
        }
        found
    }

    fn skip_blanks(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
    }

    fn is_done(&self) -> bool {
        self.at == self.text.len()
    }

    fn expected(&self, expected: &'static str) -> SelectorError {
        SelectorError { at: self.text[..self.at].chars().count(), expected }
    }
}

fn is_name(word: &str) -> bool {
    let inner = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    (1..=63).contains(&word.len())
        && word.chars().all(inner)
        && word.starts_with(|c: char| c.is_ascii_alphanumeric())
        && word.ends_with(|c: char| c.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> crate::model::Labels {
        pairs.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect()
    }

    #[test]
    fn every_operator_is_read_and_printed() {
        for text in ["a=b", "a!=b", "a in (b,c)", "a notin (b,c)", "a", "!a", "x.io/a=b,!c"] {
            assert_eq!(parse(text).map(|s| s.to_string()).as_deref(), Ok(text));
        }
        assert_eq!(parse(" a == b , c in ( d , e ) ").unwrap().to_string(), "a=b,c in (d,e)");
    }

    #[test]
    fn operators_mean_what_kubernetes_means() {
        let subject = labels(&[("tier", "web"), ("env", "prod")]);
        let table = [
            ("", true),
            ("tier=web", true),
            ("tier=db", false),
            ("tier!=db", true),
            ("absent!=db", true),
            ("tier in (db,web)", true),
            ("tier notin (db,web)", false),
            ("absent notin (x)", true),
            ("env", true),
            ("absent", false),
            ("!absent", true),
            ("!env", false),
            ("tier=web,env=test", false),
        ];
        for (text, expected) in table {
            assert_eq!(parse(text).unwrap().matches(&subject), expected, "{text}");
        }
    }

    #[test]
    fn errors_say_where() {
        for text in ["a=b=c", "=b", "a in b", "a in (b", "a b", "a,,b", "-a", "a=b c", "a notin ()x"] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert_eq!(parse("a in b").unwrap_err().to_string(), "expected `(` at character 6");
    }
}
