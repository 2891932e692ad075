//! Connections to services over HTTP and HTTPS: bounded in time and size, no redirects, nothing repeated.

use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::header::HeaderMap;
use hyper::{Request, StatusCode};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client as Pool;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls::{ClientConfig, RootCertStore};
use tokio::time::timeout;

use super::Cause;
use crate::provider::{ProviderError, Result};

/// A connection that was idle for longer may be closed by the service just as a change is sent.
const IDLE: Duration = Duration::from_secs(20);

/// How the program calls itself.
pub(crate) const AGENT: &str = concat!("gatepost/", env!("CARGO_PKG_VERSION"));

/// Connections that are kept for the next question.
pub(crate) struct HttpConnections {
    pool: Pool<HttpsConnector<HttpConnector>, Full<Bytes>>,
    patience: Duration,
}

/// An answer, read to its end.
pub(crate) struct HttpAnswer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl HttpConnections {
    /// Connections on which a question with its answer may take so long.
    pub(crate) fn new(patience: Duration) -> Result<HttpConnections> {
        let mut tcp = HttpConnector::new();
        tcp.set_connect_timeout(Some(patience));
        tcp.set_nodelay(true);
        tcp.enforce_http(false);
        let connector = HttpsConnectorBuilder::new().with_tls_config(tls()?).https_or_http().enable_http1();
        // A zone of many pages is read over one connection.
        let pool = Pool::builder(TokioExecutor::new()).pool_idle_timeout(IDLE).build(connector.wrap_connector(tcp));
        Ok(HttpConnections { pool, patience })
    }

    /// Sends a request and reads its answer, which may have so many bytes.
    pub(crate) async fn send(
        &self,
        request: Request<Full<Bytes>>,
        limit: usize,
    ) -> std::result::Result<HttpAnswer, Cause> {
        let late = |_| Cause::Broken(format!("no answer within {} s", self.patience.as_secs_f32()));
        timeout(self.patience, self.round_trip(request, limit)).await.map_err(late)?
    }

    async fn round_trip(&self, request: Request<Full<Bytes>>, limit: usize) -> std::result::Result<HttpAnswer, Cause> {
        let (head, body) = self.pool.request(request).await.map_err(Cause::of_request)?.into_parts();
        let body = Limited::new(body, limit).collect().await.map_err(|error| Cause::of_body(error, limit))?;
        Ok(HttpAnswer { status: head.status, headers: head.headers, body: body.to_bytes() })
    }
}

/// TLS with the authorities that the system trusts.
fn tls() -> Result<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| ProviderError::settings(error.to_string()))?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}
