//! The XML of the API: answers are read, one body is written. What is not known is passed over.
//!
//! The service takes elements in one order only, which is that of [`FIELDS`] and [`write_set`].

use std::collections::BTreeMap;

use roxmltree::{Document, Node};

/// The namespace of the API.
const NAMESPACE: &str = "https://route53.amazonaws.com/doc/2013-04-01/";

/// A field of a record set that is kept as a property.
pub(super) struct WireField {
    /// The element that it stands in, where it stands in one.
    group: &'static str,
    element: &'static str,
    /// The name of the property.
    pub(super) property: &'static str,
    /// Whether it stands before TTL and values.
    is_first: bool,
}

const fn field(group: &'static str, element: &'static str, property: &'static str, is_first: bool) -> WireField {
    WireField { group, element, property, is_first }
}

/// Fields in the order in which the service takes them. Elements of one group follow one another.
pub(super) static FIELDS: [WireField; 16] = [
    field("", "Weight", "aws/weight", true),
    field("", "Region", "aws/region", true),
    field("GeoLocation", "ContinentCode", "aws/geolocation-continent-code", true),
    field("GeoLocation", "CountryCode", "aws/geolocation-country-code", true),
    field("GeoLocation", "SubdivisionCode", "aws/geolocation-subdivision-code", true),
    field("", "Failover", "aws/failover", true),
    field("", "MultiValueAnswer", "aws/multi-value-answer", true),
    field("", "HealthCheckId", "aws/health-check-id", false),
    field("", "TrafficPolicyInstanceId", "aws/traffic-policy-instance-id", false),
    field("CidrRoutingConfig", "CollectionId", "aws/cidr-collection-id", false),
    field("CidrRoutingConfig", "LocationName", "aws/cidr-location-name", false),
    field("GeoProximityLocation", "AWSRegion", "aws/geoproximity-region", false),
    field("GeoProximityLocation", "LocalZoneGroup", "aws/geoproximity-local-zone-group", false),
    field("GeoProximityLocation", "Latitude", "aws/geoproximity-latitude", false),
    field("GeoProximityLocation", "Longitude", "aws/geoproximity-longitude", false),
    field("GeoProximityLocation", "Bias", "aws/geoproximity-bias", false),
];

/// A record set as the service has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct WireSet {
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) set_identifier: Option<String>,
    pub(super) ttl: Option<u32>,
    pub(super) values: Vec<String>,
    pub(super) alias: Option<WireAlias>,
    /// The other fields, by property.
    pub(super) fields: BTreeMap<&'static str, String>,
}

/// Where an alias record leads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct WireAlias {
    pub(super) zone_id: String,
    pub(super) name: String,
    pub(super) evaluates_health: bool,
}

/// A page of record sets.
#[derive(Debug, Default)]
pub(super) struct SetPage {
    pub(super) sets: Vec<WireSet>,
    /// Name, type and identifier of the first one of the next page.
    pub(super) next: Option<(String, String, Option<String>)>,
}

/// A page of zones.
#[derive(Debug, Default)]
pub(super) struct ZonePage {
    pub(super) zones: Vec<WireZone>,
    pub(super) next: Option<String>,
}

/// A zone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct WireZone {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) is_private: bool,
}

/// An answer that says no.
#[derive(Debug, Default)]
pub(super) struct ErrorAnswer {
    pub(super) code: String,
    pub(super) message: String,
}

/// Credentials of an assumed role.
pub(super) struct WireCredentials {
    pub(super) key_id: String,
    pub(super) secret: String,
    pub(super) token: String,
    pub(super) expires: String,
}

/// One change of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WireChange {
    pub(super) is_delete: bool,
    pub(super) set: WireSet,
}

/// Why an answer is not understood.
pub(super) type Odd = String;

/// A page of record sets.
pub(super) fn set_page(body: &[u8]) -> Result<SetPage, Odd> {
    read(body, "ListResourceRecordSetsResponse", |root| {
        let list = child(root, "ResourceRecordSets").ok_or("it has no ResourceRecordSets")?;
        let sets = children(list, "ResourceRecordSet").map(set).collect::<Result<_, _>>()?;
        let next = match is_truncated(root)? {
            true => Some((
                text(root, "NextRecordName").ok_or("it names no next record")?,
                text(root, "NextRecordType").ok_or("it names no next type")?,
                text(root, "NextRecordIdentifier"),
            )),
            false => None,
        };
        Ok(SetPage { sets, next })
    })
}

/// A page of zones.
pub(super) fn zone_page(body: &[u8]) -> Result<ZonePage, Odd> {
    read(body, "ListHostedZonesResponse", |root| {
        let list = child(root, "HostedZones").ok_or("it has no HostedZones")?;
        let zone = |node: Node<'_, '_>| {
            let id = text(node, "Id").ok_or("a zone has no id")?;
            let is_private = child(node, "Config").and_then(|config| text(config, "PrivateZone"));
            Ok::<_, Odd>(WireZone {
                id: id.rsplit('/').next().unwrap_or_default().to_owned(),
                name: text(node, "Name").ok_or("a zone has no name")?,
                is_private: is_private.is_some_and(|text| text == "true"),
            })
        };
        let zones = children(list, "HostedZone").map(zone).collect::<Result<_, _>>()?;
        let next = match is_truncated(root)? {
            true => Some(text(root, "NextMarker").ok_or("it names no next zone")?),
            false => None,
        };
        Ok(ZonePage { zones, next })
    })
}

/// The tags of zones, by id.
pub(super) fn tags(body: &[u8]) -> Result<BTreeMap<String, BTreeMap<String, String>>, Odd> {
    read(body, "ListTagsForResourcesResponse", |root| {
        let list = child(root, "ResourceTagSets").ok_or("it has no ResourceTagSets")?;
        let tag = |node: Node<'_, '_>| Some((text(node, "Key")?, text(node, "Value").unwrap_or_default()));
        let of_zone = |node: Node<'_, '_>| {
            let tags = child(node, "Tags").into_iter().flat_map(|tags| children(tags, "Tag")).filter_map(tag);
            Some((text(node, "ResourceId")?, tags.collect()))
        };
        Ok(children(list, "ResourceTagSet").filter_map(of_zone).collect())
    })
}

/// Whether a change was taken.
pub(super) fn change_taken(body: &[u8]) -> Result<(), Odd> {
    read(body, "ChangeResourceRecordSetsResponse", |root| {
        child(root, "ChangeInfo").map(|_| ()).ok_or_else(|| "it has no ChangeInfo".to_owned())
    })
}

/// The credentials in an answer of the token service.
pub(super) fn assumed_credentials(body: &str) -> Option<WireCredentials> {
    let document = Document::parse(body).ok()?;
    let node = document.descendants().find(|node| node.tag_name().name() == "Credentials")?;
    Some(WireCredentials {
        key_id: text(node, "AccessKeyId")?,
        secret: text(node, "SecretAccessKey")?,
        token: text(node, "SessionToken")?,
        expires: text(node, "Expiration")?,
    })
}

impl ErrorAnswer {
    /// An error in the form of today, or in the one of before: a root that is its code, with messages in it.
    pub(super) fn read(body: &[u8]) -> Option<ErrorAnswer> {
        let document = Document::parse(std::str::from_utf8(body).ok()?).ok()?;
        let root = document.root_element();
        if let Some(error) = child(root, "Error") {
            return Some(ErrorAnswer {
                code: text(error, "Code")?,
                message: text(error, "Message").unwrap_or_default(),
            });
        }
        let messages = child(root, "Messages")?;
        let all: Vec<String> =
            children(messages, "Message").filter_map(|node| node.text().map(str::to_owned)).collect();
        Some(ErrorAnswer { code: root.tag_name().name().to_owned(), message: format!("[{}]", all.join(", ")) })
    }
}

/// A code of an error, or nothing where it is none.
pub(super) fn plain_code(code: &str) -> String {
    let is_plain = !code.is_empty() && code.len() <= 64 && code.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if is_plain { code.to_owned() } else { "no code".to_owned() }
}

/// The body of a batch.
pub(super) fn batch_body(changes: &[WireChange]) -> String {
    let mut out =
        format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<ChangeResourceRecordSetsRequest xmlns=\"{NAMESPACE}\">");
    out += "<ChangeBatch><Changes>";
    for change in changes {
        let action = if change.is_delete { "DELETE" } else { "CREATE" };
        out += &format!("<Change><Action>{action}</Action>");
        write_set(&mut out, &change.set);
        out += "</Change>";
    }
    out + "</Changes></ChangeBatch></ChangeResourceRecordSetsRequest>"
}

/// The body of a question for tags.
pub(super) fn tags_body(ids: &[&str]) -> String {
    let ids: String = ids.iter().map(|id| element("ResourceId", id)).collect();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<ListTagsForResourcesRequest xmlns=\"{NAMESPACE}\"><ResourceIds>{ids}\
         </ResourceIds></ListTagsForResourcesRequest>"
    )
}

fn write_set(out: &mut String, set: &WireSet) {
    *out += "<ResourceRecordSet>";
    *out += &element("Name", &set.name);
    *out += &element("Type", &set.kind);
    *out += &set.set_identifier.as_ref().map(|id| element("SetIdentifier", id)).unwrap_or_default();
    write_fields(out, set, true);
    *out += &set.ttl.map(|ttl| element("TTL", &ttl.to_string())).unwrap_or_default();
    if !set.values.is_empty() {
        let value = |value: &String| format!("<ResourceRecord>{}</ResourceRecord>", element("Value", value));
        *out += &format!("<ResourceRecords>{}</ResourceRecords>", set.values.iter().map(value).collect::<String>());
    }
    if let Some(alias) = &set.alias {
        let health = element("EvaluateTargetHealth", &alias.evaluates_health.to_string());
        let (zone, name) = (element("HostedZoneId", &alias.zone_id), element("DNSName", &alias.name));
        *out += &format!("<AliasTarget>{zone}{name}{health}</AliasTarget>");
    }
    write_fields(out, set, false);
    *out += "</ResourceRecordSet>";
}

fn write_fields(out: &mut String, set: &WireSet, is_first: bool) {
    let fields: Vec<_> = FIELDS.iter().filter(|field| field.is_first == is_first).collect();
    for group in fields.chunk_by(|a, b| a.group == b.group) {
        let inner = |part: &[&&WireField]| -> String {
            part.iter().filter_map(|field| Some(element(field.element, set.fields.get(field.property)?))).collect()
        };
        let group: Vec<&&WireField> = group.iter().collect();
        let (places, others): (Vec<&&WireField>, Vec<&&WireField>) =
            group.iter().partition(|field| is_coordinate(field));
        let (places, title) = (inner(&places), group[0].group);
        let mut text = if places.is_empty() { inner(&others) } else { format!("<Coordinates>{places}</Coordinates>") };
        if !places.is_empty() {
            text += &inner(&others);
        }
        *out += &match title.is_empty() || text.is_empty() {
            true => text,
            false => format!("<{title}>{text}</{title}>"),
        };
    }
}

fn is_coordinate(field: &WireField) -> bool {
    matches!(field.element, "Latitude" | "Longitude")
}

fn set(node: Node<'_, '_>) -> Result<WireSet, Odd> {
    let list = child(node, "ResourceRecords");
    let values = list.into_iter().flat_map(|list| children(list, "ResourceRecord"));
    let alias = child(node, "AliasTarget").map(|target| {
        Ok::<_, Odd>(WireAlias {
            zone_id: text(target, "HostedZoneId").ok_or("an alias has no zone")?,
            name: text(target, "DNSName").ok_or("an alias has no target")?,
            evaluates_health: text(target, "EvaluateTargetHealth").is_some_and(|text| text == "true"),
        })
    });
    let ttl = text(node, "TTL").map(|text| text.parse().map_err(|_| format!("`{text}` is no TTL")));
    let value_of = |field: &WireField| {
        let group = if field.group.is_empty() { Some(node) } else { child(node, field.group) }?;
        let place = if is_coordinate(field) { child(group, "Coordinates")? } else { group };
        Some((field.property, text(place, field.element)?))
    };
    Ok(WireSet {
        name: text(node, "Name").ok_or("a record set has no name")?,
        kind: text(node, "Type").ok_or("a record set has no type")?,
        set_identifier: text(node, "SetIdentifier"),
        ttl: ttl.transpose()?,
        values: values.map(|record| text(record, "Value").unwrap_or_default()).collect(),
        alias: alias.transpose()?,
        fields: FIELDS.iter().filter_map(value_of).collect(),
    })
}

fn read<T>(body: &[u8], root: &str, take: impl FnOnce(Node<'_, '_>) -> Result<T, Odd>) -> Result<T, Odd> {
    let text = std::str::from_utf8(body).map_err(|_| "it is not UTF-8".to_owned())?;
    let document = Document::parse(text).map_err(|error| error.to_string())?;
    let found = document.root_element();
    match found.tag_name().name() == root {
        true => take(found),
        false => Err(format!("it is a `{}` and not a `{root}`", found.tag_name().name())),
    }
}

fn is_truncated(root: Node<'_, '_>) -> Result<bool, Odd> {
    match text(root, "IsTruncated").as_deref() {
        Some("true") => Ok(true),
        Some("false") => Ok(false),
        _ => Err("it does not say whether it is the last page".to_owned()),
    }
}

fn child<'a, 'i>(node: Node<'a, 'i>, name: &str) -> Option<Node<'a, 'i>> {
    node.children().find(|node| node.tag_name().name() == name)
}

fn children<'a, 'i>(node: Node<'a, 'i>, name: &'static str) -> impl Iterator<Item = Node<'a, 'i>> {
    node.children().filter(move |node| node.tag_name().name() == name)
}

fn text(node: Node<'_, '_>, name: &str) -> Option<String> {
    child(node, name).map(|node| node.text().unwrap_or_default().to_owned())
}

fn element(name: &str, text: &str) -> String {
    let escaped = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    format!("<{name}>{escaped}</{name}>")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_is_written_in_order_and_read_back() {
        let mut set = WireSet {
            name: "\\052.example.com.".to_owned(),
            kind: "A".to_owned(),
            set_identifier: Some("a<b".to_owned()),
            alias: Some(WireAlias { zone_id: "Z1".to_owned(), name: "lb.".to_owned(), evaluates_health: true }),
            ..WireSet::default()
        };
        for field in &FIELDS {
            set.fields.insert(field.property, field.element.to_owned());
        }
        let body = batch_body(&[WireChange { is_delete: true, set: set.clone() }]);
        let document = Document::parse(&body).unwrap();
        let node = document.descendants().find(|node| node.tag_name().name() == "ResourceRecordSet").unwrap();
        let order: Vec<&str> = node.children().map(|node| node.tag_name().name()).collect();
        assert_eq!(
            order,
            [
                "Name",
                "Type",
                "SetIdentifier",
                "Weight",
                "Region",
                "GeoLocation",
                "Failover",
                "MultiValueAnswer",
                "AliasTarget",
                "HealthCheckId",
                "TrafficPolicyInstanceId",
                "CidrRoutingConfig",
                "GeoProximityLocation"
            ]
        );
        assert_eq!(super::set(node), Ok(set.clone()));
        set.fields.clear();
        (set.alias, set.ttl, set.values) = (None, Some(60), vec!["192.0.2.1".to_owned(), "\"a & b\"".to_owned()]);
        let body = batch_body(&[WireChange { is_delete: false, set: set.clone() }]);
        let document = Document::parse(&body).unwrap();
        let node = document.descendants().find(|node| node.tag_name().name() == "ResourceRecordSet").unwrap();
        assert_eq!(super::set(node), Ok(set));
    }

    #[test]
    fn errors_in_both_forms() {
        let new = "<?xml version=\"1.0\"?>\n<ErrorResponse xmlns=\"x\"><Error><Type>Sender</Type><Code>InvalidChangeBatch\
                   </Code><Message>[a, b]</Message></Error><RequestId>1</RequestId></ErrorResponse>";
        let old = "<InvalidChangeBatch xmlns=\"x\"><Messages><Message>a</Message><Message>b</Message></Messages>\
                   </InvalidChangeBatch>";
        for body in [new, old] {
            let error = ErrorAnswer::read(body.as_bytes()).unwrap();
            assert_eq!((&*error.code, &*error.message), ("InvalidChangeBatch", "[a, b]"));
        }
        assert!(ErrorAnswer::read(b"<html>").is_none() && ErrorAnswer::read(b"<a/>").is_none());
    }

    #[test]
    fn pages_that_are_none() {
        let page = |inner: &str| {
            set_page(format!("<ListResourceRecordSetsResponse>{inner}</ListResourceRecordSetsResponse>").as_bytes())
        };
        let list = "<ResourceRecordSets/>";
        assert!(page(&format!("{list}<IsTruncated>false</IsTruncated>")).is_ok_and(|page| page.next.is_none()));
        for odd in ["", list, "<IsTruncated>false</IsTruncated>"] {
            assert!(page(odd).is_err(), "{odd}");
        }
        assert!(page(&format!("{list}<IsTruncated>true</IsTruncated>")).is_err());
        assert!(set_page(b"<html/>").is_err() && set_page(b"").is_err() && set_page(&[0xff]).is_err());
    }
}
