//! Zones and record sets as the service stores them.

use std::collections::BTreeMap;

/// An account.
#[derive(Clone, Debug, Default)]
pub struct AwsAccount {
    /// The zones.
    pub zones: Vec<AwsZone>,
    /// Whether credentials have expired.
    pub is_expired: bool,
    /// What the credentials may not do, such as `route53:ListHostedZones`.
    pub denied: Vec<String>,
    /// Zones on one page of their list.
    pub zones_per_page: usize,
    /// The most record sets on one page.
    pub sets_per_page: usize,
    next: u64,
}

/// A zone with its record sets.
#[derive(Clone, Debug)]
pub struct AwsZone {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Whether it is of a private network.
    pub is_private: bool,
    /// Its tags.
    pub tags: BTreeMap<String, String>,
    /// Names that it never takes a record for.
    pub refused: Vec<String>,
    /// Its record sets in the order in which they are listed.
    pub sets: BTreeMap<SetOrder, StoredSet>,
}

/// The labels of a name from the last to the first, type and identifier.
pub(super) type SetOrder = (Vec<String>, String, String);

/// A record set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredSet {
    /// The name in lower case, without escapes and a dot at the end.
    pub name: String,
    /// The type.
    pub kind: String,
    /// The identifier, or nothing.
    pub set_identifier: String,
    /// The TTL; none for an alias.
    pub ttl: Option<u64>,
    /// The values, sorted.
    pub values: Vec<String>,
    /// Zone, name and whether health is evaluated.
    pub alias: Option<(String, String, bool)>,
    /// All other fields, as paths of elements with their text.
    pub fields: BTreeMap<String, String>,
}

impl AwsAccount {
    /// An account with public zones of these names, with the records that each has.
    pub fn new(names: &[&str]) -> AwsAccount {
        let mut account = AwsAccount { zones_per_page: 100, sets_per_page: 300, ..AwsAccount::default() };
        names.iter().for_each(|name| account.add_zone(name, false));
        account
    }

    /// Adds a zone.
    pub fn add_zone(&mut self, name: &str, is_private: bool) {
        self.next += 1;
        let id = format!("Z{:019X}", u128::from(self.next) * 0x9e37_79b9_7f4a_7c15 % (1 << 70));
        let (tags, refused, sets) = Default::default();
        self.zones.push(AwsZone { id, name: name.to_owned(), is_private, tags, refused, sets });
        let soa = "ns-1.awsdns-00.test. awsdns-hostmaster.amazon.test. 1 7200 900 1209600 86400";
        if let Some(zone) = self.zones.last_mut() {
            zone.add(name, 900, "SOA", soa);
            zone.add(name, 172_800, "NS", "ns-1.awsdns-00.test.");
        }
    }

    /// The zone with this name, the first of several.
    pub fn zone(&mut self, name: &str) -> Option<&mut AwsZone> {
        self.zones.iter_mut().find(|zone| zone.name == name)
    }

    /// Puts a value there as a person would in the console, beside those that the set has.
    pub fn add(&mut self, zone: &str, name: &str, ttl: u64, kind: &str, value: &str) {
        if let Some(zone) = self.zone(zone) {
            zone.add(name, ttl, kind, value);
        }
    }
}

impl AwsZone {
    fn add(&mut self, name: &str, ttl: u64, kind: &str, value: &str) {
        let empty = StoredSet { name: name.to_ascii_lowercase(), kind: kind.to_owned(), ..StoredSet::default() };
        let set = self.sets.entry(empty.order()).or_insert(empty);
        set.ttl = Some(ttl);
        set.values.push(value.to_owned());
        set.values.sort();
    }

    /// The record sets of a name.
    pub fn at<'z>(&'z self, name: &'z str) -> impl Iterator<Item = &'z StoredSet> {
        let first = (labels(name), String::new(), String::new());
        self.sets.range(first..).map(|(_, set)| set).take_while(move |set| set.name == name)
    }

    /// The whole zone but its SOA, one value per line, sorted, as other servers dump theirs.
    pub fn dump(&self) -> Vec<String> {
        let mut lines: Vec<String> =
            self.sets.values().filter(|set| set.kind != "SOA").flat_map(StoredSet::lines).collect();
        lines.sort();
        lines
    }

    /// Whether a question for an address has an answer: the name has one, or an alias, or a wildcard above it has.
    pub fn answers(&self, name: &str) -> bool {
        let has = |name: &str| self.at(name).any(|set| matches!(&*set.kind, "A" | "AAAA" | "CNAME"));
        let exists = |name: &str| {
            let first = (labels(name), String::new(), String::new());
            self.sets.range(first..).next().is_some_and(|((found, ..), _)| found.starts_with(&labels(name)))
        };
        if exists(name) {
            return has(name);
        }
        let mut above =
            std::iter::successors(name.split_once('.'), |(_, rest)| rest.split_once('.')).map(|(_, rest)| rest);
        above.find(|name| exists(name)).is_some_and(|closest| has(&format!("*.{closest}")))
    }
}

impl StoredSet {
    /// Where it stands in the list.
    pub(super) fn order(&self) -> SetOrder {
        (labels(&self.name), self.kind.clone(), self.set_identifier.clone())
    }

    /// As a zone file has it, a line per value.
    pub fn lines(&self) -> Vec<String> {
        let id = if self.set_identifier.is_empty() { String::new() } else { format!(" set={}", self.set_identifier) };
        let fields: String = self.fields.iter().map(|(path, text)| format!(" {path}={text}")).collect();
        let ttl = self.ttl.unwrap_or_default();
        let line = |value: &String| match &*self.kind {
            "TXT" => format!("{}. {ttl} IN TXT {value}{id}{fields}", self.name),
            "CNAME" => {
                format!("{}. {ttl} in cname {}.{id}{fields}", self.name, value.trim_end_matches('.'))
            }
            kind => format!("{}. {ttl} in {} {value}{id}{fields}", self.name, kind.to_ascii_lowercase()),
        };
        let alias = self.alias.iter().map(|(zone, name, health)| {
            format!("{}. in {} alias {zone} {name} {health}{id}{fields}", self.name, self.kind.to_ascii_lowercase())
        });
        self.values.iter().map(line).chain(alias).collect()
    }
}

fn labels(name: &str) -> Vec<String> {
    name.rsplit('.').map(str::to_owned).collect()
}
