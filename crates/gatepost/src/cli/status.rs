//! `gatepost status`: the status every object should have.

use std::io::Write;

use clap::Args;
use gatepost_core::lint::LintContext;
use gatepost_core::publication::settings::StatusMode;
use gatepost_core::publication::{self, PublicationSettings};
use gatepost_core::report::{self, Report};
use gatepost_objects::rfc3339;

use super::flags::providers::FurtherProviders;
use super::{Ending, Failure, Format, Input};
use crate::certificates;
use crate::render::inert_line;
use crate::source::Objects;
use crate::view::diagnostic::DiagnosticView;
use crate::view::status::StatusView;
use crate::view::write_json;

/// Show the status that every object should have
///
/// Works out conditions, reasons, attachedRoutes, supportedKinds and attachedListenerSets from the objects alone, as the
/// conformance tests of Gateway API v1.7 demand. Status that others wrote is kept.
#[derive(Args, Debug)]
pub(super) struct StatusCommand {
    #[command(flatten)]
    input: Input,
    /// Only objects of this namespace are shown
    #[arg(short = 'n', long)]
    namespace: Option<String>,
    /// The time of conditions whose status is new, in RFC 3339; the present time unless given
    #[arg(long, value_name = "TIME")]
    at: Option<String>,
    /// Output format
    #[arg(short = 'o', long = "output", value_enum, default_value_t)]
    output: Format,
    #[command(flatten)]
    further: FurtherProviders,
}

impl StatusCommand {
    pub(super) fn run(self, out: &mut dyn Write) -> Result<Ending, Failure> {
        let objects = Objects::read_for(&self.input, self.namespace.as_deref())?;
        super::warn_unreadable(&objects);
        let topology = objects.topology(&Default::default());
        let now = self.at.clone().unwrap_or_else(|| rfc3339(certificates::now()));
        let context = LintContext { snapshot: objects.snapshot(), topology: &topology };
        let mut report = Report::build(context, Some(now.into()));
        let settings = PublicationSettings {
            status: StatusMode::Compute,
            providers: self.further.rule(),
            ..PublicationSettings::default()
        };
        let desired = publication::build(objects.snapshot(), &topology, &settings);
        report.add_policies(&desired.policies, objects.snapshot());
        if let Some(namespace) = &self.namespace {
            report.items.retain(|item| **item.object.namespace() == **namespace);
            report.diagnostics.retain(|d| d.object.as_ref().is_some_and(|object| **object.namespace() == **namespace));
        }
        match self.output {
            Format::Json => {
                let diagnostics = objects.placed(report.diagnostics.clone());
                write_json(out, &StatusView::of(&report, diagnostics.iter().map(DiagnosticView::of).collect()))?;
            }
            Format::Text => write_text(out, &report)?,
        }
        Ok(Ending::Done)
    }
}

fn write_text(out: &mut dyn Write, report: &Report) -> std::io::Result<()> {
    for item in &report.items {
        writeln!(out, "{}", inert_line(&item.object.to_string()))?;
        match &item.status {
            report::ObjectStatus::Class(conditions) => write_conditions(out, conditions)?,
            report::ObjectStatus::Gateway { conditions, listeners, attached_sets, .. } => {
                write_conditions(out, conditions)?;
                if *attached_sets > 0 {
                    writeln!(out, "  attachedListenerSets: {attached_sets}")?;
                }
                listeners.iter().try_for_each(|listener| write_listener(out, listener))?;
            }
            report::ObjectStatus::Set { conditions, listeners } => {
                write_conditions(out, conditions)?;
                listeners.iter().try_for_each(|listener| write_listener(out, listener))?;
            }
            report::ObjectStatus::Policy { conditions, hostnames } => {
                write_conditions(out, conditions)?;
                for hostname in hostnames {
                    let why = hostname.state.reason().map(|reason| format!(" ({reason})")).unwrap_or_default();
                    let line = format!("{}: {}{why}", hostname.hostname, hostname.state.as_str());
                    writeln!(out, "  hostname {}", inert_line(&line))?;
                }
            }
            report::ObjectStatus::Route(parents) => {
                for parent in parents {
                    let target = &parent.parent.target;
                    let section = parent.parent.section.as_ref().map(|s| format!("/{s}")).unwrap_or_default();
                    let own = item.object.namespace();
                    let name = format!("{}/{}/{}{section}", target.kind, target.namespace_or(own), target.name);
                    writeln!(out, "  on {} ({})", inert_line(&name), inert_line(&parent.controller))?;
                    for condition in &parent.conditions {
                        writeln!(out, "    {}", line(condition))?;
                    }
                }
            }
        }
    }
    Ok(())
}

fn write_listener(out: &mut dyn Write, listener: &report::ListenerReport) -> std::io::Result<()> {
    let kinds: Vec<_> = listener.supported_kinds.iter().map(|k| k.as_str()).collect();
    let (name, routes) = (inert_line(&listener.name), listener.attached_routes);
    writeln!(out, "  listener {name}: attachedRoutes {routes}, takes {}", kinds.join(", "))?;
    for condition in &listener.conditions {
        writeln!(out, "    {}", line(condition))?;
    }
    Ok(())
}

fn write_conditions(out: &mut dyn Write, conditions: &[gatepost_core::model::Condition]) -> std::io::Result<()> {
    conditions.iter().try_for_each(|condition| writeln!(out, "  {}", line(condition)))
}

fn line(condition: &gatepost_core::model::Condition) -> String {
    let message = if condition.message.is_empty() { String::new() } else { format!(": {}", condition.message) };
    inert_line(&format!("{} {} {}{message}", condition.kind, condition.status, condition.reason))
}
