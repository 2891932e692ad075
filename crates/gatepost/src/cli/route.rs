//! `gatepost route URL`: who serves a request, and why not the others.

use std::io::Write;

use clap::Args;
use gatepost_core::routing::{Router, RoutingAnswer, RoutingOutcome};

use super::{Ending, Failure, Format, Input};
use crate::render::{Colour, inert_line};
use crate::requests::{self, RequestText};
use crate::source::Objects;
use crate::view::route::RouteView;
use crate::view::write_json;

/// Say which listener, route, rule and backend serve a request, and why the others do not
///
/// Schemes: http, https, tls, tcp, udp (grpc and grpcs mean http and https with --grpc). The port of the URL is only part of the Host header; --port is the listener's.
/// Exit status 1 unless the request is forwarded, redirected, or a CORS preflight is answered.
#[derive(Args, Debug)]
pub(super) struct Route {
    /// The request: https://shop.example.com/cart?id=1
    url: String,
    #[command(flatten)]
    input: Input,
    /// The Gateway, as NAMESPACE/NAME, or as NAME with --namespace; needed where there are several
    #[arg(long, value_name = "NAMESPACE/NAME")]
    gateway: Option<String>,
    /// Namespace of the Gateway; of a cluster that shows no more, all that is read
    #[arg(short = 'n', long, value_name = "NAMESPACE", env = "GATEPOST_NAMESPACE")]
    namespace: Option<String>,
    /// The listener's port [default: that of the URL, else of its scheme]
    #[arg(long)]
    port: Option<u16>,
    /// Server name of the TLS handshake [default: the host]
    #[arg(long)]
    sni: Option<String>,
    /// The request is a gRPC call
    #[arg(long)]
    grpc: bool,
    /// HTTP method
    #[arg(short = 'X', long = "request", value_name = "METHOD", default_value = "GET")]
    method: String,
    /// Header; may be repeated
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE")]
    headers: Vec<String>,
    /// Output format
    #[arg(short = 'o', long = "output", value_enum, default_value_t)]
    output: Format,
}

impl Route {
    pub(super) fn run(self, out: &mut dyn Write) -> Result<Ending, Failure> {
        let request = self.asked().parse().map_err(Failure::usage)?;
        let objects = Objects::read_for(&self.input, self.namespace.as_deref())?;
        super::warn_unreadable(&objects);
        let topology = objects.topology(&Default::default());
        let gateway = requests::gateway(&topology, self.gateway.as_deref(), self.namespace.as_deref());
        let gateway = gateway.map_err(Failure::usage)?;
        let router = Router::compile(objects.snapshot(), &topology, &gateway)
            .ok_or_else(|| Failure::usage(format!("Gateway {gateway} is not in the input")))?;
        let answer = router.route(&request);
        match self.output {
            Format::Json => write_json(out, &RouteView::of(&answer))?,
            Format::Text => write_text(out, &answer, Colour::detect())?,
        }
        Ok(if answer.outcome.is_served() { Ending::Done } else { Ending::No })
    }

    fn asked(&self) -> RequestText {
        RequestText {
            url: self.url.clone(),
            method: self.method.clone(),
            headers: self.headers.clone(),
            port: self.port,
            sni: self.sni.clone(),
            grpc: self.grpc,
        }
    }
}

fn write_text(out: &mut dyn Write, answer: &RoutingAnswer, colour: Colour) -> std::io::Result<()> {
    let good = answer.outcome.is_served();
    let mark = if good { colour.paint("32", "✓") } else { colour.paint("31", "✗") };
    let status = answer.status.map(|s| format!(" {s}")).unwrap_or_default();
    writeln!(out, "{mark} {}{status}", answer.outcome.as_str())?;
    let field = |out: &mut dyn Write, name: &str, value: Option<String>| match value {
        Some(value) => writeln!(out, "  {name:<9} {}", inert_line(&value)),
        None => Ok(()),
    };
    field(out, "listener", answer.listener.as_ref().map(ToString::to_string))?;
    let rule = answer.rule.map(|rule| format!(", rule {rule}")).unwrap_or_default();
    field(out, "route", answer.route.as_ref().map(|route| format!("{route}{rule}")))?;
    let shares = answer.backends.iter().map(|b| b.weight).chain(answer.unavailable.iter().map(|b| b.weight));
    let total: u64 = shares.map(u64::from).sum();
    for share in &answer.backends {
        let port = share.port.map(|p| format!(":{p}")).unwrap_or_default();
        field(out, "backend", Some(format!("{}{port}, {} of {total}", share.backend, share.weight)))?;
    }
    for share in &answer.unavailable {
        let text = format!("{} unusable ({}), {} of {total}", share.backend, share.reason, share.weight);
        field(out, "backend", Some(text))?;
    }
    if answer.outcome == RoutingOutcome::Forward {
        field(out, "request", answer.request.as_ref().map(|r| format!("{}{}", r.host, r.path)))?;
    }
    field(out, "location", answer.location.clone())?;
    if !answer.because.is_empty() {
        writeln!(out, "because")?;
        answer.because.iter().try_for_each(|line| writeln!(out, "  {}", inert_line(line)))?;
    }
    Ok(())
}
