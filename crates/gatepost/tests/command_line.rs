//! The command line itself: exit statuses, what is said about bad settings and unreadable input, and where.
//!
//! Exit status: 0 done, 1 the answer is no, 2 usage or settings, 4 could not read; the same in every output format.

use std::process::{Command, Stdio};

use gatepost_testkit::program::{Program, ProgramOutput, words};
use gatepost_testkit::scratch::Scratch;

const GATEWAY: &str = "\
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {namespace: infra, name: edge}
spec:
  gatewayClassName: standard
  addresses: [{value: 192.0.2.1}]
  listeners: [{name: web, port: 80, protocol: HTTP, hostname: \"*.example.org\"}]
";

fn route(name: &str) -> String {
    format!(
        "\
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {{namespace: infra, name: {name}}}
spec: {{parentRefs: [{{name: edge}}], hostnames: [{name}.example.org], rules: [{{backendRefs: [{{name: web, port: 80}}]}}]}}
"
    )
}

fn world(routes: &[&str]) -> String {
    let routes = routes.iter().map(|name| route(name));
    std::iter::once(GATEWAY.to_owned()).chain(routes).collect::<Vec<_>>().join("---\n")
}

fn gatepost() -> Program {
    Program::at(env!("CARGO_BIN_EXE_gatepost"))
}

/// Runs a command line on objects that are handed over as standard input.
fn run(line: &str, input: &str) -> ProgramOutput {
    gatepost().run(&words(line), input).expect("the program runs")
}

fn scratch() -> Scratch {
    Scratch::new().expect("a folder can be made")
}

/// A path inside quotes, so that it stays one word.
fn quoted(path: impl AsRef<std::path::Path>) -> String {
    format!("'{}'", path.as_ref().display())
}

#[test]
fn a_bad_setting_ends_the_program_and_names_its_flag() {
    let lines = [
        ("--label-filter", "plan -f - --label-filter 'tier in'"),
        ("--label-filter", "plan -f - --label-filter '=x'"),
        ("--annotation-filter", "plan -f - --annotation-filter 'a in (b'"),
        ("--gateway-label-filter", "explain a.example.org -f - --gateway-label-filter 'a b'"),
        ("--source", "plan -f - --source service"),
        ("--source", "plan -f - --source gateway-httproute,nothing"),
        ("--annotation-prefix", "plan -f - --annotation-prefix dns.example.org"),
        ("--annotation-prefix", "plan -f - --annotation-prefix /"),
        ("--gateway-address", "plan -f - --gateway-address edge=192.0.2.1"),
        ("--gateway-address", "plan -f - --gateway-address infra/edge"),
        ("--gateway-address", "plan -f - --gateway-address infra/edge="),
        ("--gateway-address", "plan -f - --gateway-address /edge=192.0.2.1"),
        ("--gateway-address", "plan -f - --gateway-address 'infra/edge=not an address'"),
        ("--fqdn-template", "plan -f - --fqdn-template '{{.Name'"),
        ("--fqdn-template", "plan -f - --fqdn-template '{{nothing .Name}}'"),
        ("--fqdn-template", "explain a.example.org -f - --fqdn-template ok --fqdn-template '{{end}}'"),
        ("--profile", "plan -f - --profile loose"),
        ("--publish", "plan -f - --publish some"),
        ("--publish", "plan -f - --publish governed --profile external-dns"),
        ("--status", "plan -f - --status guess"),
        ("--output", "plan -f - -o xml"),
        ("--diff", "plan -f - --expect-no-changes"),
        ("-f", "plan"),
        ("--no-such-flag", "plan -f - --no-such-flag"),
    ];
    for (flag, line) in lines {
        let answer = run(line, &world(&["a"]));
        assert_eq!(answer.exit, 2, "{line}: {}", answer.errors);
        assert!(answer.errors.contains(flag), "{line} does not name {flag}:\n{}", answer.errors);
        assert!(answer.output.is_empty(), "{line} answers all the same:\n{}", answer.output);
    }
}

#[test]
fn what_is_neither_hostname_nor_reason_is_wrong_usage() {
    let takes = "a reason such as GP0204";
    let table = [
        ("under_score.example.org", takes),
        ("192.0.2.1", takes),
        ("''", takes),
        ("no-such-reason!", "there is no reason `no-such-reason!`"),
        ("DNSPolicy/infra/inner", "a policy asks for no names; `gatepost status` shows it"),
        ("service/infra/inner", "a Service asks for no names"),
        ("HttpRout/infra/inner", "there is no kind `HttpRout` here"),
        ("Foo/infra/inner", "is for the kinds Gateway, ListenerSet, "),
    ];
    for (subject, words) in table {
        let answer = run(&format!("explain {subject} -f -"), GATEWAY);
        assert_eq!(answer.exit, 2, "{subject}: {}", answer.errors);
        assert!(answer.errors.contains(words), "{}", answer.errors);
    }
}

#[test]
fn the_environment_is_read_like_flags_and_loses_to_them() {
    let world = world(&["a"]);
    let run = |name: &str, value: &str, line: &str| {
        gatepost().with(name, value).run(&words(line), &world).expect("the program runs")
    };
    let answer = run("GATEPOST_LABEL_FILTER", "a in", "plan -f -");
    assert_eq!(answer.exit, 2);
    assert!(answer.errors.contains("--label-filter"), "{}", answer.errors);
    let filtered = run("GATEPOST_DOMAIN_FILTER", "example.net", "plan -f - -o zonefile");
    assert!(!filtered.output.contains("a.example.org"), "{}", filtered.output);
    let won = run("GATEPOST_DOMAIN_FILTER", "example.net", "plan -f - -o zonefile --domain-filter example.org");
    assert!(won.output.contains("a.example.org. 300 IN A 192.0.2.1"), "{}", won.output);
}

#[test]
fn a_settings_file_holds_flags_and_loses_to_the_command_line() {
    let folder = scratch();
    let path = folder.file("settings.yaml", "domain-filter: [example.net]\nttl: 5\n").expect("written");
    let unknown = run(&format!("plan -f - --settings {}", quoted(&path)), GATEWAY);
    assert_eq!(unknown.exit, 2);
    assert!(unknown.errors.contains("`ttl`") && unknown.errors.contains("settings.yaml"), "{}", unknown.errors);
    let path = folder.file("settings.yaml", "domain-filter: [example.net]\npublish: all\n").expect("written");
    let line = format!("plan -f - -o zonefile --settings {}", quoted(&path));
    assert!(!run(&line, &world(&["a"])).output.contains("a.example.org"));
    assert!(run(&format!("{line} --domain-filter example.org"), &world(&["a"])).output.contains("a.example.org"));
}

#[test]
fn bad_settings_files_name_the_key_or_flag() {
    let folder = scratch();
    let texts = [
        ("label-filter: 'tier in'", "--label-filter"),
        ("annotation-prefix: nope", "--annotation-prefix"),
        ("source: [service]", "--source"),
        ("fqdn-template: '{{.Name'", "--fqdn-template"),
        ("profile: loose", "--profile"),
        ("gateway-address: {infra/edge: 192.0.2.1}", "`gateway-address`"),
        ("namespace:", "`namespace`"),
        ("no-such-key: 1", "`no-such-key`"),
        ("settings: other.yaml", "`settings`"),
        ("- a list", "settings.yaml"),
        ("{unclosed", "settings.yaml"),
    ];
    for (text, named) in texts {
        let path = folder.file("settings.yaml", text).expect("written");
        let answer = run(&format!("plan -f - --settings {}", quoted(&path)), &world(&["a"]));
        assert_eq!(answer.exit, 2, "{text}: {}{}", answer.output, answer.errors);
        assert!(answer.errors.contains(named), "{text} does not name {named}:\n{}", answer.errors);
    }
    let answer = run(&format!("plan -f - --settings {}", quoted(folder.path().join("absent.yaml"))), GATEWAY);
    assert_eq!(answer.exit, 2);
    assert!(answer.errors.contains("absent.yaml"), "{}", answer.errors);
}

#[test]
fn what_cannot_be_read_is_status_4_and_names_the_path() {
    let folder = scratch();
    folder.file("manifests/edge.yaml", GATEWAY).expect("written");
    let file = folder.path().join("manifests/edge.yaml");
    let below = file.join("deeper.yaml");
    for path in [folder.path().join("absent.yaml"), below, folder.path().join("nowhere/")] {
        for command in ["plan", "check", "status", "explain a.example.org"] {
            let answer = run(&format!("{command} -f {} -f {}", quoted(&file), quoted(&path)), "");
            assert_eq!(answer.exit, 4, "{command}: {}", answer.errors);
            assert!(answer.errors.contains(&*path.to_string_lossy()), "{}", answer.errors);
            assert!(answer.output.is_empty(), "{}", answer.output);
        }
    }
    let answer = run(&format!("plan -f {} --diff {}", quoted(&file), quoted(folder.path().join("old"))), "");
    assert_eq!(answer.exit, 4);
}

#[cfg(unix)]
#[test]
fn a_folder_is_read_whole_or_not_at_all() {
    let folder = scratch();
    folder.file("edge.yaml", GATEWAY).expect("written");
    std::os::unix::fs::symlink("nowhere.yaml", folder.path().join("dangling.yaml")).expect("linked");
    let answer = run(&format!("plan -f {}", quoted(folder.path())), "");
    assert_eq!(answer.exit, 4);
    assert!(answer.errors.contains("dangling.yaml"), "{}", answer.errors);
}

/// A pull request must not be able to show what a CI can read.
#[cfg(unix)]
#[test]
fn links_of_a_folder_are_followed_only_inside_of_it() {
    use std::os::unix::fs::symlink;
    let folder = scratch();
    folder.file("secret.yaml", "token: [s3cret\n").expect("written");
    folder.file("outside/b.yaml", &route("b")).expect("written");
    folder.file("in/edge.yaml", GATEWAY).expect("written");
    folder.file("in/..data/a.txt", &route("a")).expect("written");
    let root = folder.path().join("in");
    symlink("..data/a.txt", root.join("a.yaml")).expect("linked");
    symlink("../secret.yaml", root.join("README.md")).expect("linked");
    let line = format!("plan -o zonefile -f {}", quoted(&root));
    let inside = run(&line, "");
    assert_eq!(inside.exit, 0, "{}", inside.errors);
    assert!(inside.output.contains("a.example.org."), "{}", inside.output);
    for (name, target) in [("x.yaml", "../secret.yaml"), ("deep", "../outside"), ("env.yaml", "/proc/self/environ")] {
        symlink(target, root.join(name)).expect("linked");
        for command in ["check", "plan", "status", "explain a.example.org"] {
            let answer = run(&format!("{command} -f {}", quoted(&root)), "");
            assert_eq!((answer.exit, answer.output.as_str()), (4, ""), "{command} {name}: {}", answer.errors);
            assert!(answer.errors.contains(&format!("in/{name} is a symbolic link")), "{}", answer.errors);
            assert!(!answer.errors.contains("s3cret"), "{}", answer.errors);
        }
        std::fs::remove_file(root.join(name)).expect("removed");
    }
    symlink(&root, folder.path().join("link")).expect("linked");
    let by_link = run(&format!("plan -o zonefile -f {}", quoted(folder.path().join("link"))), "");
    assert_eq!((by_link.exit, by_link.output), (0, inside.output), "the folder itself may be a link");
}

#[cfg(unix)]
#[test]
fn only_regular_files_are_read() {
    let folder = scratch();
    let edge = folder.file("edge.yaml", GATEWAY).expect("written");
    let socket = folder.path().join("in/s.yaml");
    folder.file("in/a.yaml", &route("a")).expect("written");
    let _listening = std::os::unix::net::UnixListener::bind(&socket).expect("bound");
    for path in [&socket, &folder.path().join("in"), std::path::Path::new("/dev/zero")] {
        let answer = run(&format!("check -f {} -f {}", quoted(&edge), quoted(path)), "");
        assert_eq!((answer.exit, answer.output.as_str()), (4, ""), "{}", answer.errors);
        assert!(answer.errors.contains("is not a regular file"), "{}", answer.errors);
    }
    let piped = run(&format!("plan -o zonefile -f {} -f /dev/stdin", quoted(&edge)), &route("a"));
    assert_eq!(piped.exit, 0, "{}", piped.errors);
    assert!(piped.output.contains("a.example.org."), "what a shell hands over as a pipe is read: {}", piped.output);
}

#[test]
fn files_that_are_too_large_together_are_refused_before_they_are_read() {
    let folder = scratch();
    for part in ["a", "b", "c", "d", "e"] {
        let path = folder.file(&format!("parts/{part}.yaml"), "").expect("written");
        let file = std::fs::OpenOptions::new().write(true).open(path).expect("opened");
        file.set_len(250 << 20).expect("a file without blocks");
    }
    let answer = run(&format!("check -f {}", quoted(folder.path().join("parts"))), "");
    assert_eq!((answer.exit, answer.output.as_str()), (4, ""), "{}", answer.errors);
    assert!(answer.errors.contains("parts/e.yaml have more than 1024 MiB"), "{}", answer.errors);
}

#[test]
fn folders_are_read_recursively_and_other_files_passed_over() {
    let folder = scratch();
    folder.file("edge.yaml", GATEWAY).expect("written");
    folder.file("deep/er/a.yml", &route("a")).expect("written");
    folder.file("deep/.hidden.yaml", &route("hidden")).expect("written");
    folder.file("README.md", "no YAML: {").expect("written");
    let answer = run(&format!("plan -o zonefile -f {}", quoted(folder.path())), "");
    assert_eq!(answer.exit, 0, "{}", answer.errors);
    assert!(answer.output.contains("a.example.org."), "{}", answer.output);
    assert!(!answer.output.contains("hidden"), "{}", answer.output);
}

#[test]
fn standard_input_and_files_make_one_world() {
    let folder = scratch();
    let gateway = folder.file("edge.yaml", GATEWAY).expect("written");
    let answer = run(&format!("plan -o zonefile -f {} -f -", quoted(gateway)), &route("a"));
    assert_eq!(answer.exit, 0, "{}", answer.errors);
    assert!(answer.output.contains("a.example.org. 300 IN A 192.0.2.1"), "{}", answer.output);
    let empty = run("plan -f -", "");
    assert_eq!((empty.exit, empty.errors.as_str()), (0, ""));
    assert!(empty.output.starts_with("0 records, 0 certificates, 0 hostnames withheld"), "{}", empty.output);
}

#[test]
fn one_unreadable_file_is_told_and_the_other_is_planned() {
    let folder = scratch();
    folder.file("a.yaml", &world(&["a"])).expect("written");
    folder.file("b.yaml", "kind: [unclosed\n").expect("written");
    let line = format!("plan -f {}", quoted(folder.path()));
    let answer = run(&line, "");
    assert!(answer.output.contains("a.example.org A 192.0.2.1"), "{}", answer.output);
    assert!(answer.output.contains("b.yaml") && answer.output.contains("syntax-error"), "{}", answer.output);
    let json = run(&format!("{line} -o json"), "");
    assert_eq!(json.exit, answer.exit);
    assert_eq!(json.output.matches("\"syntax-error\"").count(), 1, "{}", json.output);
    let explained = run(&format!("explain a.example.org -f {}", quoted(folder.path())), "");
    assert_eq!(explained.exit, 0, "{}", explained.output);
    assert!(explained.errors.contains("b.yaml"), "{}", explained.errors);
}

#[test]
fn the_exit_status_does_not_depend_on_the_format() {
    let folder = scratch();
    let old = quoted(folder.file("old.yaml", &world(&["a"])).expect("written"));
    let world = world(&["a", "b"]);
    let lines = [
        ("check", &["json", "sarif", "github"][..], 0),
        ("status", &["json"], 0),
        ("explain a.example.org", &["json"], 0),
        ("explain nobody.example.org", &["json"], 1),
        ("explain GP0204", &["json"], 0),
        ("route --gateway infra/edge --port 80 http://nobody.example.org/", &["json"], 1),
        ("plan", &["json", "markdown", "zonefile"], 0),
        (&format!("plan --diff {old}"), &["json", "markdown", "zonefile"], 0),
        (&format!("plan --diff {old} --expect-no-changes"), &["json", "markdown", "zonefile"], 1),
        ("plan --domain-filter example.net", &["json", "markdown", "zonefile"], 0),
        ("plan --status guess", &["json"], 2),
        ("plan -f absent.yaml", &["json", "markdown", "zonefile"], 4),
    ];
    for (line, formats, expected) in lines {
        assert_eq!(run(&format!("{line} -f -"), &world).exit, expected, "{line}");
        for format in formats {
            let answer = run(&format!("{line} -f - -o {format}"), &world);
            assert_eq!(answer.exit, expected, "{line} -o {format}: {}", answer.errors);
        }
    }
}

#[test]
fn a_check_fails_by_errors_and_strictly_by_warnings() {
    let broken = world(&["a"]).replace("name: edge}]", "name: egde}]");
    assert_eq!(run("check -f -", &broken).exit, 1);
    assert_eq!(run("check -f - -o json", &broken).exit, 1);
    let odd = world(&["a"]).replace("hostnames: [a.example.org]", "hostnames: [a.example.org, a.example.net]");
    assert_eq!(run("check -f -", &odd).exit, 0);
    assert_eq!(run("check -f - --strict", &odd).exit, 1);
    assert_eq!(run("check -f - --strict -o sarif", &odd).exit, 1);
}

#[test]
fn a_reason_is_explained_without_objects() {
    for subject in ["GP0204", "namespace-not-allowed"] {
        let answer = run(&format!("explain {subject}"), "");
        assert_eq!(answer.exit, 0, "{}", answer.errors);
        assert!(answer.output.contains("namespace-not-allowed") && answer.output.contains("GP0204"));
    }
}

#[test]
fn nothing_is_coloured_where_nobody_looks() {
    for program in [gatepost(), gatepost().with("NO_COLOR", "1")] {
        for line in ["plan -f -", "check -f -", "explain a.example.org -f -", "explain nobody.example.org -f -"] {
            let answer = program.run(&words(line), &world(&["a"])).expect("the program runs");
            assert!(!answer.output.contains('\x1b') && !answer.errors.contains('\x1b'), "{line}");
        }
    }
}

#[test]
fn nobody_listening_is_nobodys_failure() {
    let folder = scratch();
    let names: Vec<String> = (0..2000).map(|i| format!("name-{i}")).collect();
    let world = world(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let path = folder.file("world.yaml", &world).expect("written");
    for format in ["text", "json", "markdown", "zonefile"] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_gatepost"))
            .args(["plan", "-f", &path, "-o", format])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program runs");
        drop(child.stdout.take());
        let done = child.wait_with_output().expect("the program ends");
        assert_eq!(done.status.code(), Some(0), "{format}");
        assert_eq!(String::from_utf8_lossy(&done.stderr), "", "{format}");
    }
}

#[test]
fn what_is_asked_for_help_is_answered() {
    for line in ["--help", "plan --help", "plan --help-all", "explain --help", "--version"] {
        let answer = run(line, "");
        assert_eq!((answer.exit, answer.errors.as_str()), (0, ""), "{line}");
        assert!(!answer.output.is_empty());
    }
}

/// A name server's own reader takes what is written, where it is installed; the escapes have tests of their own.
#[test]
fn a_name_server_reads_the_zone_file() {
    let hostile = "lb.example.net ; $INCLUDE x @ (\\\\\\\"\\nwww.example.org. 60 IN A 198.51.100.66";
    let annotated = |name: &str, target: &str| {
        let metadata = format!("name: {name}, annotations: {{external-dns.kubernetes.io/target: \"{target}\"}}");
        let route = route(name).replace(&format!("name: {name}}}"), &format!("{metadata}}}"));
        format!("{}{STATUS}", route.trim_end().to_owned() + "\n")
    };
    let routes = [annotated("b", "192.0.2.9,2001:db8::9"), annotated("c", "lb.example.net."), annotated("d", hostile)];
    let world = format!(
        "{}---\n{}",
        world(&["a"]).replace("[a.example.org]", "[a.example.org, '*.example.org']"),
        routes.join("---\n")
    );
    for profile in ["strict", "external-dns"] {
        let zone = run(&format!("plan -f - -o zonefile --profile {profile}"), &world).output;
        assert!(zone.contains("c.example.org. 300 IN CNAME lb.example.net."), "{zone}");
        assert!(!zone.lines().any(|line| line.starts_with("www.")), "{zone}");
        let header = "example.org. 300 IN SOA ns.example.net. x.example.net. 1 60 60 60 60\nexample.org. 300 IN NS ns.example.net.\n";
        let folder = scratch();
        let path = folder.file("zone", &format!("{header}{zone}")).expect("written");
        let Ok(done) = Command::new("named-checkzone").args(["-i", "none", "example.org", &path]).output() else {
            return;
        };
        assert!(done.status.success(), "{zone}\n{}", String::from_utf8_lossy(&done.stdout));
    }
}

const STATUS: &str = "\
status:
  parents:
  - parentRef: {name: edge}
    controllerName: example.org/gateway
    conditions: [{type: Accepted, status: \"True\", reason: Accepted}]
";

#[test]
fn a_synthetic_world_is_planned_as_any_other() {
    let world = run("bench-data --routes 40 --listeners 4 --policies 0.5", "").output;
    assert_eq!(world, run("bench-data --routes 40 --listeners 4 --policies 0.5", "").output);
    assert_ne!(world, run("bench-data --routes 40 --listeners 4 --policies 0.5 --seed 2", "").output);
    let plan = run("plan -f - -o json", &world);
    assert_eq!((plan.exit, plan.errors.as_str()), (0, ""));
    let plan: serde_json::Value = serde_json::from_str(&plan.output).expect("the plan is JSON");
    assert!(plan["records"].as_array().is_some_and(|records| records.len() > 30), "{plan}");
}

#[test]
fn a_synthetic_world_comes_as_files_with_its_changes() {
    let folder = scratch();
    let out = folder.path().join("world");
    let line = format!("bench-data --routes 120 --changes 30 -o yaml --out {}", quoted(&out));
    assert_eq!(run(&line, "").exit, 0);
    let changes = std::fs::read_to_string(out.join("changes.jsonl")).expect("the changes are there");
    assert!(changes.lines().count() >= 25, "{changes}");
    assert!(
        changes.lines().all(|line| line.starts_with("{\"type\":") || line.starts_with("{\"object\":")),
        "{changes}"
    );
    let check = run(&format!("check -f {}", quoted(&out)), "");
    assert_eq!(check.exit, 0, "{}", check.output);
    assert_eq!(std::fs::read_dir(&out).expect("a folder").count(), 1 + 2 + 1);
}

#[test]
fn numbers_that_do_not_fit_are_told_and_the_command_is_not_in_the_help() {
    let answer = run("bench-data --routes 1 --listeners 0", "");
    assert_eq!(answer.exit, 2);
    assert!(answer.errors.contains("`listeners` is 0"), "{}", answer.errors);
    assert_eq!(run("bench-data --kinds Route=1", "").exit, 2);
    assert!(!run("--help", "").output.contains("bench-data"));
}

#[test]
fn a_namespace_narrows_the_answer() {
    let objects = "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {namespace: a, name: one}\nspec: {hostnames: [a_b]}\n---\n\
                   apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {namespace: b, name: two}\nspec: {hostnames: [a_b], parentRefs: [{name: x}]}\n";
    let said = |words: &[&str]| {
        let line: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        gatepost_testkit::program::Program::at(env!("CARGO_BIN_EXE_gatepost")).run(&line, objects).unwrap().output
    };
    let all = said(&["check", "-o", "json", "-f", "-"]);
    assert!(all.contains("HTTPRoute/a/one") && all.contains("HTTPRoute/b/two"), "{all}");
    let one = said(&["check", "-o", "json", "-n", "a", "-f", "-"]);
    assert!(one.contains("HTTPRoute/a/one") && !one.contains("HTTPRoute/b/two"), "{one}");
    let status = said(&["status", "-o", "json", "-n", "b", "-f", "-"]);
    assert!(!status.contains("\"one\""), "{status}");
    assert_eq!(said(&["plan", "-n", "a", "-f", "-"]), said(&["plan", "--namespace", "a", "-f", "-"]));
}

#[test]
fn the_gateway_of_a_request_may_be_named_as_kubectl_names_it() {
    let world = world(&["a"]);
    for words in ["--gateway infra/edge", "--gateway edge -n infra", "-n infra", ""] {
        let answer = run(&format!("route -f - {words} --port 80 -o json http://a.example.org/"), &world);
        assert!(answer.output.contains("HTTPRoute/infra/a"), "{words}: {}{}", answer.output, answer.errors);
    }
    for (words, said) in [("--gateway edge", "add --namespace"), ("-n shop", "no Gateway of namespace shop")] {
        let answer = run(&format!("route -f - {words} --port 80 http://a.example.org/"), &world);
        assert_eq!(answer.exit, 2, "{words}");
        assert!(answer.errors.contains(said), "{words}: {}", answer.errors);
    }
}

/// Names and paths come from whoever wrote the files; a terminal or workflow log would act on their escape sequences.
#[cfg(unix)]
#[test]
fn no_output_sends_escape_sequences_of_names_and_paths() {
    let folder = scratch();
    let raw = "\u{1b}]0;owned\u{7}\u{9b}31m";
    let named = |name: &str| route("a").replace("name: a}", &format!("name: \"{name}\"}}"));
    let bad = named("a\\e[31m").replace("namespace: infra", "namespace: \"in\\e]0;owned\\afra\\u009b\"");
    folder.file(&format!("{raw}/edge{raw}.yaml"), GATEWAY).expect("written");
    folder.file(&format!("{raw}/a{raw}.yaml"), &bad).expect("written");
    folder.file(&format!("{raw}/b{raw}.yaml"), &named("b").replace("name: edge}]", "name: egde}]")).expect("written");
    folder.file(&format!("{raw}/c{raw}.yaml"), "kind: [").expect("written");
    let gateway = GATEWAY.replace("name: edge}", "name: \"edge\\e[31m\"}");
    folder.file(&format!("{raw}/d{raw}.yaml"), &gateway).expect("written");
    let commands = [
        "check",
        "check -o github",
        "status",
        "plan",
        "plan -o markdown",
        "plan -o zonefile",
        "explain a.example.org",
        "explain b.example.org",
        "route http://a.example.org/",
        "check -f absent\u{1b}[31m.yaml",
        "check --kubeconfig absent\u{1b}[31m.yaml",
    ];
    for command in commands {
        let answer = run(&format!("{command} -f {}", quoted(folder.path())), "");
        for text in [&answer.output, &answer.errors] {
            let sent = text.chars().find(|c| c.is_control() && !"\n\t".contains(*c));
            assert_eq!(sent, None, "{command}: {text:?}");
        }
        assert!(!(answer.output.is_empty() && answer.errors.is_empty()), "{command} says something");
    }
}

#[test]
fn a_check_of_nothing_is_a_failure_unless_it_is_allowed() {
    let other = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n";
    for input in ["", other] {
        let empty = run("check -f -", input);
        assert_eq!(empty.exit, 4, "{}", empty.output);
        assert!(empty.errors.contains("--allow-empty"), "{}", empty.errors);
        assert_eq!(run("check --allow-empty -f -", input).exit, 0);
    }
}

/// A Gateway that is open to all, with an annotation, and a route whose field is misspelt.
fn findings(annotation: &str) -> String {
    let gateway = GATEWAY.replace("name: edge}", &format!("name: edge, annotations: {{{annotation}}}}}"));
    let route = route("web").replace("hostnames:", "hostname:");
    format!(
        "{}---\n{route}",
        gateway.replace("hostname: \"*.example.org\"", "allowedRoutes: {namespaces: {from: All}}")
    )
}

#[test]
fn suppressed_findings_are_counted() {
    let suppressed = |output: &ProgramOutput| -> (bool, u64) {
        let said: serde_json::Value = serde_json::from_str(&output.output).expect("JSON");
        (output.output.contains("listener-open-to-all"), said["suppressed"].as_u64().unwrap_or_default())
    };
    let ignore = "gatepost.dev/ignore: 'listener-open-to-all: a playground'";
    assert_eq!(suppressed(&run("check -f - -o json", &findings(""))), (true, 0));
    assert_eq!(suppressed(&run("check -f - -o json", &findings(ignore))), (false, 1));
    let severity = "check -f - -o json --severity listener-open-to-all=ignore";
    assert_eq!(suppressed(&run(severity, &findings(""))), (false, 1));
}

#[test]
fn severities_decide_about_the_exit_status() {
    let settings = scratch();
    let file =
        settings.file("settings.yaml", "severity: {unknown-field: warning, class-not-in-input: error}\n").unwrap();
    for (line, exit) in [
        ("check -f -".to_owned(), 1),
        ("check -f - --severity unknown-field=info --severity hostname-not-covered=info".to_owned(), 0),
        (format!("check -f - --settings {}", quoted(&file)), 1),
        ("check -f - --severity unknown-feild=info".to_owned(), 2),
        ("check -f - --severity unknown-field=fatal".to_owned(), 2),
    ] {
        let output = run(&line, &findings(""));
        assert_eq!(output.exit, exit, "{line}: {}{}", output.output, output.errors);
    }
}

#[test]
fn a_baseline_takes_out_what_was_known() {
    let folder = scratch();
    let baseline = folder.path().join("known.json");
    let line = format!("check -f - --write-baseline {}", quoted(&baseline));
    assert_eq!(run(&line, &findings("")).exit, 0);
    let line = format!("check -f - --baseline {}", quoted(&baseline));
    let known = run(&line, &findings(""));
    assert!(known.exit == 0 && known.output.contains("suppressed"), "{}", known.output);
    let new = run(&line, &(findings("") + "---\n" + &route("more").replace("edge", "egde")));
    assert!(
        new.output.contains("HTTPRoute/infra/more") && !new.output.contains("HTTPRoute/infra/web"),
        "{}",
        new.output
    );
    let broken = folder.file("broken.json", "{}").unwrap();
    assert_eq!(run(&format!("check -f - --baseline {}", quoted(broken)), &findings("")).exit, 2);
}

#[test]
fn junit_has_one_test_for_each_finding() {
    let output = run("check -f - -o junit", &findings(""));
    assert!(output.exit == 1 && output.output.contains("<failure type=\"GP0107\""), "{}", output.output);
    assert!(output.output.contains("<system-out>info: "), "{}", output.output);
}

#[test]
fn a_program_that_renders_and_is_not_there_is_named() {
    let folder = scratch();
    folder.file("Chart.yaml", "name: x\n").unwrap();
    for (flag, program) in [("-k", "`kustomize` or `kubectl`"), ("--helm", "`helm`")] {
        let output = run(&format!("check {flag} {}", quoted(folder.path())), "");
        assert!(output.exit == 4 && output.errors.contains(program), "{}", output.errors);
    }
}

#[test]
fn what_a_program_renders_is_read_like_a_file() {
    use std::os::unix::fs::PermissionsExt;
    let folder = scratch();
    let program =
        folder.file("bin/kustomize", "#!/bin/sh\n[ \"$1\" = build ] && exec /bin/cat \"$2/world.yaml\"\n").unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    folder.file("overlay/world.yaml", &world(&["www"])).unwrap();
    let gatepost = gatepost().with("PATH", &folder.path().join("bin").to_string_lossy());
    let overlay = quoted(folder.path().join("overlay"));
    let output = gatepost.run(&words(&format!("plan -k {overlay} -o json")), "").unwrap();
    assert!(output.exit == 0 && output.output.contains("www.example.org"), "{}{}", output.output, output.errors);
    folder.file("overlay/world.yaml", "kind: [").unwrap();
    let broken = gatepost.run(&words(&format!("check -k {overlay}")), "").unwrap();
    assert!(broken.exit == 1 && broken.output.contains("syntax-error"), "{}", broken.output);
    std::fs::remove_file(folder.path().join("overlay/world.yaml")).unwrap();
    let failed = gatepost.run(&words(&format!("check -k {overlay}")), "").unwrap();
    assert!(failed.exit == 4 && failed.errors.contains("cannot be rendered"), "{}", failed.errors);
}

#[test]
fn profile_external_dns_says_how_many_names_profile_strict_would_change() {
    // External-dns unites the addresses that a Route of another namespace adds; in profile strict they do not count.
    let gateway = GATEWAY.replace("\"*.example.org\"", "\"*.example.org\", allowedRoutes: {namespaces: {from: All}}");
    let grab = "---\napiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\n\
        metadata: {namespace: blog, name: grab, annotations: {external-dns.kubernetes.io/target: 203.0.113.66}}\n\
        spec: {parentRefs: [{namespace: infra, name: edge}], hostnames: [a.example.org]}\n";
    let world = format!("{gateway}---\n{}---\n{}{grab}", route("a"), route("b"));
    let said = run("plan -f - --status compute --gateway-address infra/edge=192.0.2.1 --profile external-dns", &world);
    let expected = "with --profile strict the records of 1 name would change: a.example.org\n";
    assert!(said.output.ends_with(expected), "{}{}", said.output, said.errors);
    let names = |line: &str, input: &str| {
        let answer: serde_json::Value = serde_json::from_str(&run(line, input).output).expect("JSON");
        answer["changedUnderStrict"].clone()
    };
    assert_eq!(
        names(
            "plan -f - -o json --status compute --gateway-address infra/edge=192.0.2.1 --profile external-dns",
            &world
        ),
        serde_json::json!(["a.example.org"])
    );
    assert_eq!(names("plan -f - -o json", &world), serde_json::Value::Null);
    let sound = format!("{gateway}---\n{}", route("a"));
    assert_eq!(
        names(
            "plan -f - -o json --status compute --gateway-address infra/edge=192.0.2.1 --profile external-dns",
            &sound
        ),
        serde_json::json!([])
    );
    let said =
        run("plan -f - --status compute --gateway-address infra/edge=192.0.2.1 --profile external-dns", &sound).output;
    assert!(said.ends_with("with --profile strict no record would change\n"), "{said}");
}

#[test]
fn admission_prints_no_config_map_that_lacks_a_grant() {
    let grant = |hostname: &str| {
        format!(
            "apiVersion: gatepost.dev/v1alpha1\nkind: HostnameGrant\nmetadata: {{name: shop}}\n\
             spec: {{hostnames: ['{hostname}'], namespaces: {{names: [shop]}}}}\n"
        )
    };
    let said =
        run("admission -f - --name edge --controller-namespace dns --require-grants", &grant("*.shop.example.org"));
    assert_eq!(said.exit, 0, "{}", said.errors);
    for line in
        ["name: edge-hostname-grants", "namespace: dns", "_.shop.example.org: \"0\"", "_require-grants: \"true\""]
    {
        assert!(said.output.contains(line), "{line}: {}", said.output);
    }
    for (objects, words) in
        [(grant("a.*.example.org"), "HostnameGrant/shop is not valid"), ("a: [".to_owned(), "cannot be read")]
    {
        let said = run("admission -f -", &objects);
        assert_eq!((said.exit, &*said.output), (4, ""), "{}", said.errors);
        assert!(said.errors.contains(words), "{}", said.errors);
    }
    for line in ["admission --require-grants", "admission -f - --platform-namespace infra", "admission --name 'a b'"] {
        assert_eq!(run(line, "").exit, 2, "{line}");
    }
}

#[test]
fn a_chain_and_a_plan_are_drawn() {
    let objects = world(&["www"]);
    let drawn = |line: &str| run(line, &objects).output;
    let chart = drawn("explain www.example.org -f - -o mermaid");
    assert!(
        chart.starts_with("flowchart LR\n") && chart.contains("HTTPRoute/infra/www") && !chart.contains("-."),
        "{chart}"
    );
    let picture = drawn("explain www.example.org -f - -o svg");
    assert!(
        picture.starts_with("<svg ") && picture.contains("infra/edge/web") && !picture.contains("<script"),
        "{picture}"
    );
    let plan = drawn("plan -f - -o mermaid");
    assert!(plan.contains("A 192.0.2.1") && plan.contains(" --> "), "{plan}");
    let refused = run("explain GP0204 -o svg", "");
    assert!(refused.exit == 2 && refused.errors.contains("one hostname"), "{}", refused.errors);
    let refused = run("explain Gateway/infra/edge -f - -o mermaid", &objects);
    assert!(refused.exit == 2 && refused.errors.contains("an object"), "{}", refused.errors);
}

#[test]
fn a_report_is_one_file_that_loads_nothing() {
    let folder = scratch();
    let file = folder.path().join("report.html");
    let objects = world(&["www", "<script>alert(1)</script>"]);
    let done = run(&format!("report -f - --out {}", quoted(&file)), &objects);
    assert!(done.output.contains("report.html: "), "{}{}", done.output, done.errors);
    let text = std::fs::read_to_string(file).expect("the report was written");
    assert!(text.contains("script-src 'sha256-") && !text.contains("unsafe-"));
    assert!(!text.contains("<script>alert") && !text.contains(" src=") && !text.contains("<link"));
    assert!(
        text.contains("names/www.example.org") && run("report -f - --out -", &objects).output.starts_with("<!doctype")
    );
    let refused = run("report -f - --out /nowhere/report.html", &objects);
    assert!(refused.exit == 2 && refused.errors.contains("--out /nowhere/report.html"), "{}", refused.errors);
}
