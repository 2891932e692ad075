//! Hostname fields: read by the rules of the core, and every oddity told in place.

use gatepost_core::model::{Str, WrittenHostname};
use gatepost_core::names::{HostnameError, HostnameLint, PreciseHostname};
use gatepost_core::reason::{
    HOSTNAME_BROKEN_PUNYCODE, HOSTNAME_INTERNATIONAL, HOSTNAME_IS_IP, HOSTNAME_LABEL_TOO_LONG, HOSTNAME_NOT_LOWERCASE,
    INVALID_HOSTNAME, Reason,
};

use crate::fields::{FieldValue, shortened};

/// A hostname, precise or wildcard. A value that is no text counts as an empty name, which matches nothing.
pub(crate) fn hostname(node: FieldValue<'_>) -> WrittenHostname {
    let Some(text) = node.text() else { return WrittenHostname::new("") };
    let written = WrittenHostname::new(text);
    match &written.name() {
        Ok(_) => lint(node, text),
        Err(error) => complain(node, text, error),
    }
    written
}

/// A hostname that takes no wildcard, kept as text.
pub(crate) fn precise(node: FieldValue<'_>) -> Option<Str> {
    let text = node.text()?;
    match PreciseHostname::parse(text) {
        Ok(_) => lint(node, text),
        Err(error) => complain(node, text, &error),
    }
    Some(text.into())
}

fn complain(node: FieldValue<'_>, text: &str, error: &HostnameError) {
    node.tell(reason(error), format!("is \"{}\", which {error}", shortened(text)));
}

fn reason(error: &HostnameError) -> Reason {
    match error {
        HostnameError::IpAddress => HOSTNAME_IS_IP,
        HostnameError::LabelTooLong(_) => HOSTNAME_LABEL_TOO_LONG,
        _ => INVALID_HOSTNAME,
    }
}

fn lint(node: FieldValue<'_>, text: &str) {
    for lint in HostnameLint::of(text) {
        match lint {
            HostnameLint::UpperCase(folded) => {
                node.tell(
                    HOSTNAME_NOT_LOWERCASE,
                    format!("is \"{text}\", which has upper-case letters; write `{folded}`"),
                );
            }
            HostnameLint::International(unicode) => {
                node.tell(HOSTNAME_INTERNATIONAL, format!("is \"{text}\", which people read as `{unicode}`"));
            }
            HostnameLint::BrokenPunycode(label) => {
                let message =
                    format!("has the label `{label}`, which begins with `xn--` and stands for no international name");
                node.tell(HOSTNAME_BROKEN_PUNYCODE, message);
            }
        }
    }
}
