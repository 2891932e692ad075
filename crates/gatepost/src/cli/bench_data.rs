//! `gatepost bench-data`: synthetic worlds and streams of changes, for benchmarks and for people who try something out.
//!
//! It is not in the help: who runs Gatepost for its names has no use for it.

use std::fs;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args, ValueEnum};
use gatepost_core::model::{Kind, RouteKind};
use gatepost_worlds::{Addresses, Event, Size, Style, World, files};

use super::{Ending, Failure};

/// Write a synthetic world of Gateway API objects, and a stream of changes to it
///
/// The same numbers and seed give the same bytes. Without --out, everything goes to standard output: the objects, or with
/// --changes the changes alone, as lines of a watch.
#[derive(Args, Debug)]
pub(super) struct BenchData {
    /// Routes
    #[arg(long, default_value_t = 1000)]
    routes: usize,
    /// Kinds of routes with weights, such as HTTPRoute=8,GRPCRoute=1
    #[arg(long, value_name = "KIND=WEIGHT", value_parser = weight, value_delimiter = ',', default_value = "HTTPRoute=1")]
    kinds: Vec<(RouteKind, u32)>,
    /// Gateways
    #[arg(long, default_value_t = 1)]
    gateways: usize,
    /// Listeners of each Gateway, its ListenerSets included
    #[arg(long, default_value_t = 1)]
    listeners: usize,
    /// ListenerSets of each Gateway [default: as few as can hold the listeners]
    #[arg(long)]
    listenersets: Option<usize>,
    /// Hostnames of each route
    #[arg(long, default_value_t = 1)]
    hostnames_per_route: usize,
    /// Parents of each route
    #[arg(long, default_value_t = 1)]
    parents: usize,
    /// Rules of each HTTPRoute, at most
    #[arg(long, default_value_t = 1)]
    rules: usize,
    /// Namespaces of routes [default: one for fifty routes, 500 at most]
    #[arg(long)]
    namespaces: Option<usize>,
    /// Domains
    #[arg(long, default_value_t = 300)]
    domains: usize,
    /// Share of hostnames that are wildcards
    #[arg(long, default_value_t = 0.01)]
    wildcards: f64,
    /// Share of routes with the hostnames of another
    #[arg(long, default_value_t = 0.1)]
    shared: f64,
    /// Share of parentRefs that name their listener
    #[arg(long, default_value_t = 0.0)]
    sections: f64,
    /// Share of routes and ListenerSets with a mistake
    #[arg(long, default_value_t = 0.0)]
    refused: f64,
    /// Share of Gateways and ListenerSets with policies
    #[arg(long, default_value_t = 0.0)]
    policies: f64,
    /// Admit namespaces by label instead of all
    #[arg(long)]
    selectors: bool,
    /// HTTPS listeners, each with a Secret that is not in the world
    #[arg(long)]
    https: bool,
    /// Addresses of Gateways
    #[arg(long, value_enum, default_value_t)]
    addresses: AddressesFlag,
    /// Leave status out, as manifests in a repository do
    #[arg(long)]
    no_status: bool,
    /// What chance starts from
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many events the stream of changes has
    #[arg(long, default_value_t = 0)]
    changes: usize,
    /// How objects are written
    #[arg(short = 'o', long = "output", value_enum, default_value_t)]
    output: BenchDataFormat,
    /// A directory: one file for the platform and one for each team, and `changes.jsonl`
    #[arg(long, value_name = "DIRECTORY")]
    out: Option<PathBuf>,
}

#[derive(ValueEnum, Clone, Copy, Debug, Default)]
enum AddressesFlag {
    /// One IPv4 address
    #[default]
    V4,
    /// IPv4 and IPv6
    Dual,
    /// A hostname
    Hostname,
}

#[derive(ValueEnum, Clone, Copy, Debug, Default)]
enum BenchDataFormat {
    /// One object a line
    #[default]
    Json,
    /// Block YAML
    Yaml,
}

impl BenchData {
    pub(super) fn run(self, out: &mut dyn Write) -> Result<Ending, Failure> {
        let world = World::new(self.size()).map_err(|unfit| Failure::usage(unfit.to_string()))?;
        match &self.out {
            Some(folder) => self.write_files(&world, folder).map_err(Failure::Unreadable)?,
            None if self.changes > 0 => self.write_changes(&world, out)?,
            None => self.write_objects(&world, out)?,
        }
        Ok(Ending::Done)
    }

    fn size(&self) -> Size {
        Size {
            routes: self.routes,
            kinds: self.kinds.clone(),
            gateways: self.gateways,
            listeners: self.listeners,
            sets: self.listenersets,
            hostnames: self.hostnames_per_route,
            parents: self.parents,
            rules: self.rules,
            namespaces: self.namespaces,
            domains: self.domains,
            wildcards: self.wildcards,
            shared: self.shared,
            sections: self.sections,
            refused: self.refused,
            policies: self.policies,
            selectors: self.selectors,
            https: self.https,
            addresses: match self.addresses {
                AddressesFlag::V4 => Addresses::V4,
                AddressesFlag::Dual => Addresses::Dual,
                AddressesFlag::Hostname => Addresses::Hostname,
            },
            status: !self.no_status,
            seed: self.seed,
        }
    }

    fn style(&self) -> Style {
        match self.output {
            BenchDataFormat::Json => Style::JsonLines,
            BenchDataFormat::Yaml => Style::Yaml,
        }
    }

    fn write_files(&self, world: &World, folder: &Path) -> anyhow::Result<()> {
        let named = |name: &str| folder.join(name);
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        for file in files(world, self.style()) {
            fs::write(named(&file.name), file.text).with_context(|| format!("cannot write {}", file.name))?;
        }
        if self.changes > 0 {
            let file = fs::File::create(named("changes.jsonl")).context("cannot write changes.jsonl")?;
            let mut file = BufWriter::new(file);
            self.write_changes(world, &mut file)?;
            file.flush()?;
        }
        Ok(())
    }

    fn write_objects(&self, world: &World, out: &mut dyn Write) -> std::io::Result<()> {
        let style = self.style();
        for (number, document) in world.documents(style).enumerate() {
            let separator = if number == 0 { "" } else { style.separator() };
            out.write_all(separator.as_bytes())?;
            out.write_all(document.text.as_bytes())?;
        }
        Ok(())
    }

    fn write_changes(&self, world: &World, out: &mut dyn Write) -> std::io::Result<()> {
        for step in world.stream(self.seed, &Event::USUAL).take(self.changes) {
            for told in &step.told {
                out.write_all(told.line().as_bytes())?;
            }
        }
        Ok(())
    }
}

fn weight(text: &str) -> Result<(RouteKind, u32), String> {
    let (kind, weight) = text.split_once('=').unwrap_or((text, "1"));
    let found = Kind::ALL.into_iter().find(|known| known.as_str() == kind).and_then(Kind::route);
    let kind = found.ok_or_else(|| format!("`{kind}` is not a kind of route, such as HTTPRoute"))?;
    let weight = weight.parse().map_err(|_| format!("`{weight}` is not a weight, such as 1"))?;
    Ok((kind, weight))
}
