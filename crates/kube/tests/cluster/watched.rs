//! A snapshot that follows a cluster, and questions to it that wait for their answer.

use std::time::{Duration, Instant};

use gatepost_core::model::{Key, Kind, ObjectRef, RouteKind};
use gatepost_core::snapshot::{Change, Snapshot, Visibility};
use gatepost_kube::watch::{ClusterWatch, WatchEvent, WatchSettings, blank};
use gatepost_kube::{ClusterChoice, Connection};
use gatepost_testkit::servers::kube::Cluster;
use tokio::runtime::Runtime;

/// A snapshot that follows a cluster.
pub(crate) struct WatchedCluster {
    runtime: Runtime,
    watching: ClusterWatch,
    pub(crate) snapshot: Snapshot,
    pub(crate) told: Vec<WatchEvent>,
}

impl WatchedCluster {
    /// Follows these kinds as a user.
    pub(crate) fn start(cluster: &Cluster, user: &str, settings: WatchSettings) -> WatchedCluster {
        let runtime = runtime();
        let connection = runtime.block_on(connect(cluster, user));
        WatchedCluster::on(runtime, &connection, settings)
    }

    /// Follows over a connection.
    pub(crate) fn on(runtime: Runtime, connection: &Connection, settings: WatchSettings) -> WatchedCluster {
        let snapshot = blank(&settings.kinds);
        let watching = {
            let _inside = runtime.enter();
            ClusterWatch::start(connection, settings)
        };
        WatchedCluster { runtime, watching, snapshot, told: Vec::new() }
    }

    /// Takes changes in until the snapshot is as asked.
    pub(crate) fn until(&mut self, what: &str, is_so: impl Fn(&WatchedCluster) -> bool) {
        let end = Instant::now() + Duration::from_secs(60);
        while !is_so(self) {
            assert!(Instant::now() < end, "not within a minute: {what}; last: {:?}", self.told.last());
            self.hear(Duration::from_millis(500));
        }
    }

    /// Takes in what is told for a while.
    pub(crate) fn hear(&mut self, patience: Duration) {
        let next = async { tokio::time::timeout(patience, self.watching.next()).await };
        if let Ok(Some(told)) = self.runtime.block_on(next) {
            if let WatchEvent::Change(change, _) = &told {
                self.snapshot.apply(change.clone());
            }
            if !matches!(told, WatchEvent::Heard(_)) {
                self.told.push(told);
            }
        }
    }

    pub(crate) fn sees(&self, kind: Kind) -> bool {
        *self.snapshot.visibility(kind) == Visibility::Complete
    }

    /// Why a kind is not visible.
    pub(crate) fn hidden(&self, kind: Kind) -> String {
        match self.snapshot.visibility(kind) {
            Visibility::Complete => String::new(),
            Visibility::NotVisible(why) => why.to_string(),
        }
    }

    pub(crate) fn has_route(&self, namespace: &str, name: &str) -> bool {
        let object = ObjectRef { kind: Kind::Route(RouteKind::Http), key: Key::new(namespace, name) };
        self.snapshot.routes.contains_key(&object)
    }

    /// Whether a route was ever told as gone.
    pub(crate) fn lost(&self, name: &str) -> bool {
        self.told.iter().any(|told| matches!(told, WatchEvent::Change(Change::Delete(o), _) if &**o.name() == name))
    }
}

pub(crate) fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

pub(crate) async fn connect(cluster: &Cluster, user: &str) -> Connection {
    Connection::open(&ClusterChoice { kubeconfig: Some(cluster.kubeconfig(user)), context: None }).await.unwrap()
}

/// Settings whose patience suits a test.
pub(crate) fn impatient(kinds: &[Kind]) -> WatchSettings {
    WatchSettings {
        rediscover: Duration::from_millis(500),
        relist: Duration::from_millis(500),
        ..WatchSettings::new(kinds)
    }
}

/// A namespace.
pub(crate) fn namespace(name: &str) -> String {
    format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: {name}}}}}\n")
}

/// A route, as a document of its own.
pub(crate) fn route(namespace: &str, name: &str, hostname: &str) -> String {
    format!(
        "---\napiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {{namespace: {namespace}, name: {name}}}\n\
         spec: {{hostnames: [{hostname}], parentRefs: [{{name: edge}}]}}\n"
    )
}
