//! Zones and records as the service stores them: one record per value, each with an id.

use serde_json::{Value, json};

/// All zones of an account.
#[derive(Clone, Debug, Default)]
pub struct HostedZones {
    /// The zones.
    pub zones: Vec<HostedZone>,
    /// Whether the token has expired.
    pub is_token_revoked: bool,
    next: u64,
}

/// A zone with its records.
#[derive(Clone, Debug)]
pub struct HostedZone {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// `active`, `pending`, `moved`.
    pub status: String,
    /// The name of its plan: `free`, `pro`.
    pub plan: String,
    /// Names that it never takes a record for.
    pub refused: Vec<String>,
    /// Its records in the order of their ids.
    pub records: Vec<StoredRecord>,
}

/// A record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredRecord {
    /// Its id.
    pub id: String,
    /// The full name in lower case.
    pub name: String,
    /// The type.
    pub kind: String,
    /// The value.
    pub content: String,
    /// The TTL; 1 is automatic.
    pub ttl: u64,
    /// Whether it is proxied.
    pub is_proxied: bool,
    /// The comment.
    pub comment: String,
    /// The tags, sorted.
    pub tags: Vec<String>,
    /// The priority of an MX record.
    pub priority: Option<u64>,
    /// The parts of an SRV record.
    pub data: Value,
}

impl HostedZones {
    /// Zones with these names, empty.
    pub fn new(names: &[&str]) -> HostedZones {
        let mut zones = HostedZones::default();
        for name in names {
            let id = zones.next_id();
            zones.zones.push(HostedZone {
                id,
                name: (*name).to_owned(),
                status: "active".to_owned(),
                plan: "free".to_owned(),
                refused: Vec::new(),
                records: Vec::new(),
            });
        }
        zones
    }

    /// The zone with this name.
    pub fn zone(&mut self, name: &str) -> Option<&mut HostedZone> {
        self.zones.iter_mut().find(|zone| zone.name == name)
    }

    /// Puts a record there as a person would in the dashboard; the value as a zone file has it.
    pub fn add(&mut self, zone: &str, name: &str, ttl: u64, kind: &str, value: &str) {
        let (mut content, mut priority, mut data) = (value.trim_end_matches('.').to_owned(), None, Value::Null);
        let words: Vec<String> = content.split(' ').map(str::to_owned).collect();
        if let ("MX", [number, host]) = (kind, &words[..]) {
            (priority, content) = (number.parse().ok(), host.clone());
        }
        if let ("SRV", [first, weight, port, target]) = (kind, &words[..]) {
            let number = |text: &String| text.parse::<u64>().unwrap_or_default();
            priority = first.parse().ok();
            data = json!({"priority": number(first), "weight": number(weight), "port": number(port), "target": target});
            content = format!("{weight}\t{port}\t{target}");
        }
        let record = StoredRecord {
            id: self.next_id(),
            name: name.to_ascii_lowercase(),
            kind: kind.to_owned(),
            content,
            ttl,
            is_proxied: false,
            comment: String::new(),
            tags: Vec::new(),
            priority,
            data,
        };
        if let Some(zone) = self.zone(zone) {
            zone.records.push(record);
        }
    }

    /// An id that no zone and no record has.
    pub(super) fn next_id(&mut self) -> String {
        self.next += 1;
        format!("{:032x}", u128::from(self.next) * 0x9e37_79b9_7f4a_7c15)
    }
}

impl HostedZone {
    /// The whole zone, one record per line, sorted, as other servers dump theirs.
    pub fn dump(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.records.iter().map(StoredRecord::line).collect();
        lines.sort();
        lines
    }

    /// Whether a question for an address has an answer: the name has one, or an alias, or a wildcard above it has.
    pub fn answers(&self, name: &str) -> bool {
        let is_there = |name: &str| self.records.iter().any(|record| record.name == name);
        let has = |name: &str| self.records.iter().any(|record| record.name == name && record.kind != "TXT");
        let exists =
            |name: &str| is_there(name) || self.records.iter().any(|record| record.name.ends_with(&format!(".{name}")));
        if exists(name) {
            return has(name);
        }
        let mut above =
            std::iter::successors(name.split_once('.'), |(_, rest)| rest.split_once('.')).map(|(_, rest)| rest);
        above.find(|name| exists(name)).is_some_and(|closest| has(&format!("*.{closest}")))
    }
}

impl StoredRecord {
    /// As a zone file has it.
    pub fn line(&self) -> String {
        let StoredRecord { name, ttl, kind, content, .. } = self;
        let of = |key: &str| self.data[key].to_string().trim_matches('"').to_owned();
        match &**kind {
            "TXT" => format!("{name}. {ttl} IN TXT {content}"),
            "MX" => format!("{name}. {ttl} in mx {} {content}.", self.priority.unwrap_or_default()),
            "SRV" => {
                format!("{name}. {ttl} in srv {} {} {} {}.", of("priority"), of("weight"), of("port"), of("target"))
            }
            "CNAME" => format!("{name}. {ttl} in cname {content}."),
            other => format!("{name}. {ttl} in {} {content}", other.to_ascii_lowercase()),
        }
    }

    /// As the API has it.
    pub(super) fn json(&self) -> Value {
        let mut value = json!({
            "id": self.id, "name": self.name, "type": self.kind, "content": self.content, "ttl": self.ttl,
            "proxied": self.is_proxied, "proxiable": matches!(&*self.kind, "A" | "AAAA" | "CNAME"), "settings": {},
            "meta": {}, "comment": null, "tags": self.tags, "created_on": "2026-01-01T00:00:00.000000Z",
            "modified_on": "2026-01-01T00:00:00.000000Z",
        });
        if !self.comment.is_empty() {
            value["comment"] = self.comment.clone().into();
        }
        if let Some(priority) = self.priority {
            value["priority"] = priority.into();
        }
        if !self.data.is_null() {
            value["data"] = self.data.clone();
        }
        value
    }
}
