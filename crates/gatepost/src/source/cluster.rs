//! Reads a live cluster once, for commands that run once.
//!
//! The objects are processed like those of files. A kind that may not be listed is not visible, and is reported; a
//! server that cannot be reached is an error: a read is complete or fails. Nothing is written.

use std::collections::BTreeSet;

use gatepost_core::diagnostic::{Diagnostic, FieldPath};
use gatepost_core::model::{Kind, Str};
use gatepost_core::reason::KIND_NOT_VISIBLE;
use gatepost_core::snapshot::Visibility;
use gatepost_kube::{ClusterChoice, ClusterRead, Connection, Error, Problem, read_once};
use gatepost_objects::Loaded;

use crate::certificates::cert_manager::CertificateObject;
use crate::controller::cert_manager;
use crate::error::RunError;

/// Reads all objects that the rules need; of kinds that may not be listed cluster-wide, those in `namespace`.
pub fn read(place: &ClusterChoice, namespace: Option<&str>) -> Result<Loaded, RunError> {
    // The caller may run inside a runtime, in which another one cannot be started.
    let read = std::thread::scope(|scope| scope.spawn(|| block_on(place, namespace)).join());
    let read = read.unwrap_or_else(|_| Err(RunError::Unreadable(anyhow::anyhow!("the cluster could not be read"))))?;
    Ok(loaded(read))
}

/// The Certificate objects of cert-manager in some namespaces, each with the message on its request. `None` if
/// cert-manager is not installed.
pub fn certificates(
    place: &ClusterChoice,
    namespaces: &BTreeSet<Str>,
) -> Result<Option<Vec<CertificateObject>>, String> {
    let work = async {
        let connection = connect(place).await.map_err(|_| "no such cluster".to_owned())?;
        found(&connection, namespaces).await.map_err(|error| error.to_string())
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| error.to_string())?.block_on(work)
}

async fn found(
    connection: &Connection,
    namespaces: &BTreeSet<Str>,
) -> gatepost_kube::Result<Option<Vec<CertificateObject>>> {
    let mut found = Vec::new();
    for namespace in namespaces {
        let stored = match cert_manager::CERTIFICATES.list(connection, namespace).await {
            Err(error) if error.is_not_found() => return Ok(None),
            stored => stored?,
        };
        for stored in stored {
            let said = cert_manager::request_message(connection, &stored).await;
            found.push(CertificateObject { object: stored.value, said });
        }
    }
    Ok(Some(found))
}

/// Opens a connection; if no cluster is configured or found, the message also mentions files.
pub async fn connect(place: &ClusterChoice) -> Result<Connection, RunError> {
    let nobody_named_one = place.kubeconfig.is_none() && place.context.is_none();
    Connection::open(place).await.map_err(|error| {
        let hint = "name files with -f, or a cluster with --kubeconfig and --context";
        match nobody_named_one {
            true => RunError::usage(format!("no objects given: {hint} ({})", error.problem)),
            false => RunError::usage(format!("no such cluster: {}", error.problem)),
        }
    })
}

fn block_on(place: &ClusterChoice, namespace: Option<&str>) -> Result<ClusterRead, RunError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let connection = connect(place).await?;
        read_once(&connection, &Kind::ALL, namespace).await.map_err(|error| failure(&connection, error))
    })
}

fn failure(connection: &Connection, error: Error) -> RunError {
    let error = match error.problem {
        Problem::Unauthenticated(_) => {
            anyhow::anyhow!("{}: {error}; the credentials of the context are not valid", connection.server())
        }
        _ => anyhow::anyhow!("{}: {error}", connection.server()),
    };
    RunError::Unreadable(error)
}

fn loaded(read: ClusterRead) -> Loaded {
    let hidden = Kind::ALL.into_iter().filter_map(|kind| match read.snapshot.visibility(kind) {
        Visibility::Complete => None,
        Visibility::NotVisible(why) => Some(not_visible(kind, why)),
    });
    let mut loaded = Loaded::default();
    loaded.diagnostics = hidden.collect();
    loaded.diagnostics.extend(read.problems);
    loaded.snapshot = read.snapshot;
    loaded
}

/// The diagnostic of a kind that is not visible.
pub fn not_visible(kind: Kind, why: &str) -> Diagnostic {
    let message = format!("{kind} objects are not visible: {why}");
    let severity = KIND_NOT_VISIBLE.row().severity;
    let field = FieldPath::root();
    let (help, fix, place, related) = (None, None, None, Vec::new());
    Diagnostic { reason: KIND_NOT_VISIBLE, severity, object: None, field, message, help, fix, place, related }
}
