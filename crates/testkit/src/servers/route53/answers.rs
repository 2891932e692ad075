//! What the API answers to each question: lists in pages, and errors in the form that the service has.

use std::collections::BTreeMap;

use http_body_util::Full;
use hyper::Response;
use hyper::body::Bytes;
use roxmltree::Document;

use super::account::{AwsAccount, AwsZone, StoredSet};
use super::{AwsCall, changes, issuing, signature};

/// The namespace of the API.
pub(super) const NAMESPACE: &str = "https://route53.amazonaws.com/doc/2013-04-01/";

/// An answer.
#[derive(Clone, Debug)]
pub struct AwsAnswer {
    /// The status.
    pub status: u16,
    /// Headers beside the usual ones.
    pub headers: Vec<(&'static str, String)>,
    /// The body.
    pub body: String,
}

impl AwsAnswer {
    /// Something that succeeded.
    pub fn ok(root: &str, inner: &str) -> AwsAnswer {
        let body = format!("<?xml version=\"1.0\"?>\n<{root} xmlns=\"{NAMESPACE}\">{inner}</{root}>");
        AwsAnswer { status: 200, headers: Vec::new(), body }
    }

    /// Something that failed.
    pub fn error(status: u16, code: &str, message: &str) -> AwsAnswer {
        let inner = format!("<Type>Sender</Type>{}{}", element("Code", code), element("Message", message));
        let inner = format!("<Error>{inner}</Error><RequestId>11111111-2222-3333-4444-555555555555</RequestId>");
        AwsAnswer { status, ..AwsAnswer::ok("ErrorResponse", &inner) }
    }

    /// The same with one more header.
    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> AwsAnswer {
        self.headers.push((name, value.into()));
        self
    }

    pub(super) fn into_response(self) -> Response<Full<Bytes>> {
        let mut builder = Response::builder().status(self.status).header("content-type", "text/xml");
        for (name, value) in self.headers {
            builder = builder.header(name, value);
        }
        builder.body(Full::new(self.body.into())).unwrap_or_default()
    }
}

/// Answers a question, and does what it asks for.
pub(super) fn answer(call: &AwsCall, account: &mut AwsAccount) -> AwsAnswer {
    if let Some(issued) = issuing::answer(call, account) {
        return issued;
    }
    match signature::check(call, account) {
        Ok(()) => carry_out(call, account),
        Err(refusal) => refusal,
    }
}

/// The same for a question whose signature is right.
pub(super) fn carry_out(call: &AwsCall, account: &mut AwsAccount) -> AwsAnswer {
    let path: Vec<&str> = call.path.split('/').skip(1).collect();
    let result = match (&*call.method, &path[..]) {
        ("GET", ["2013-04-01", "hostedzone"]) => {
            allowed(account, "route53:ListHostedZones").and_then(|()| list_zones(call, account))
        }
        ("GET", ["2013-04-01", "hostedzone", id, "rrset"]) => allowed(account, "route53:ListResourceRecordSets")
            .and_then(|()| list_sets(call, zone(account, id)?, account.sets_per_page)),
        // The description has a slash at the end, and the SDK for Go sends none.
        ("POST", ["2013-04-01", "hostedzone", id, "rrset", ..]) => allowed(account, "route53:ChangeResourceRecordSets")
            .and_then(|()| changes::carry_out(account, id, &call.body)),
        ("POST", ["2013-04-01", "tags", "hostedzone"]) => {
            allowed(account, "route53:ListTagsForResources").and_then(|()| list_tags(&call.body, account))
        }
        _ => Err(AwsAnswer::error(404, "UnknownOperationException", "")),
    };
    result.unwrap_or_else(|refusal| refusal)
}

fn allowed(account: &AwsAccount, action: &str) -> Result<(), AwsAnswer> {
    let message = format!("User: arn:aws:iam::000000000000:user/test is not authorized to perform: {action}");
    match account.denied.iter().any(|denied| denied == action) {
        true => Err(AwsAnswer::error(403, "AccessDenied", &message)),
        false => Ok(()),
    }
}

fn list_zones(call: &AwsCall, account: &AwsAccount) -> Result<AwsAnswer, AwsAnswer> {
    only(call, &["marker", "maxitems"])?;
    let marker = call.asked("marker");
    let from = marker.and_then(|marker| account.zones.iter().position(|zone| zone.id == marker)).unwrap_or_default();
    let page: Vec<&AwsZone> = account.zones[from..].iter().take(account.zones_per_page).collect();
    let zones: String = page.iter().map(|zone| zone_xml(zone)).collect();
    let next = account.zones.get(from + page.len());
    let truncated = element("IsTruncated", &next.is_some().to_string());
    let next = next.map(|zone| element("NextMarker", &zone.id)).unwrap_or_default();
    let most = element("MaxItems", &account.zones_per_page.to_string());
    Ok(AwsAnswer::ok("ListHostedZonesResponse", &format!("<HostedZones>{zones}</HostedZones>{truncated}{next}{most}")))
}

fn zone_xml(zone: &AwsZone) -> String {
    let config = format!("<Config>{}</Config>", element("PrivateZone", &zone.is_private.to_string()));
    let (id, name) = (element("Id", &format!("/hostedzone/{}", zone.id)), element("Name", &format!("{}.", zone.name)));
    format!("<HostedZone>{id}{name}<CallerReference>x</CallerReference>{config}</HostedZone>")
}

fn list_sets(call: &AwsCall, zone: &AwsZone, per_page: usize) -> Result<AwsAnswer, AwsAnswer> {
    only(call, &["name", "type", "identifier", "maxitems"])?;
    if call.asked("type").is_some() && call.asked("name").is_none() {
        return Err(AwsAnswer::error(400, "InvalidInput", "When specifying a record type, you must specify a name"));
    }
    let asked = call.asked("maxitems").map_or(Some(per_page), |text| text.parse().ok().filter(|number| *number > 0));
    let asked = asked.ok_or_else(|| AwsAnswer::error(400, "InvalidInput", "maxitems"))?;
    let text = |key: &str| call.asked(key).unwrap_or_default().to_owned();
    let first = StoredSet {
        name: plain(&text("name")),
        kind: text("type"),
        set_identifier: text("identifier"),
        ..StoredSet::default()
    };
    let mut sets = zone.sets.range(first.order()..).map(|(_, set)| set).filter(|_| true);
    let mut page = String::new();
    for set in sets.by_ref().take(asked.min(per_page)) {
        page += &set_xml(set);
    }
    let next = sets.next();
    let mut rest = element("IsTruncated", &next.is_some().to_string());
    if let Some(next) = next {
        rest += &element("NextRecordName", &escaped(&next.name));
        rest += &element("NextRecordType", &next.kind);
        if !next.set_identifier.is_empty() {
            rest += &element("NextRecordIdentifier", &next.set_identifier);
        }
    }
    rest += &element("MaxItems", &asked.to_string());
    let inner = format!("<ResourceRecordSets>{page}</ResourceRecordSets>{rest}");
    Ok(AwsAnswer::ok("ListResourceRecordSetsResponse", &inner))
}

fn set_xml(set: &StoredSet) -> String {
    let mut out = element("Name", &escaped(&set.name)) + &element("Type", &set.kind);
    if !set.set_identifier.is_empty() {
        out += &element("SetIdentifier", &set.set_identifier);
    }
    out += &changes::fields_xml(&set.fields, true);
    out += &set.ttl.map(|ttl| element("TTL", &ttl.to_string())).unwrap_or_default();
    if !set.values.is_empty() {
        let value = |value: &String| format!("<ResourceRecord>{}</ResourceRecord>", element("Value", value));
        out += &format!("<ResourceRecords>{}</ResourceRecords>", set.values.iter().map(value).collect::<String>());
    }
    if let Some((zone, name, health)) = &set.alias {
        let inner = element("HostedZoneId", zone) + &element("DNSName", &escaped(name));
        out += &format!("<AliasTarget>{inner}{}</AliasTarget>", element("EvaluateTargetHealth", &health.to_string()));
    }
    out += &changes::fields_xml(&set.fields, false);
    format!("<ResourceRecordSet>{out}</ResourceRecordSet>")
}

fn list_tags(body: &str, account: &AwsAccount) -> Result<AwsAnswer, AwsAnswer> {
    let wrong = || AwsAnswer::error(400, "MalformedInput", "expected ListTagsForResourcesRequest");
    let document = Document::parse(body).map_err(|_| wrong())?;
    let root = document.root_element();
    if root.tag_name().name() != "ListTagsForResourcesRequest" || root.tag_name().namespace() != Some(NAMESPACE) {
        return Err(wrong());
    }
    let ids = root.descendants().filter(|node| node.tag_name().name() == "ResourceId");
    let ids: Vec<&str> = ids.filter_map(|node| node.text()).collect();
    if !(1..=10).contains(&ids.len()) {
        return Err(AwsAnswer::error(400, "InvalidInput", "from 1 to 10 resource ids"));
    }
    let mut sets = String::new();
    for id in ids {
        let tag =
            |(key, value): (&String, &String)| format!("<Tag>{}{}</Tag>", element("Key", key), element("Value", value));
        let tags: String = zone(account, id)?.tags.iter().map(tag).collect();
        let head = element("ResourceType", "hostedzone") + &element("ResourceId", id);
        sets += &format!("<ResourceTagSet>{head}<Tags>{tags}</Tags></ResourceTagSet>");
    }
    Ok(AwsAnswer::ok("ListTagsForResourcesResponse", &format!("<ResourceTagSets>{sets}</ResourceTagSets>")))
}

fn only(call: &AwsCall, known: &[&str]) -> Result<(), AwsAnswer> {
    match call.query.iter().find(|(key, _)| !known.contains(&key.as_str())) {
        Some((key, _)) => Err(AwsAnswer::error(400, "InvalidInput", &format!("unknown parameter {key}"))),
        None => Ok(()),
    }
}

/// The zone with this id.
pub(super) fn zone<'a>(account: &'a AwsAccount, id: &str) -> Result<&'a AwsZone, AwsAnswer> {
    let missing = || AwsAnswer::error(404, "NoSuchHostedZone", &format!("No hosted zone found with ID: {id}"));
    account.zones.iter().find(|zone| zone.id == id).ok_or_else(missing)
}

/// A name in lower case, without escapes and a dot at the end.
pub(super) fn plain(name: &str) -> String {
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    let mut pieces = name.split('\\');
    let mut out = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        match piece.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => out.extend([String::from(char::from(byte)), piece[3..].to_owned()]),
            None => out.extend(["\\", piece]),
        }
    }
    out
}

/// A name as the service answers it.
pub(super) fn escaped(name: &str) -> String {
    let plain = |c: &char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_' | '.');
    let one = |c: char| if plain(&c) { c.to_string() } else { format!("\\{:03o}", u32::from(c)) };
    name.chars().map(one).collect::<String>() + "."
}

/// An element with a text.
pub(super) fn element(name: &str, text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    format!("<{name}>{text}</{name}>")
}

/// Fields by path.
pub(super) type Fields = BTreeMap<String, String>;
