//! Domain names as the server stores them: wire format, lower case, absolute.
//!
//! A [`Name`] is always valid. [`LabelPath`] is a name on the stack with its label offsets, for walking up from a question.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;

/// The longest name in wire format, root label included.
pub(crate) const MAX_NAME: usize = 255;

/// A domain name: lower case, in wire format, with the root label at its end.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Box<[u8]>);

/// A text that is not a domain name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a domain name: {cause}")]
pub struct NameError {
    /// The text as given.
    pub text: String,
    /// What is wrong with it.
    pub cause: String,
}

impl Name {
    /// Reads a name in presentation format, with or without the dot at its end.
    pub fn parse(text: &str) -> Result<Name, NameError> {
        let refuse = |cause: String| NameError { text: text.to_owned(), cause };
        if text.is_empty() {
            return Err(refuse("it is empty".into()));
        }
        let name = domain::base::Name::<Vec<u8>>::from_str(text).map_err(|error| refuse(error.to_string()))?;
        Ok(Name(name.as_slice().to_ascii_lowercase().into()))
    }

    /// Takes an uncompressed name at the start of these bytes, and says how long it is.
    pub(crate) fn from_wire(bytes: &[u8]) -> Option<(Name, usize)> {
        let path = LabelPath::read(bytes)?;
        Some((Name(path.whole().into()), path.len()))
    }

    /// A name from bytes that are known to be one: lower case, with the root label.
    pub(crate) fn from_lower(bytes: &[u8]) -> Name {
        Name(bytes.into())
    }

    /// The wire format.
    pub fn as_wire(&self) -> &[u8] {
        &self.0
    }

    /// How many labels there are; the root has none.
    pub fn labels(&self) -> usize {
        labels(&self.0)
    }

    /// The name without its first label; the root has no parent.
    pub fn parent(&self) -> Option<Name> {
        parent(&self.0).map(|rest| Name(rest.into()))
    }

    /// Whether this is the other name, or lies below it.
    pub fn is_within(&self, other: &Name) -> bool {
        is_within(&self.0, &other.0)
    }

    /// Whether the first label is the asterisk.
    pub fn is_wildcard(&self) -> bool {
        is_wildcard(&self.0)
    }
}

/// So that a map of names can be asked with bytes on the stack.
impl Borrow<[u8]> for Name {
    fn borrow(&self) -> &[u8] {
        &self.0
    }
}

impl FromStr for Name {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Name, NameError> {
        Name::parse(text)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.len() == 1 {
            return f.write_str(".");
        }
        for label in walk(&self.0) {
            for &byte in label {
                match byte {
                    b'.' | b'\\' | b'"' | b';' | b'(' | b')' | b'@' | b'$' => write!(f, "\\{}", byte as char)?,
                    0x21..=0x7e => write!(f, "{}", byte as char)?,
                    _ => write!(f, "\\{byte:03}")?,
                }
            }
            f.write_str(".")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// The labels of a valid name, without the root.
pub(crate) fn walk(name: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = name;
    std::iter::from_fn(move || {
        let (&length, tail) = rest.split_first()?;
        let length = usize::from(length);
        if length == 0 || length > tail.len() {
            return None;
        }
        let (label, tail) = tail.split_at(length);
        rest = tail;
        Some(label)
    })
}

pub(crate) fn labels(name: &[u8]) -> usize {
    walk(name).count()
}

pub(crate) fn parent(name: &[u8]) -> Option<&[u8]> {
    let length = usize::from(*name.first()?);
    if length == 0 { None } else { name.get(length + 1..) }
}

pub(crate) fn is_wildcard(name: &[u8]) -> bool {
    name.starts_with(b"\x01*")
}

/// Whether a lower-case name is another one or lies below it.
pub(crate) fn is_within(name: &[u8], other: &[u8]) -> bool {
    let mut rest = Some(name);
    while let Some(suffix) = rest.filter(|suffix| suffix.len() >= other.len()) {
        if suffix == other {
            return true;
        }
        rest = parent(suffix);
    }
    false
}

/// A lower-case name on the stack, with the offset of each label.
pub(crate) struct LabelPath {
    bytes: [u8; MAX_NAME],
    offsets: [u8; 128],
    length: u8,
    labels: u8,
}

impl LabelPath {
    /// Reads an uncompressed name at the start of these bytes. Compression, over-long names and cut ones are refused.
    pub(crate) fn read(bytes: &[u8]) -> Option<LabelPath> {
        let mut path = LabelPath { bytes: [0; MAX_NAME], offsets: [0; 128], length: 0, labels: 0 };
        let mut at = 0;
        loop {
            let length = usize::from(*bytes.get(at)?);
            let end = at + 1 + length;
            if length > 63 || end > MAX_NAME {
                return None;
            }
            let label = bytes.get(at..end)?;
            path.bytes.get_mut(at..end)?.copy_from_slice(label);
            *path.offsets.get_mut(usize::from(path.labels))? = at as u8;
            if length == 0 {
                path.length = end as u8;
                path.bytes.get_mut(..end)?.make_ascii_lowercase();
                return Some(path);
            }
            path.labels += 1;
            at = end;
        }
    }

    /// The whole name.
    pub(crate) fn whole(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    /// The length in wire format.
    pub(crate) fn len(&self) -> usize {
        usize::from(self.length)
    }

    /// How many labels there are, without the root.
    pub(crate) fn labels(&self) -> usize {
        usize::from(self.labels)
    }

    /// The name without its first labels, which is the root at last.
    pub(crate) fn without(&self, labels: usize) -> &[u8] {
        &self.bytes[self.offset(labels)..usize::from(self.length)]
    }

    /// Where the rest begins when the first labels are taken away.
    pub(crate) fn offset(&self, labels: usize) -> usize {
        usize::from(self.offsets[labels.min(usize::from(self.labels))])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Name {
        Name::parse(text).unwrap()
    }

    #[test]
    fn names_are_lower_case_and_absolute() {
        assert_eq!(name("WWW.Example.com").to_string(), "www.example.com.");
        assert_eq!(name("www.example.com."), name("www.example.COM"));
        assert_eq!(name(".").to_string(), ".");
        assert_eq!(name("*.a").as_wire(), b"\x01*\x01a\0");
    }

    #[test]
    fn odd_bytes_survive_text() {
        for text in ["a\\.b.example.", "sp\\032ace.example.", "semi\\;colon.example."] {
            assert_eq!(name(&name(text).to_string()), name(text));
        }
    }

    #[test]
    fn what_is_no_name_is_refused() {
        let long = format!("{}.example", "a".repeat(64));
        let longer = ["abcdefghijklmnopqrstuvwxyz"; 10].join(".");
        for text in ["", "a..b", long.as_str(), longer.as_str()] {
            assert!(Name::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn inside_and_outside() {
        assert!(name("a.b.c").is_within(&name("b.c")));
        assert!(name("b.c").is_within(&name("b.c")));
        assert!(!name("ab.c").is_within(&name("b.c")));
        assert!(!name("c").is_within(&name("b.c")));
        assert!(name("c").is_within(&name(".")));
    }

    #[test]
    fn a_path_takes_no_compression() {
        assert!(LabelPath::read(b"\x03www\xc0\x0c").is_none());
        assert!(LabelPath::read(b"\x03ww").is_none());
        assert!(LabelPath::read(&[1; 600]).is_none());
        let path = LabelPath::read(b"\x03WwW\x01B\0rest").unwrap();
        assert_eq!(path.whole(), b"\x03www\x01b\0");
        assert_eq!(
            (path.labels(), path.without(1), path.without(2), path.without(9)),
            (2, &b"\x01b\0"[..], &b"\0"[..], &b"\0"[..])
        );
    }
}
