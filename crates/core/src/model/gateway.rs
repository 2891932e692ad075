//! GatewayClass, Gateway, ListenerSet and their listeners.

use super::{Conditions, Kind, Meta, ObjectRef, Reference, Str, WrittenHostname};
use crate::selector::Selector;

/// A class of Gateways and the controller that implements them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatewayClass {
    /// Name and labels.
    pub meta: Meta,
    /// `spec.controllerName`.
    pub controller: Str,
    /// `status.supportedFeatures`.
    pub features: Vec<Str>,
    /// `status.conditions`.
    pub conditions: Conditions,
}

/// A Gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gateway {
    /// Name and labels.
    pub meta: Meta,
    /// `spec.gatewayClassName`.
    pub class: Str,
    /// Its own listeners, in spec order.
    pub listeners: Vec<Listener>,
    /// `spec.addresses`: requested addresses.
    pub wished_addresses: Vec<Address>,
    /// `spec.allowedListeners`: the namespaces whose ListenerSets may attach.
    pub allowed_listeners: Admission,
    /// `spec.infrastructure.parametersRef`.
    pub parameters: Option<Reference>,
    /// `spec.tls.frontend`: validation of client certificates.
    pub frontend: FrontendTls,
    /// `status`, written by the Gateway implementation.
    pub status: GatewayStatus,
}

/// `status` of a Gateway, as read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GatewayStatus {
    /// Conditions.
    pub conditions: Conditions,
    /// Addresses that it is reachable at.
    pub addresses: Vec<Address>,
    /// Status per listener.
    pub listeners: Vec<ListenerStatus>,
}

/// `status.listeners[]`, as read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerStatus {
    /// Name of the listener.
    pub name: Str,
    /// Conditions.
    pub conditions: Conditions,
}

/// An address of a Gateway.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Address {
    /// `IPAddress`, `Hostname` or an implementation-specific type.
    pub kind: Str,
    /// The address; may be empty in a spec.
    pub value: Str,
    /// From where it is reachable: unset, `Cluster`, or an implementation-specific value.
    pub routability: Option<Str>,
}

/// Listeners that are attached to a Gateway by a separate object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerSet {
    /// `ListenerSet` or `XListenerSet`.
    pub kind: Kind,
    /// Name and labels.
    pub meta: Meta,
    /// The Gateway it attaches to.
    pub parent: Reference,
    /// Its listeners, in spec order.
    pub listeners: Vec<Listener>,
    /// `status.conditions`, as read.
    pub conditions: Conditions,
    /// `status.listeners`, as read.
    pub listener_status: Vec<ListenerStatus>,
}

impl ListenerSet {
    /// Which object it is.
    pub fn object(&self) -> ObjectRef {
        ObjectRef { kind: self.kind, key: self.meta.key.clone() }
    }
}

/// One listener, of a Gateway or of a ListenerSet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// Its name, unique in its owner.
    pub name: Str,
    /// Its hostname; unset means every name.
    pub hostname: Option<WrittenHostname>,
    /// Port; 0 if the field is missing or invalid.
    pub port: u16,
    /// Protocol.
    pub protocol: Protocol,
    /// TLS settings, if present.
    pub tls: Option<ListenerTls>,
    /// Which routes may attach.
    pub allowed_routes: AllowedRoutes,
    /// Whether filters run before a route is selected (experimental in 1.7).
    pub has_filters: bool,
}

/// The protocol of a listener.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    /// HTTP without TLS.
    Http,
    /// HTTP over TLS, terminated at the listener.
    Https,
    /// TLS, terminated or passed through.
    Tls,
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// An implementation-specific protocol.
    Other(Str),
}

impl Protocol {
    /// Parses the text of the field.
    pub fn parse(text: &str) -> Self {
        match text {
            "HTTP" => Protocol::Http,
            "HTTPS" => Protocol::Https,
            "TLS" => Protocol::Tls,
            "TCP" => Protocol::Tcp,
            "UDP" => Protocol::Udp,
            other => Protocol::Other(other.into()),
        }
    }

    /// The text of the field.
    pub fn as_str(&self) -> &str {
        match self {
            Protocol::Http => "HTTP",
            Protocol::Https => "HTTPS",
            Protocol::Tls => "TLS",
            Protocol::Tcp => "TCP",
            Protocol::Udp => "UDP",
            Protocol::Other(other) => other,
        }
    }

    /// Whether listeners of this protocol are distinguished by hostname.
    pub fn has_hostname(&self) -> bool {
        matches!(self, Protocol::Http | Protocol::Https | Protocol::Tls)
    }
}

/// `tls` of a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerTls {
    /// Where TLS is terminated.
    pub mode: TlsMode,
    /// Secrets with certificates, in order.
    pub certificates: Vec<Reference>,
    /// Number of implementation-specific options.
    pub options: usize,
}

/// Where TLS is terminated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TlsMode {
    /// At the Gateway.
    Terminate,
    /// At the backend.
    Passthrough,
    /// An unknown value.
    Other(Str),
}

impl Listener {
    /// Whether TLS is terminated at this listener, so that it needs a certificate.
    pub fn terminates_tls(&self) -> bool {
        match self.protocol {
            Protocol::Https => self.tls.as_ref().is_none_or(|tls| tls.mode == TlsMode::Terminate),
            Protocol::Tls => self.tls.as_ref().is_some_and(|tls| tls.mode == TlsMode::Terminate),
            _ => false,
        }
    }
}

/// `allowedRoutes` of a listener, with defaults applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowedRoutes {
    /// Namespaces of routes.
    pub namespaces: Admission,
    /// Route kinds (group, kind); empty means every kind that the protocol supports.
    pub kinds: Vec<(Str, Str)>,
}

impl Default for AllowedRoutes {
    fn default() -> Self {
        AllowedRoutes { namespaces: Admission::Same, kinds: Vec::new() }
    }
}

/// Which namespaces are allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admission {
    /// None.
    None,
    /// The namespace of the object itself.
    Same,
    /// All namespaces.
    All,
    /// Namespaces whose labels match; none without a selector.
    Selector(Option<Selector>),
    /// An unknown value: none.
    Other(Str),
}

/// `spec.tls.frontend` of a Gateway: how client certificates are validated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FrontendTls {
    /// For every HTTPS port without its own settings.
    pub default: Option<ClientValidation>,
    /// Per port.
    pub per_port: Vec<(u16, Option<ClientValidation>)>,
}

/// CA certificates that client certificates are validated against.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientValidation {
    /// References to the CA certificates.
    pub ca_certificates: Vec<Reference>,
    /// `AllowValidOnly`, `AllowInsecureFallback` or an unknown value.
    pub mode: Str,
}
