//! Several providers: two servers with a zone of the same name, a public and a private view.

use gatepost_testkit::program::{Program, ProgramOutput, words};
use gatepost_testkit::servers::{KEY_NAME, KEY_SECRET};

use super::bed::{Bed, run};
use super::running::{Running, comes_true, get};

/// Two servers, and the settings file that names both.
struct Views {
    public: Bed,
    private: Bed,
}

/// A Gateway of each view, each with a policy that names a provider, and routes: their names, hostnames and Gateways.
fn world(policies: [&str; 2], routes: &[(&str, &[&str])]) -> String {
    let mut text = String::new();
    for ((gateway, address), provider) in [("outer", "192.0.2.1"), ("inner", "10.0.0.1")].into_iter().zip(policies) {
        text += &format!(
            "\
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {{namespace: infra, name: {gateway}}}
spec:
  gatewayClassName: standard
  listeners: [{{name: web, port: 80, protocol: HTTP}}]
status: {{addresses: [{{type: IPAddress, value: {address}}}]}}
---
apiVersion: gatepost.dev/v1alpha1
kind: DNSPolicy
metadata: {{namespace: infra, name: {gateway}}}
spec:
  targetRef: {{group: gateway.networking.k8s.io, kind: Gateway, name: {gateway}}}
  providerRef: {{name: {provider}}}
---
"
        );
    }
    for (hostname, gateways) in routes {
        let parents: Vec<String> = gateways.iter().map(|gateway| format!("{{name: {gateway}}}")).collect();
        text += &format!(
            "\
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {{namespace: infra, name: {hostname}}}
spec:
  parentRefs: [{}]
  hostnames: [{hostname}.example.org]
  rules: [{{filters: [{{type: RequestRedirect, requestRedirect: {{hostname: elsewhere.test}}}}]}}]
---
",
            parents.join(", ")
        );
    }
    text
}

const BOTH: [&str; 2] = ["public", "private"];

impl Views {
    fn new() -> Option<Views> {
        Some(Views { public: Bed::new()?, private: Bed::new()? })
    }

    /// The flag with the settings file.
    fn settings(&self) -> String {
        self.settings_with("")
    }

    /// The same with more lines in the entry of the private view, which comes last.
    fn settings_with(&self, more: &str) -> String {
        let secret = self.public.folder.file("secret", &format!("{KEY_SECRET}\n")).unwrap();
        let provider = |name: &str, bed: &Bed| {
            format!(
                "- name: {name}\n  kind: rfc2136\n  zones: [example.org]\n  rfc2136-host: [\"{}\"]\n  \
                 rfc2136-tsig-keyname: {KEY_NAME}\n  rfc2136-tsig-secret-file: {secret}\n  provider-timeout: 600s\n",
                bed.server.address
            )
        };
        let text = format!(
            "txt-owner-id: me\nproviders:\n{}{}{more}",
            provider("public", &self.public),
            provider("private", &self.private)
        );
        let file = self.public.folder.file("settings.yaml", &text).unwrap();
        format!("--settings '{file}'")
    }

    fn run(&self, line: &str, objects: &str) -> ProgramOutput {
        run(&format!("{line} {}", self.settings()), objects)
    }

    fn json(&self, line: &str, objects: &str) -> (i32, serde_json::Value) {
        let answer = self.run(&format!("{line} -o json"), objects);
        let json = serde_json::from_str(&answer.output);
        (answer.exit, json.unwrap_or_else(|error| panic!("{error}: {}{}", answer.output, answer.errors)))
    }

    /// The addresses of a name in the public and in the private view.
    fn addresses(&self, name: &str) -> [Vec<String>; 2] {
        [&self.public, &self.private].map(|bed| bed.addresses(&format!("{name}.example.org")))
    }

    fn put(&self, objects: &str) {
        self.public.folder.file("objects/all.yaml", objects).unwrap();
    }

    fn serve(&self, more: &str) -> Running {
        let folder = self.public.folder.path().join("objects");
        let line = format!("serve -f '{}' --http-addr 127.0.0.1:0 {} {more}", folder.display(), self.settings());
        Running::start(&line)
    }
}

fn views(public: &[&str], private: &[&str]) -> [Vec<String>; 2] {
    [public, private].map(|addresses| addresses.iter().map(|address| (*address).to_owned()).collect())
}

#[test]
fn a_name_is_published_where_its_policy_says_and_moves_without_a_gap() {
    let Some(both) = Views::new() else { return };
    let objects = world(BOTH, &[("open", &["outer"]), ("app", &["outer", "inner"]), ("secret", &["inner"])]);
    let (exit, plan) = both.json("plan", &objects);
    assert_eq!(exit, 0, "{plan:#}");
    let names: Vec<&str> = plan["providers"].as_array().unwrap().iter().filter_map(|p| p["name"].as_str()).collect();
    assert_eq!(names, ["public", "private"]);
    let shown = |name: &str| {
        let records = plan["records"].as_array().unwrap().iter().filter(|r| r["name"] == format!("{name}.example.org"));
        records.map(|r| format!("{} {}", r["provider"], r["targets"][0]).replace('"', "")).collect::<Vec<_>>()
    };
    assert_eq!(shown("app"), ["private 10.0.0.1", "public 192.0.2.1"]);
    let digest = plan["digest"].as_str().unwrap();
    let (exit, stale) = both.json("apply --plan 0123456789abcdef", &objects);
    assert_eq!((exit, both.addresses("open")), (3, views(&[], &[])), "{stale:#}");
    let answer = both.run(&format!("apply --plan {digest}"), &objects);
    assert_eq!(answer.exit, 0, "{}{}", answer.output, answer.errors);
    assert_eq!(both.addresses("open"), views(&["192.0.2.1"], &[]));
    assert_eq!(both.addresses("app"), views(&["192.0.2.1"], &["10.0.0.1"]));
    assert_eq!(both.addresses("secret"), views(&[], &["10.0.0.1"]));
    assert!(both.public.zone().iter().any(|line| line.contains("me-public")), "each has an owner id of its own");
    let again = both.run("plan --expect-no-changes", &objects);
    assert_eq!(again.exit, 0, "{}{}", again.output, again.errors);
    let verified = both.run("verify", &objects);
    assert_eq!(verified.exit, 0, "{}{}", verified.output, verified.errors);
    assert!(verified.output.contains("provider private:"), "{}", verified.output);

    // The new provider cannot be reached: what is to move stays where it is, and the rest of the work goes on.
    let moved =
        world(BOTH, &[("open", &["outer"]), ("app", &["outer", "inner"]), ("secret", &["outer"]), ("new", &["inner"])]);
    both.public.server.kill();
    let answer = both.run("apply", &moved);
    assert_eq!(answer.exit, 4, "{}{}", answer.output, answer.errors);
    assert!(answer.output.contains("replacement-pending"), "{}", answer.output);
    assert_eq!(both.private.addresses("secret.example.org"), ["10.0.0.1"]);
    assert_eq!(both.private.addresses("new.example.org"), ["10.0.0.1"], "its own work is not held up");
    both.public.server.run().unwrap();
    let (_, planned) = both.json("plan", &moved);
    let (exit, applied) = both.json("apply", &moved);
    assert_eq!(exit, 0, "{applied:#}");
    assert_eq!(applied["digest"], planned["digest"], "what was planned was carried out, whatever followed from it");
    assert!(applied.to_string().contains("it moved to the provider `public`"), "{applied:#}");
    assert_eq!(
        both.addresses("secret"),
        views(&["192.0.2.1"], &[]),
        "made in one, deleted in the other, in one command"
    );
}

#[test]
fn serve_publishes_to_each_and_one_that_hangs_holds_up_no_other() {
    let Some(both) = Views::new() else { return };
    both.put(&world(BOTH, &[("app", &["outer", "inner"]), ("walks", &["inner"])]));
    let served = both.serve("--interval 1s");
    comes_true("both have app", || both.addresses("app") == views(&["192.0.2.1"], &["10.0.0.1"]));
    let question = |bed: &Bed| {
        let address = &bed.server.address;
        format!("dig @{} -p {} app.example.org A\n", address.ip(), address.port())
    };
    comes_true("it says where to ask", || {
        let said = served.said();
        [&both.public, &both.private].into_iter().any(|bed| said.contains(&question(bed)))
    });
    comes_true("walks is private", || both.addresses("walks") == views(&[], &["10.0.0.1"]));
    let ready = || get(served.address("http"), "/readyz");
    comes_true("it is ready", || ready().starts_with("HTTP/1.1 200"));

    // At every moment at least one view answers for the name that moves.
    let moved = world(BOTH, &[("app", &["outer", "inner"]), ("walks", &["outer"])]);
    both.put(&moved);
    comes_true("walks has moved", || {
        // Where it was is looked at first: what is gone there must be here already.
        let (old, new) = (both.private.addresses("walks.example.org"), both.public.addresses("walks.example.org"));
        assert!(!old.is_empty() || !new.is_empty(), "the name is nowhere");
        old.is_empty() && new == ["192.0.2.1"]
    });

    // The private server hangs with every question open, for longer than this test has patience; it is read once a second.
    both.private.server.signal("STOP");
    both.put(&world(
        BOTH,
        &[("app", &["outer", "inner"]), ("walks", &["inner"]), ("late", &["outer"]), ("in", &["inner"])],
    ));
    comes_true("late is public", || both.public.addresses("late.example.org") == ["192.0.2.1"]);
    assert_eq!(both.public.addresses("walks.example.org"), ["192.0.2.1"], "it stays until the other has it");
    both.put(&world(
        BOTH,
        &[("app", &["outer", "inner"]), ("walks", &["inner"]), ("later", &["outer"]), ("in", &["inner"])],
    ));
    comes_true("later is public", || both.public.addresses("later.example.org") == ["192.0.2.1"]);
    comes_true("late is gone", || both.public.addresses("late.example.org").is_empty());
    comes_true("the numbers tell them apart", || {
        let metrics = get(served.address("http"), "/metrics");
        let is = |name: &str, value: u8| {
            metrics.contains(&format!("gatepost_provider_ready{{provider=\"{name}\"}} {value}"))
        };
        is("public", 1) && is("private", 0)
    });
    both.private.server.signal("CONT");
    comes_true("walks is back", || both.addresses("walks") == views(&[], &["10.0.0.1"]));
    comes_true("in is private", || both.addresses("in") == views(&[], &["10.0.0.1"]));
    comes_true("it is ready", || ready().starts_with("HTTP/1.1 200"));

    both.private.server.kill();
    comes_true("the one that is down is named", || ready().contains("provider `private`"));
    both.private.server.run().unwrap();
    comes_true("it is ready again", || ready().starts_with("HTTP/1.1 200"));
    assert_eq!(served.stop(), Some(0));
}

#[test]
fn what_cannot_be_acted_upon_is_refused() {
    let Some(both) = Views::new() else { return };
    let unknown = world(["public", "elsewhere"], &[("app", &["outer"])]);
    let answer = both.run("check", &unknown);
    assert_eq!(answer.exit, 1, "{}{}", answer.output, answer.errors);
    let told: Vec<&str> = answer.output.split_whitespace().collect();
    assert!(told.join(" ").contains("the providers are `public`, `private`"), "{}", answer.output);
    let near = both.run("check", &world(["public", "privat"], &[]));
    let told: Vec<&str> = near.output.split_whitespace().collect();
    assert!(told.join(" ").contains("did you mean `private`?"), "{}", near.output);
    let nameless = run("check", &unknown);
    let told: Vec<&str> = nameless.output.split_whitespace().collect();
    assert!(told.join(" ").contains("no settings file that lists `providers` was given"), "{}", nameless.output);
    let withheld = both.run("verify", &world(["public", "elsewhere"], &[("a", &["inner"]), ("b", &["inner"])]));
    assert!(
        withheld.output.ends_with("2 more hostnames are withheld; `gatepost plan` says why\n"),
        "{}",
        withheld.output
    );
    let known = both.run("check", &world(BOTH, &[("app", &["outer"])]));
    assert!(!known.output.contains("provider-not-found"), "{}", known.output);
    for (flags, named) in [
        ("--profile external-dns", "`providers`"),
        ("--resolve-targets", "`providers`"),
        ("--provider embedded --state-dir /nowhere/at/all", "--provider embedded"),
    ] {
        let answer = both.run(&format!("plan {flags}"), &unknown);
        assert!(answer.exit == 2 && answer.errors.contains(named), "{flags}: {}{}", answer.output, answer.errors);
    }
    for (entry, named) in [
        ("  confirm-deletes: true\n", "`private`: `confirm-deletes` cannot stand in an entry"),
        ("  webhook-provider-url: http://localhost\n", "`private`: --webhook-provider-url is a flag of the provider"),
        ("  policy: sync\n", "provider `private` has a policy"),
    ] {
        let line = format!("controller --kubeconfig /nowhere {}", both.settings_with(entry));
        let answer = Program::at(env!("CARGO_BIN_EXE_gatepost")).run(&words(&line), "").unwrap();
        assert!(answer.exit == 2 && answer.errors.contains(named), "{entry}: {}{}", answer.output, answer.errors);
    }
}

#[test]
fn a_provider_with_dry_run_is_read_and_never_written() {
    let Some(both) = Views::new() else { return };
    let before = world(BOTH, &[("app", &["outer", "inner"]), ("old", &["inner"])]);
    assert_eq!(both.run("apply", &before).exit, 0);
    let dry = both.settings_with("  dry-run: true\n");
    let after = world(BOTH, &[("app", &["outer", "inner"]), ("new", &["outer", "inner"])]);
    let answer = run(&format!("apply {dry}"), &after);
    assert_eq!(answer.exit, 0, "{}{}", answer.output, answer.errors);
    assert!(answer.output.contains("nothing was written (dry-run of this provider)"), "{}", answer.output);
    assert_eq!(both.addresses("new"), views(&["192.0.2.1"], &[]));
    assert_eq!(both.addresses("old"), views(&[], &["10.0.0.1"]));

    both.put(&world(BOTH, &[("newer", &["outer", "inner"])]));
    let folder = both.public.folder.path().join("objects");
    let served = Running::start(&format!("serve -f '{}' --http-addr 127.0.0.1:0 {dry}", folder.display()));
    comes_true("newer is public", || both.addresses("newer") == views(&["192.0.2.1"], &[]));
    comes_true("it says so", || {
        get(served.address("http"), "/readyz").contains("provider `private`: nothing is written there (dry-run)")
    });
    comes_true("the plan of the private view is made", || {
        get(served.address("http"), "/api/v1/plan").contains("10.0.0.1")
    });
    assert_eq!(both.addresses("app"), views(&[], &["10.0.0.1"]));
    assert_eq!(both.addresses("newer"), views(&["192.0.2.1"], &[]));
    assert_eq!(served.stop(), Some(0));
}

/// An answer of `/api/v1`.
fn api(served: &Running, path: &str) -> serde_json::Value {
    let answer = get(served.address("http"), &format!("/api/v1/{path}"));
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    serde_json::from_str(body).unwrap_or_else(|error| panic!("{path}: {error}: {answer}"))
}

/// One field of each item of a list, beside the provider of the item.
fn by_provider(list: &serde_json::Value, field: &str) -> Vec<String> {
    let items = list.as_array().into_iter().flatten();
    items.map(|item| format!("{} {}", item["provider"], item[field]).replace('"', "")).collect()
}

#[test]
fn answers_tell_the_zones_records_and_changes_of_each_provider_apart() {
    let Some(both) = Views::new() else { return };
    both.put(&world(BOTH, &[("app", &["outer", "inner"]), ("open", &["outer"]), ("in", &["inner"])]));
    let served = both.serve("--interval 1s");
    comes_true("both are written", || {
        both.addresses("app") == views(&["192.0.2.1"], &["10.0.0.1"]) && !both.addresses("in")[1].is_empty()
    });
    let health = |name: &str| api(&served, &format!("names/{name}.example.org"))["health"].clone();
    comes_true("all is right", || ["app", "open", "in"].iter().all(|name| health(name) == "right"));
    let zones = api(&served, "zones");
    assert_eq!(by_provider(&zones["items"], "name"), ["public example.org", "private example.org"], "{zones:#}");
    assert_eq!(by_provider(&zones["items"], "records"), ["public 2", "private 2"], "{zones:#}");
    let app = api(&served, "names/app.example.org");
    let sets = |field: &str| by_provider(&app["recordSets"], field);
    assert_eq!(sets("wanted"), ["private [10.0.0.1]", "public [192.0.2.1]"], "{app:#}");
    assert_eq!(sets("stored"), sets("wanted"), "{app:#}");
    let activity = by_provider(&app["activity"], "kind");
    assert!(activity.iter().any(|entry| entry == "private written"), "{app:#}");
    assert!(activity.iter().any(|entry| entry == "public written"), "{app:#}");

    // What the private server has is not known: names that only the public one has are right all the same.
    both.private.server.kill();
    comes_true("in is not known", || health("in") == "unknown");
    assert_eq!(health("open"), "right");
    let open = api(&served, "names/open.example.org");
    assert_eq!(by_provider(&open["recordSets"], "stored"), ["public [192.0.2.1]"], "{open:#}");
    let app = api(&served, "names/app.example.org");
    assert_eq!(app["health"], "unknown", "{app:#}");
    assert_eq!(by_provider(&app["recordSets"], "stored"), ["private null", "public [192.0.2.1]"], "{app:#}");
    both.private.server.run().unwrap();
    comes_true("in is right again", || health("in") == "right");
    assert_eq!(served.stop(), Some(0));

    // A provider to which nothing is written has other values stored than are wanted there, and its own plan.
    both.put(&world(BOTH, &[("new", &["outer", "inner"])]));
    let folder = both.public.folder.path().join("objects");
    let dry = both.settings_with("  dry-run: true\n");
    let served = Running::start(&format!("serve -f '{}' --http-addr 127.0.0.1:0 {dry}", folder.display()));
    comes_true("new is public", || !both.addresses("new")[0].is_empty());
    comes_true("the plan names the provider", || {
        let plan = api(&served, "plan");
        let steps = plan["steps"].as_array().unwrap();
        let private = steps.iter().any(|step| step["name"] == "new.example.org" && step["provider"] == "private");
        let new = api(&served, "names/new.example.org");
        let stored = by_provider(&new["recordSets"], "stored");
        private && stored == ["private []", "public [192.0.2.1]"]
    });
    assert_eq!(served.stop(), Some(0));
}
