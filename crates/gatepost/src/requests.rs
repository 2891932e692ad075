//! A request as people write it, and the Gateway that is asked: the same for `gatepost route` and `/api/v1/route`.

use gatepost_core::attachment::Topology;
use gatepost_core::model::Key;
use gatepost_core::routing::{GatewayRequest, Scheme};

/// A request before it is read.
#[derive(Clone, Debug, Default)]
pub struct RequestText {
    /// The URL.
    pub url: String,
    /// The method.
    pub method: String,
    /// Headers, each as `Name: value`.
    pub headers: Vec<String>,
    /// The listener's port, if it is not that of the URL.
    pub port: Option<u16>,
    /// The server name of the handshake, if it is not the host.
    pub sni: Option<String>,
    /// Whether it is a gRPC call.
    pub grpc: bool,
}

impl RequestText {
    /// The request, or what is wrong with its text.
    pub fn parse(&self) -> Result<GatewayRequest, String> {
        let (scheme, remainder) = self.url.split_once("://").ok_or_else(|| self.bad_url("it has no scheme"))?;
        let (scheme, grpc) = match scheme {
            "grpc" => ("http", true),
            "grpcs" => ("https", true),
            other => (other, self.grpc),
        };
        let scheme =
            Scheme::parse(scheme).ok_or_else(|| self.bad_url("its scheme is none of http, https, tls, tcp, udp"))?;
        let split = remainder.find(['/', '?']).unwrap_or(remainder.len());
        let (host, path) = remainder.split_at(split);
        let path = path.split('#').next().unwrap_or_default();
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        let headers = self.headers.iter().map(|text| header(text)).collect::<Result<_, _>>()?;
        let port = self.port.or_else(|| url_port(host)).or_else(|| scheme.default_port());
        let port = port.ok_or("give the listener's port with --port")?;
        Ok(GatewayRequest {
            scheme,
            host: host.to_owned(),
            sni: self.sni.clone(),
            port,
            method: self.method.to_ascii_uppercase(),
            path,
            headers,
            grpc,
        })
    }

    fn bad_url(&self, why: &str) -> String {
        format!("`{}` is not a URL that `route` can ask about: {why}", self.url)
    }
}

/// The Gateway that is meant: the one that is named, or the only one.
pub fn gateway(topology: &Topology, name: Option<&str>, namespace: Option<&str>) -> Result<Key, String> {
    if let Some(name) = name {
        return match (name.split_once('/'), namespace) {
            (Some((namespace, name)), _) => Ok(Key::new(namespace, name)),
            (None, Some(namespace)) => Ok(Key::new(namespace, name)),
            (None, None) => Err(format!("--gateway {name}: write NAMESPACE/NAME, or add --namespace")),
        };
    }
    let is_meant = |key: &Key| namespace.is_none_or(|namespace| *namespace == *key.namespace);
    let in_scope = topology.gateways.iter().filter(|(_, g)| g.is_in_scope()).map(|(key, _)| key);
    let mut keys = in_scope.filter(|key| is_meant(key));
    match (keys.next(), keys.next(), namespace) {
        (Some(only), None, _) => Ok(only.clone()),
        (None, _, Some(namespace)) => Err(format!("there is no Gateway of namespace {namespace} in the input")),
        (None, _, None) => Err("there is no Gateway in the input".to_owned()),
        _ => Err("there are several Gateways: choose one with --gateway NAMESPACE/NAME".to_owned()),
    }
}

fn header(text: &str) -> Result<(String, String), String> {
    match text.split_once(':') {
        Some((name, value)) if !name.trim().is_empty() => Ok((name.trim().to_owned(), value.trim().to_owned())),
        _ => Err(format!("-H `{text}`: write `Name: value`")),
    }
}

fn url_port(host: &str) -> Option<u16> {
    let (_, port) = host.rsplit_once(':')?;
    port.parse().ok()
}
