//! The content of an ownership value: `heritage=external-dns,external-dns/owner=…,external-dns/resource=…`.
//!
//! The format is that of external-dns, label for label, so that each program reads what the other wrote. Unknown labels are
//! kept. A text without this heritage yields nothing.

use crate::model::{Kind, ObjectRef, Str};

/// The heritage label of this format.
const HERITAGE: &str = "external-dns";

/// The owner id.
const OWNER: &str = "owner";

/// The object that the record was made for.
const RESOURCE: &str = "resource";

/// The instance of Gatepost that wrote it; external-dns ignores it.
const STAMP: &str = "gatepost";

/// Our values of a shared TXT record set; external-dns ignores it.
const VALUES: &str = "gatepost-values";

/// The maximum length of an ownership value.
const LONGEST: usize = 4096;

/// The labels of an ownership value, without its heritage: sorted, and kept small, because every record has some.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels(Vec<(Str, Str)>);

impl Labels {
    /// Parses the text of an ownership value; surrounding quotes are ignored.
    pub fn parse(text: &str) -> Option<Self> {
        if text.len() > LONGEST {
            return None;
        }
        let mut labels = Labels(Vec::with_capacity(3));
        let mut has_heritage = false;
        for (key, value) in text.trim_matches('"').split(',').filter_map(|token| token.split_once('=')) {
            match key {
                "heritage" if value != HERITAGE => return None,
                "heritage" => has_heritage = true,
                key if key.starts_with(HERITAGE) => {
                    labels.set(label_name(key), value);
                }
                _ => {}
            }
        }
        has_heritage.then_some(labels)
    }

    fn value(&self, key: &str) -> Option<&str> {
        self.0.binary_search_by(|(known, _)| (**known).cmp(key)).ok().map(|at| &*self.0[at].1)
    }

    fn set(&mut self, key: &str, value: &str) {
        match self.0.binary_search_by(|(known, _)| (**known).cmp(key)) {
            Ok(at) => self.0[at].1 = value.into(),
            Err(at) => self.0.insert(at, (key.into(), value.into())),
        }
    }

    /// The text of the value, labels sorted.
    pub fn to_text(&self) -> String {
        let labels = self.0.iter().map(|(key, value)| format!(",{HERITAGE}/{key}={value}"));
        format!("heritage={HERITAGE}{}", labels.collect::<String>())
    }

    /// The owner id; empty if there is none.
    pub fn owner(&self) -> &str {
        self.value(OWNER).unwrap_or_default()
    }

    /// The object that the record was made for: `httproute/shop/web`.
    pub fn resource(&self) -> Option<&str> {
        self.value(RESOURCE)
    }

    /// The stamp of the instance that wrote it.
    pub fn stamp(&self) -> Option<&str> {
        self.value(STAMP)
    }

    /// The fingerprints of our values in a TXT record set that may hold others; nothing where the whole set is meant.
    pub fn values(&self) -> Option<impl Iterator<Item = &str>> {
        self.value(VALUES).map(|list| list.split('.').filter(|item| !item.is_empty()))
    }

    /// Sets the owner id.
    pub fn set_owner(&mut self, owner: &str) {
        self.set(OWNER, owner);
    }

    /// Sets the object that the record was made for.
    pub fn set_resource(&mut self, resource: &str) {
        self.set(RESOURCE, resource);
    }

    /// Sets the stamp of the instance.
    pub fn set_stamp(&mut self, stamp: &str) {
        self.set(STAMP, stamp);
    }

    /// Sets the fingerprints of our values.
    pub fn set_values(&mut self, values: &[String]) {
        self.set(VALUES, &values.join("."));
    }
}

/// An object as a label names it: `httproute/shop/web`.
pub fn resource_of(object: &ObjectRef) -> String {
    format!("{}/{}/{}", object.kind.as_str().to_ascii_lowercase(), object.key.namespace, object.key.name)
}

/// The object that a label names, where it is of a kind that is read here.
pub fn object_of(resource: &str) -> Option<ObjectRef> {
    let (kind, rest) = resource.split_once('/')?;
    let (namespace, name) = rest.split_once('/')?;
    let kind = Kind::ALL.into_iter().find(|known| known.as_str().eq_ignore_ascii_case(kind))?;
    Some(ObjectRef::new(kind, namespace, name))
}

/// The name of a label: the part after the slash, or the whole key.
fn label_name(key: &str) -> &str {
    key.strip_prefix(HERITAGE).and_then(|rest| rest.strip_prefix('/')).unwrap_or(key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_value_of_external_dns_is_read_and_written_back() {
        let text = "heritage=external-dns,external-dns/owner=me,external-dns/resource=httproute/shop/web";
        let labels = Labels::parse(&format!("\"{text}\"")).unwrap();
        assert_eq!((labels.owner(), labels.resource(), labels.stamp()), ("me", Some("httproute/shop/web"), None));
        assert_eq!(labels.to_text(), text);
    }

    #[test]
    fn unknown_labels_are_kept_and_sorted() {
        let labels =
            Labels::parse("external-dns/zz=1,heritage=external-dns,external-dns/aa=2,other=3,novalue").unwrap();
        assert_eq!(labels.to_text(), "heritage=external-dns,external-dns/aa=2,external-dns/zz=1");
        assert_eq!(labels.owner(), "");
    }

    #[test]
    fn what_is_of_another_heritage_is_no_ownership() {
        let huge = format!("heritage=external-dns,external-dns/owner={}", "x".repeat(5000));
        for text in
            ["", "v=spf1 -all", "heritage=mine,external-dns/owner=me", "external-dns/owner=me", "heritage", &huge]
        {
            assert_eq!(Labels::parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn reading_what_was_written_changes_nothing(text in "(heritage=external-dns,)?([a-z/=,-]|external-dns/){0,30}") {
            if let Some(labels) = Labels::parse(&text) {
                prop_assert_eq!(Labels::parse(&labels.to_text()), Some(labels));
            }
        }
    }
}
