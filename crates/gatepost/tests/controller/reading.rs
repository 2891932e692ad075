//! Read commands on a live cluster: the same answers as on the same objects in files.
//!
//! The objects of all golden cases go into one cluster, each case in namespaces of its own. An API server sets times and
//! versions by itself, so the files to compare with are what the server gives back, read by `kubectl`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use gatepost_core::model::Kind;
use gatepost_core::names::Hostname;
use gatepost_testkit::program::{Program, words};
use gatepost_testkit::servers::kube::{ADMIN, Channel, Cluster, Setup};
use gatepost_testkit::{Failed, Trial, tree};
use serde_json::{Map, Value, json};

use super::bed::{cluster, route, trial};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("all golden cases: the same JSON from files and from the live API", same_answers),
        trial("kubectl gatepost: the same answer as by its own name", by_kubectl),
        trial("a cluster that cannot be reached or is not named is a failure with a way out", no_cluster),
    ]
}

fn by_kubectl() -> Result<(), Failed> {
    let cluster = cluster(&Setup::default())?;
    route(&cluster, "web", "www.example.org")?;
    let program = env!("CARGO_BIN_EXE_gatepost");
    std::os::unix::fs::symlink(program, cluster.folder().join("kubectl-gatepost"))?;
    let mut kubectl = Command::new(cluster.command(ADMIN).get_program());
    kubectl.env("PATH", cluster.folder()).env("HOME", cluster.folder()).env("KUBECONFIG", cluster.kubeconfig(ADMIN));
    let told = kubectl.args(["gatepost", "explain", "www.example.org"]).output()?;
    let kubeconfig = cluster.kubeconfig(ADMIN).display().to_string();
    let expected =
        Program::at(program).run(&words(&format!("explain www.example.org --kubeconfig {kubeconfig}")), "")?;
    assert!(expected.output.contains("www.example.org"), "{}", expected.output);
    assert_eq!((told.status.code(), String::from_utf8(told.stdout)?), (Some(expected.exit), expected.output));
    Ok(())
}

/// How an API server says that a schema or a rule of it refuses an object.
const REFUSALS: [&str; 3] = ["(Invalid)", "(BadRequest)", "failed to create typed patch object"];

fn same_answers() -> Result<(), Failed> {
    let cluster = Cluster::start(&Setup { channel: Channel::Experimental("v1.7.0"), ..Setup::default() })?;
    cluster.install_text(&gatepost_objects::crds::yaml()?)?;
    let (objects, hostnames) = golden();
    put(&cluster, &objects)?;
    let dump = dumped(&cluster)?;
    refused(&objects, &tree::text(Path::new(&dump))?)?;
    let mut commands = vec![
        "check -o json".to_owned(),
        "status -o json".to_owned(),
        "plan -o json".to_owned(),
        "plan -o json --profile external-dns --gateway-listener-sets".to_owned(),
        "plan -o json --status compute --publish governed".to_owned(),
    ];
    commands.extend(hostnames.iter().step_by(25).map(|name| format!("explain {name} -o json")));
    let gateways = cluster.json(&["gateways", "-A"])?;
    let gateways = gateways["items"].as_array().cloned().unwrap_or_default();
    for (gateway, hostname) in gateways.iter().zip(hostnames.iter().cycle()).step_by(20) {
        let (namespace, name) = (&gateway["metadata"]["namespace"], &gateway["metadata"]["name"]);
        let gateway = format!("{}/{}", namespace.as_str().unwrap_or_default(), name.as_str().unwrap_or_default());
        commands.push(format!("route http://{}/ --gateway {gateway} -o json", hostname.replace('*', "x")));
    }
    let program = Program::at(env!("CARGO_BIN_EXE_gatepost"));
    for command in &commands {
        let kubeconfig = cluster.kubeconfig(ADMIN).display().to_string();
        let live = answer(&program, command, &["--kubeconfig", &kubeconfig])?;
        let files = answer(&program, command, &["--as-cluster", "-f", &dump])?;
        assert_eq!(live.0, files.0, "{command}: exit status");
        same(command, &live.1, &files.1);
    }
    Ok(())
}

fn same(command: &str, live: &Value, files: &Value) {
    if live == files {
        return;
    }
    let (live, files) = (format!("{live:#}"), format!("{files:#}"));
    let differs = live.lines().zip(files.lines()).enumerate().find(|(_, (a, b))| a != b);
    panic!("{command}: {differs:?}; {} and {} lines", live.lines().count(), files.lines().count());
}

/// Exit status and JSON, without places in files, of which a cluster has none.
fn answer(program: &Program, command: &str, input: &[&str]) -> Result<(i32, Value), Failed> {
    let mut line = words(command);
    line.extend(input.iter().map(|word| (*word).to_owned()));
    let answer = program.run(&line, "")?;
    let mut value = serde_json::from_str(&answer.output)
        .map_err(|error| format!("{command} {input:?}: {error}: {}{}", answer.output, answer.errors))?;
    strip(&mut value);
    Ok((answer.exit, value))
}

fn strip(value: &mut Value) {
    match value {
        Value::Object(map) => {
            if map.contains_key("file") && map.contains_key("line") {
                map.retain(|key, _| !["file", "line", "column"].contains(&key.as_str()));
            }
            map.values_mut().for_each(strip);
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}

/// Holds what the API server did not take to the list of it: it is what its schemas refuse, and nothing else.
fn refused(objects: &[(String, Value)], dump: &str) -> Result<(), Failed> {
    let dump: Value = serde_json::from_str(dump)?;
    let key = |object: &Value| {
        let metadata = &object["metadata"];
        format!("{}/{}/{}", object["kind"], metadata["namespace"], metadata["name"]).replace('"', "")
    };
    let taken: BTreeSet<String> = dump["items"].as_array().into_iter().flatten().map(key).collect();
    assert!(taken.len() > 700, "only {} objects are there", taken.len());
    let missing = objects.iter().filter(|(_, object)| !taken.contains(&key(object)));
    let word = |(case, object): &(String, Value)| {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        // Where there is no namespace, the name has the number of the case in front.
        let own = name.split_once('-').filter(|_| object["metadata"]["namespace"].is_null());
        format!("{case}: {} {}\n", object["kind"], own.map_or(name, |(_, own)| own))
    };
    let mut missing: Vec<String> = missing.map(word).map(|line| line.replace('"', "")).collect();
    missing.sort();
    let list = tree::root().join("crates/gatepost/tests/controller/refused.txt");
    if std::env::var_os("GATEPOST_BLESS").is_some() {
        fs::write(&list, missing.concat())?;
    }
    assert_eq!(tree::text(&list)?, missing.concat(), "GATEPOST_BLESS=1 rewrites the list");
    Ok(())
}

/// The objects of all cases with the case they are from, and the hostnames in them.
fn golden() -> (Vec<(String, Value)>, Vec<String>) {
    let root = tree::root().join("tests/cases");
    let is_case = |path: &Path| {
        let name = path.to_string_lossy();
        name.ends_with(".yaml") && !name.ends_with(".out.yaml") && !path.starts_with(root.join("faults"))
    };
    let mut objects = BTreeMap::new();
    for (number, path) in tree::files(&root).iter().filter(|path| is_case(path)).enumerate() {
        let text = tree::text(path).unwrap_or_default();
        for document in text.split("\n---\n").filter_map(|text| gatepost_objects::mapping(text).ok()) {
            if let Some(object) = moved(document, &format!("c{number}-")) {
                let metadata = &object["metadata"];
                let key = format!("{} {} {}", object["kind"], metadata["namespace"], metadata["name"]);
                let case = tree::below(&root, path).trim_end_matches(".yaml").to_owned();
                objects.insert(key, (case, object));
            }
        }
    }
    let mut hostnames = Vec::new();
    objects.values().for_each(|(_, object)| names(object, &mut hostnames));
    hostnames.sort();
    hostnames.dedup();
    (objects.into_values().collect(), hostnames)
}

fn names(object: &Value, found: &mut Vec<String>) {
    let hostnames = object["spec"]["hostnames"].as_array().into_iter().flatten();
    let is_asked = |name: &&str| Hostname::parse(name).is_ok() && *name != "*";
    found.extend(hostnames.filter_map(Value::as_str).filter(is_asked).map(str::to_owned));
}

/// An object of one of our kinds, in namespaces of its case; nothing where it is no such object.
fn moved(document: Map<String, Value>, prefix: &str) -> Option<Value> {
    let mut object = Value::Object(document);
    let (group, _) = object["apiVersion"].as_str()?.rsplit_once('/').unwrap_or(("", ""));
    let kind = Kind::of(group, object["kind"].as_str()?)?;
    object["metadata"]["name"].as_str()?;
    object["metadata"]
        .as_object_mut()?
        .retain(|key, _| ["name", "namespace", "labels", "annotations"].contains(&key.as_str()));
    if !kind.is_cluster_scoped() && object["metadata"]["namespace"].is_null() {
        object["metadata"]["namespace"] = "default".into();
    }
    if kind.is_cluster_scoped() {
        object["metadata"]["name"] = format!("{prefix}{}", object["metadata"]["name"].as_str()?).into();
    }
    rename(&mut object, prefix);
    if let Some(status) = object.get_mut("status") {
        complete(status);
    }
    Some(object)
}

/// Gives every condition what a server insists on and cases leave out.
fn complete(value: &mut Value) {
    match value {
        Value::Object(map) => {
            for condition in map.get_mut("conditions").and_then(Value::as_array_mut).into_iter().flatten() {
                if let Some(condition) = condition.as_object_mut() {
                    condition.entry("lastTransitionTime").or_insert("2026-01-01T00:00:00Z".into());
                    condition.entry("message").or_insert("".into());
                    condition.entry("reason").or_insert("Test".into());
                }
            }
            map.values_mut().for_each(complete);
        }
        Value::Array(items) => items.iter_mut().for_each(complete),
        _ => {}
    }
}

/// Puts the prefix before every namespace and class that is named.
fn rename(value: &mut Value, prefix: &str) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                match value {
                    Value::String(name) if key == "namespace" || key == "gatewayClassName" => {
                        *name = format!("{prefix}{name}")
                    }
                    Value::Array(names) if key == "names" => {
                        let texts = names.iter().filter_map(Value::as_str);
                        *names = texts.map(|name| format!("{prefix}{name}").into()).collect();
                    }
                    other => rename(other, prefix),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| rename(item, prefix)),
        _ => {}
    }
}

/// Puts objects and their status into the cluster; what it refuses is refused by a schema.
fn put(cluster: &Cluster, objects: &[(String, Value)]) -> Result<(), Failed> {
    let mut namespaces: Vec<&str> = objects.iter().filter_map(|(_, o)| o["metadata"]["namespace"].as_str()).collect();
    namespaces.sort_unstable();
    namespaces.dedup();
    let spaces =
        namespaces.iter().map(|name| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}));
    let listed = |items: Vec<Value>| json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string();
    let apply = ["apply", "--server-side", "--force-conflicts", "--validate=ignore", "-f", "-"];
    cluster.feed(&apply, &listed(spaces.collect()))?;
    let all: Vec<Value> = objects.iter().map(|(_, object)| object.clone()).collect();
    judge(cluster.feed(&apply, &listed(all)), &REFUSALS);
    let told = objects.iter().map(|(_, object)| object).filter(|object| object["status"].is_object());
    let status = [&apply[..], &["--subresource=status"]].concat();
    let known = [&REFUSALS[..], &["(NotFound)"]].concat();
    judge(cluster.feed(&status, &listed(told.cloned().collect())), &known);
    Ok(())
}

fn judge(said: std::io::Result<String>, known: &[&str]) {
    let text = said.err().map(|error| error.to_string()).unwrap_or_default();
    for line in text.lines().filter(|line| line.starts_with("Error") || line.starts_with("error")) {
        assert!(known.iter().any(|known| line.contains(known)), "refused for another reason: {line}");
    }
}

/// Everything of our kinds, as `kubectl` shows it, in a file.
fn dumped(cluster: &Cluster) -> Result<String, Failed> {
    let served = cluster.kubectl(&["api-resources", "-o", "name"])?;
    let name = |kind: &Kind| match kind.group() {
        "" => kind.resource().to_owned(),
        group => format!("{}.{group}", kind.resource()),
    };
    let kinds: Vec<String> =
        Kind::ALL.iter().map(name).filter(|name| served.lines().any(|line| line == name)).collect();
    let text = cluster.kubectl(&["get", &kinds.join(","), "-A", "-o", "json"])?;
    let path = cluster.folder().join("dump.json");
    fs::write(&path, text)?;
    Ok(path.display().to_string())
}

fn no_cluster() -> Result<(), Failed> {
    let program = Program::at(env!("CARGO_BIN_EXE_gatepost"));
    let run = |line: &str| program.run(&words(line), "");
    let unnamed = run("check")?;
    assert_eq!(unnamed.exit, 2);
    assert!(unnamed.errors.contains("name files with -f"), "{}", unnamed.errors);
    let folder = gatepost_testkit::scratch::Scratch::new()?;
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "x", "users": [],
        "clusters": [{"name": "x", "cluster": {"server": "http://127.0.0.1:1"}}],
        "contexts": [{"name": "x", "context": {"cluster": "x", "user": ""}}],
    });
    let path = folder.file("config", &config.to_string())?;
    let away = run(&format!("check --kubeconfig {path}"))?;
    assert_eq!(away.exit, 4, "{}", away.errors);
    assert!(away.errors.contains("cannot be reached"), "{}", away.errors);
    let unknown = run(&format!("check --kubeconfig {path} --context other"))?;
    assert_eq!(unknown.exit, 2, "{}", unknown.errors);
    assert!(unknown.errors.contains("other"), "{}", unknown.errors);
    let both = run(&format!("check --kubeconfig {path} -f {path}"))?;
    assert_eq!(both.exit, 2, "{}", both.errors);
    Ok(())
}
