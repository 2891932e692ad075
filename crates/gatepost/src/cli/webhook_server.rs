//! `gatepost webhook-server`: any of our providers behind the webhook protocol of external-dns.

use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use gatepost_dns::provider::Shared;
use gatepost_dns::providers::webhook::server::WebhookService;
use tokio::net::TcpListener;

use super::flags::provider::{self, ProviderFlags};
use super::serve::stopped;
use super::session::block_on;
use super::{Ending, Failure};
use crate::render::inert;
use crate::state::State;

/// Put a provider behind the webhook protocol of external-dns, so that external-dns can use it
///
/// external-dns then decides what is published, and every change carries what it read before as its precondition. `ready
/// webhook=ADDRESS` on standard error says when it answers; `/healthz` is on the same address. The protocol has no TLS and
/// external-dns sends no token: let it listen on the loopback address of the pod of external-dns. On any other address
/// --webhook-token-file is required, for clients that send the token.
#[derive(Args, Debug)]
pub(super) struct WebhookServer {
    /// Where external-dns asks; port 0 picks a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8888", env = "GATEPOST_WEBHOOK_ADDR")]
    webhook_addr: SocketAddr,
    /// A file with the token that every request has to bear (`Authorization: Bearer`), /healthz excepted
    #[arg(long, value_name = "FILE", env = "GATEPOST_WEBHOOK_TOKEN_FILE")]
    webhook_token_file: Option<PathBuf>,
    /// Where DNS is answered by the embedded server, over UDP and TCP; port 0 picks a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:5353", env = "GATEPOST_DNS_ADDR")]
    dns_addr: SocketAddr,
    /// webhook: the zones of a webhook that does not name its domains; may be repeated
    #[arg(long, value_name = "DOMAIN", env = "GATEPOST_DOMAIN_FILTER", value_delimiter = ',')]
    domain_filter: Vec<String>,
    #[command(flatten)]
    provider: ProviderFlags,
}

impl WebhookServer {
    pub(super) fn run(self) -> Result<Ending, Failure> {
        block_on(self.serve())
    }

    async fn serve(self) -> Result<Ending, Failure> {
        let token = self.token()?;
        // Nobody else may write into the directory meanwhile.
        let _state = State::open(self.provider.state_dir(), true)?;
        let (provider, dns) = self.open()?;
        let listener = TcpListener::bind(self.webhook_addr)
            .await
            .map_err(|error| Failure::usage(format!("--webhook-addr {}: {error}", self.webhook_addr)))?;
        let dns = dns.map(|address| format!("dns={address} ")).unwrap_or_default();
        let _ = writeln!(std::io::stderr(), "ready {dns}webhook={}", listener.local_addr()?);
        let tell = |message: &str| _ = writeln!(std::io::stderr(), "{}", inert(message));
        let service = WebhookService::new(provider).with_log(Arc::new(tell));
        let service = token.iter().fold(service, |service, token| service.with_token(token));
        service.serve_until(listener, stopped()).await;
        Ok(Ending::Done)
    }

    /// The token that requests have to bear. Only on a loopback address there may be none.
    fn token(&self) -> Result<Option<String>, Failure> {
        let Some(path) = &self.webhook_token_file else {
            let address = self.webhook_addr;
            return match address.ip().is_loopback() {
                true => Ok(None),
                false => Err(Failure::usage(format!(
                    "--webhook-addr {address} can be reached by others, who could write every record: add --webhook-token-file, or listen on 127.0.0.1"
                ))),
            };
        };
        let failed =
            |why: &dyn std::fmt::Display| Failure::usage(format!("--webhook-token-file {}: {why}", path.display()));
        let text = std::fs::read_to_string(path).map_err(|error| failed(&error))?;
        match text.trim() {
            token if token.len() < 16 => Err(failed(&"a token has at least 16 characters")),
            token => Ok(Some(token.to_owned())),
        }
    }

    /// The provider, and where it answers DNS if it does.
    fn open(&self) -> Result<(Shared, Option<SocketAddr>), Failure> {
        match self.provider.kind() {
            Some(kind) if kind.is_of_process() => {
                let zones = self.provider.zones();
                if zones.is_empty() {
                    return Err(Failure::usage("--provider embedded needs its zones here: add --zone NAME"));
                }
                let server = self.provider.embedded(self.dns_addr, true)?;
                let embedded = provider::through(&server)?;
                embedded.serve(&zones).map_err(|error| Failure::usage(error.to_string()))?;
                Ok((Arc::new(embedded), Some(server.address())))
            }
            Some(_) => Ok((self.provider.open(&self.domain_filter)?, None)),
            None => {
                self.provider.check()?;
                Err(provider::unnamed())
            }
        }
    }
}
