//! What the API answers to each question: lists in pages, batches, and errors in the form that the service has.

use http_body_util::Full;
use hyper::Response;
use hyper::body::Bytes;
use serde_json::{Map, Value, json};

use super::zones::{HostedZone, HostedZones, StoredRecord};
use super::{ApiQuestion, TOKEN, checks};

/// Changes in one batch on a free plan, and on others.
const BATCH: [usize; 2] = [200, 3500];

/// An answer.
#[derive(Clone, Debug)]
pub struct ApiAnswer {
    /// The status.
    pub status: u16,
    /// Headers beside the usual ones.
    pub headers: Vec<(&'static str, String)>,
    /// The body.
    pub body: String,
}

impl ApiAnswer {
    /// Something that succeeded.
    pub fn ok(result: Value, info: Option<Value>) -> ApiAnswer {
        let mut body = json!({"success": true, "errors": [], "messages": [], "result": result});
        if let Some(info) = info {
            body["result_info"] = info;
        }
        ApiAnswer { status: 200, headers: Vec::new(), body: body.to_string() }
    }

    /// Something that failed.
    pub fn error(status: u16, code: i64, message: &str) -> ApiAnswer {
        ApiAnswer::failure(status, json!({"code": code, "message": message}))
    }

    /// Something that failed, with what is behind it.
    pub(super) fn chained(status: u16, (code, message): (i64, &str), (inner, cause): (i64, &str)) -> ApiAnswer {
        let chain = json!([{"code": inner, "message": cause}]);
        ApiAnswer::failure(status, json!({"code": code, "message": message, "error_chain": chain}))
    }

    /// The same with one more header.
    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> ApiAnswer {
        self.headers.push((name, value.into()));
        self
    }

    fn failure(status: u16, error: Value) -> ApiAnswer {
        let body = json!({"success": false, "errors": [error], "messages": [], "result": null});
        ApiAnswer { status, headers: Vec::new(), body: body.to_string() }
    }

    pub(super) fn into_response(self) -> Response<Full<Bytes>> {
        let mut builder = Response::builder().status(self.status).header("content-type", "application/json");
        // Clients that retry by themselves are asked not to.
        builder = builder.header("x-should-retry", "false");
        if !self.headers.iter().any(|(name, _)| *name == "ratelimit") {
            builder = builder.header("ratelimit", "\"default\";r=1000;t=300");
        }
        for (name, value) in self.headers {
            builder = builder.header(name, value);
        }
        builder.body(Full::new(self.body.into())).unwrap_or_default()
    }
}

/// Answers a question, and does what it asks for.
pub(super) fn answer(question: &ApiQuestion, authorization: &str, zones: &mut HostedZones) -> ApiAnswer {
    if zones.is_token_revoked || authorization != format!("Bearer {TOKEN}") {
        return ApiAnswer::error(403, 10000, "Authentication error");
    }
    let path: Vec<&str> = question.path.trim_matches('/').split('/').collect();
    let result = match (&*question.method, &path[..]) {
        ("GET", ["user", "tokens", "verify"]) => Ok(ApiAnswer::ok(json!({"id": "t", "status": "active"}), None)),
        ("GET", ["zones"]) => list_zones(question, zones),
        ("GET", ["zones", id]) => zone(zones, id).map(|zone| ApiAnswer::ok(zone_json(zone), None)),
        ("GET", ["zones", id, "dns_records"]) => zone(zones, id).and_then(|zone| list_records(question, zone)),
        ("POST", ["zones", id, "dns_records", "batch"]) => batch(zones, id, &question.body),
        ("POST", ["zones", id, "dns_records"]) => single(zones, id, "posts", question.body.clone()),
        ("PUT" | "PATCH", ["zones", id, "dns_records", record]) => {
            let mut body = question.body.clone();
            body["id"] = (*record).into();
            single(zones, id, if question.method == "PUT" { "puts" } else { "patches" }, body)
        }
        ("DELETE", ["zones", id, "dns_records", record]) => single(zones, id, "deletes", json!({"id": record})),
        _ => Err(ApiAnswer::error(
            404,
            7003,
            &format!("Could not route to {}, perhaps your object identifier is invalid?", question.path),
        )),
    };
    result.unwrap_or_else(|refusal| refusal)
}

fn list_zones(question: &ApiQuestion, zones: &HostedZones) -> Result<ApiAnswer, ApiAnswer> {
    only(question, &["page", "per_page", "name", "status", "account.id"])?;
    let name = question.query.iter().find(|(key, _)| key == "name").map(|(_, name)| name.clone());
    let fits = |zone: &&HostedZone| name.as_ref().is_none_or(|name| *name == zone.name);
    let all: Vec<Value> = zones.zones.iter().filter(fits).map(zone_json).collect();
    page(question, all, 20, 5..=50)
}

fn list_records(question: &ApiQuestion, zone: &HostedZone) -> Result<ApiAnswer, ApiAnswer> {
    only(question, &["page", "per_page", "name.exact", "name", "type", "content.exact", "order", "direction"])?;
    let is = |key: &str, value: &str| question.query.iter().all(|(name, asked)| name != key || asked == value);
    let fits = |record: &&StoredRecord| {
        is("name.exact", &record.name) && is("type", &record.kind) && is("content.exact", &record.content)
    };
    let all: Vec<Value> = zone.records.iter().filter(fits).map(StoredRecord::json).collect();
    page(question, all, 100, 5..=5000)
}

fn page(
    question: &ApiQuestion,
    all: Vec<Value>,
    usual: usize,
    sizes: std::ops::RangeInclusive<usize>,
) -> Result<ApiAnswer, ApiAnswer> {
    let number = |key: &str, usual: usize| {
        let given = question.query.iter().find(|(name, _)| name == key);
        given.map_or(Some(usual), |(_, text)| text.parse().ok())
    };
    let wrong = || ApiAnswer::error(400, 1003, "Invalid page or per_page");
    let page = number("page", 1).filter(|page| *page > 0).ok_or_else(wrong)?;
    let per_page = number("per_page", usual).filter(|size| sizes.contains(size)).ok_or_else(wrong)?;
    let total = all.len();
    let some: Vec<Value> = all.into_iter().skip((page - 1) * per_page).take(per_page).collect();
    let info = json!({"page": page, "per_page": per_page, "count": some.len(), "total_count": total,
        "total_pages": total.div_ceil(per_page)});
    Ok(ApiAnswer::ok(some.into(), Some(info)))
}

fn single(zones: &mut HostedZones, id: &str, list: &str, body: Value) -> Result<ApiAnswer, ApiAnswer> {
    let result = transaction(zones, id, &json!({ list: [body] }))?;
    Ok(ApiAnswer::ok(result[list][0].clone(), None))
}

fn batch(zones: &mut HostedZones, id: &str, body: &Value) -> Result<ApiAnswer, ApiAnswer> {
    let lists = body.as_object().ok_or_else(|| ApiAnswer::error(400, 9207, "Request body is invalid."))?;
    if let Some(unknown) = lists.keys().find(|key| !["deletes", "patches", "puts", "posts"].contains(&key.as_str())) {
        return Err(ApiAnswer::error(400, 9207, &format!("unknown field `{unknown}`")));
    }
    let count: usize = lists.values().filter_map(Value::as_array).map(Vec::len).sum();
    let most = BATCH[usize::from(zone(zones, id)?.plan != "free")];
    if count == 0 || count > most {
        return Err(ApiAnswer::error(400, 9207, &format!("a batch has from 1 to {most} changes")));
    }
    Ok(ApiAnswer::ok(transaction(zones, id, body)?, None))
}

/// Deletes, patches, puts and posts in this order; all of them or none.
fn transaction(zones: &mut HostedZones, id: &str, body: &Value) -> Result<Value, ApiAnswer> {
    let mut zone = zone(zones, id)?.clone();
    let mut result = json!({"deletes": [], "patches": [], "puts": [], "posts": []});
    for list in ["deletes", "patches", "puts", "posts"] {
        for change in body[list].as_array().into_iter().flatten() {
            let change = change.as_object().ok_or_else(|| ApiAnswer::error(400, 9207, "Request body is invalid."))?;
            let done = apply(zones, &mut zone, list, change)?;
            result[list].as_array_mut().into_iter().for_each(|list| list.push(done.json()));
        }
    }
    checks::conflict(&zone)?;
    if let Some(stored) = zones.zones.iter_mut().find(|stored| stored.id == id) {
        *stored = zone;
    }
    Ok(result)
}

fn apply(
    zones: &mut HostedZones,
    zone: &mut HostedZone,
    list: &str,
    change: &Map<String, Value>,
) -> Result<StoredRecord, ApiAnswer> {
    if list == "posts" {
        let record = checks::merged(zone, blank(zones.next_id()), change)?;
        zone.records.push(record.clone());
        return Ok(record);
    }
    let id = change.get("id").and_then(Value::as_str).unwrap_or_default();
    let missing = || ApiAnswer::error(404, 81044, "Record does not exist.");
    let at = zone.records.iter().position(|record| record.id == id).ok_or_else(missing)?;
    if list == "deletes" {
        return Ok(zone.records.remove(at));
    }
    let base = if list == "puts" { blank(id.to_owned()) } else { zone.records[at].clone() };
    let record = checks::merged(zone, base, change)?;
    zone.records[at] = record.clone();
    Ok(record)
}

fn blank(id: String) -> StoredRecord {
    StoredRecord {
        id,
        name: String::new(),
        kind: String::new(),
        content: String::new(),
        ttl: 1,
        is_proxied: false,
        comment: String::new(),
        tags: Vec::new(),
        priority: None,
        data: Value::Null,
    }
}

fn only(question: &ApiQuestion, known: &[&str]) -> Result<(), ApiAnswer> {
    match question.query.iter().find(|(key, _)| !known.contains(&key.as_str())) {
        Some((key, _)) => Err(ApiAnswer::error(400, 1003, &format!("unknown parameter `{key}`"))),
        None => Ok(()),
    }
}

fn zone<'z>(zones: &'z HostedZones, id: &str) -> Result<&'z HostedZone, ApiAnswer> {
    let missing = || {
        ApiAnswer::error(
            404,
            7003,
            &format!("Could not route to /zones/{id}, perhaps your object identifier is invalid?"),
        )
    };
    zones.zones.iter().find(|zone| zone.id == id).ok_or_else(missing)
}

fn zone_json(zone: &HostedZone) -> Value {
    json!({"id": zone.id, "name": zone.name, "status": zone.status, "paused": false, "type": "full",
        "plan": {"legacy_id": zone.plan, "is_subscribed": zone.plan != "free"}})
}
