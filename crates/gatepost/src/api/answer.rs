//! Paths below `/api/v1`, each with its answer in JSON. Reading only.

use std::collections::BTreeMap;
use std::sync::Arc;

use gatepost_core::diagnostic::Diagnostic;
use gatepost_core::model::{Key, Kind, ObjectRef};
use gatepost_core::names::Hostname;
use gatepost_core::reason::Reason;
use gatepost_core::routing::Router;
use hyper::StatusCode;
use hyper::body::Bytes;
use serde::Serialize;

use super::query::{self, Query};
use super::reviews::{ReviewRefusal, ReviewedUser, Reviews};
use super::visibility::{Restriction, Viewer};
use super::{ApiState, NamesIndex, PassFacts, WorldCopy, one_name, openapi};
use crate::render;
use crate::render::chart::ChartInput;
use crate::requests::{self, RequestText};
use crate::view::api::{
    ActivityView, CertificatesView, ErrorView, HealthView, ObjectView, ObjectsView, OverviewView, PlanStepsView,
    ReasonPageView, ZonesView,
};
use crate::view::explain::ReasonView;
use crate::view::flow::{FlowFilter, FlowView};
use crate::view::route::RouteView;
use crate::view::status::StatusView;

/// Objects, steps and held changes of one answer unless more are asked for, and at most.
const ROWS: usize = 100;
const MOST_ROWS: usize = 500;

/// What there is.
const PATHS: &str = "/api/v1/overview, /api/v1/names, /api/v1/names.csv, /api/v1/names/HOSTNAME, \
                     /api/v1/names/HOSTNAME/chain.svg, /api/v1/names/HOSTNAME/chain.mmd, /api/v1/objects, \
                     /api/v1/objects/KIND/NAMESPACE/NAME, /api/v1/flow, /api/v1/plan, /api/v1/certificates, \
                     /api/v1/health, /api/v1/route?url=URL, /api/v1/zones, /api/v1/activity, /api/v1/reasons/REASON, \
                     /api/v1/openapi.json, \
                     /api/v1/events";

/// Who asks.
#[derive(Clone, Debug)]
pub enum ApiReader {
    /// Somebody who may see everything, because only they get here.
    Trusted,
    /// Somebody whom the cluster knows, and who sees what it lets them see.
    Reviewed(Arc<Reviews>, Arc<ReviewedUser>),
}

impl ApiReader {
    /// What they may see of a world.
    pub async fn viewer(&self, world: &WorldCopy) -> Result<Viewer, ReviewRefusal> {
        match self {
            ApiReader::Trusted => Ok(Viewer::everything()),
            ApiReader::Reviewed(reviews, user) => reviews.viewer(user, world.namespaces()).await,
        }
    }
}

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
    /// What it is: JSON, unless it is a table.
    pub kind: &'static str,
    /// Its text.
    pub body: Bytes,
}

impl ApiAnswer {
    fn json(value: &impl Serialize) -> Self {
        let body = serde_json::to_vec(value).map(Bytes::from).unwrap_or_default();
        ApiAnswer { status: StatusCode::OK, kind: "application/json", body }
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
    /// It belongs to namespaces that the reader may not see.
    NotVisible(String),
}

impl From<ReviewRefusal> for ApiRefusal {
    fn from(refusal: ReviewRefusal) -> Self {
        match refusal {
            ReviewRefusal::Unknown(why) => ApiRefusal::NotVisible(why),
            ReviewRefusal::NotYet(why) => ApiRefusal::NotYet(why),
        }
    }
}

impl From<String> for ApiRefusal {
    fn from(message: String) -> Self {
        ApiRefusal::Bad(message)
    }
}

/// The answer to a path below `/api/v1` with its query.
pub async fn answer(
    api: &Arc<ApiState>,
    server: ServerFacts,
    reader: &ApiReader,
    path: &str,
    query: Option<&str>,
) -> ApiAnswer {
    let query = query.unwrap_or_default();
    if query.len() > query::LONGEST {
        let message = format!("the query is longer than {} characters", query::LONGEST);
        return ApiAnswer::error(StatusCode::URI_TOO_LONG, message);
    }
    let parts: Vec<String> = path.split('/').filter(|part| !part.is_empty()).map(query::decode).collect();
    let parts: Vec<&str> = parts.iter().skip(2).map(String::as_str).collect();
    match dispatch(api, server, reader, &parts, Query::parse(query)).await {
        Ok(answer) => answer,
        Err(ApiRefusal::NotFound(message)) => ApiAnswer::error(StatusCode::NOT_FOUND, message),
        Err(ApiRefusal::Bad(message)) => ApiAnswer::error(StatusCode::BAD_REQUEST, message),
        Err(ApiRefusal::NotYet(message)) => ApiAnswer::error(StatusCode::SERVICE_UNAVAILABLE, message),
        Err(ApiRefusal::NotVisible(message)) => ApiAnswer::error(StatusCode::FORBIDDEN, message),
    }
}

async fn dispatch(
    api: &Arc<ApiState>,
    server: ServerFacts,
    reader: &ApiReader,
    path: &[&str],
    query: Query,
) -> Result<ApiAnswer, ApiRefusal> {
    match path {
        ["reasons", name] => return reason(name),
        ["openapi.json"] => return Ok(ApiAnswer::json(&openapi::document())),
        _ => {}
    }
    let is_known = matches!(
        path,
        ["overview"
            | "names"
            | "names.csv"
            | "objects"
            | "flow"
            | "plan"
            | "certificates"
            | "health"
            | "route"
            | "zones"]
            | ["activity"]
            | ["names", _]
            | ["names", _, "chain.svg" | "chain.mmd"]
            | ["objects", _, _, _]
    );
    if !is_known {
        return Err(ApiRefusal::NotFound(format!("there is no /api/v1/{}; there are {PATHS}", path.join("/"))));
    }
    if let ["names", name, file] = path {
        let answer = Box::pin(dispatch(api, server, reader, &["names", name], query)).await?;
        return picture(&answer, file);
    }
    let world = api.world().await.ok_or_else(|| not_yet(api))?;
    let viewer = reader.viewer(&world).await?;
    if viewer.sees_everything() && !matches!(path, ["overview" | "names" | "names.csv"] | ["objects", ..]) {
        return seen(api, server, world, None, viewer, path, query).await;
    }
    let all = api.names(&world).await.ok_or_else(|| not_yet(api))?;
    if viewer.sees_everything() {
        return seen(api, server, world, Some(all), viewer, path, query).await;
    }
    let own = Arc::new(all.seen_by(&viewer));
    let answer = seen(api, server, world, Some(own.clone()), viewer.clone(), path, query).await?;
    let hidden = || ApiRefusal::NotVisible("this shows namespaces in which you may not get HTTPRoutes".to_owned());
    let Some(restriction) = Restriction::of(&viewer, &all, &own) else { return Err(hidden()) };
    if matches!(path, ["names.csv"]) {
        let table = restriction.told(&String::from_utf8_lossy(&answer.body));
        return Ok(ApiAnswer { body: Bytes::from(table), ..answer });
    }
    let value = serde_json::from_slice(&answer.body).map_err(|_| hidden())?;
    Ok(ApiAnswer::json(&restriction.apply(path, value).map_err(|_| hidden())?))
}

/// An answer from what a viewer may see of the names and the pass.
async fn seen(
    api: &Arc<ApiState>,
    server: ServerFacts,
    world: Arc<WorldCopy>,
    names: Option<Arc<NamesIndex>>,
    viewer: Viewer,
    path: &[&str],
    query: Query,
) -> Result<ApiAnswer, ApiRefusal> {
    let named = || names.clone().ok_or_else(|| not_yet(api));
    let pass = match (&names, viewer.sees_everything()) {
        (Some(names), false) => Arc::new(viewer.pass(&world.pass, names)),
        _ => world.pass.clone(),
    };
    match path {
        ["overview"] => {
            query.only(&[])?;
            let view = OverviewView::of(&world, &pass, &*named()?, &api.facts(), &server, api.trouble());
            Ok(ApiAnswer::json(&view))
        }
        ["names"] => Ok(ApiAnswer::json(&named()?.select(&query)?)),
        ["names.csv"] => {
            let body = Bytes::from(named()?.table(&query)?);
            Ok(ApiAnswer { status: StatusCode::OK, kind: "text/csv; charset=utf-8", body })
        }
        ["names", name] => {
            query.only(&[])?;
            let hostname = one_name::hostname(name)?;
            let activity = api.activity().since(0, Some(hostname.as_str()));
            beside(move || Ok(ApiAnswer::json(&one_name::view(&world, &pass, activity, &hostname)))).await
        }
        ["objects"] => beside(move || objects(&world, &viewer, &query)).await,
        ["objects", kind, namespace, name] => {
            query.only(&[])?;
            if !viewer.sees(namespace) {
                let why = format!("you may not get HTTPRoutes in namespace {namespace}");
                return Err(ApiRefusal::NotVisible(why));
            }
            let (object, names) = (format!("{kind}/{namespace}/{name}"), named()?);
            beside(move || self::object(&world, &names, &object)).await
        }
        ["flow"] => beside(move || flow(&world, &viewer, &query)).await,
        ["plan"] => plan(&pass, &query),
        ["certificates"] => {
            query.only(&[])?;
            let names = names.filter(|_| !viewer.sees_everything());
            let is_seen = move |name: &Hostname| names.as_ref().is_none_or(|names| names.find(name.as_str()).is_some());
            beside(move || Ok(ApiAnswer::json(&CertificatesView::of(&world, &is_seen)))).await
        }
        ["health"] => {
            query.only(&[])?;
            Ok(ApiAnswer::json(&HealthView::of(&world)))
        }
        ["route"] => {
            let names = names.filter(|_| !viewer.sees_everything());
            beside(move || route(&world, names.as_deref(), &query)).await
        }
        ["activity"] => activity(api, &query),
        _ => {
            query.only(&[])?;
            Ok(ApiAnswer::json(&ZonesView::of(&world, api.facts().provider)))
        }
    }
}

/// The chains of a name as a picture, made of the answer about it, so that it shows no more than that.
fn picture(answer: &ApiAnswer, file: &str) -> Result<ApiAnswer, ApiRefusal> {
    let hidden = |_| ApiRefusal::NotVisible("there is no chain of it that you may see".to_owned());
    let chart: ChartInput = serde_json::from_slice(&answer.body).map_err(hidden)?;
    let (kind, text) = match file {
        "chain.svg" => ("image/svg+xml", chart.svg()),
        _ => ("text/vnd.mermaid; charset=utf-8", chart.mermaid()),
    };
    Ok(ApiAnswer { status: StatusCode::OK, kind, body: Bytes::from(text) })
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

fn objects(world: &WorldCopy, viewer: &Viewer, query: &Query) -> Result<ApiAnswer, ApiRefusal> {
    query.only(&["kind", "namespace", "q", "offset", "limit"])?;
    let (kind, namespace) = (query.one("kind"), query.one("namespace"));
    let text = query.one("q").map(str::to_lowercase);
    let is_meant = |object: &ObjectRef| {
        kind.is_none_or(|kind| object.kind.as_str().eq_ignore_ascii_case(kind))
            && namespace.is_none_or(|namespace| **object.namespace() == *namespace)
            && text.as_ref().is_none_or(|text| object.to_string().to_lowercase().contains(text))
    };
    let (offset, limit) = page(query)?;
    let seen = world.report().items.iter();
    let seen: Vec<_> = seen.filter(|item| viewer.sees_everything() || viewer.sees(item.object.namespace())).collect();
    let items: Vec<_> = seen.iter().filter(|item| is_meant(&item.object)).collect();
    let shown = items.iter().skip(offset).take(limit).map(|item| **item);
    let mut kinds: BTreeMap<&'static str, usize> = BTreeMap::new();
    seen.iter().for_each(|item| *kinds.entry(item.object.kind.as_str()).or_default() += 1);
    Ok(ApiAnswer::json(&ObjectsView {
        generation: world.pass.generation,
        as_of: world.pass.ended,
        total: seen.len(),
        matching: items.len(),
        offset,
        kinds,
        status: StatusView::of_items(shown),
    }))
}

fn object(world: &WorldCopy, names: &NamesIndex, named: &str) -> Result<ApiAnswer, ApiRefusal> {
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

/// The graph of what a viewer may see.
fn flow(world: &WorldCopy, viewer: &Viewer, query: &Query) -> Result<ApiAnswer, ApiRefusal> {
    query.only(&["gateway", "namespace"])?;
    let gateway = match query.one("gateway").map(|text| text.strip_prefix("Gateway/").unwrap_or(text)) {
        Some(text) => {
            let (namespace, name) =
                text.split_once('/').ok_or_else(|| format!("gateway={text}: write NAMESPACE/NAME"))?;
            Some(Key::new(namespace, name))
        }
        None => None,
    };
    let filter = FlowFilter {
        gateway: gateway.as_ref(),
        namespace: query.one("namespace"),
        is_seen: &|route| viewer.sees(route.namespace()),
        has_idle: viewer.sees_everything(),
    };
    Ok(ApiAnswer::json(&FlowView::of(world, &filter)))
}

fn plan(pass: &PassFacts, query: &Query) -> Result<ApiAnswer, ApiRefusal> {
    query.only(&["offset", "limit"])?;
    let (offset, limit) = page(query)?;
    Ok(ApiAnswer::json(&PlanStepsView::of(pass, offset, limit)))
}

fn page(query: &Query) -> Result<(usize, usize), ApiRefusal> {
    let limit = query.value("limit", "a number")?.unwrap_or(ROWS).min(MOST_ROWS);
    Ok((query.value("offset", "a number")?.unwrap_or(0), limit))
}

/// Who serves a request; only at the Gateways of some names, where these are given.
fn route(world: &WorldCopy, names: Option<&NamesIndex>, query: &Query) -> Result<ApiAnswer, ApiRefusal> {
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
    let gateway: Key = match names {
        None => requests::gateway(&world.topology, query.one("gateway"), query.one("namespace"))?,
        Some(names) => gateway_above(names, query.one("gateway"))?,
    };
    let router = Router::compile(&world.snapshot, &world.topology, &gateway);
    let router =
        router.ok_or_else(|| ApiRefusal::NotFound(format!("there is no Gateway {gateway} among the objects")))?;
    Ok(ApiAnswer::json(&RouteView::of(&router.route(&request))))
}

/// The Gateway of this name above some names, or the only one.
fn gateway_above(names: &NamesIndex, asked: Option<&str>) -> Result<Key, ApiRefusal> {
    let all = names.rows.iter().flat_map(|row| &row.gateways).filter_map(|name| name.strip_prefix("Gateway/"));
    let all: std::collections::BTreeSet<&str> = all.collect();
    let found = match asked {
        Some(asked) => all.get(asked).copied(),
        None if all.len() == 1 => all.first().copied(),
        None => {
            return Err(ApiRefusal::Bad(
                "name a Gateway that your routes attach to: gateway=NAMESPACE/NAME".to_owned(),
            ));
        }
    };
    let found = found.and_then(|name| name.split_once('/'));
    let found = found.map(|(namespace, name)| Key::new(namespace, name));
    found.ok_or_else(|| ApiRefusal::NotVisible("none of your routes refers to this Gateway".to_owned()))
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
