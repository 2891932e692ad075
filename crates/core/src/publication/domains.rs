//! `--domain-filter` and `--exclude-domains`: which names may be published.
//!
//! A filter `example.com` matches that name and everything below it, `.example.com` only what is below. Names are
//! compared in their Unicode form, so that both forms of an internationalized domain are equal.

use std::borrow::Cow;

/// Domains to publish in, and domains to exclude.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DomainFilter {
    include: Vec<String>,
    exclude: Vec<String>,
}

impl DomainFilter {
    /// Parses the values of the flags; ignores surrounding blanks, empty values and a trailing dot.
    pub fn new<T: AsRef<str>>(include: &[T], exclude: &[T]) -> Self {
        DomainFilter { include: prepared(include), exclude: prepared(exclude) }
    }

    /// Whether every name may be published.
    pub fn is_open(&self) -> bool {
        self.include.is_empty() && self.exclude.is_empty()
    }

    /// Whether a name may be published.
    pub fn admits(&self, name: &str) -> bool {
        if self.is_open() {
            return true;
        }
        let name = normal(name);
        let is_in = |domains: &[String]| domains.iter().any(|domain| covers(domain, &name));
        (self.include.is_empty() || is_in(&self.include)) && !is_in(&self.exclude)
    }
}

fn prepared<T: AsRef<str>>(domains: &[T]) -> Vec<String> {
    let domains = domains.iter().map(|domain| normal(domain.as_ref().trim()).into_owned());
    domains.filter(|domain| !domain.is_empty()).collect()
}

fn covers(domain: &str, name: &str) -> bool {
    if domain.starts_with('.') {
        return name.ends_with(domain);
    }
    name == domain || name.strip_suffix(domain).is_some_and(|front| front.ends_with('.'))
}

/// The form in which names are compared: lower case, Unicode, without a trailing dot.
fn normal(name: &str) -> Cow<'_, str> {
    let name = name.strip_suffix('.').unwrap_or(name);
    if name.is_ascii() && !name.to_ascii_lowercase().contains("xn--") {
        let is_lower = !name.bytes().any(|b| b.is_ascii_uppercase());
        return if is_lower { name.into() } else { name.to_ascii_lowercase().into() };
    }
    idna::domain_to_unicode(name).0.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(include: &[&str], exclude: &[&str]) -> DomainFilter {
        DomainFilter::new(include, exclude)
    }

    #[test]
    fn a_domain_takes_itself_and_what_is_below() {
        let table = [
            (&["example.com"][..], &[][..], "example.com", true),
            (&["example.com"], &[], "a.b.example.com", true),
            (&["example.com"], &[], "*.example.com", true),
            (&["example.com"], &[], "badexample.com", false),
            (&["example.com"], &[], "com", false),
            (&[".example.com"], &[], "example.com", false),
            (&[".example.com"], &[], "a.example.com", true),
            (&[], &["example.com"], "a.example.com", false),
            (&[], &["example.com"], "a.example.org", true),
            (&["example.com"], &["x.example.com"], "a.x.example.com", false),
            (&["example.com"], &["x.example.com"], "a.y.example.com", true),
            (&[" Example.COM. ", ""], &[], "a.example.com", true),
            (&["", " "], &[], "anything.test", true),
            (&["bücher.example"], &[], "a.xn--bcher-kva.example", true),
            (&["xn--bcher-kva.example"], &[], "a.xn--bcher-kva.example", true),
        ];
        for (include, exclude, name, expected) in table {
            assert_eq!(filter(include, exclude).admits(name), expected, "{include:?} {exclude:?} {name}");
        }
    }

    #[test]
    fn no_filter_is_open() {
        assert!(filter(&[""], &[" "]).is_open());
        assert!(filter(&[], &[]).admits("x"));
        assert!(!filter(&["a"], &[]).is_open());
    }
}
