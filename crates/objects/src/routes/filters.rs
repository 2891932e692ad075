//! Filters of HTTPRoutes, GRPCRoutes and listeners.

use gatepost_core::model::{
    BackendRef, Cors, Filter, HeaderChange, PathChange, Redirect, Reference, Rewrite, SharedList, Str,
};

use super::parts::single_backend;
use crate::fields::Fields;
use crate::hostnames::precise;
use crate::references;
use crate::rules;
use crate::shapes::Shape;

const CORS_METHODS: &[&str] = &["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH", "*"];

/// Reads `filters` of an HTTPRoute's rule or backend.
pub(super) fn http(f: &Fields<'_>) -> SharedList<Filter> {
    let filters = f.mappings("filters", http_filter);
    rules::at_most(f, "filters", filters.len(), 16);
    rules::filters::check_list(f, &filters);
    f.share_list(filters)
}

/// Reads `filters` of a GRPCRoute's rule or backend.
pub(super) fn grpc(f: &Fields<'_>) -> SharedList<Filter> {
    let filters = f.mappings("filters", grpc_filter);
    rules::at_most(f, "filters", filters.len(), 16);
    rules::filters::check_list(f, &filters);
    f.share_list(filters)
}

/// One filter's settings, all of them optional; its type says which must be there.
struct FilterSettings {
    request_headers: Option<HeaderChange>,
    response_headers: Option<HeaderChange>,
    redirect: Option<Redirect>,
    rewrite: Option<Rewrite>,
    mirror: Option<Option<BackendRef>>,
    cors: Option<Cors>,
    extension: Option<Reference>,
    auth: Option<Option<BackendRef>>,
}

fn http_filter(f: &Fields<'_>) -> Filter {
    let settings = FilterSettings {
        redirect: f.mapping("requestRedirect", redirect),
        rewrite: f.mapping("urlRewrite", rewrite),
        cors: f.mapping("cors", cors),
        auth: f.mapping("externalAuth", external_auth),
        ..grpc_settings(f)
    };
    let kind = f.required("type", Shape::Text(63));
    let members = [
        ("RequestHeaderModifier", "requestHeaderModifier", settings.request_headers.is_some()),
        ("ResponseHeaderModifier", "responseHeaderModifier", settings.response_headers.is_some()),
        ("RequestMirror", "requestMirror", settings.mirror.is_some()),
        ("RequestRedirect", "requestRedirect", settings.redirect.is_some()),
        ("URLRewrite", "urlRewrite", settings.rewrite.is_some()),
        ("ExtensionRef", "extensionRef", settings.extension.is_some()),
        ("CORS", "cors", settings.cors.is_some()),
        ("ExternalAuth", "externalAuth", settings.auth.is_some()),
    ];
    rules::filters::union(f, &kind, &members);
    filter(kind, settings)
}

fn grpc_filter(f: &Fields<'_>) -> Filter {
    let settings = grpc_settings(f);
    let kind = f.required("type", Shape::Text(63));
    let members = [
        ("RequestHeaderModifier", "requestHeaderModifier", settings.request_headers.is_some()),
        ("ResponseHeaderModifier", "responseHeaderModifier", settings.response_headers.is_some()),
        ("RequestMirror", "requestMirror", settings.mirror.is_some()),
        ("ExtensionRef", "extensionRef", settings.extension.is_some()),
    ];
    rules::filters::union(f, &kind, &members);
    filter(kind, settings)
}

fn grpc_settings(f: &Fields<'_>) -> FilterSettings {
    FilterSettings {
        request_headers: f.mapping("requestHeaderModifier", header_change),
        response_headers: f.mapping("responseHeaderModifier", header_change),
        mirror: f.mapping("requestMirror", mirror),
        extension: f.mapping("extensionRef", references::local),
        redirect: None,
        rewrite: None,
        cors: None,
        auth: None,
    }
}

fn filter(kind: Str, settings: FilterSettings) -> Filter {
    let found = match &*kind {
        "RequestHeaderModifier" => settings.request_headers.map(Filter::RequestHeaders),
        "ResponseHeaderModifier" => settings.response_headers.map(Filter::ResponseHeaders),
        "RequestRedirect" => settings.redirect.map(Filter::Redirect),
        "URLRewrite" => settings.rewrite.map(Filter::Rewrite),
        "RequestMirror" => settings.mirror.flatten().map(Filter::Mirror),
        "CORS" => settings.cors.map(Filter::Cors),
        "ExtensionRef" => settings.extension.map(Filter::Extension),
        "ExternalAuth" => settings.auth.flatten().map(Filter::ExternalAuth),
        _ => None,
    };
    found.unwrap_or(Filter::Other(kind))
}

fn header_change(f: &Fields<'_>) -> HeaderChange {
    let remove = f.texts("remove");
    rules::at_most(f, "remove", remove.len(), 16);
    rules::unique(f, "remove", None, remove.iter(), "header");
    HeaderChange { set: headers(f, "set"), add: headers(f, "add"), remove: remove.into() }
}

fn headers(f: &Fields<'_>, key: &'static str) -> SharedList<(Str, Str)> {
    let headers = f.mappings(key, |f| (f.required("name", Shape::HeaderName), f.required("value", Shape::HeaderValue)));
    rules::at_most(f, key, headers.len(), 16);
    rules::unique(f, key, Some("name"), headers.iter().map(|(name, _)| name), "name");
    headers.into()
}

fn redirect(f: &Fields<'_>) -> Redirect {
    Redirect {
        scheme: rules::word(f, "scheme", &["http", "https"]),
        hostname: f.node("hostname").and_then(precise),
        path: f.mapping("path", path_change),
        port: f.port("port"),
        status: status_code(f),
    }
}

fn status_code(f: &Fields<'_>) -> Option<u16> {
    let code = f.number("statusCode")?;
    if ![301, 302, 303, 307, 308].contains(&code) {
        f.unknown_value("statusCode", &code.to_string(), &["301", "302", "303", "307", "308"]);
        return None;
    }
    u16::try_from(code).ok()
}

fn rewrite(f: &Fields<'_>) -> Rewrite {
    Rewrite { hostname: f.node("hostname").and_then(precise), path: f.mapping("path", path_change) }
}

fn path_change(f: &Fields<'_>) -> PathChange {
    let full = f.shaped("replaceFullPath", Shape::Short(1024));
    let prefix = f.shaped("replacePrefixMatch", Shape::Short(1024));
    let kind = f.required("type", Shape::Text(63));
    let members = [
        ("ReplaceFullPath", "replaceFullPath", full.is_some()),
        ("ReplacePrefixMatch", "replacePrefixMatch", prefix.is_some()),
    ];
    if !kind.is_empty() {
        rules::filters::union(f, &kind, &members);
    }
    match (&*kind, full, prefix) {
        ("ReplaceFullPath", Some(full), _) => PathChange::Full(full),
        ("ReplacePrefixMatch", _, Some(prefix)) => PathChange::Prefix(prefix),
        _ => PathChange::Other(kind),
    }
}

fn mirror(f: &Fields<'_>) -> Option<BackendRef> {
    f.number_in("percent", "a percentage", 0, 100);
    f.mapping("fraction", fraction);
    if f.has("percent") && f.has("fraction") {
        f.invalid("fraction", "must be left out where `percent` is set");
    }
    single_backend(f)
}

fn fraction(f: &Fields<'_>) {
    f.require("numerator");
    let most = i64::from(i32::MAX);
    let numerator = f.number_in("numerator", "a numerator", 0, most).unwrap_or(0);
    let denominator = f.number_in("denominator", "a denominator", 1, most).unwrap_or(100);
    if numerator > denominator {
        f.invalid("numerator", format!("is {numerator}, which is more than the denominator {denominator}"));
    }
}

fn cors(f: &Fields<'_>) -> Cors {
    let max_age =
        f.number_in("maxAge", "an age in seconds", 1, i64::from(i32::MAX)).and_then(|age| u32::try_from(age).ok());
    Cors {
        origins: cors_list(f, "allowOrigins", 64, Some(Shape::Origin)),
        credentials: f.flag("allowCredentials").unwrap_or(false),
        methods: cors_list(f, "allowMethods", 9, None),
        headers: cors_list(f, "allowHeaders", 64, Some(Shape::HeaderName)),
        expose: cors_list(f, "exposeHeaders", 64, Some(Shape::HeaderName)),
        max_age: max_age.unwrap_or(5),
    }
}

/// A list of origins, methods or headers in which `*` stands alone.
fn cors_list(f: &Fields<'_>, key: &'static str, most: usize, shape: Option<Shape>) -> SharedList<Str> {
    let items: Vec<Str> = f.list(key, |node| {
        let text = match shape {
            Some(shape) => node.shaped(shape),
            None => node.text().inspect(|word| node.known(word, CORS_METHODS)),
        };
        Some(f.share(text.unwrap_or_default()))
    });
    rules::at_most(f, key, items.len(), most);
    rules::unique(f, key, None, items.iter(), "entry");
    if key != "exposeHeaders" && items.len() > 1 && items.iter().any(|item| &**item == "*") {
        f.invalid(key, "has `*` beside other entries; `*` stands alone");
    }
    items.into()
}

/// Reads `externalAuth`.
pub(crate) fn external_auth(f: &Fields<'_>) -> Option<BackendRef> {
    let (grpc, http) = (f.mapping("grpc", grpc_auth).is_some(), f.mapping("http", http_auth).is_some());
    f.mapping("forwardBody", |f| f.number_in("maxSize", "a size", 0, i64::from(u16::MAX)));
    f.require("protocol");
    if let Some(protocol) = f.text("protocol") {
        rules::filters::union_of(f, "protocol", &protocol, &[("HTTP", "http", http), ("GRPC", "grpc", grpc)]);
    }
    single_backend(f)
}

fn grpc_auth(f: &Fields<'_>) {
    let headers = f.texts("allowedHeaders");
    rules::at_most(f, "allowedHeaders", headers.len(), 64);
    rules::unique(f, "allowedHeaders", None, headers.iter(), "header");
}

fn http_auth(f: &Fields<'_>) {
    grpc_auth(f);
    let headers = f.texts("allowedResponseHeaders");
    rules::at_most(f, "allowedResponseHeaders", headers.len(), 64);
    rules::unique(f, "allowedResponseHeaders", None, headers.iter(), "header");
    f.shaped("path", Shape::UrlPath);
}
