//! Valid hostnames that deserve a warning.

/// An oddity of a valid hostname field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostnameLint {
    /// Upper case: a cluster refuses the object; holds the folded form.
    UpperCase(String),
    /// An international name in its ASCII form; holds what people read.
    International(String),
    /// A label with `xn--` that no international name has.
    BrokenPunycode(String),
}

impl HostnameLint {
    /// Everything odd about a text that [`super::Hostname::parse`] took.
    pub fn of(text: &str) -> Vec<HostnameLint> {
        let folded = text.to_ascii_lowercase();
        let mut lints = Vec::new();
        if folded != text {
            lints.push(HostnameLint::UpperCase(folded.clone()));
        }
        lints.extend(punycode(&folded));
        lints
    }
}

fn punycode(name: &str) -> Option<HostnameLint> {
    let broken = |label: &&str| label.starts_with("xn--") && !decodes(label);
    if let Some(label) = name.split('.').find(broken) {
        return Some(HostnameLint::BrokenPunycode(label.to_owned()));
    }
    name.split('.').any(|label| label.starts_with("xn--")).then(|| {
        let (star, base) = name.strip_prefix("*.").map_or(("", name), |base| ("*.", base));
        HostnameLint::International(format!("{star}{}", idna::domain_to_unicode(base).0))
    })
}

/// Whether a label stands for letters outside ASCII; one that decodes to plain ASCII is a disguise.
fn decodes(label: &str) -> bool {
    let (unicode, result) = idna::domain_to_unicode(label);
    result.is_ok() && !unicode.is_ascii()
}
