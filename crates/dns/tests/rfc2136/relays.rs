//! A real server behind the webhook protocol: our client, our webhook server, the RFC 2136 provider.

use std::sync::Arc;

use gatepost_dns::provider::{Provider, ProviderProblem};
use gatepost_dns::providers::webhook::server::WebhookService;
use gatepost_dns::providers::webhook::{Webhook, WebhookConfig};

use crate::bed::{Bed, MARKER, Scenario, all_ok};

pub(crate) const ALL: &[Scenario] = &[Scenario::new("behind_the_webhook_protocol", |bed| Box::pin(relay(bed)))];

async fn relay(bed: Bed<'_>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(WebhookService::new(Arc::new(bed.provider())).serve(listener));
    let client = Webhook::new(WebhookConfig { url, ..WebhookConfig::default() }).unwrap();
    let foreign = bed.server.dump(&bed.zone).unwrap();
    assert_eq!(client.zones().await.unwrap(), [bed.zone.as_str().into()]);
    assert_eq!(client.read(&bed.zone).await.unwrap().sets(), bed.read().await.sets());
    all_ok(&client.write(&bed.zone, &[bed.create("www", "192.0.2.1"), bed.create("web", "192.0.2.2")]).await);
    assert_eq!(bed.values("a-web", "TXT").await, [MARKER]);
    let error = client.write(&bed.zone, &[bed.update("www", "192.0.2.9", "192.0.2.3")]).await.remove(0).unwrap_err();
    assert!(matches!(error.problem, ProviderProblem::Stale(_)), "{error}");
    all_ok(&client.write(&bed.zone, &[bed.update("www", "192.0.2.1", "192.0.2.3")]).await);
    all_ok(&client.write(&bed.zone, &[bed.delete("www", "192.0.2.3"), bed.delete("web", "192.0.2.2")]).await);
    assert_eq!(bed.server.dump(&bed.zone).unwrap(), foreign);
}
