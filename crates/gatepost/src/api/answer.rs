//! Paths below `/api/v1`, each with its answer in JSON. Reading only.

use std::collections::BTreeMap;
use std::sync::Arc;

use gatepost_core::diagnostic::Diagnostic;
use gatepost_core::model::{Key, Kind, ObjectRef};
use gatepost_core::reason::Reason;
use gatepost_core::routing::Router;
use hyper::StatusCode;
use hyper::body::Bytes;
use serde::Serialize;

use super::query::{self, Query};
use super::{ApiState, WorldCopy, one_name};
use crate::render;
use crate::requests::{self, RequestText};
use crate::view::api::{
    ActivityView, CertificatesView, ErrorView, ObjectView, ObjectsView, OverviewView, PlanStepsView, ReasonPageView,
    ZonesView,
};
use crate::view::explain::ReasonView;
use crate::view::route::RouteView;
use crate::view::status::StatusView;

/// Objects, steps and held changes of one answer unless more are asked for, and at most.
const ROWS: usize = 100;
const MOST_ROWS: usize = 500;

/// What there is.
const PATHS: &str = "/api/v1/overview, /api/v1/names, /api/v1/names/HOSTNAME, /api/v1/objects, \
                     /api/v1/objects/KIND/NAMESPACE/NAME, /api/v1/plan, /api/v1/certificates, /api/v1/route?url=URL, \
                     /api/v1/zones, /api/v1/activity, /api/v1/reasons/REASON, /api/v1/events";

/// What the server knows beside the passes.
#[derive(Clone, Debug, Default)]
pub struct ServerFacts {
    /// Why names may not be answered as the objects ask.
    pub unready: Option<String>,
    /// What is to be known though they are.
    pub notes: Vec<String>,
    /// When the objects were last known to be current, in seconds since 1970; unset where files are watched.
    pub seen_at: Option<i64>,
}

/// An answer.
#[derive(Debug)]
pub struct ApiAnswer {
    /// The status.
    pub status: StatusCode,
    /// JSON.
    pub body: Bytes,
}

impl ApiAnswer {
    fn json(value: &impl Serialize) -> Self {
        let body = serde_json::to_vec(value).map(Bytes::from).unwrap_or_default();
        ApiAnswer { status: StatusCode::OK, body }
    }

    /// A refusal with its reason.
    pub fn error(status: StatusCode, message: impl Into<String>) -> Self {
        ApiAnswer { status, ..ApiAnswer::json(&ErrorView { error: message.into() }) }
    }
}

/// Why a request has no answer.
enum ApiRefusal {
    /// It asks for something that is not there.
    NotFound(String),
    /// It is not understood.
    Bad(String),
    /// Nothing is known yet.
    NotYet(String),
}

impl From<String> for ApiRefusal {
    fn from(message: String) -> Self {
        ApiRefusal::Bad(message)
    }
}

/// The answer to a path below `/api/v1` with its query.
pub async fn answer(api: &Arc<ApiState>, server: ServerFacts, path: &str, query: Option<&str>) -> ApiAnswer {
    let query = query.unwrap_or_default();
    if query.len() > query::LONGEST {
        let message = format!("the query is longer than {} characters", query::LONGEST);
        return ApiAnswer::error(StatusCode::URI_TOO_LONG, message);
    }
    let parts: Vec<String> = path.split('/').filter(|part| !part.is_empty()).map(query::decode).collect();
    let parts: Vec<&str> = parts.iter().skip(2).map(String::as_str).collect();
    match dispatch(api, server, &parts, Query::parse(query)).await {
        Ok(answer) => answer,
        Err(ApiRefusal::NotFound(message)) => ApiAnswer::error(StatusCode::NOT_FOUND, message),
        Err(ApiRefusal::Bad(message)) => ApiAnswer::error(StatusCode::BAD_REQUEST, message),
        Err(ApiRefusal::NotYet(message)) => ApiAnswer::error(StatusCode::SERVICE_UNAVAILABLE, message),
    }
}

async fn dispatch(
    api: &Arc<ApiState>,
    server: ServerFacts,
    path: &[&str],
    query: Query,
) -> Result<ApiAnswer, ApiRefusal> {
    match path {
        ["reasons", name] => return reason(name),
        ["activity"] => return activity(api, &query),
        _ => {}
    }
    let is_known = matches!(
        path,
        ["overview" | "names" | "objects" | "plan" | "certificates" | "route" | "zones"]
            | ["names", _]
            | ["objects", _, _, _]
    );
    if !is_known {
        return Err(ApiRefusal::NotFound(format!("there is no /api/v1/{}; there are {PATHS}", path.join("/"))));
    }
    let world = api.world().await.ok_or_else(|| not_yet(api))?;
    match path {
        ["overview"] => overview(api, &server, &world, &query).await,
        ["names"] => {
            let names = api.names(&world).await.ok_or_else(|| not_yet(api))?;
            Ok(ApiAnswer::json(&names.select(&query)?))
        }
        ["names", name] => {
            let hostname = one_name::hostname(name)?;
            let activity = api.activity().since(0, Some(hostname.as_str()));
            beside(move || Ok(ApiAnswer::json(&one_name::view(&world, activity, &hostname)))).await
        }
        ["objects"] => beside(move || objects(&world, &query)).await,
        ["objects", kind, namespace, name] => {
            let named = format!("{kind}/{namespace}/{name}");
            let names = api.names(&world).await.ok_or_else(|| not_yet(api))?;
            beside(move || object(&world, &names, &named)).await
        }
        ["plan"] => beside(move || plan(&world, &query)).await,
        ["certificates"] => beside(move || Ok(ApiAnswer::json(&CertificatesView::of(&world)))).await,
        ["route"] => beside(move || route(&world, &query)).await,
        _ => Ok(ApiAnswer::json(&ZonesView::of(&world, api.facts().provider))),
    }
}

/// Does work beside the loop.
async fn beside(
    work: impl FnOnce() -> Result<ApiAnswer, ApiRefusal> + Send + 'static,
) -> Result<ApiAnswer, ApiRefusal> {
    match tokio::task::spawn_blocking(work).await {
        Ok(answer) => answer,
        Err(_) => Err(ApiRefusal::NotYet("the answer could not be made".to_owned())),
    }
}

fn not_yet(api: &ApiState) -> ApiRefusal {
    ApiRefusal::NotYet(match api.generation() {
        0 => "the first pass has not ended yet".to_owned(),
        _ => "the pass under way has not ended yet; ask again".to_owned(),
    })
}

async fn overview(
    api: &Arc<ApiState>,
    server: &ServerFacts,
    world: &Arc<WorldCopy>,
    query: &Query,
) -> Result<ApiAnswer, ApiRefusal> {
    query.only(&[])?;
    let names = api.names(world).await.ok_or_else(|| not_yet(api))?;
    Ok(ApiAnswer::json(&OverviewView::of(world, &names, &api.facts(), server, api.trouble())))
}

fn objects(world: &WorldCopy, query: &Query) -> Result<ApiAnswer, ApiRefusal> {
    query.only(&["kind", "namespace", "q", "offset", "limit"])?;
    let (kind, namespace) = (query.one("kind"), query.one("namespace"));
    let text = query.one("q").map(str::to_lowercase);
    let is_meant = |object: &ObjectRef| {
        kind.is_none_or(|kind| object.kind.as_str().eq_ignore_ascii_case(kind))
            && namespace.is_none_or(|namespace| **object.namespace() == *namespace)
            && text.as_ref().is_none_or(|text| object.to_string().to_lowercase().contains(text))
    };
    let (offset, limit) = page(query)?;
    let items: Vec<_> = world.report().items.iter().filter(|item| is_meant(&item.object)).collect();
    let shown = items.iter().skip(offset).take(limit).copied();
    let mut kinds: BTreeMap<&'static str, usize> = BTreeMap::new();
    world.report().items.iter().for_each(|item| *kinds.entry(item.object.kind.as_str()).or_default() += 1);
    Ok(ApiAnswer::json(&ObjectsView {
        generation: world.pass.generation,
        as_of: world.pass.ended,
        total: world.report().items.len(),
        matching: items.len(),
        offset,
        kinds,
        status: StatusView::of_items(shown),
    }))
}

fn object(world: &WorldCopy, names: &super::NamesIndex, named: &str) -> Result<ApiAnswer, ApiRefusal> {
    let item = world.report().items.iter().find(|item| item.object.to_string().eq_ignore_ascii_case(named));
    let item = item.ok_or_else(|| ApiRefusal::NotFound(format!("there is no {named} among the objects")))?;
    let object = item.object.to_string();
    let below = format!("{object}/");
    let is_its = |text: &String| *text == object || text.starts_with(&below);
    let rows = names.rows.iter().filter(|row| row.routes.contains(&object) || row.gateways.iter().any(is_its));
    let found = problems(world, &item.object);
    let own = found.iter().chain(&world.pass.problems).filter(|d| d.object.as_ref() == Some(&item.object));
    Ok(ApiAnswer::json(&ObjectView::of(world, item, own, rows)))
}

/// What `check` says about an object.
fn problems(world: &WorldCopy, object: &ObjectRef) -> Vec<Diagnostic> {
    let (context, topology) = (world.context(), &world.topology);
    match object.kind {
        Kind::Gateway => topology.gateways.get(&object.key).map(|gateway| context.gateway(gateway)),
        Kind::ListenerSet | Kind::XListenerSet => topology.sets.get(object).map(|set| context.set(set)),
        Kind::Route(_) => topology.routes.get(object).map(|route| context.route(route)),
        _ => None,
    }
    .unwrap_or_default()
}

fn plan(world: &WorldCopy, query: &Query) -> Result<ApiAnswer, ApiRefusal> {
    query.only(&["offset", "limit"])?;
    let (offset, limit) = page(query)?;
    Ok(ApiAnswer::json(&PlanStepsView::of(&world.pass, offset, limit)))
}

fn page(query: &Query) -> Result<(usize, usize), ApiRefusal> {
    let limit = query.value("limit", "a number")?.unwrap_or(ROWS).min(MOST_ROWS);
    Ok((query.value("offset", "a number")?.unwrap_or(0), limit))
}

fn route(world: &WorldCopy, query: &Query) -> Result<ApiAnswer, ApiRefusal> {
    query.only(&["url", "method", "header", "gateway", "namespace", "port", "sni", "grpc"])?;
    let url =
        query.one("url").ok_or_else(|| "url is missing: /api/v1/route?url=https://shop.example.org/".to_owned())?;
    let request = RequestText {
        url: url.to_owned(),
        method: query.one("method").unwrap_or("GET").to_owned(),
        headers: query.all("header").map(str::to_owned).collect(),
        port: query.value("port", "a port")?,
        sni: query.one("sni").map(str::to_owned),
        grpc: query.value("grpc", "true or false")?.unwrap_or(false),
    };
    let request = request.parse()?;
    let gateway: Key = requests::gateway(&world.topology, query.one("gateway"), query.one("namespace"))?;
    let router = Router::compile(&world.snapshot, &world.topology, &gateway);
    let router =
        router.ok_or_else(|| ApiRefusal::NotFound(format!("there is no Gateway {gateway} among the objects")))?;
    Ok(ApiAnswer::json(&RouteView::of(&router.route(&request))))
}

fn activity(api: &ApiState, query: &Query) -> Result<ApiAnswer, ApiRefusal> {
    query.only(&["since", "name"])?;
    let since = query.value("since", "a number")?.unwrap_or(0);
    let items = api.activity().since(since, query.one("name"));
    Ok(ApiAnswer::json(&ActivityView { generation: api.generation(), items }))
}

fn reason(name: &str) -> Result<ApiAnswer, ApiRefusal> {
    let reason = Reason::find(name).ok_or_else(|| ApiRefusal::NotFound(format!("there is no reason `{name}`")))?;
    let page = render::reason::page(reason);
    Ok(ApiAnswer::json(&ReasonPageView { reason: ReasonView::of(reason), page }))
}
