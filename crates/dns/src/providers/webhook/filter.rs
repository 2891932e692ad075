//! The domains that a webhook looks after, as it says when it is first asked.

use gatepost_core::publication::domains::DomainFilter;
use regex::Regex;
use serde::{Deserialize, Serialize};

use super::endpoint::opening;

/// Which names a webhook takes.
#[derive(Clone, Debug)]
pub struct WebhookDomains {
    include: Vec<String>,
    lists: DomainFilter,
    regex_include: Option<Regex>,
    regex_exclude: Option<Regex>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Wire {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) include: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) exclude: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) regex_include: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) regex_exclude: Option<String>,
}

impl WebhookDomains {
    /// Reads the answer of the negotiation.
    pub fn parse(body: &[u8]) -> Result<WebhookDomains, String> {
        let wire: Wire = serde_json::from_slice(body)
            .map_err(|error| format!("GET /: it is not a domain filter: {error}{}", opening(body)))?;
        let include = wire.include.unwrap_or_default();
        let exclude = wire.exclude.unwrap_or_default();
        let [regex_include, regex_exclude] = [wire.regex_include, wire.regex_exclude].map(Option::unwrap_or_default);
        let has_regex = !regex_include.is_empty() || !regex_exclude.is_empty();
        if has_regex && !(include.is_empty() && exclude.is_empty()) {
            return Err("GET /: the domain filter has both lists and regular expressions".to_owned());
        }
        let lists = DomainFilter::new(&include, &exclude);
        let (regex_include, regex_exclude) = (compile(&regex_include)?, compile(&regex_exclude)?);
        let include = include.into_iter().filter(|domain| !domain.trim_matches(['.', ' ']).is_empty()).collect();
        Ok(WebhookDomains { include, lists, regex_include, regex_exclude })
    }

    /// The domains that it names.
    pub fn include(&self) -> &[String] {
        &self.include
    }

    /// Whether it takes a name.
    pub fn admits(&self, name: &str) -> bool {
        if self.regex_include.is_none() && self.regex_exclude.is_none() {
            return self.lists.admits(name);
        }
        let matches = |regex: &Regex| regex.is_match(name);
        !self.regex_exclude.as_ref().is_some_and(matches) && self.regex_include.as_ref().is_none_or(matches)
    }
}

fn compile(text: &str) -> Result<Option<Regex>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    let compiled = regex::RegexBuilder::new(text).size_limit(1 << 20).build();
    compiled.map(Some).map_err(|error| format!("GET /: `{text}` is not a regular expression: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_expressions() {
        let rows = [
            (r#"{"include":["example.com"],"exclude":["x.example.com"]}"#, "www.example.com", true),
            (r#"{"include":["example.com"],"exclude":["x.example.com"]}"#, "a.x.example.com", false),
            (r#"{"regexInclude":"\\.example\\.com$"}"#, "www.example.com", true),
            (r#"{"regexInclude":"\\.example\\.com$"}"#, "example.com", false),
            (r#"{"regexExclude":"^secret"}"#, "secret.example.com", false),
            (r#"{"regexInclude":"com$","regexExclude":"^secret"}"#, "a.example.com", true),
            ("{}", "anything.test", true),
            (r#"{"include":null,"filters":["example.com"]}"#, "anything.test", true),
        ];
        for (text, name, expected) in rows {
            assert_eq!(WebhookDomains::parse(text.as_bytes()).unwrap().admits(name), expected, "{text} {name}");
        }
    }

    #[test]
    fn broken_filters_are_refused() {
        for text in [
            "",
            "<html>",
            "[]x",
            r#"{"include":"a"}"#,
            r#"{"include":["a"],"regexInclude":"b"}"#,
            r#"{"regexInclude":"("}"#,
        ] {
            assert!(WebhookDomains::parse(text.as_bytes()).is_err(), "{text}");
        }
    }
}
