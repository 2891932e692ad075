//! `gatepost webhook-server`: any of our providers behind the webhook protocol of external-dns.

use std::io::Write;
use std::net::SocketAddr;
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
/// webhook=ADDRESS` on standard error says when it answers; `/healthz` is on the same address. There is neither TLS nor
/// authentication in the protocol: let it listen where only external-dns can reach it.
#[derive(Args, Debug)]
pub(super) struct WebhookServer {
    /// Where external-dns asks; port 0 picks a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8888", env = "GATEPOST_WEBHOOK_ADDR")]
    webhook_addr: SocketAddr,
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
        // Nobody else may write into the directory meanwhile.
        let _state = State::open(self.provider.state_dir(), true)?;
        let (provider, dns) = self.open()?;
        let listener = TcpListener::bind(self.webhook_addr)
            .await
            .map_err(|error| Failure::usage(format!("--webhook-addr {}: {error}", self.webhook_addr)))?;
        let dns = dns.map(|address| format!("dns={address} ")).unwrap_or_default();
        let _ = writeln!(std::io::stderr(), "ready {dns}webhook={}", listener.local_addr()?);
        let tell = |message: &str| _ = writeln!(std::io::stderr(), "{}", inert(message));
        WebhookService::new(provider).with_log(Arc::new(tell)).serve_until(listener, stopped()).await;
        Ok(Ending::Done)
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
