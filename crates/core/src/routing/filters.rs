//! How the filters of a rule and of its backends change a request and its response.
//!
//! Filters run in the order in which they are written. An unsupported filter is never skipped: the request is answered with
//! an error instead.

use crate::model::*;

use super::answer::{ResponseChange, Rewritten};
use super::request::ParsedRequest;

pub(super) mod cors;
mod headers;
mod redirect;

/// A request while filters change it.
#[derive(Clone, Debug)]
pub(super) struct Passage {
    pub(super) request: Rewritten,
    pub(super) response: ResponseChange,
    /// Status and location of a redirect, which ends the processing.
    pub(super) redirect: Option<(u16, String)>,
    /// The unsupported filter, which ends the processing.
    pub(super) broken: Option<String>,
    /// Further notes for the explanation.
    pub(super) notes: Vec<String>,
}

/// The request and listener facts that filters need.
pub(super) struct FilterContext<'a> {
    pub(super) asked: &'a ParsedRequest<'a>,
    /// The path prefix that matched, without trailing slashes; unset if the match was not by prefix.
    pub(super) prefix: Option<&'a str>,
    /// `http` or `https`.
    pub(super) scheme: &'static str,
    /// The listener's port.
    pub(super) port: u16,
}

impl Passage {
    /// A request as the client sent it.
    pub(super) fn new(asked: &ParsedRequest<'_>) -> Self {
        let mut headers = Vec::new();
        for (name, value) in &asked.request.headers {
            headers::add(&mut headers, name, value.trim());
        }
        let request = Rewritten { host: asked.request.host.clone(), path: target(asked.path, asked.query), headers };
        Passage { request, response: ResponseChange::default(), redirect: None, broken: None, notes: Vec::new() }
    }

    /// Applies filters up to the first that ends the processing.
    pub(super) fn through(mut self, filters: &[Filter], context: &FilterContext<'_>) -> Self {
        for filter in filters {
            if self.redirect.is_some() || self.broken.is_some() {
                break;
            }
            self.apply(filter, context);
        }
        self
    }

    fn apply(&mut self, filter: &Filter, context: &FilterContext<'_>) {
        match filter {
            Filter::RequestHeaders(change) => self.change_request(change),
            Filter::ResponseHeaders(change) => headers::change_response(&mut self.response, change),
            Filter::Redirect(redirect) => {
                let location = redirect::location(redirect, self.path(), context);
                self.redirect = Some((redirect.status.unwrap_or(302), location));
                self.note_path(redirect.path.as_ref(), context);
            }
            Filter::Rewrite(rewrite) => self.rewrite(rewrite, context),
            Filter::Cors(cors) => cors::share(cors, context.asked, self),
            Filter::Mirror(backend) => self.notes.push(format!("a copy goes to Service {}", name_of(backend))),
            Filter::Extension(target) => self.broken = Some(format!("the filter {}/{}", target.kind, target.name)),
            Filter::ExternalAuth(_) => self.broken = Some("the filter ExternalAuth".into()),
            Filter::Other(kind) => self.broken = Some(format!("the filter `{kind}`")),
        }
    }

    fn change_request(&mut self, change: &HeaderChange) {
        headers::change_request(&mut self.request.headers, change);
        // `Host` is kept apart from the other headers.
        if let Some(host) = headers::remove(&mut self.request.headers, "host") {
            self.request.host = host;
        }
    }

    fn rewrite(&mut self, rewrite: &Rewrite, context: &FilterContext<'_>) {
        if let Some(hostname) = &rewrite.hostname {
            self.request.host = hostname.to_string();
        }
        if let Some(change) = &rewrite.path {
            let path = redirect::changed(change, self.path(), context.prefix);
            self.request.path = target(&path, context.asked.query);
            self.note_path(Some(change), context);
        }
    }

    fn note_path(&mut self, change: Option<&PathChange>, context: &FilterContext<'_>) {
        match change {
            Some(PathChange::Prefix(_)) if context.prefix.is_none() => {
                self.notes.push("the path stays: ReplacePrefixMatch goes only with a match by PathPrefix".into());
            }
            Some(PathChange::Other(kind)) => self.notes.push(format!("the path stays: `{kind}` is not a known change")),
            _ => {}
        }
    }

    fn path(&self) -> &str {
        self.request.path.split_once('?').map_or(&self.request.path, |(path, _)| path)
    }
}

/// A path with its query.
fn target(path: &str, query: Option<&str>) -> String {
    query.map_or_else(|| path.to_owned(), |query| format!("{path}?{query}"))
}

fn name_of(backend: &BackendRef) -> String {
    match &backend.target.namespace {
        Some(namespace) => format!("{namespace}/{}", backend.target.name),
        None => backend.target.name.to_string(),
    }
}
