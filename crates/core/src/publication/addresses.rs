//! The targets of a name: those of annotations, else the addresses of the Gateway (D7, D20, D25).

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use super::input::PublicationInput;
use super::obstacles::Obstacle;
use super::selection::gateway_object;
use crate::diagnostic::{Diagnostic, FieldPath};
use crate::lint::listed;
use crate::model::{Address, DnsPolicy, Gateway, ObjectRef, SharedList, Str};
use crate::names::PreciseHostname;
use crate::policy::Exclusion;
use crate::publication::PublicationSettings;
use crate::publication::RecordType;
use crate::publication::annotations::{annotation_field, is_odd_target};
use crate::publication::inward::is_inward;
use crate::publication::targets::{AddressFields, gateway_addresses, without_dot};
use crate::reason;
use crate::snapshot::Origin;

/// What a name resolves to: addresses, or one other name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Targets {
    /// A and AAAA records; at least one list is not empty.
    Addresses { v4: SharedList<Str>, v6: SharedList<Str> },
    /// A CNAME record; exactly one name.
    Name(SharedList<Str>),
}

/// Targets or the obstacle to having any, with diagnostics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ResolvedTargets {
    pub(super) targets: Result<Arc<Targets>, Obstacle>,
    /// Shared by every route that uses these targets.
    pub(super) diagnostics: Arc<Vec<Diagnostic>>,
}

impl Targets {
    /// Record types and their targets.
    pub(super) fn by_type(&self) -> impl Iterator<Item = (RecordType, &SharedList<Str>)> {
        let all = match self {
            Targets::Addresses { v4, v6 } => [Some((RecordType::A, v4)), Some((RecordType::Aaaa, v6))],
            Targets::Name(name) => [Some((RecordType::Cname, name)), None],
        };
        all.into_iter().flatten().filter(|(_, targets)| !targets.is_empty())
    }

    /// Whether this is a CNAME, which cannot coexist with other records.
    pub(super) fn is_name(&self) -> bool {
        matches!(self, Targets::Name(_))
    }

    /// The target of the CNAME, if this is one.
    pub(super) fn name(&self) -> Option<&Str> {
        match self {
            Targets::Name(targets) => targets.first(),
            Targets::Addresses { .. } => None,
        }
    }

    /// The same without some of the addresses.
    pub(super) fn without(&self, removed: &BTreeSet<&Str>) -> Targets {
        let left =
            |targets: &SharedList<Str>| targets.iter().filter(|target| !removed.contains(target)).cloned().collect();
        match self {
            Targets::Addresses { v4, v6 } => Targets::Addresses { v4: left(v4), v6: left(v6) },
            Targets::Name(_) => self.clone(),
        }
    }

    /// Adds the addresses of `other`, if both are addresses.
    pub(super) fn unite(&mut self, other: &Targets) {
        if let (Targets::Addresses { v4, v6 }, Targets::Addresses { v4: more4, v6: more6 }) = (self, other) {
            *v4 = united(v4, more4);
            *v6 = united(v6, more6);
        }
    }
}

fn united(a: &SharedList<Str>, b: &SharedList<Str>) -> SharedList<Str> {
    let both: BTreeSet<&Str> = a.iter().chain(b.iter()).collect();
    both.into_iter().cloned().collect()
}

/// The object and field that targets come from, for diagnostics.
struct TargetOrigin {
    object: ObjectRef,
    field: FieldPath,
}

/// The addresses of a Gateway, after a policy's exclusions.
pub(super) fn of_gateway(
    input: PublicationInput<'_>,
    gateway: &Gateway,
    policy: Option<&DnsPolicy>,
) -> ResolvedTargets {
    let fields = match input.snapshot.origin {
        Origin::Files => AddressFields::StatusOrSpec,
        Origin::Cluster => AddressFields::Status,
    };
    let object = gateway_object(&gateway.meta.key);
    let place = TargetOrigin { object, field: FieldPath::of("status.addresses") };
    let addresses = gateway_addresses(gateway, fields, input.settings);
    let (inside, outside): (Vec<&Address>, Vec<&Address>) =
        addresses.iter().partition(|address| address.routability.as_deref() == Some("Cluster"));
    let mut diagnostics = Vec::new();
    if !inside.is_empty() {
        let values = listed(inside.iter().map(|address| &*address.value));
        let message = format!("{values} can be reached inside the cluster only and is not published");
        diagnostics.push(Diagnostic::new(reason::CLUSTER_ADDRESS, &place.object, place.field.clone(), message));
    }
    let (known, others): (Vec<&Address>, Vec<&Address>) = outside.into_iter().partition(|a| is_known_kind(a));
    let others: Vec<String> = others.iter().map(|a| format!("`{}` is of type {}", a.value, a.kind)).collect();
    if !others.is_empty() {
        let message = format!("{}; an IPAddress or a Hostname can be published", others.join(", "));
        diagnostics.push(Diagnostic::new(
            reason::ADDRESS_TYPE_UNSUPPORTED,
            &place.object,
            place.field.clone(),
            message,
        ));
    }
    let values: Vec<Str> = known.iter().map(|a| a.value.clone()).collect();
    if values.is_empty() {
        let targets = Err(without_address(input, place, !inside.is_empty(), &others));
        return ResolvedTargets { targets, diagnostics: diagnostics.into() };
    }
    let inward: Vec<&Str> = values.iter().filter(|value| is_inward(value)).collect();
    if !(inward.is_empty() || input.settings.allow_inward_targets) {
        let addresses = listed(inward.iter().map(|value| &***value));
        let message =
            format!("{addresses} points to the host or network itself; it is published, because it is the Gateway's");
        diagnostics.push(place.diagnostic(reason::TARGET_NOT_PERMITTED, message));
    }
    let (targets, mut diagnosed) = of_values(&values, policy, place);
    diagnosed.append(&mut diagnostics);
    ResolvedTargets { targets, diagnostics: diagnosed.into() }
}

/// The targets of an object's annotation, after a policy's exclusions. Invalid ones were reported when the annotation
/// was read.
pub(super) fn of_annotations(
    settings: &PublicationSettings,
    values: &[Str],
    policy: Option<&DnsPolicy>,
    object: &ObjectRef,
    key: Option<&Str>,
) -> ResolvedTargets {
    let field = key.map_or_else(|| FieldPath::of("metadata.annotations"), annotation_field);
    let place = TargetOrigin { object: object.clone(), field };
    let refuses = |value: &&Str| !settings.allow_inward_targets && is_inward(value);
    let inward: Vec<&Str> = values.iter().filter(refuses).collect();
    let permitted: Vec<Str> = values.iter().filter(|value| !refuses(value)).cloned().collect();
    let mut refused = Vec::new();
    if !inward.is_empty() {
        let message = format!(
            "{} points to the host or network itself and is not published",
            listed(inward.iter().map(|value| &***value))
        );
        if permitted.is_empty() {
            let targets = Err(place.obstacle(reason::TARGET_NOT_PERMITTED, message));
            return ResolvedTargets { targets, diagnostics: Default::default() };
        }
        refused.push(place.diagnostic(reason::TARGET_NOT_PERMITTED, message));
    }
    let (targets, mut diagnosed) = of_values(&permitted, policy, place);
    diagnosed.append(&mut refused);
    if values.iter().any(|value| is_odd_target(value)) {
        diagnosed.retain(|diagnostic| diagnostic.reason != reason::TARGET_INVALID);
    }
    ResolvedTargets { targets, diagnostics: diagnosed.into() }
}

/// Targets, or why there are none.
type Usable = Result<Arc<Targets>, Obstacle>;

fn of_values(values: &[Str], policy: Option<&DnsPolicy>, place: TargetOrigin) -> (Usable, Vec<Diagnostic>) {
    let mut diagnostics = Vec::new();
    let mut read = Vec::new();
    for value in values {
        match Target::parse(value) {
            Some(target) => read.push(target),
            None => {
                let message = format!("`{value}` is neither an IP address nor a hostname and is not published");
                diagnostics.push(place.diagnostic(reason::TARGET_INVALID, message));
            }
        }
    }
    let excluded = exclusions(policy);
    let is_left = |target: &Target| !excluded.iter().any(|exclusion| exclusion.covers(&target.text()));
    let left: Vec<Target> = read.iter().filter(|target| is_left(target)).cloned().collect();
    let targets = match (left.is_empty(), read.is_empty(), policy) {
        (false, ..) => Ok(Arc::new(chosen(&left, &place, &mut diagnostics))),
        (true, false, Some(policy)) => Err(all_excluded(policy, &place)),
        _ => Err(place.obstacle(reason::TARGET_INVALID, format!("{} names no usable address", place.object))),
    };
    (targets, diagnostics)
}

/// One usable target.
#[derive(Clone, Debug)]
enum Target {
    Address(IpAddr),
    Name(PreciseHostname),
}

impl Target {
    fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let address = text.parse().ok().map(Target::Address);
        address.or_else(|| PreciseHostname::parse(without_dot(text)).ok().map(Target::Name))
    }

    fn text(&self) -> Str {
        match self {
            Target::Address(address) => address.to_string().into(),
            Target::Name(name) => name.as_str().into(),
        }
    }
}

/// IP addresses take precedence over names; of several names the first is used.
fn chosen(left: &[Target], place: &TargetOrigin, diagnostics: &mut Vec<Diagnostic>) -> Targets {
    let (mut v4, mut v6, mut names) = (BTreeSet::new(), BTreeSet::new(), Vec::new());
    for target in left {
        match target {
            Target::Address(IpAddr::V4(_)) => _ = v4.insert(target.text()),
            Target::Address(IpAddr::V6(_)) => _ = v6.insert(target.text()),
            Target::Name(_) if names.contains(&target.text()) => {}
            Target::Name(_) => names.push(target.text()),
        }
    }
    let are_addresses = !(v4.is_empty() && v6.is_empty());
    match names.first() {
        Some(first) if !are_addresses => {
            if names.len() > 1 {
                let others = listed(names[1..].iter().map(|name| &**name));
                let message = format!("a CNAME has one target: `{first}` is published, {others} not");
                diagnostics.push(place.diagnostic(reason::SEVERAL_CNAME_TARGETS, message));
            }
            return Targets::Name([first.clone()].into());
        }
        Some(_) => {
            let names = listed(names.iter().map(|name| &**name));
            let message = format!("{names} is not published beside IP addresses, because a CNAME stands alone");
            diagnostics.push(place.diagnostic(reason::MIXED_ADDRESSES, message));
        }
        None => {}
    }
    Targets::Addresses { v4: v4.into_iter().collect(), v6: v6.into_iter().collect() }
}

impl TargetOrigin {
    fn diagnostic(&self, reason: reason::Reason, message: String) -> Diagnostic {
        Diagnostic::new(reason, &self.object, self.field.clone(), message)
    }

    fn obstacle(&self, reason: reason::Reason, message: String) -> Obstacle {
        Obstacle { reason, message, object: self.object.clone(), field: self.field.clone() }
    }
}

fn exclusions(policy: Option<&DnsPolicy>) -> Vec<Exclusion> {
    let entries = policy.map(|policy| &policy.exclude_addresses[..]).unwrap_or_default();
    entries.iter().filter_map(|entry| Exclusion::parse(entry).ok()).collect()
}

fn all_excluded(policy: &DnsPolicy, place: &TargetOrigin) -> Obstacle {
    let object = ObjectRef { kind: crate::model::Kind::DnsPolicy, key: policy.meta.key.clone() };
    let message = format!("{object} excludes every address of {}", place.object);
    Obstacle { reason: reason::ADDRESS_EXCLUDED, message, object, field: FieldPath::of("spec.excludeAddresses") }
}

fn without_address(input: PublicationInput<'_>, place: TargetOrigin, has_inside: bool, others: &[String]) -> Obstacle {
    let gateway = &place.object;
    if !others.is_empty() {
        let message = format!("{gateway} has no address that can be published: {}", others.join(", "));
        return place.obstacle(reason::GATEWAY_WITHOUT_ADDRESS, message);
    }
    let what = if has_inside { "no address outside the cluster" } else { "no address" };
    let message = match input.snapshot.origin {
        Origin::Cluster => format!("{gateway} has {what} in `status.addresses`"),
        Origin::Files => format!(
            "{gateway} has {what}: neither in `status.addresses` nor in `spec.addresses`, nor by `--gateway-address {}=VALUE`",
            gateway.key
        ),
    };
    place.obstacle(reason::GATEWAY_WITHOUT_ADDRESS, message)
}

/// Address types that can be published; an unset type means an IP address.
fn is_known_kind(address: &Address) -> bool {
    matches!(&*address.kind, "" | "IPAddress" | "Hostname")
}
