//! A small plot: lines over the number of routes, both axes in powers of ten, readable on light and on dark pages.

const WIDTH: f64 = 420.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = 18.0;
const TOP: f64 = 44.0;
const BOTTOM: f64 = 46.0;

const STYLE: &str = "
  text { font: 12px system-ui, sans-serif; fill: #444 }
  .title { font-size: 14px; font-weight: 600 }
  .grid { stroke: #8884; stroke-width: 1 }
  .ours, .theirs { fill: none; stroke-width: 2.5; stroke-linejoin: round }
  .ours { stroke: #0b6e99 } .theirs { stroke: #c4511a; stroke-dasharray: 6 4 }
  circle.ours { fill: #0b6e99; stroke: none } circle.theirs { fill: #c4511a; stroke: none }
  text.ours { fill: #0b6e99; stroke: none } text.theirs { fill: #c4511a; stroke: none }
  @media (prefers-color-scheme: dark) { text { fill: #ccc } }
";

/// One panel.
pub(super) struct Plot {
    pub(super) title: &'static str,
    pub(super) unit: &'static str,
    pub(super) lines: Vec<Line>,
}

/// One line: its name, its class in the style, and its points.
pub(super) struct Line {
    pub(super) name: &'static str,
    pub(super) class: &'static str,
    pub(super) points: Vec<(f64, f64)>,
}

/// The panels side by side.
pub(super) fn page(plots: &[Plot]) -> String {
    let width = WIDTH * plots.len() as f64;
    let panels: String = plots
        .iter()
        .enumerate()
        .map(|(at, plot)| format!("<g transform=\"translate({},0)\">\n{}</g>\n", WIDTH * at as f64, plot.panel()))
        .collect();
    let about = plots.iter().map(|plot| plot.title).collect::<Vec<_>>().join("; ");
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {HEIGHT}\" width=\"{width}\" height=\"{HEIGHT}\" \
         role=\"img\" aria-label=\"{about}, over the number of routes\">\n<style>{STYLE}</style>\n{panels}</svg>\n"
    )
}

impl Plot {
    fn panel(&self) -> String {
        let mut out = format!("<text class=\"title\" x=\"{LEFT}\" y=\"20\">{} ({})</text>\n", self.title, self.unit);
        let (x, y) = (self.axis(|p| p.0), self.axis(|p| p.1));
        for power in x.from..=x.to {
            let at = LEFT + x.share(10_f64.powi(power)) * (WIDTH - LEFT - RIGHT);
            out += &format!(
                "<line class=\"grid\" x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{TOP}\" y2=\"{}\"/>\n",
                HEIGHT - BOTTOM
            );
            out += &text(at, HEIGHT - BOTTOM + 18.0, "middle", "", &tick(power));
        }
        for power in y.from..=y.to {
            let at = HEIGHT - BOTTOM - y.share(10_f64.powi(power)) * (HEIGHT - TOP - BOTTOM);
            out += &format!(
                "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>\n",
                WIDTH - RIGHT
            );
            out += &text(LEFT - 8.0, at + 4.0, "end", "", &tick(power));
        }
        out += &text(LEFT + (WIDTH - LEFT - RIGHT) / 2.0, HEIGHT - 8.0, "middle", "", "routes");
        for (at, line) in self.lines.iter().enumerate() {
            out += &line.draw(&x, &y);
            out += &text(LEFT + 10.0, TOP + 16.0 + 17.0 * at as f64, "start", line.class, line.name);
        }
        out
    }

    /// Whole powers of ten around all points.
    fn axis(&self, part: fn(&(f64, f64)) -> f64) -> Axis {
        let values = || self.lines.iter().flat_map(|line| &line.points).map(part).filter(|value| *value > 0.0);
        let least = values().fold(f64::INFINITY, f64::min);
        let most = values().fold(0.0, f64::max);
        if most == 0.0 {
            return Axis { from: 0, to: 1 };
        }
        let (from, to) = (least.log10().floor() as i32, most.log10().ceil() as i32);
        Axis { from, to: to.max(from + 1) }
    }
}

/// An axis of powers of ten.
struct Axis {
    from: i32,
    to: i32,
}

impl Axis {
    /// Where a value stands, from 0 to 1.
    fn share(&self, value: f64) -> f64 {
        (value.log10() - f64::from(self.from)) / f64::from(self.to - self.from)
    }
}

impl Line {
    fn draw(&self, x: &Axis, y: &Axis) -> String {
        let place = |(at, value): &(f64, f64)| {
            let right = LEFT + x.share(*at) * (WIDTH - LEFT - RIGHT);
            let down = HEIGHT - BOTTOM - y.share(*value) * (HEIGHT - TOP - BOTTOM);
            (right, down)
        };
        let places: Vec<(f64, f64)> = self.points.iter().filter(|(_, value)| *value > 0.0).map(place).collect();
        let corners: Vec<String> = places.iter().map(|(right, down)| format!("{right:.1},{down:.1}")).collect();
        let class = self.class;
        let dots = places
            .iter()
            .map(|(right, down)| format!("<circle class=\"{class}\" cx=\"{right:.1}\" cy=\"{down:.1}\" r=\"3.5\"/>\n"));
        format!("<polyline class=\"{class}\" points=\"{}\"/>\n{}", corners.join(" "), dots.collect::<String>())
    }
}

fn text(x: f64, y: f64, anchor: &str, class: &str, words: &str) -> String {
    format!("<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{words}</text>\n")
}

/// A power of ten, short.
fn tick(power: i32) -> String {
    match power {
        ..0 => format!("{}", 10_f64.powi(power)),
        0..3 => format!("{}", 10_u32.pow(power as u32)),
        3..6 => format!("{}k", 10_u32.pow(power as u32 - 3)),
        _ => format!("{}M", 10_u32.pow((power as u32 - 6).min(9))),
    }
}
