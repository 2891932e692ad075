//! What must hold for any TXT value that stands where an ownership value would. Shared by the fuzz target and an ordinary
//! test that runs the seeds.

use std::collections::BTreeSet;

use gatepost_core::plan::labels::Labels;
use gatepost_core::plan::layout::Layout;
use gatepost_core::plan::seal::SealKey;
use gatepost_core::plan::{
    self, Instance, Intent, Observed, Plan, PlanSettings, RecordSet, Registry, TxtRegistry, ZoneContent, ZoneState,
    text,
};
use gatepost_core::publication::{NameSource, Record, RecordType};

/// Reads lines as TXT values at the place of a marker: nothing panics, what is read is written back the same, and a record is
/// only deleted where every ownership value at its marker's place names us.
pub(crate) fn ownership(bytes: &[u8]) {
    let input = String::from_utf8_lossy(bytes);
    let lines: Vec<&str> = input.lines().take(4).collect();
    lines.iter().for_each(|line| one_value(line));
    let key = SealKey::parse(&[7; 32]).ok();
    let owners: BTreeSet<String> = lines.iter().filter_map(|line| owner_in(line, key.as_ref())).collect();
    let plan = plan_beside(&lines, key);
    let is_gone = plan.steps.iter().any(|step| &*step.name == "www.example.com");
    assert!(!is_gone || owners == BTreeSet::from(["me".to_owned()]), "{owners:?}");
}

fn one_value(line: &str) {
    let content = text::content(line);
    assert_eq!(text::content(&text::quoted(&content)), content);
    if let Some(labels) = Labels::parse(&line.replace('"', "")) {
        assert_eq!(Labels::parse(&labels.to_text()), Some(labels));
    }
    for (prefix, suffix) in [("", ""), ("%{record_type}-own.", ""), ("", "-own"), (line, "")] {
        let Ok(layout) = Layout::new(prefix, suffix, "any") else { continue };
        let _ = (layout.target_of(line), layout.marker_of(line, "A"));
    }
}

fn owner_in(line: &str, key: Option<&SealKey>) -> Option<String> {
    let text = String::from_utf8(text::content(line)).ok()?;
    let opened = key.and_then(|key| key.open(&text));
    Labels::parse(&opened.unwrap_or(text)).map(|labels| labels.owner().to_owned())
}

/// The plan for a zone with a record that nothing asks for, and these values where its marker would be.
fn plan_beside(values: &[&str], key: Option<SealKey>) -> Plan {
    let sets = [
        RecordSet::new("www.example.com", "A", Some(300), ["192.0.2.9"]),
        RecordSet::new("a-www.example.com", "TXT", Some(300), values.iter().copied()),
    ];
    let mut observed = Observed::default();
    observed.insert("example.com", ZoneState::Read(ZoneContent::new("1", sets)));
    let registry = TxtRegistry { key, ..TxtRegistry::new("me", Instance::new("fuzz")) };
    let settings = PlanSettings { confirm_deletes: true, ..PlanSettings::new(Registry::Txt(Box::new(registry))) };
    let remembered = plan::OwnedSets::new();
    let records = [wanted()];
    let (none, holds, unseen) = (&[][..], &[][..], &[][..]);
    let intent = Intent {
        records: &records,
        covered: none,
        challenges: none,
        retired: none,
        holds,
        unseen,
        remembered: &remembered,
    };
    plan::decide(&intent, &observed, &settings)
}

fn wanted() -> Record {
    Record {
        name: "x.example.com".into(),
        kind: RecordType::A,
        targets: ["192.0.2.1".into()].into(),
        ttl: None,
        set_identifier: None,
        provider_specific: Vec::new(),
        routes: Default::default(),
        listeners: Default::default(),
        source: NameSource::Intersected,
        provider: None,
    }
}
