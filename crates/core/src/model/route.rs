//! The one `Route` type for five wire formats.

use std::fmt;

use super::{Kind, Meta, ObjectRef, Reference, RouteStatus, SharedList, ShortVec, Str, WrittenHostname};

/// A route of any kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// Which kind.
    pub kind: RouteKind,
    /// Name and labels.
    pub meta: Meta,
    /// Its parentRefs, in spec order.
    pub parents: SharedList<ParentRef>,
    /// Hostnames, unvalidated; none means every name. TCP and UDP routes have none.
    pub hostnames: ShortVec<WrittenHostname>,
    /// Rules, in order.
    pub rules: SharedList<Rule>,
    /// `status.parents`, as read.
    pub status: RouteStatus,
}

impl Route {
    /// Which object it is.
    pub fn object(&self) -> ObjectRef {
        ObjectRef { kind: Kind::Route(self.kind), key: self.meta.key.clone() }
    }
}

/// The kinds of routes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RouteKind {
    /// HTTPRoute.
    Http,
    /// GRPCRoute.
    Grpc,
    /// TLSRoute.
    Tls,
    /// TCPRoute.
    Tcp,
    /// UDPRoute.
    Udp,
}

/// What a route of a kind matches: the way in which traffic is chosen for its rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrafficKind {
    /// HTTP requests.
    Requests,
    /// gRPC calls.
    Calls,
    /// Whole connections or datagrams.
    Connections,
}

/// Everything that differs between kinds of routes and is not a rule of one stage.
struct RouteKindProperties {
    name: &'static str,
    resource: &'static str,
    source: &'static str,
    has_hostnames: bool,
    traffic: TrafficKind,
    external_dns_version: &'static str,
}

impl RouteKind {
    /// Every kind.
    pub const ALL: [RouteKind; 5] = [RouteKind::Http, RouteKind::Grpc, RouteKind::Tls, RouteKind::Tcp, RouteKind::Udp];

    /// The one table of route kinds.
    const fn properties(self) -> RouteKindProperties {
        match self {
            RouteKind::Http => RouteKindProperties {
                name: "HTTPRoute",
                resource: "httproutes",
                source: "gateway-httproute",
                has_hostnames: true,
                traffic: TrafficKind::Requests,
                external_dns_version: "v1",
            },
            RouteKind::Grpc => RouteKindProperties {
                name: "GRPCRoute",
                resource: "grpcroutes",
                source: "gateway-grpcroute",
                has_hostnames: true,
                traffic: TrafficKind::Calls,
                external_dns_version: "v1",
            },
            RouteKind::Tls => RouteKindProperties {
                name: "TLSRoute",
                resource: "tlsroutes",
                source: "gateway-tlsroute",
                has_hostnames: true,
                traffic: TrafficKind::Connections,
                external_dns_version: "v1",
            },
            RouteKind::Tcp => RouteKindProperties {
                name: "TCPRoute",
                resource: "tcproutes",
                source: "gateway-tcproute",
                has_hostnames: false,
                traffic: TrafficKind::Connections,
                external_dns_version: "v1alpha2",
            },
            RouteKind::Udp => RouteKindProperties {
                name: "UDPRoute",
                resource: "udproutes",
                source: "gateway-udproute",
                has_hostnames: false,
                traffic: TrafficKind::Connections,
                external_dns_version: "v1alpha2",
            },
        }
    }

    /// The kind as Kubernetes spells it.
    pub const fn as_str(self) -> &'static str {
        self.properties().name
    }

    /// The resource name in API paths and RBAC.
    pub const fn resource(self) -> &'static str {
        self.properties().resource
    }

    /// The name of the source on the command line: `gateway-httproute`.
    pub const fn source(self) -> &'static str {
        self.properties().source
    }

    /// The kind of routes that a source of this name reads.
    pub fn of_source(name: &str) -> Option<RouteKind> {
        RouteKind::ALL.into_iter().find(|kind| kind.source() == name)
    }

    /// Whether its spec has hostnames.
    pub const fn has_hostnames(self) -> bool {
        self.properties().has_hostnames
    }

    /// What its rules match.
    pub const fn traffic(self) -> TrafficKind {
        self.properties().traffic
    }

    /// The API version in which external-dns reads it.
    pub const fn external_dns_version(self) -> &'static str {
        self.properties().external_dns_version
    }
}

impl fmt::Display for RouteKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A reference to a Gateway or ListenerSet to attach to. Group and kind have the API server's defaults.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ParentRef {
    /// The object.
    pub target: Reference,
    /// One listener of it, by name.
    pub section: Option<Str>,
    /// Only listeners on this port.
    pub port: Option<u16>,
}

/// One rule of a route.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Rule {
    /// Its name, where given.
    pub name: Option<Str>,
    /// What it matches.
    pub matches: Matches,
    /// Filters, in order.
    pub filters: SharedList<Filter>,
    /// Backends, in order.
    pub backends: SharedList<BackendRef>,
}

/// What a rule matches; each item is matched independently.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Matches {
    /// Every connection (TLS, TCP, UDP).
    #[default]
    Everything,
    /// HTTP requests; never empty, the default match is filled in.
    Http(SharedList<HttpMatch>),
    /// gRPC calls; empty matches every call.
    Grpc(SharedList<GrpcMatch>),
}

/// One item of an HTTPRoute rule's `matches`; all parts must match.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HttpMatch {
    /// Path; the default is the prefix `/`.
    pub path: PathMatch,
    /// Headers.
    pub headers: SharedList<ValueMatch>,
    /// Query parameters.
    pub query: SharedList<ValueMatch>,
    /// Method.
    pub method: Option<Str>,
}

impl Default for HttpMatch {
    fn default() -> Self {
        let path = PathMatch { kind: MatchKind::Prefix, value: "/".into() };
        HttpMatch { path, headers: SharedList::default(), query: SharedList::default(), method: None }
    }
}

/// How a value is compared with the request's.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum MatchKind {
    /// Equal.
    Exact,
    /// A prefix of whole path segments.
    Prefix,
    /// Regular expression, implementation-specific.
    Regex,
    /// An unknown value: never matches.
    Other(Str),
}

/// A path match.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PathMatch {
    /// How.
    pub kind: MatchKind,
    /// With what.
    pub value: Str,
}

/// A header or query parameter match.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ValueMatch {
    /// How.
    pub kind: MatchKind,
    /// Which.
    pub name: Str,
    /// With what.
    pub value: Str,
}

/// One item of a GRPCRoute rule's `matches`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GrpcMatch {
    /// How service and method are compared.
    pub kind: MatchKind,
    /// Service.
    pub service: Option<Str>,
    /// Method.
    pub method: Option<Str>,
    /// Headers.
    pub headers: SharedList<ValueMatch>,
}

/// A modification of requests or responses, of a rule or of one backend.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Filter {
    /// Changes request headers.
    RequestHeaders(HeaderChange),
    /// Changes response headers.
    ResponseHeaders(HeaderChange),
    /// Answers with a redirect.
    Redirect(Redirect),
    /// Rewrites host or path.
    Rewrite(Rewrite),
    /// Copies requests elsewhere.
    Mirror(BackendRef),
    /// Answers CORS preflight requests.
    Cors(Cors),
    /// An implementation-specific filter.
    Extension(Reference),
    /// Asks an external authorization server.
    ExternalAuth(BackendRef),
    /// An unknown type, or a known type without its settings.
    Other(Str),
}

/// Changes of headers: set, then add, then remove.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct HeaderChange {
    /// Name and value; replaces.
    pub set: SharedList<(Str, Str)>,
    /// Name and value; appends.
    pub add: SharedList<(Str, Str)>,
    /// Names.
    pub remove: SharedList<Str>,
}

/// `requestRedirect`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Redirect {
    /// `http` or `https`; unset keeps the request's.
    pub scheme: Option<Str>,
    /// Host; unset keeps the request's.
    pub hostname: Option<Str>,
    /// Path; unset keeps the request's.
    pub path: Option<PathChange>,
    /// Port.
    pub port: Option<u16>,
    /// Status code; the default is 302.
    pub status: Option<u16>,
}

/// `urlRewrite`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Rewrite {
    /// Host.
    pub hostname: Option<Str>,
    /// Path.
    pub path: Option<PathChange>,
}

/// How a path is changed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PathChange {
    /// The whole path.
    Full(Str),
    /// The prefix that matched.
    Prefix(Str),
    /// An unknown value.
    Other(Str),
}

/// `cors`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Cors {
    /// Origins; `*` or wildcards in the host.
    pub origins: SharedList<Str>,
    /// Whether credentials may be sent.
    pub credentials: bool,
    /// Methods; `*` for all.
    pub methods: SharedList<Str>,
    /// Request headers; `*` for all.
    pub headers: SharedList<Str>,
    /// Response headers that scripts may read.
    pub expose: SharedList<Str>,
    /// Seconds for which a preflight result may be cached.
    pub max_age: u32,
}

/// A backend of a rule.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BackendRef {
    /// The object; group and kind default to a Service.
    pub target: Reference,
    /// Its port.
    pub port: Option<u16>,
    /// Relative share of the requests.
    pub weight: u32,
    /// Filters for this backend only.
    pub filters: SharedList<Filter>,
}
