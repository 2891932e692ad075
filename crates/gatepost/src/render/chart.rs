//! Pictures of chains for tickets and pull requests: Mermaid text, and SVG that needs nothing else.
//!
//! Texts of objects are escaped for either. The picture says in words what its lines mean.

use gatepost_core::plan::Plan;
use gatepost_core::publication::Desired;
use serde::Deserialize;

/// The chains to one hostname, as `explain -o json` has them.
#[derive(Deserialize, Debug)]
pub struct ChartInput {
    hostname: String,
    verdict: String,
    chains: Vec<ChartChain>,
}

#[derive(Deserialize, Debug)]
struct ChartChain {
    works: bool,
    links: Vec<ChartLink>,
    #[serde(default)]
    broken: Option<ChartCause>,
}

#[derive(Deserialize, Debug)]
struct ChartLink {
    role: String,
    name: String,
    #[serde(default)]
    detail: Option<String>,
    holds: bool,
}

#[derive(Deserialize, Debug)]
struct ChartCause {
    code: String,
    reason: String,
}

/// More chains are not drawn.
const MOST_CHAINS: usize = 20;

impl ChartInput {
    fn shown(&self) -> impl Iterator<Item = &ChartChain> {
        self.chains.iter().take(MOST_CHAINS)
    }

    /// A Mermaid flowchart.
    pub fn mermaid(&self) -> String {
        let mut chart = MermaidChart::default();
        let last = chart.node(&self.hostname, &format!("{}\n{}", self.hostname, self.verdict), self.verdict == "works");
        for chain in self.shown() {
            let mut above: Option<String> = None;
            for (i, link) in chain.links.iter().enumerate() {
                let text = [Some(role(&link.role)), Some(&*link.name), link.detail.as_deref()];
                let text: Vec<&str> = text.into_iter().flatten().collect();
                let node = chart.node(&link.name, &text.join("\n"), link.holds);
                if let Some(above) = &above {
                    chart.edge(above, &node, chain.cause_at(i));
                }
                above = Some(node);
            }
            if let Some(above) = above {
                chart.edge(&above, &last, chain.cause_at(chain.links.len()));
            }
        }
        chart.text()
    }

    /// An SVG document; colours follow the preference of whoever looks.
    pub fn svg(&self) -> String {
        let columns = self.shown().map(|chain| chain.links.len() + 1).max().unwrap_or(1);
        let rows = self.shown().count().max(1);
        let (width, height) = (columns * STEP_X + 20, rows * STEP_Y + 46);
        let mut text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" role=\"img\">\n\
             <title>{}</title>\n<style>{STYLE}</style>\n<rect class=\"ground\" width=\"{width}\" height=\"{height}\"/>\n\
             <text class=\"head\" x=\"12\" y=\"24\">{}</text>\n",
            escaped(&format!("{}: {}", self.hostname, self.verdict)),
            escaped(&format!("{} — {}", self.hostname, self.verdict)),
        );
        for (row, chain) in self.shown().enumerate() {
            chain.draw(row * STEP_Y + 42, &self.hostname, &mut text);
        }
        text + "</svg>\n"
    }
}

const STEP_X: usize = 230;
const STEP_Y: usize = 92;
const STYLE: &str = "text{font:13px system-ui,sans-serif;fill:#1a1f27}.role{font-size:11px;fill:#535d6b}.head{font-weight:700;font-size:15px}\
    .ground{fill:#fff}.box{fill:#f3f5f8;stroke:#0f6b35;stroke-width:2}.broken{stroke:#b3151f;stroke-width:3;stroke-dasharray:6 4}\
    .after{stroke:#c9d0da}.edge{stroke:#535d6b;stroke-width:2;fill:none}.cut{stroke:#b3151f;stroke-dasharray:6 4}.cause{fill:#b3151f;font-size:11px}\
    @media(prefers-color-scheme:dark){text{fill:#e6eaf0}.role{fill:#a4aebb}.ground{fill:#14171c}.box{fill:#1d222a;stroke:#62d08e}\
    .broken{stroke:#ff8a86}.after{stroke:#3a4350}.edge{stroke:#a4aebb}.cut{stroke:#ff8a86}.cause{fill:#ff8a86}}";

impl ChartChain {
    /// The number of the first link that does not hold; that of the hostname where only that is not reached.
    fn broken_at(&self) -> Option<usize> {
        let first = self.links.iter().position(|link| !link.holds);
        first.or((!self.works).then_some(self.links.len()))
    }

    /// What the line to a link is broken by; nothing where it is whole.
    fn cause_at(&self, i: usize) -> Option<String> {
        if self.broken_at() != Some(i) {
            return None;
        }
        let cause = self.broken.as_ref();
        Some(cause.map_or_else(|| "broken".to_owned(), |cause| format!("{} {}", cause.code, cause.reason)))
    }

    fn draw(&self, y: usize, hostname: &str, text: &mut String) {
        let broken = self.broken_at().unwrap_or(usize::MAX);
        let links = self.links.iter().map(|link| (role(&link.role), &*link.name, link.detail.as_deref()));
        for (i, (role, name, detail)) in links.chain([("Hostname", hostname, None)]).enumerate() {
            let x = i * STEP_X + 10;
            let (class, mark) = match i.cmp(&broken) {
                std::cmp::Ordering::Less => ("", "✓"),
                std::cmp::Ordering::Equal => (" broken", "✗"),
                std::cmp::Ordering::Greater => (" after", "–"),
            };
            if i > 0 {
                let (from, to, middle) = (x + 190 - STEP_X, x, y + 32);
                let cut = if i == broken { " cut" } else { "" };
                text.push_str(&format!("<path class=\"edge{cut}\" d=\"M{from},{middle}H{to}\"/>\n"));
            }
            let name = name.split_once('/').filter(|_| role != "Hostname").map_or(name, |(_, name)| name);
            text.push_str(&format!(
                "<rect class=\"box{class}\" x=\"{x}\" y=\"{y}\" width=\"190\" height=\"64\" rx=\"8\"/>\n\
                 <text class=\"role\" x=\"{0}\" y=\"{1}\">{mark} {role}</text>\n<text x=\"{0}\" y=\"{2}\">{3}</text>\n",
                x + 10,
                y + 17,
                y + 36,
                escaped(&short(name)),
            ));
            if let Some(detail) = detail {
                let line = escaped(&short(detail));
                text.push_str(&format!("<text class=\"role\" x=\"{}\" y=\"{}\">{line}</text>\n", x + 10, y + 54));
            }
            if let Some(cause) = self.cause_at(i) {
                text.push_str(&format!(
                    "<text class=\"cause\" x=\"{x}\" y=\"{}\">{}</text>\n",
                    y + 80,
                    escaped(&cause)
                ));
            }
        }
    }
}

/// More records and certificates are not drawn: nobody could read the picture.
const MOST_DRAWN: usize = 200;

/// Which routes get which records and certificates; what is withheld or held has a dashed line with its reason.
pub fn of_plan(desired: &Desired, plan: Option<&Plan>) -> String {
    let mut chart = MermaidChart::default();
    for record in desired.records.iter().take(MOST_DRAWN) {
        let targets: Vec<String> = record.targets.iter().map(ToString::to_string).collect();
        let text = format!("{}\n{} {}", record.name, record.kind.as_str(), targets.join(" "));
        let held = plan.and_then(|plan| plan.held.iter().find(|held| held.name == record.name));
        let node = chart.node(&format!("{} {}", record.name, record.kind.as_str()), &text, held.is_none());
        for route in &record.routes {
            let above = chart.node(&route.to_string(), &route.to_string(), true);
            chart.edge(&above, &node, held.map(|held| format!("held: {}", held.reason.name())));
        }
    }
    for certificate in desired.certificates.iter().take(MOST_DRAWN) {
        let names: Vec<String> = certificate.dns_names.iter().map(ToString::to_string).collect();
        let text = format!("certificate {}\n{}", certificate.secret, names.join(" "));
        let node = chart.node(&format!("certificate {}", certificate.secret), &text, true);
        for route in &certificate.routes {
            let above = chart.node(&route.to_string(), &route.to_string(), true);
            chart.edge(&above, &node, None);
        }
    }
    for withheld in desired.withheld.iter().take(MOST_DRAWN) {
        let node =
            chart.node(&format!("withheld {}", withheld.hostname), &format!("{}\nnothing", withheld.hostname), false);
        let above = chart.node(&withheld.route.to_string(), &withheld.route.to_string(), true);
        chart.edge(&above, &node, Some(withheld.reason.name().to_owned()));
    }
    for held in plan.iter().flat_map(|plan| &plan.held).filter(|held| !held.name.is_empty() && held.verb.is_some()) {
        let verb = held.verb.map_or("", |verb| verb.as_str());
        let node = chart.node(&format!("held {}", held.name), &format!("{}\n{verb} is held", held.name), false);
        if let Some(object) = &held.object {
            let above = chart.node(&object.to_string(), &object.to_string(), true);
            chart.edge(&above, &node, Some(held.reason.name().to_owned()));
        }
    }
    let left_out = [desired.records.len(), desired.certificates.len(), desired.withheld.len()];
    let left_out: usize = left_out.into_iter().map(|count| count.saturating_sub(MOST_DRAWN)).sum();
    if left_out > 0 {
        chart.node("…", &format!("{left_out} more are not drawn"), true);
    }
    chart.text()
}

fn role(role: &str) -> &str {
    match role {
        "class" => "GatewayClass",
        "gateway" => "Gateway",
        "listenerSet" => "ListenerSet",
        "listener" => "Listener",
        "route" => "Route",
        other => other,
    }
}

fn short(text: &str) -> String {
    match text.chars().count() > 26 {
        true => text.chars().take(25).chain(['…']).collect(),
        false => text.to_owned(),
    }
}

/// A text inside SVG.
fn escaped(text: &str) -> String {
    let text: String = text.chars().filter(|c| !c.is_control()).collect();
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// A Mermaid flowchart that is being written: every node once.
#[derive(Debug, Default)]
pub struct MermaidChart {
    names: Vec<String>,
    lines: Vec<String>,
    edges: std::collections::BTreeSet<String>,
    broken: Vec<String>,
}

impl MermaidChart {
    /// A node by what it stands for, with the lines that are written on it; its identifier.
    pub fn node(&mut self, name: &str, text: &str, holds: bool) -> String {
        if let Some(known) = self.names.iter().position(|known| known == name) {
            return format!("n{known}");
        }
        let id = format!("n{}", self.names.len());
        self.names.push(name.to_owned());
        let text: Vec<String> = text.lines().map(mermaid_text).collect();
        let mark = if holds { "✓" } else { "✗" };
        self.lines.push(format!("  {id}[\"{mark} {}\"]", text.join("<br/>")));
        if !holds {
            self.broken.push(id.clone());
        }
        id
    }

    /// A line between two nodes; dashed, with a cause, where it is broken.
    pub fn edge(&mut self, from: &str, to: &str, cause: Option<String>) {
        self.edges.insert(match cause {
            Some(cause) => format!("  {from} -. \"{}\" .-> {to}", mermaid_text(&cause)),
            None => format!("  {from} --> {to}"),
        });
    }

    /// The whole text.
    pub fn text(self) -> String {
        let mut text = "flowchart LR\n".to_owned();
        self.lines.iter().chain(&self.edges).for_each(|line| text.push_str(&format!("{line}\n")));
        if !self.broken.is_empty() {
            text.push_str("  classDef broken stroke:#b3151f,stroke-width:3px,stroke-dasharray:6 4\n");
            text.push_str(&format!("  class {} broken\n", self.broken.join(",")));
        }
        text
    }
}

/// A text inside a quoted label: what Mermaid or a browser would read as a sign is written as its number.
fn mermaid_text(text: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || " .,:-/*()=_'`|→✓✗–…".contains(c);
    let text = text.chars().filter(|c| !c.is_control());
    text.map(|c| if is_plain(c) { c.to_string() } else { format!("#{};", u32::from(c)) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(name: &str) -> ChartInput {
        let link =
            |role: &str, name: &str, holds: bool| serde_json::json!({"role": role, "name": name, "holds": holds});
        let chain = serde_json::json!({
            "works": false, "broken": {"code": "GP0204", "reason": "namespace-not-allowed"},
            "links": [link("gateway", "Gateway/infra/edge", true), link("route", name, false)],
        });
        serde_json::from_value(serde_json::json!({
            "hostname": "blog.example.org", "verdict": "not-attached", "chains": [chain],
        }))
        .unwrap()
    }

    #[test]
    fn a_chart_names_the_broken_link() {
        let text = input("HTTPRoute/blog/pages").mermaid();
        assert!(text.contains("n1 -. \"GP0204 namespace-not-allowed\" .-> n2"), "{text}");
        assert!(text.ends_with("class n0,n2 broken\n"), "{text}");
    }

    #[test]
    fn texts_with_scripts_stay_text() {
        let bad = input("HTTPRoute/<script>alert(1)</script>/\"]; click n0 \"javascript:x\"");
        assert!(!bad.svg().contains("<script") && bad.svg().contains("&lt;script"), "{}", bad.svg());
        let text = bad.mermaid();
        let quotes = text.lines().find(|line| line.contains("script")).unwrap().matches('"').count();
        assert!(!text.contains('<') || !text.contains("<script"), "{text}");
        assert_eq!(quotes, 2, "{text}");
    }
}
