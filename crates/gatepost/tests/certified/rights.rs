//! What `gatepost rbac` grants is enough, and what is missing is named.

use gatepost_testkit::program::Program;
use gatepost_testkit::servers::kube::{Setup, trial};
use gatepost_testkit::{Failed, Trial};

use super::bed::{WORDS, cluster, comes_to};
use crate::controller::bed::{Controller, route, until};

pub(crate) fn trials() -> Vec<Trial> {
    vec![trial("the roles of an issuer are enough for it, and a right that is missing is named", rights)]
}

fn rights() -> Result<(), Failed> {
    let cluster = cluster(&Setup { users: vec!["limited"], ..Setup::default() })?;
    let program = Program::at(env!("CARGO_BIN_EXE_gatepost"));
    let features = ["--issuer", "embedded", "--certificate-namespace", "infra"];
    let line =
        |words: &[&str]| -> Vec<String> { words.iter().chain(&features).map(|word| (*word).to_owned()).collect() };
    cluster.apply(&program.run(&line(&["rbac"]), "")?.output)?;
    let binding = |kind: &str, role: &str, namespace: &str| {
        format!(
            "apiVersion: rbac.authorization.k8s.io/v1\nkind: {kind}Binding\nmetadata: {{name: limited-{role}{namespace}}}\n\
             roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: {kind}, name: {role}}}\n\
             subjects: [{{apiGroup: rbac.authorization.k8s.io, kind: User, name: limited}}]\n---\n"
        )
    };
    let bindings = [
        binding("ClusterRole", "gatepost", ""),
        binding("Role", "gatepost", ", namespace: gatepost"),
        binding("Role", "gatepost-certificates", ", namespace: infra"),
    ];
    cluster.apply(&bindings.concat())?;
    let kubeconfig = cluster.kubeconfig("limited");
    let pre = line(&["check", "--pre", "--kubeconfig", &kubeconfig.display().to_string()]);
    let answer = program.run(&pre, "")?;
    assert_eq!(answer.exit, 0, "{}{}", answer.output, answer.errors);
    route(&cluster, "www", "www.example.org")?;
    let own = ["--provider", "embedded", "--zone", "example.org", "--issuer", "embedded"];
    let controller = Controller::start(&kubeconfig, &[&own[..], &WORDS].concat());
    comes_to(&cluster, &["www.example.org"], &[&controller]);
    assert!(!controller.log().contains("forbidden"), "{}", controller.log());
    cluster.kubectl(&["delete", "role/gatepost-certificates", "-n", "infra"])?;
    let answer = program.run(&pre, "")?;
    assert_eq!(answer.exit, 1, "{}{}", answer.output, answer.errors);
    assert!(
        answer.output.contains("secrets") && answer.output.contains("no certificate can be stored"),
        "{}",
        answer.output
    );
    let named = "cannot get resource";
    until(
        "it is named",
        || controller.get("/readyz").contains(named),
        || controller.get("/readyz") + &controller.log(),
    );
    Ok(())
}
