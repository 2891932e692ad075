//! Copies of resources that are no kinds of the Gateway API, and objects that are made by server-side apply.

use std::time::{Duration, Instant};

use gatepost_core::model::Key;
use gatepost_kube::Connection;
use gatepost_kube::mirror::{Mirror, MirrorTimeouts, MirrorVisibility};
use gatepost_kube::resource::GroupVersionResource;
use gatepost_testkit::servers::kube::{ADMIN, Cluster, Setup, trial};
use gatepost_testkit::{Failed, Trial};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::watched::{connect, namespace, runtime};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("a copy follows its resource through a server that forgets, and one that was set back", followed),
        trial("a resource that is not installed is absent, and comes with its CRD", installed),
        trial("a resource that may not be listed is hidden, and says which right is missing", hidden),
        trial("an object that somebody else made in the same moment is not taken over", not_taken_over),
        trial("an object is changed and deleted only as it was read", preconditions),
    ]
}

const MAPS: GroupVersionResource = GroupVersionResource { group: "", version: "v1", plural: "configmaps" };
const THINGS: GroupVersionResource = GroupVersionResource { group: "example.test", version: "v1", plural: "things" };

const CRD: &str = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.test}
spec:
  group: example.test
  scope: Namespaced
  names: {plural: things, singular: thing, kind: Thing}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
";

/// A copy, and the runtime that it lives in.
struct Bed {
    runtime: Runtime,
    connection: Connection,
    mirror: Mirror,
}

impl Bed {
    fn start(cluster: &Cluster, user: &str, folder: GroupVersionResource) -> Bed {
        let runtime = runtime();
        let connection = runtime.block_on(connect(cluster, user));
        let patience = MirrorTimeouts { relist: Duration::from_millis(200), ..MirrorTimeouts::default() };
        let mirror = {
            let _inside = runtime.enter();
            Mirror::start(&connection, folder, |value| value, patience)
        };
        Bed { runtime, connection, mirror }
    }

    fn has(&self, name: &str) -> bool {
        self.mirror.now().objects.contains_key(&Key::new("copy", name))
    }

    fn sight(&self) -> MirrorVisibility {
        self.mirror.now().sight
    }

    fn until(&self, what: &str, is_so: impl Fn(&Bed) -> bool) {
        // Two requests that get no answer take a minute already.
        let end = Instant::now() + Duration::from_secs(180);
        while !is_so(self) {
            assert!(Instant::now() < end, "not within three minutes: {what}; {:?}", self.mirror.now());
            self.runtime.block_on(async { tokio::time::sleep(Duration::from_millis(50)).await });
        }
    }
}

fn map(name: &str, data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "copy", "name": name}, "data": data})
}

fn followed() -> Result<(), Failed> {
    let cluster = Cluster::start(&Setup::default())?;
    cluster.apply(&namespace("copy"))?;
    cluster.apply(&map("one", &json!({"a": "1"})).to_string())?;
    cluster.keep()?;
    let bed = Bed::start(&cluster, ADMIN, MAPS);
    bed.until("it is read", |bed| bed.has("one") && bed.sight() == MirrorVisibility::Complete);
    cluster.apply(&map("two", &json!({})).to_string())?;
    bed.until("what comes is told", |bed| bed.has("two"));
    // The copy only follows while its runtime runs: it misses all of this, and the server forgets it.
    cluster.delete("configmap/one", "copy")?;
    cluster.apply(&map("three", &json!({})).to_string())?;
    cluster.compact()?;
    cluster.kill_api();
    cluster.run_api()?;
    bed.until("the gap is closed", |bed| bed.has("three") && bed.has("two") && !bed.has("one"));
    cluster.restore()?;
    bed.until("what was set back is seen", |bed| bed.has("one") && !bed.has("two") && !bed.has("three"));
    Ok(())
}

fn installed() -> Result<(), Failed> {
    let cluster = Cluster::start(&Setup::default())?;
    cluster.apply(&namespace("copy"))?;
    let bed = Bed::start(&cluster, ADMIN, THINGS);
    bed.until("it is absent", |bed| bed.sight() == MirrorVisibility::Absent);
    cluster.install_text(CRD)?;
    bed.until("it is there", |bed| bed.sight() == MirrorVisibility::Complete);
    cluster.apply("apiVersion: example.test/v1\nkind: Thing\nmetadata: {namespace: copy, name: one}\n")?;
    bed.until("its object is seen", |bed| bed.has("one"));
    cluster.kubectl(&["delete", "crd", "things.example.test"])?;
    bed.until("it went", |bed| bed.sight() == MirrorVisibility::Absent && !bed.has("one"));
    Ok(())
}

fn hidden() -> Result<(), Failed> {
    let cluster = Cluster::start(&Setup { users: vec!["nobody"], ..Setup::default() })?;
    let bed = Bed::start(&cluster, "nobody", MAPS);
    let says = |bed: &Bed| matches!(bed.sight(), MirrorVisibility::Hidden(why) if why.contains("cannot list resource \"configmaps\""));
    bed.until("it is hidden", says);
    Ok(())
}

fn not_taken_over() -> Result<(), Failed> {
    let cluster = Cluster::start(&Setup::default())?;
    cluster.apply(&namespace("copy"))?;
    let bed = Bed::start(&cluster, ADMIN, MAPS);
    let make = |body: Value| bed.runtime.block_on(MAPS.make(&bed.connection, &body));
    make(map("ours", &json!({"a": "1"})))?;
    cluster.apply(&map("theirs", &json!({"a": "1"})).to_string())?;
    let theirs = || cluster.json(&["configmap", "theirs", "-n", "copy"]).map(|found| found["data"].clone());
    for data in [json!({"a": "2"}), json!({"b": "1"}), json!({"a": "1"})] {
        let error = make(map("theirs", &data)).unwrap_err();
        assert!(error.is_conflict(), "{error}");
        assert_eq!(theirs()?, json!({"a": "1"}), "nothing of ours is left on it");
    }
    Ok(())
}

fn preconditions() -> Result<(), Failed> {
    let cluster = Cluster::start(&Setup::default())?;
    cluster.apply(&namespace("copy"))?;
    let bed = Bed::start(&cluster, ADMIN, MAPS);
    bed.runtime.block_on(MAPS.make(&bed.connection, &map("ours", &json!({"a": "1", "b": "1"}))))?;
    let key = Key::new("copy", "ours");
    let read = || bed.runtime.block_on(MAPS.read(&bed.connection, &key)).map(Option::unwrap);
    let old = read()?;
    bed.runtime.block_on(old.apply(&bed.connection, &map("ours", &json!({"a": "2"}))))?;
    let new = read()?;
    assert_eq!(new.value["data"], json!({"a": "2"}), "what is no longer asked for goes");
    let late = bed.runtime.block_on(old.apply(&bed.connection, &map("ours", &json!({"a": "3"})))).unwrap_err();
    assert!(late.is_conflict(), "{late}");
    assert!(bed.runtime.block_on(old.delete(&bed.connection)).unwrap_err().is_conflict());
    bed.runtime.block_on(new.delete(&bed.connection))?;
    assert!(bed.runtime.block_on(MAPS.read(&bed.connection, &key))?.is_none());
    Ok(())
}
