//! A batch of changes: read strictly, judged in order, carried out whole or not at all.

use roxmltree::{Document, Node};

use super::account::{AwsAccount, AwsZone, StoredSet};
use super::answers::{AwsAnswer, Fields, NAMESPACE, element, plain, zone};
use super::checks;

/// Elements of a record set in the order that the description has.
const ORDER: [&str; 15] = [
    "Name",
    "Type",
    "SetIdentifier",
    "Weight",
    "Region",
    "GeoLocation",
    "Failover",
    "MultiValueAnswer",
    "TTL",
    "ResourceRecords",
    "AliasTarget",
    "HealthCheckId",
    "TrafficPolicyInstanceId",
    "CidrRoutingConfig",
    "GeoProximityLocation",
];

/// Elements inside of others, in their order.
const INNER: [(&str, &[&str]); 5] = [
    ("GeoLocation", &["ContinentCode", "CountryCode", "SubdivisionCode"]),
    ("AliasTarget", &["HostedZoneId", "DNSName", "EvaluateTargetHealth"]),
    ("CidrRoutingConfig", &["CollectionId", "LocationName"]),
    ("GeoProximityLocation", &["AWSRegion", "LocalZoneGroup", "Coordinates", "Bias"]),
    ("Coordinates", &["Latitude", "Longitude"]),
];

/// Records and characters that one batch may have.
const MOST: (usize, usize) = (1000, 32_000);

/// Carries out a batch.
pub(super) fn carry_out(account: &mut AwsAccount, id: &str, body: &str) -> Result<AwsAnswer, AwsAnswer> {
    let changes = read(body)?;
    let mut after = zone(account, id)?.clone();
    bounded(&changes)?;
    let mut problems = Vec::new();
    let mut deleted = std::collections::BTreeSet::new();
    for (action, set) in changes {
        checks::set(&after, &set)?;
        let told = format!("resource record set [name='{}.', type='{}'", set.name, set.kind);
        let told = match &*set.set_identifier {
            "" => format!("{told}]"),
            id => format!("{told}, set identifier='{id}']"),
        };
        let order = set.order();
        match action.as_str() {
            "DELETE" if !deleted.insert(order.clone()) => problems.push(format!("Tried to delete {told} twice")),
            "DELETE" => match after.sets.get(&order) {
                None => problems.push(format!("Tried to delete {told} but it was not found")),
                Some(found) if *found != set => problems
                    .push(format!("Tried to delete {told} but the values provided do not match the current values")),
                Some(_) if checks::is_of_zone(&after, &set) => {
                    problems
                        .push(format!("A HostedZone must contain exactly one SOA record and its NS record, {told}"));
                }
                Some(_) => drop(after.sets.remove(&order)),
            },
            "CREATE" if after.sets.contains_key(&order) => {
                problems.push(format!("Tried to create {told} but it already exists"));
            }
            "CREATE" | "UPSERT" => match checks::beside(&after, &set) {
                Some(problem) => problems.push(problem),
                None => drop(after.sets.insert(order, set)),
            },
            other => return Err(invalid(&format!("Invalid XML ; cvc-enumeration-valid: Value '{other}'"))),
        }
    }
    if !problems.is_empty() {
        return Err(AwsAnswer::error(400, "InvalidChangeBatch", &format!("[{}]", problems.join(", "))));
    }
    store(account, id, after);
    let info = "<Id>/change/C1</Id><Status>PENDING</Status><SubmittedAt>2026-01-01T00:00:00Z</SubmittedAt>";
    Ok(AwsAnswer::ok("ChangeResourceRecordSetsResponse", &format!("<ChangeInfo>{info}</ChangeInfo>")))
}

fn store(account: &mut AwsAccount, id: &str, after: AwsZone) {
    if let Some(stored) = account.zones.iter_mut().find(|zone| zone.id == id) {
        *stored = after;
    }
}

/// Actions and record sets, in their order.
fn read(body: &str) -> Result<Vec<(String, StoredSet)>, AwsAnswer> {
    let malformed = |text: &str| AwsAnswer::error(400, "MalformedInput", text);
    let document = Document::parse(body).map_err(|error| malformed(&error.to_string()))?;
    let root = document.root_element();
    if root.tag_name().name() != "ChangeResourceRecordSetsRequest" || root.tag_name().namespace() != Some(NAMESPACE) {
        return Err(malformed("Unexpected element, expected ChangeResourceRecordSetsRequest"));
    }
    let batch = in_order(root, &["ChangeBatch"])?.pop().ok_or_else(|| invalid("no ChangeBatch"))?;
    let parts = in_order(batch, &["Comment", "Changes"])?;
    let changes =
        parts.last().filter(|node| node.tag_name().name() == "Changes").ok_or_else(|| invalid("no Changes"))?;
    let change = |node: Node<'_, '_>| match &in_order(node, &["Action", "ResourceRecordSet"])?[..] {
        [action, set] if node.tag_name().name() == "Change" => Ok((text(*action), set_of(*set)?)),
        _ => Err(invalid("a Change has Action and ResourceRecordSet")),
    };
    let all: Vec<_> = changes.children().filter(Node::is_element).map(change).collect::<Result<_, _>>()?;
    if all.is_empty() { Err(invalid("an empty batch")) } else { Ok(all) }
}

fn set_of(node: Node<'_, '_>) -> Result<StoredSet, AwsAnswer> {
    let mut set = StoredSet::default();
    for part in in_order(node, &ORDER)? {
        match part.tag_name().name() {
            "Name" => set.name = plain(&text(part)),
            "Type" => set.kind = text(part),
            "SetIdentifier" => set.set_identifier = text(part),
            "TTL" => set.ttl = Some(text(part).parse().map_err(|_| invalid("TTL"))?),
            "ResourceRecords" => {
                for record in part.children().filter(Node::is_element) {
                    let value =
                        in_order(record, &["Value"])?.pop().ok_or_else(|| invalid("a record without a value"))?;
                    set.values.push(text(value));
                }
            }
            "AliasTarget" => match &inner(part)?[..] {
                [zone, name, health] => {
                    let health = text(*health).parse().map_err(|_| invalid("EvaluateTargetHealth"))?;
                    set.alias = Some((text(*zone), plain(&text(*name)), health));
                }
                _ => return Err(invalid("AliasTarget needs HostedZoneId, DNSName and EvaluateTargetHealth")),
            },
            group @ ("GeoLocation" | "CidrRoutingConfig" | "GeoProximityLocation") => {
                for field in inner(part)? {
                    let name = format!("{group}/{}", field.tag_name().name());
                    if name.ends_with("/Coordinates") {
                        for place in inner(field)? {
                            set.fields.insert(format!("{name}/{}", place.tag_name().name()), text(place));
                        }
                    } else {
                        set.fields.insert(name, text(field));
                    }
                }
            }
            name => drop(set.fields.insert(name.to_owned(), text(part))),
        }
    }
    set.values.sort();
    Ok(set)
}

/// Fields as the service answers them: those before TTL and values, or those behind.
pub(super) fn fields_xml(fields: &Fields, is_first: bool) -> String {
    let first = ["Weight", "Region", "GeoLocation", "Failover", "MultiValueAnswer"];
    let mut out = String::new();
    for name in ORDER.iter().filter(|name| first.contains(name) == is_first) {
        if let Some(text) = fields.get(*name) {
            out += &element(name, text);
        }
        let inner: String = names_in(name)
            .iter()
            .map(|part| {
                let path = format!("{name}/{part}");
                let places: String = names_in(part)
                    .iter()
                    .filter_map(|place| Some(element(place, fields.get(&format!("{path}/{place}"))?)))
                    .collect();
                match fields.get(&path) {
                    Some(text) => element(part, text),
                    None if places.is_empty() => String::new(),
                    None => format!("<{part}>{places}</{part}>"),
                }
            })
            .collect();
        if !inner.is_empty() {
            out += &format!("<{name}>{inner}</{name}>");
        }
    }
    out
}

fn inner<'a, 'i>(node: Node<'a, 'i>) -> Result<Vec<Node<'a, 'i>>, AwsAnswer> {
    in_order(node, names_in(node.tag_name().name()))
}

fn names_in(name: &str) -> &'static [&'static str] {
    INNER.iter().find(|(outer, _)| *outer == name).map_or(&[], |(_, names)| names)
}

/// The elements inside, if they are known and each is there once, in our order. The description has one order, and the SDK for
/// Go another one, which the service takes as well.
fn in_order<'a, 'i>(node: Node<'a, 'i>, names: &[&str]) -> Result<Vec<Node<'a, 'i>>, AwsAnswer> {
    let place = |node: &Node<'_, '_>| names.iter().position(|name| *name == node.tag_name().name());
    let mut found: Vec<Node<'a, 'i>> = node.children().filter(Node::is_element).collect();
    found.sort_by_key(place);
    let twice = found.windows(2).find(|pair| place(&pair[0]) == place(&pair[1])).map(|pair| pair[1]);
    match found.iter().find(|node| place(node).is_none()).copied().or(twice) {
        None => Ok(found),
        Some(wrong) => {
            let name = wrong.tag_name().name();
            let message = format!(
                "Invalid XML ; cvc-complex-type.2.4.a: Invalid content was found starting with element '{name}'"
            );
            Err(invalid(&message))
        }
    }
}

fn text(node: Node<'_, '_>) -> String {
    node.text().unwrap_or_default().to_owned()
}

fn bounded(changes: &[(String, StoredSet)]) -> Result<(), AwsAnswer> {
    let (mut records, mut characters) = (0, 0);
    for (action, set) in changes {
        let times = if action == "UPSERT" { 2 } else { 1 };
        records += times * set.values.len().max(1);
        characters += times * set.values.iter().map(|value| value.chars().count()).sum::<usize>();
    }
    if records > MOST.0 {
        let message = format!("[Number of records limit of {} exceeded.]", MOST.0);
        return Err(AwsAnswer::error(400, "InvalidChangeBatch", &message));
    }
    if characters > MOST.1 {
        let message = format!("[Number of characters limit of {} exceeded.]", MOST.1);
        return Err(AwsAnswer::error(400, "InvalidChangeBatch", &message));
    }
    Ok(())
}

fn invalid(message: &str) -> AwsAnswer {
    AwsAnswer::error(400, "InvalidInput", message)
}
