//! Which instance wrote an ownership value, and for which record.
//!
//! Two clusters can share an owner id by mistake. Each value therefore contains the fingerprint of its instance and a code over
//! owner, name and type: another fingerprint under our owner id is an owner conflict, and a value that was copied to another
//! name proves nothing there. The secret never leaves this module.

use std::fmt;

use ring::{digest, hmac};

use crate::model::Str;

/// An instance of Gatepost, identified by its secret.
#[derive(Clone)]
pub struct Instance {
    key: hmac::Key,
    fingerprint: Str,
}

/// What a stamp proves about a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stamp<'a> {
    /// This instance wrote it, for this record.
    Ours,
    /// This instance wrote it, for another record.
    Elsewhere,
    /// The instance of this fingerprint wrote it.
    OtherInstance(&'a str),
}

impl Instance {
    /// The instance with this secret. Runs that keep no state share the empty one.
    pub fn new(secret: &str) -> Self {
        let hash = digest::digest(&digest::SHA256, format!("gatepost instance {secret}").as_bytes());
        Instance {
            key: hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()),
            fingerprint: hex(&hash.as_ref()[..4]).into(),
        }
    }

    /// The part of a stamp that identifies the instance.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// The stamp of a record.
    pub(super) fn stamp(&self, record: &Stamped<'_>) -> String {
        let id = record.set_identifier.unwrap_or_default();
        let text = format!("{}\0{}\0{}\0{id}", record.owner, record.name, record.kind);
        format!("{}.{}", self.fingerprint, hex(&hmac::sign(&self.key, text.as_bytes()).as_ref()[..8]))
    }

    /// Reads the stamp of a record.
    pub(super) fn judge<'a>(&self, stamp: &'a str, record: &Stamped<'_>) -> Stamp<'a> {
        let fingerprint = stamp.split('.').next().unwrap_or_default();
        if fingerprint != &*self.fingerprint {
            Stamp::OtherInstance(fingerprint)
        } else if stamp == self.stamp(record) {
            Stamp::Ours
        } else {
            Stamp::Elsewhere
        }
    }
}

/// What a stamp is bound to.
#[derive(Clone, Copy)]
pub(super) struct Stamped<'a> {
    /// The owner id.
    pub(super) owner: &'a str,
    /// Its name.
    pub(super) name: &'a str,
    /// Its type.
    pub(super) kind: &'a str,
    /// Distinguishes it from other record sets of its name and type.
    pub(super) set_identifier: Option<&'a str>,
}

impl Default for Instance {
    fn default() -> Self {
        Instance::new("")
    }
}

impl PartialEq for Instance {
    fn eq(&self, other: &Self) -> bool {
        self.fingerprint == other.fingerprint
    }
}

impl Eq for Instance {}

impl fmt::Debug for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Instance({})", self.fingerprint)
    }
}

/// Lower-case hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_holds_for_its_instance_and_record_only() {
        let record = Stamped { owner: "me", name: "www.example.com", kind: "A", set_identifier: None };
        let (here, there) = (Instance::new("one"), Instance::new("two"));
        let stamp = here.stamp(&record);
        assert_eq!(here.judge(&stamp, &record), Stamp::Ours);
        assert_eq!(here.judge(&stamp, &Stamped { name: "ftp.example.com", ..record }), Stamp::Elsewhere);
        assert_eq!(here.judge(&stamp, &Stamped { kind: "AAAA", ..record }), Stamp::Elsewhere);
        assert_eq!(there.judge(&stamp, &record), Stamp::OtherInstance(here.fingerprint()));
        assert_eq!(here.judge("", &record), Stamp::OtherInstance(""));
    }
}
