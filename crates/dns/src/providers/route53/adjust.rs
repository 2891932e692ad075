//! Desired records as Route 53 keeps them: aliases instead of CNAME records for load balancers, and only properties that it
//! knows.

use std::collections::{BTreeMap, BTreeSet};

use gatepost_core::model::Str;
use gatepost_core::publication::{Record, RecordType};

use super::load_balancers::zone_of_target;
use super::records::{ALIAS, HEALTH, TARGET_ZONE, property};
use super::wire::FIELDS;
use super::{Route53, ZoneEntry};
use crate::provider::Result;
use crate::provider::zone::{is_at_or_below, zone_of};

/// Latitude and longitude, as the annotation has them together.
const COORDINATES: &str = "aws/geoproximity-coordinates";

/// Properties of records that a person made and no annotation asks for.
const ONLY_READ: [&str; 3] = ["aws/traffic-policy-instance-id", "aws/cidr-collection-id", "aws/cidr-location-name"];

/// A name and a type.
type NameAndType = (String, RecordType);

impl Route53 {
    /// The records as the service would keep them.
    pub(super) async fn adjust_records(&self, records: Vec<Record>) -> Result<Vec<Record>> {
        let zones = self.known_zones().await?;
        let wanted: BTreeSet<NameAndType> = records.iter().map(|record| (lower(&record.name), record.kind)).collect();
        let mut adjusted = Vec::with_capacity(records.len());
        for record in records {
            let zone = zone_of(zones.keys(), &lower(&record.name)).and_then(|name| Some((name, zones.get(name)?)));
            let target = self.alias_target(&record, zone);
            self.adjust_record(record, target, &wanted, zone, &mut adjusted);
        }
        Ok(adjusted)
    }

    pub(super) async fn known_zones(&self) -> Result<BTreeMap<Str, ZoneEntry>> {
        let known = self.zones.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
        if known.is_empty() { self.list_zones().await } else { Ok(known) }
    }

    /// The hosted zone that a record leads to if it is to be an alias. What is neither known to AWS nor in the record's own
    /// zone stays a CNAME: no alias could lead there.
    fn alias_target(&self, record: &Record, zone: Option<(&Str, &ZoneEntry)>) -> Option<String> {
        let [target] = &record.targets[..] else { return None };
        let asked = property(&record.provider_specific, ALIAS);
        if record.kind != RecordType::Cname || asked == Some("false") {
            return None;
        }
        let given = property(&record.provider_specific, TARGET_ZONE).map(str::to_owned);
        let known = given.or_else(|| zone_of_target(target).map(str::to_owned));
        match asked {
            Some(_) => known.or_else(|| {
                let (name, entry) = zone?;
                is_at_or_below(&lower(target), name).then(|| entry.id.clone())
            }),
            None => known.filter(|_| !self.config.prefers_cname),
        }
    }

    fn adjust_record(
        &self,
        mut record: Record,
        target: Option<String>,
        wanted: &BTreeSet<NameAndType>,
        zone: Option<(&Str, &ZoneEntry)>,
        adjusted: &mut Vec<Record>,
    ) {
        let given = std::mem::take(&mut record.provider_specific);
        if record.set_identifier.as_ref().is_some_and(|id| !id.is_empty()) {
            record.provider_specific = routing(&given);
        }
        let Some(zone_id) = target else { return adjusted.push(record) };
        let health = property(&given, HEALTH).map_or(self.config.evaluates_health, |text| text == "true");
        record.provider_specific.push((ALIAS.into(), "true".into()));
        record.provider_specific.push((HEALTH.into(), health.to_string().into()));
        record.provider_specific.push((TARGET_ZONE.into(), zone_id.as_str().into()));
        record.provider_specific.sort();
        record.ttl = None;
        let target = record.targets.first().map(|target| lower(target)).unwrap_or_default();
        record.targets = [Str::from(target.as_str())].into();
        let types =
            zone.filter(|(_, entry)| entry.id == zone_id).map(|(_, entry)| self.types_of(entry, &target, wanted));
        let types = types.filter(|types| !types.is_empty()).unwrap_or_else(|| vec![RecordType::A, RecordType::Aaaa]);
        adjusted.extend(types.into_iter().map(|kind| Record { kind, ..record.clone() }));
    }

    /// The types of address that a name of our own zone has or is to have: an alias to another one would be refused.
    fn types_of(&self, zone: &ZoneEntry, name: &str, wanted: &BTreeSet<NameAndType>) -> Vec<RecordType> {
        let present = self.content_of(&zone.id);
        let is_there = |kind: RecordType| {
            let key = (name.to_owned(), kind.as_str().to_owned(), None);
            wanted.contains(&(name.to_owned(), kind)) || present.as_ref().is_some_and(|sets| sets.contains_key(&key))
        };
        [RecordType::A, RecordType::Aaaa].into_iter().filter(|kind| is_there(*kind)).collect()
    }
}

/// The properties of a record among several of its name and type.
fn routing(given: &[(Str, Str)]) -> Vec<(Str, Str)> {
    let value = |name: &str| property(given, name).map(str::trim).filter(|value| !value.is_empty());
    let mut found = BTreeMap::<&str, String>::new();
    for field in FIELDS.iter().filter(|field| !ONLY_READ.contains(&field.property)) {
        found.extend(value(field.property).map(|value| (field.property, value.to_owned())));
    }
    if let Some((latitude, longitude)) = value(COORDINATES).and_then(|text| text.split_once(',')) {
        found.insert("aws/geoproximity-latitude", latitude.trim().to_owned());
        found.insert("aws/geoproximity-longitude", longitude.trim().to_owned());
    }
    // The service takes a continent or a country.
    if found.contains_key("aws/geolocation-continent-code") {
        found.retain(|name, _| !matches!(*name, "aws/geolocation-country-code" | "aws/geolocation-subdivision-code"));
    }
    if found.keys().any(|name| name.starts_with("aws/geoproximity-")) {
        found.entry("aws/geoproximity-bias").or_insert_with(|| "0".to_owned());
    }
    // Being there is what counts, as in external-dns.
    if property(given, "aws/multi-value-answer").is_some() {
        found.insert("aws/multi-value-answer", "true".to_owned());
    }
    found.into_iter().map(|(name, value)| (name.into(), value.into())).collect()
}

fn lower(name: &str) -> String {
    name.trim_end_matches('.').to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use gatepost_core::publication::NameSource;

    use super::*;
    use crate::providers::route53::{AwsEnvironment, Route53Config};

    /// Settings, type, set identifier, targets and properties asked for, and what becomes of them.
    type AdjustRow<'r> =
        (&'r Route53Config, RecordType, &'r str, &'r [&'r str], &'r [(&'r str, &'r str)], &'r [&'r str]);

    async fn adjusted(row: &AdjustRow<'_>) -> Vec<String> {
        let (config, kind, id, targets, given, _) = row;
        let provider = Route53::new((*config).clone()).unwrap();
        let entry = ZoneEntry { id: "ZOWN".to_owned() };
        provider.zones.lock().unwrap().insert("example.com".into(), entry);
        let record = |name: &str, kind: RecordType, targets: &[&str]| Record {
            name: name.into(),
            kind,
            targets: targets.iter().map(|target| Str::from(*target)).collect(),
            ttl: Some(60),
            set_identifier: Some(Str::from(*id)).filter(|id| !id.is_empty()),
            provider_specific: given.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
            routes: Default::default(),
            listeners: Default::default(),
            source: NameSource::Intersected,
            provider: None,
        };
        let all =
            vec![record("www.example.com", *kind, targets), record("four.example.com", RecordType::A, &["192.0.2.4"])];
        let told = |record: &Record| {
            let properties: Vec<String> =
                record.provider_specific.iter().map(|(name, value)| format!(" {name}={value}")).collect();
            format!("{} {} {:?}{}", record.kind, record.targets.join(","), record.ttl, properties.concat())
        };
        provider.adjust_records(all).await.unwrap().iter().rev().skip(1).rev().map(told).collect()
    }

    #[tokio::test]
    async fn what_the_service_would_make_of_it() {
        use RecordType::{A, Cname};
        const LB: &str = "Web-1.eu-west-1.elb.amazonaws.com";
        let plain = Route53Config::new(AwsEnvironment::default());
        let cname = Route53Config { prefers_cname: true, evaluates_health: false, ..plain.clone() };
        let health = "aws/evaluate-target-health";
        let [a, aaaa] = ["A", "AAAA"].map(|kind| {
            format!("{kind} web-1.eu-west-1.elb.amazonaws.com None alias=true {health}=true aws/target-hosted-zone=Z32O12XQLNTSW2")
        });
        let [a_ill, aaaa_ill] = [&a, &aaaa].map(|line| line.replace("health=true", "health=false"));
        let as_cname = format!("CNAME {LB} Some(60)");
        let own = format!("A four.example.com None alias=true {health}=true aws/target-hosted-zone=ZOWN");
        let both = ["A", "AAAA"]
            .map(|kind| format!("{kind} x.example.com None alias=true {health}=true aws/target-hosted-zone=ZOWN"));
        let rows: &[AdjustRow<'_>] = &[
            (&plain, Cname, "", &[LB], &[], &[&a, &aaaa]),
            (&plain, Cname, "", &[LB], &[("alias", "false")], &[&as_cname]),
            (&plain, Cname, "", &[LB], &[(health, "no")], &[&a_ill, &aaaa_ill]),
            (&cname, Cname, "", &[LB], &[], &[&as_cname]),
            (&cname, Cname, "", &[LB], &[("alias", "true")], &[&a_ill, &aaaa_ill]),
            (&plain, Cname, "", &["lb.example.net"], &[], &["CNAME lb.example.net Some(60)"]),
            (&plain, Cname, "", &["lb.example.net"], &[("alias", "true")], &["CNAME lb.example.net Some(60)"]),
            (&plain, Cname, "", &["Four.example.com."], &[("alias", "true")], &[&own]),
            (&plain, Cname, "", &["x.example.com"], &[("alias", "true")], &[&both[0], &both[1]]),
            (&plain, A, "", &["192.0.2.1"], &[("alias", "true"), ("aws/weight", "1")], &["A 192.0.2.1 Some(60)"]),
            (
                &plain,
                A,
                "one",
                &["192.0.2.1"],
                &[("aws/weight", " 1 "), ("x/y", "z")],
                &["A 192.0.2.1 Some(60) aws/weight=1"],
            ),
            (
                &plain,
                A,
                "one",
                &["192.0.2.1"],
                &[("aws/geolocation-continent-code", "EU"), ("aws/geolocation-country-code", "DE")],
                &["A 192.0.2.1 Some(60) aws/geolocation-continent-code=EU"],
            ),
            (
                &plain,
                A,
                "one",
                &["192.0.2.1"],
                &[("aws/multi-value-answer", ""), ("aws/geoproximity-coordinates", "1.5, -2")],
                &["A 192.0.2.1 Some(60) aws/geoproximity-bias=0 aws/geoproximity-latitude=1.5 \
                   aws/geoproximity-longitude=-2 aws/multi-value-answer=true"],
            ),
        ];
        for row in rows {
            assert_eq!(adjusted(row).await, row.5, "{:?} {:?}", row.3, row.4);
        }
    }
}
