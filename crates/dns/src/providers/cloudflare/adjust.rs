//! Desired records as Cloudflare keeps them, so that what it makes of them is no difference.

use std::collections::{BTreeMap, BTreeSet};

use gatepost_core::model::Str;
use gatepost_core::publication::Record;

use super::records::{AUTOMATIC, COMMENT, PROXIED, TAGS, has_properties};
use super::{Cloudflare, ZoneEntry};
use crate::provider::Result;
use crate::provider::zone::zone_of;

/// TTLs that are kept, beside the automatic one.
const TTLS: (u32, u32) = (60, 86_400);

impl Cloudflare {
    /// The records as the service would keep them.
    pub(super) async fn adjust_records(&self, mut records: Vec<Record>) -> Result<Vec<Record>> {
        let zones = self.known_zones().await?;
        for record in &mut records {
            let zone = zone_of(zones.keys(), &record.name).and_then(|zone| zones.get(zone));
            self.adjust_record(record, zone.map_or(100, ZoneEntry::comment_length));
        }
        Ok(records)
    }

    async fn known_zones(&self) -> Result<BTreeMap<Str, ZoneEntry>> {
        let known = self.zones.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
        if known.is_empty() { self.list_zones().await } else { Ok(known) }
    }

    fn adjust_record(&self, record: &mut Record, comment_length: usize) {
        record.ttl = record.ttl.map(kept_ttl);
        let given = std::mem::take(&mut record.provider_specific);
        if !has_properties(record.kind.as_str()) {
            return;
        }
        let value = |name: &str| given.iter().find(|(known, _)| &**known == name).map(|(_, value)| &**value);
        let mut put = |name: &str, value: String| {
            if !value.is_empty() {
                record.provider_specific.push((name.into(), value.into()));
            }
        };
        let is_proxied = value(PROXIED).and_then(truth).unwrap_or(self.config.is_proxied);
        if is_proxied {
            put(PROXIED, true.to_string());
        }
        put(COMMENT, value(COMMENT).unwrap_or(&self.config.comment).trim().chars().take(comment_length).collect());
        put(TAGS, tags(value(TAGS).unwrap_or_default()).join(","));
        if is_proxied {
            record.ttl = Some(AUTOMATIC);
        }
    }
}

/// The TTL that is kept for one that is asked for.
pub(super) fn kept_ttl(ttl: u32) -> u32 {
    if ttl <= AUTOMATIC { AUTOMATIC } else { ttl.clamp(TTLS.0, TTLS.1) }
}

/// Tags in a list with commas, each once, sorted.
pub(super) fn tags(list: &str) -> Vec<String> {
    let tags: BTreeSet<&str> = list.split(',').map(str::trim).filter(|tag| !tag.is_empty()).collect();
    tags.into_iter().map(str::to_owned).collect()
}

/// A truth value as Go reads one.
fn truth(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use gatepost_core::publication::{NameSource, RecordType};

    use super::*;
    use crate::providers::cloudflare::CloudflareConfig;

    /// Settings, type, TTL and properties asked for, and what becomes of them.
    type AdjustRow<'r> = (&'r CloudflareConfig, RecordType, Option<u32>, &'r [(&'r str, &'r str)], &'r str);

    fn adjusted(config: &CloudflareConfig, kind: RecordType, ttl: Option<u32>, given: &[(&str, &str)]) -> String {
        let mut record = Record {
            name: "www.example.com".into(),
            kind,
            targets: ["x".into()].into(),
            ttl,
            set_identifier: None,
            provider_specific: given.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
            routes: Default::default(),
            listeners: Default::default(),
            source: NameSource::Intersected,
            provider: None,
        };
        Cloudflare::new(config.clone()).unwrap().adjust_record(&mut record, 100);
        let all: Vec<String> =
            record.provider_specific.iter().map(|(name, value)| format!(" {name}={value}")).collect();
        format!("{:?}{}", record.ttl, all.concat())
    }

    #[test]
    fn what_the_service_would_make_of_it() {
        use RecordType::{A, Cname, Txt};
        let plain = CloudflareConfig::new("t");
        let all = CloudflareConfig { is_proxied: true, comment: "made".to_owned(), ..plain.clone() };
        let long = "x".repeat(101);
        let cut = format!("None {COMMENT}={}", "x".repeat(100));
        let rows: &[AdjustRow<'_>] = &[
            (&plain, A, None, &[], "None"),
            (&plain, A, Some(0), &[], "Some(1)"),
            (&plain, A, Some(1), &[], "Some(1)"),
            (&plain, A, Some(2), &[], "Some(60)"),
            (&plain, A, Some(300), &[("aws/weight", "1"), (PROXIED, "false")], "Some(300)"),
            (&plain, A, Some(90_000), &[], "Some(86400)"),
            (&plain, Cname, Some(300), &[(PROXIED, "T")], "Some(1) cloudflare/proxied=true"),
            (&plain, A, Some(300), &[(PROXIED, "maybe")], "Some(300)"),
            (&plain, A, None, &[(COMMENT, &long)], &cut),
            (&plain, A, None, &[(TAGS, " b:2,a:1,, a:1")], "None cloudflare/tags=a:1,b:2"),
            (&all, A, Some(300), &[], "Some(1) cloudflare/proxied=true cloudflare/record-comment=made"),
            (&all, A, Some(300), &[(PROXIED, "0"), (COMMENT, "mine")], "Some(300) cloudflare/record-comment=mine"),
            (&all, Txt, Some(300), &[(PROXIED, "true")], "Some(300)"),
        ];
        for (config, kind, ttl, given, expected) in rows {
            assert_eq!(adjusted(config, *kind, *ttl, given), *expected, "{kind} {ttl:?} {given:?}");
        }
    }
}
