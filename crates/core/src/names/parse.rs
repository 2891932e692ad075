//! The syntax of a hostname field: RFC 1123 with an optional wildcard label, no IP addresses, 63 and 253 octets.

use std::fmt;

use super::is_ip;

/// Why a text is not a hostname. The display form is a clause that can follow the text in quotes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostnameError {
    /// Nothing there.
    Empty,
    /// More than 253 characters, the wildcard counted.
    TooLong(usize),
    /// A label of more than 63 octets.
    LabelTooLong(String),
    /// Two dots in a row, or one in front.
    EmptyLabel,
    /// An IPv4 or IPv6 address.
    IpAddress,
    /// A scheme, path or user in front of or behind the name.
    Url,
    /// A port behind the name.
    Port,
    /// A dot at the end.
    TrailingDot,
    /// `*` alone: leave the field out instead.
    BareWildcard,
    /// A `*` that is not the whole first label.
    WildcardPosition,
    /// A wildcard in a field that takes none.
    WildcardNotAllowed,
    /// Letters outside ASCII; holds the form that belongs into the field, where there is one.
    NotAscii(Option<String>),
    /// A character that no label may hold.
    Character(char),
    /// A label that begins or ends with `-`.
    Hyphen(String),
}

impl fmt::Display for HostnameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => write!(f, "is empty"),
            Self::TooLong(n) => write!(f, "has {n} characters, a hostname has at most 253"),
            Self::LabelTooLong(label) => {
                write!(f, "has a label of {} characters (`{}…`), a label has at most 63", label.len(), shortened(label))
            }
            Self::EmptyLabel => write!(f, "has an empty label (two dots in a row, or one in front)"),
            Self::IpAddress => write!(f, "is an IP address, never a hostname"),
            Self::Url => write!(f, "is a URL or has a path, only the hostname belongs here"),
            Self::Port => write!(f, "carries a port, which belongs into the listener's `port`"),
            Self::TrailingDot => write!(f, "ends with a dot"),
            Self::BareWildcard => write!(f, "is a bare `*`; leave the field out to match every name"),
            Self::WildcardPosition => write!(f, "has a `*` that is not the whole first label"),
            Self::WildcardNotAllowed => write!(f, "is a wildcard, and this field takes none"),
            Self::NotAscii(Some(ascii)) => write!(f, "is not ASCII; write `{ascii}`"),
            Self::NotAscii(None) => write!(f, "is not ASCII and has no valid ASCII form"),
            Self::Character(c) => write!(f, "holds `{}`, labels hold only letters, digits and `-`", c.escape_default()),
            Self::Hyphen(label) => write!(f, "has the label `{}`, which begins or ends with `-`", shortened(label)),
        }
    }
}

/// The canonical text of a hostname: lower case.
pub(super) fn hostname(text: &str) -> Result<String, HostnameError> {
    if text.is_empty() {
        return Err(HostnameError::Empty);
    }
    if text.len() > 4 * 253 {
        return Err(HostnameError::TooLong(text.len()));
    }
    if !text.is_ascii() {
        return Err(HostnameError::NotAscii(ascii_form(text)));
    }
    if text == "*" {
        return Err(HostnameError::BareWildcard);
    }
    let base = text.strip_prefix("*.").unwrap_or(text);
    shape(base)?;
    if text.len() > 253 {
        return Err(HostnameError::TooLong(text.len()));
    }
    base.split('.').try_for_each(label)?;
    Ok(text.to_ascii_lowercase())
}

/// Mistakes that are better named as a whole than by their first odd character.
fn shape(base: &str) -> Result<(), HostnameError> {
    if base.is_empty() {
        return Err(HostnameError::EmptyLabel);
    }
    if is_ip(base) {
        return Err(HostnameError::IpAddress);
    }
    if base.contains("://") || base.contains(['/', '@', '?']) {
        return Err(HostnameError::Url);
    }
    if let Some((_, port)) = base.rsplit_once(':')
        && !port.is_empty()
        && port.bytes().all(|b| b.is_ascii_digit())
    {
        return Err(HostnameError::Port);
    }
    if base.contains('*') {
        return Err(HostnameError::WildcardPosition);
    }
    if base.ends_with('.') {
        return Err(HostnameError::TrailingDot);
    }
    Ok(())
}

fn label(label: &str) -> Result<(), HostnameError> {
    if label.is_empty() {
        return Err(HostnameError::EmptyLabel);
    }
    if let Some(c) = label.chars().find(|c| !c.is_ascii_alphanumeric() && *c != '-') {
        return Err(HostnameError::Character(c));
    }
    if label.starts_with('-') || label.ends_with('-') {
        return Err(HostnameError::Hyphen(label.to_owned()));
    }
    if label.len() > 63 {
        return Err(HostnameError::LabelTooLong(label.to_owned()));
    }
    Ok(())
}

/// What a U-label should have been written as.
fn ascii_form(text: &str) -> Option<String> {
    let (star, base) = text.strip_prefix("*.").map_or(("", text), |base| ("*.", base));
    let ascii = idna::domain_to_ascii_strict(base).ok()?;
    hostname(&format!("{star}{ascii}")).ok()
}

fn shortened(text: &str) -> &str {
    &text[..text.len().min(24)]
}
