//! Which namespace files have, by small repositories.

use super::*;

fn layout(files: &[(&str, &str)]) -> Layout {
    let facts: Vec<(&str, TextFacts)> =
        files.iter().map(|(name, text)| (*name, TextFacts::of(name, text.as_bytes()))).collect();
    let read = |name: &str| files.iter().find(|(known, _)| *known == name).map(|(_, text)| text.as_bytes().to_vec());
    Layout::of(facts.iter().map(|(name, facts)| (*name, facts)), read)
}

fn namespace(layout: &Layout, file: &str) -> NamespaceRole {
    layout.role(file).map_or(NamespaceRole::Stated, |role| role.namespace.clone())
}

fn set(name: &str) -> NamespaceRole {
    NamespaceRole::Set(name.into())
}

#[test]
fn a_kustomization_gives_its_namespace_to_what_lies_below() {
    let layout = layout(&[
        ("./shop/kustomization.yaml", "namespace: shop\nresources: [route.yaml, deep]\n"),
        ("./shop/route.yaml", ""),
        ("./shop/deep/route.yaml", ""),
        ("./shop/inner/kustomization.yml", "namespace: inner\n"),
        ("./shop/inner/route.yaml", ""),
        ("./other/route.yaml", ""),
    ]);
    assert_eq!(namespace(&layout, "./shop/route.yaml"), set("shop"));
    assert_eq!(namespace(&layout, "./shop/deep/route.yaml"), set("shop"));
    assert_eq!(namespace(&layout, "./shop/inner/route.yaml"), set("inner"));
    assert_eq!(namespace(&layout, "./other/route.yaml"), NamespaceRole::Stated);
}

#[test]
fn the_outermost_kustomization_decides_and_several_leave_it_open() {
    let base = ("base/kustomization.yaml", "namespace: base\nresources: [route.yaml]\n");
    let one = ("staging/kustomization.yaml", "namespace: staging\nresources: [../base]\n");
    let two = ("prod/kustomization.yaml", "namespace: prod\nresources: [../base]\n");
    let route = ("base/route.yaml", "");
    assert_eq!(namespace(&layout(&[base, route]), "base/route.yaml"), set("base"));
    assert_eq!(namespace(&layout(&[base, route, one]), "base/route.yaml"), set("staging"));
    assert_eq!(namespace(&layout(&[base, route, one, two]), "base/route.yaml"), NamespaceRole::Unknown);
    let same = ("prod/kustomization.yaml", "namespace: staging\nresources: [../base]\n");
    assert_eq!(namespace(&layout(&[base, route, one, same]), "base/route.yaml"), set("staging"));
}

#[test]
fn flux_names_the_namespace_of_a_directory() {
    let flux = "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: a}\n\
                spec: {path: ./apps/shop, targetNamespace: shop}\n";
    let files = [("r/clusters/a.yaml", flux), ("r/apps/shop/route.yaml", "")];
    assert_eq!(namespace(&layout(&files), "r/apps/shop/route.yaml"), set("shop"));
    let inner = ("r/apps/shop/kustomization.yaml", "namespace: web\nresources: [route.yaml]\n");
    assert_eq!(namespace(&layout(&[files[0], files[1], inner]), "r/apps/shop/route.yaml"), set("shop"));
}

#[test]
fn patches_and_templates_are_not_objects() {
    let layout = layout(&[
        (
            "o/kustomization.yaml",
            "resources: [../base]\npatches:\n- {path: p.yaml}\n- {path: q.yaml, target: {kind: Gateway}}\n",
        ),
        ("o/p.yaml", "kind: HTTPRoute\nmetadata: {name: shop}\n"),
        ("o/q.yaml", "- {op: add}\n"),
        ("base/kustomization.yaml", "resources: [route.yaml]\n"),
        ("base/route.yaml", ""),
        ("chart/Chart.yaml", "name: x\n"),
        ("chart/templates/deep/route.yaml", "{{ x }}\n"),
        ("chart/crds/x.yaml", ""),
    ]);
    let is_passed_over = |file: &str| layout.role(file).is_some_and(|role| role.is_passed_over);
    assert!(is_passed_over("o/p.yaml") && is_passed_over("o/q.yaml") && is_passed_over("o/kustomization.yaml"));
    assert!(is_passed_over("chart/templates/deep/route.yaml") && !is_passed_over("chart/crds/x.yaml"));
    assert!(!is_passed_over("base/route.yaml"));
    let patched = &layout.role("base/route.yaml").unwrap().patched;
    let concerned = |kind: &str, name: &str| patched.iter().any(|target| target.concerns(kind, name));
    assert!(concerned("HTTPRoute", "shop") && !concerned("HTTPRoute", "other") && concerned("Gateway", "any"));
    assert!(layout.chart_note().unwrap().help.unwrap().contains("--helm chart"));
}

#[test]
fn kustomizations_that_list_each_other_end() {
    let files = [
        ("a/kustomization.yaml", "resources: [../b]\n"),
        ("b/kustomization.yaml", "resources: [../a, x.yaml]\n"),
        ("b/x.yaml", ""),
    ];
    assert_eq!(namespace(&layout(&files), "b/x.yaml"), NamespaceRole::Stated);
}
