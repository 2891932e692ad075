//! GatewayClass, Gateway, ListenerSet and their listeners.

use super::{Conditions, Kind, Meta, ObjectRef, Reference, Str, WrittenHostname};
use crate::selector::Selector;

/// A class of Gateways and who runs them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatewayClass {
    /// Name and labels.
    pub meta: Meta,
    /// Who runs Gateways of this class.
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
    /// Its own listeners, in order.
    pub listeners: Vec<Listener>,
    /// `spec.addresses`: wished for.
    pub wished_addresses: Vec<Address>,
    /// Which namespaces may add ListenerSets.
    pub allowed_listeners: Admission,
    /// `spec.infrastructure.parametersRef`.
    pub parameters: Option<Reference>,
    /// `spec.tls.frontend`: client certificates.
    pub frontend: FrontendTls,
    /// What others wrote.
    pub status: GatewayStatus,
}

/// `status` of a Gateway, as read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GatewayStatus {
    /// Conditions.
    pub conditions: Conditions,
    /// Addresses it answers at.
    pub addresses: Vec<Address>,
    /// Per listener.
    pub listeners: Vec<ListenerStatus>,
}

/// `status.listeners[]`, as read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerStatus {
    /// Which listener.
    pub name: Str,
    /// Conditions.
    pub conditions: Conditions,
}

/// An address of a Gateway.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Address {
    /// `IPAddress`, `Hostname` or an implementation's own.
    pub kind: Str,
    /// The address; may be empty in a spec.
    pub value: Str,
    /// Who can reach it: unset, `Cluster`, or an implementation's own word.
    pub routability: Option<Str>,
}

/// Listeners that join a Gateway from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerSet {
    /// `ListenerSet` or `XListenerSet`.
    pub kind: Kind,
    /// Name and labels.
    pub meta: Meta,
    /// The Gateway it joins.
    pub parent: Reference,
    /// Its listeners, in order.
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
    /// Unset means every name.
    pub hostname: Option<WrittenHostname>,
    /// Port; 0 where the field was missing or unreadable.
    pub port: u16,
    /// Protocol.
    pub protocol: Protocol,
    /// TLS settings, where given.
    pub tls: Option<ListenerTls>,
    /// Which routes may attach.
    pub allowed_routes: AllowedRoutes,
    /// Whether filters run before a route is chosen (experimental in 1.7).
    pub has_filters: bool,
}

/// The protocol of a listener.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    /// Clear-text HTTP.
    Http,
    /// HTTP in TLS that ends here.
    Https,
    /// TLS, ending here or passed through.
    Tls,
    /// Bytes.
    Tcp,
    /// Datagrams.
    Udp,
    /// Somebody's own.
    Other(Str),
}

impl Protocol {
    /// As written in a listener.
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

    /// As written in a listener.
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

    /// Whether listeners of this protocol are told apart by hostname.
    pub fn has_hostname(&self) -> bool {
        matches!(self, Protocol::Http | Protocol::Https | Protocol::Tls)
    }
}

/// `tls` of a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerTls {
    /// Where TLS ends.
    pub mode: TlsMode,
    /// Secrets with certificates, in order.
    pub certificates: Vec<Reference>,
    /// How many implementation-specific options are set.
    pub options: usize,
}

/// Where TLS ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TlsMode {
    /// At the Gateway.
    Terminate,
    /// At the backend.
    Passthrough,
    /// An unknown word.
    Other(Str),
}

impl Listener {
    /// Whether TLS ends at this listener, so that it needs a certificate.
    pub fn terminates_tls(&self) -> bool {
        match self.protocol {
            Protocol::Https => self.tls.as_ref().is_none_or(|tls| tls.mode == TlsMode::Terminate),
            Protocol::Tls => self.tls.as_ref().is_some_and(|tls| tls.mode == TlsMode::Terminate),
            _ => false,
        }
    }
}

/// `allowedRoutes` of a listener, defaults applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowedRoutes {
    /// Which namespaces.
    pub namespaces: Admission,
    /// Which kinds (group, kind); empty means whatever fits the protocol.
    pub kinds: Vec<(Str, Str)>,
}

impl Default for AllowedRoutes {
    fn default() -> Self {
        AllowedRoutes { namespaces: Admission::Same, kinds: Vec::new() }
    }
}

/// Which namespaces are let in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admission {
    /// None.
    None,
    /// That of the object itself.
    Same,
    /// Every one.
    All,
    /// Those whose labels match; without a selector, none.
    Selector(Option<Selector>),
    /// An unknown word: none.
    Other(Str),
}

/// `spec.tls.frontend` of a Gateway: how client certificates are checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FrontendTls {
    /// For every HTTPS port without settings of its own.
    pub default: Option<ClientValidation>,
    /// Per port.
    pub per_port: Vec<(u16, Option<ClientValidation>)>,
}

/// CA certificates that client certificates are checked against.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientValidation {
    /// Where they are.
    pub ca_certificates: Vec<Reference>,
    /// `AllowValidOnly`, `AllowInsecureFallback` or an unknown word.
    pub mode: Str,
}
