//! Numbers as OpenMetrics text, the format that Prometheus reads.
//!
//! Families and their samples come out in the order in which they were added, so that the same numbers give the same text.
//! Labels have to come from short lists; nothing here counts anything.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

/// What every name begins with.
const PREFIX: &str = "gatepost";

/// The text of no numbers at all.
pub const EMPTY: &str = "# EOF\n";

/// Two texts of numbers as one.
pub fn joined(first: &str, second: &str) -> String {
    format!("{}{second}", first.strip_suffix(EMPTY).unwrap_or(first))
}

/// The numbers of one moment.
#[derive(Debug, Default)]
pub struct MetricSet {
    families: Vec<MetricFamily>,
}

/// A name, and its values.
#[derive(Debug)]
struct MetricFamily {
    name: &'static str,
    help: &'static str,
    kind: MetricType,
    values: MetricValues,
}

#[derive(Debug)]
enum MetricValues {
    /// One without a label, if it is known.
    One(Option<SampleValue>),
    /// Several, told apart by the values of a label.
    ByLabel(&'static str, Vec<(String, SampleValue)>),
}

#[derive(Clone, Copy, Debug)]
enum SampleValue {
    Count(u64),
    Whole(i64),
    Fraction(f64),
}

impl MetricSet {
    /// Adds a number that goes up and down.
    pub fn gauge(&mut self, name: &'static str, help: &'static str, value: usize) {
        self.add((name, help), MetricType::Gauge, MetricValues::One(Some(SampleValue::whole(value))));
    }

    /// Adds a number that goes up and down and may not be known.
    pub fn known_gauge(&mut self, name: &'static str, help: &'static str, value: Option<i64>) {
        self.add((name, help), MetricType::Gauge, MetricValues::One(value.map(SampleValue::Whole)));
    }

    /// Adds a number per value of a label; they go up and down.
    pub fn gauges<L: ToString>(
        &mut self,
        family: (&'static str, &'static str),
        label: &'static str,
        values: impl IntoIterator<Item = (L, f64)>,
    ) {
        let values = by_label(label, values, SampleValue::Fraction);
        self.add(family, MetricType::Gauge, values);
    }

    /// Adds a whole number per value of a label; they go up and down.
    pub fn whole_gauges<L: ToString>(
        &mut self,
        family: (&'static str, &'static str),
        label: &'static str,
        values: impl IntoIterator<Item = (L, usize)>,
    ) {
        let values = by_label(label, values, SampleValue::whole);
        self.add(family, MetricType::Gauge, values);
    }

    /// Adds a number that only goes up; the text shows its name with `_total` at the end.
    pub fn counter(&mut self, name: &'static str, help: &'static str, value: u64) {
        self.add((name, help), MetricType::Counter, MetricValues::One(Some(SampleValue::Count(value))));
    }

    /// Adds a number per value of a label; they only go up.
    pub fn counters<L: ToString>(
        &mut self,
        family: (&'static str, &'static str),
        label: &'static str,
        values: impl IntoIterator<Item = (L, u64)>,
    ) {
        let values = by_label(label, values, SampleValue::Count);
        self.add(family, MetricType::Counter, values);
    }

    /// The text of all numbers.
    pub fn into_text(self) -> String {
        let mut registry = Registry::with_prefix(PREFIX);
        registry.register_collector(Box::new(self));
        let mut text = String::new();
        // Writing into a String fails only where a number cannot be written, and these can.
        let _ = text::encode(&mut text, &registry);
        text
    }

    fn add(&mut self, (name, help): (&'static str, &'static str), kind: MetricType, values: MetricValues) {
        self.families.push(MetricFamily { name, help, kind, values });
    }
}

fn by_label<L: ToString, V>(
    label: &'static str,
    values: impl IntoIterator<Item = (L, V)>,
    sample: fn(V) -> SampleValue,
) -> MetricValues {
    MetricValues::ByLabel(label, values.into_iter().map(|(text, value)| (text.to_string(), sample(value))).collect())
}

impl Collector for MetricSet {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for family in &self.families {
            let metric = encoder.encode_descriptor(family.name, family.help, None, family.kind)?;
            family.values.encode(metric)?;
        }
        Ok(())
    }
}

impl MetricValues {
    fn encode(&self, mut metric: MetricEncoder<'_>) -> fmt::Result {
        match self {
            MetricValues::One(value) => value.map_or(Ok(()), |value| value.encode(metric)),
            MetricValues::ByLabel(label, values) => values
                .iter()
                .try_for_each(|(text, value)| value.encode(metric.encode_family(&[(*label, text.as_str())])?)),
        }
    }
}

impl SampleValue {
    fn whole(value: usize) -> SampleValue {
        SampleValue::Whole(i64::try_from(value).unwrap_or(i64::MAX))
    }

    fn encode(self, encoder: MetricEncoder<'_>) -> fmt::Result {
        match self {
            SampleValue::Count(value) => ConstCounter::new(value).encode(encoder),
            SampleValue::Whole(value) => ConstGauge::new(value).encode(encoder),
            SampleValue::Fraction(value) => ConstGauge::new(value).encode(encoder),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_come_in_order_with_type_help_and_samples() {
        let mut metrics = MetricSet::default();
        metrics.gauge("zones", "Zones that were read.", 2);
        metrics.counters(("steps", "Changes written."), "verb", [("create", 7), ("delete", 0)]);
        metrics.gauges(("age_seconds", "Seconds since."), "kind", [("HTTPRoute", 0.5), ("Gateway", 12.0)]);
        metrics.known_gauge("expiry_seconds", "When the first certificate ends.", None);
        let expected = "\
# HELP gatepost_zones Zones that were read.
# TYPE gatepost_zones gauge
gatepost_zones 2
# HELP gatepost_steps Changes written.
# TYPE gatepost_steps counter
gatepost_steps_total{verb=\"create\"} 7
gatepost_steps_total{verb=\"delete\"} 0
# HELP gatepost_age_seconds Seconds since.
# TYPE gatepost_age_seconds gauge
gatepost_age_seconds{kind=\"HTTPRoute\"} 0.5
gatepost_age_seconds{kind=\"Gateway\"} 12.0
# HELP gatepost_expiry_seconds When the first certificate ends.
# TYPE gatepost_expiry_seconds gauge
# EOF
";
        assert_eq!(metrics.into_text(), expected);
    }

    #[test]
    fn no_numbers_are_the_end_alone() {
        assert_eq!(MetricSet::default().into_text(), EMPTY);
    }
}
