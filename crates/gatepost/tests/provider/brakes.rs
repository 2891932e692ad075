//! Deletes that look like a mistake are held until somebody confirms them.

use gatepost_testkit::servers::Scratch;

use super::bed::{Bed, routes, world};

fn names(count: usize) -> Vec<String> {
    (0..count).map(|i| format!("n{i}.example.org")).collect()
}

fn many(count: usize) -> String {
    let names = names(count);
    world("192.0.2.10", &names.iter().map(String::as_str).collect::<Vec<_>>())
}

#[test]
fn a_third_of_the_zone_goes_only_when_confirmed() {
    let Some(bed) = Bed::new() else { return };
    assert_eq!(bed.run("apply", &many(30)).exit, 0);
    let shown = bed.run("plan", &many(15));
    assert_eq!(shown.exit, 0);
    assert!(shown.output.contains("15 held, 15 of them by a safety brake"), "{}", shown.output);
    assert!(shown.output.contains("… and 5 more of too-many-deletes"), "{}", shown.output);
    let answer = bed.run("apply", &many(15));
    assert_eq!(answer.exit, 3);
    assert!(answer.errors.contains("--confirm-deletes"), "{}", answer.errors);
    assert_eq!(bed.addresses("n29.example.org"), ["192.0.2.10"]);
    let (exit, json) = bed.json("apply", &many(15));
    assert_eq!((exit, &json["held"][0]["isBrake"]), (3, &true.into()));
    let digest = bed.json("plan --confirm-deletes", &many(15)).1["digest"].as_str().unwrap().to_owned();
    assert_eq!(bed.run(&format!("apply --plan {digest}"), &many(15)).exit, 3, "confirming is part of the plan");
    assert_eq!(bed.run(&format!("apply --confirm-deletes --plan {digest}"), &many(15)).exit, 0);
    assert!(bed.addresses("n29.example.org").is_empty());
    assert_eq!(bed.addresses("n0.example.org"), ["192.0.2.10"]);
}

#[test]
fn an_empty_source_deletes_nothing_by_itself() {
    let Some(bed) = Bed::new() else { return };
    assert_eq!(bed.run("apply", &many(2)).exit, 0);
    for objects in ["", &world("192.0.2.10", &[])] {
        assert_eq!(bed.run("apply", objects).exit, 3);
    }
    let filtered = bed.run("apply --label-filter nobody=here", &many(2));
    assert!(filtered.exit == 3 && filtered.output.contains("source-empty"), "{}", filtered.output);
    assert_eq!(bed.addresses("n1.example.org"), ["192.0.2.10"]);
    assert_eq!(bed.run("apply --confirm-deletes", "").exit, 0);
    assert!(bed.addresses("n1.example.org").is_empty());
}

/// What was published from a rendered overlay or chart stays when its repository is given unrendered, and the base of the
/// overlay is not published.
#[test]
fn what_only_rendering_completes_is_neither_published_nor_deleted() {
    let Some(bed) = Bed::new() else { return };
    let names = ["shop.example.net.example.org", "blog.example.org", "other.example.org"];
    assert_eq!(bed.run("apply", &world("192.0.2.10", &names)).exit, 0);
    let folder = Scratch::new("repository").unwrap();
    let write = |path: &str, text: &str| {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write("overlay/base/kustomization.yaml", "resources: [route.yaml]\n");
    write("overlay/base/route.yaml", &routes(&["shop.example.org"]).replace("route-0", "patched"));
    let patch = "resources: [../base]\npatches: [{target: {kind: HTTPRoute}, patch: '[{op: replace, path: /spec/hostnames/0, value: x}]'}]\n";
    write("overlay/production/kustomization.yaml", patch);
    write("charts/blog/Chart.yaml", "apiVersion: v2\nname: blog\nversion: 1.0.0\n");
    write("charts/blog/templates/route.yaml", "kind: {{ .Values.kind }}\n");
    for part in ["overlay", "charts"] {
        let line = format!("apply --confirm-deletes -f {}", folder.path().join(part).display());
        let answer = bed.run(&line, &world("192.0.2.10", &names[2..]));
        assert!(answer.output.contains("source-unknown"), "{part}: {answer:?}");
        for name in names {
            assert_eq!(bed.addresses(name), ["192.0.2.10"], "{part}: {answer:?}");
        }
        assert!(bed.addresses("shop.example.org").is_empty(), "{part}: {answer:?}");
    }
    assert_eq!(bed.run("apply --confirm-deletes", &world("192.0.2.10", &names[2..])).exit, 0);
    assert!(bed.addresses("blog.example.org").is_empty());
}

#[test]
fn a_gateway_that_lost_its_addresses_keeps_its_records() {
    let Some(bed) = Bed::new() else { return };
    assert_eq!(bed.run("apply", &many(2)).exit, 0);
    let blinking = many(2).replace("status: {addresses: [{type: IPAddress, value: \"192.0.2.10\"}]}", "status: {}");
    let answer = bed.run("apply --confirm-deletes", &blinking);
    assert!(answer.output.contains("gateway-without-address"), "{}", answer.output);
    assert_eq!(bed.addresses("n1.example.org"), ["192.0.2.10"]);
}

/// Nine at a time are few; what was deleted a short while ago counts, where runs remember.
#[test]
fn many_small_deletes_are_one_large_one_for_who_remembers() {
    let Some(bed) = Bed::new() else { return };
    let state = format!("--state-dir '{}'", bed.folder.path().join("state").display());
    assert_eq!(bed.run(&format!("apply {state}"), &many(30)).exit, 0);
    assert_eq!(bed.run(&format!("apply {state}"), &many(22)).exit, 0);
    assert_eq!(bed.run(&format!("apply {state}"), &many(14)).exit, 3);
    assert_eq!(bed.addresses("n20.example.org"), ["192.0.2.10"]);
}
