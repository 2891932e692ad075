//! `explain` as text: the verdict, its cause on the second line, then what a client meets and how the name is reached.

use gatepost_core::attachment::ListenerKey;
use gatepost_core::diagnostic::Diagnostic;
use gatepost_core::explain::{
    CertificateWalk, Chain, ExplainedGrant, Explanation, Link, ListenerOutcome, NameVerdict, Publication, SecretContent,
};
use gatepost_core::lint::listed;
use gatepost_core::model::Str;
use gatepost_core::publication::{NameSource, PassedOver, Withheld};
use gatepost_core::routing::RoutingOutcome;

use super::{Colour, folded, inert_line};

/// How many chains are shown in full.
const SHOWN: usize = 5;

/// The explanation of a hostname.
pub fn render(explanation: &Explanation, published: &Publication, colour: Colour) -> String {
    let page = Page { explanation, published, colour };
    let mut lines = vec![page.headline()];
    lines.extend(page.causes());
    if published.verdict(explanation) <= NameVerdict::NotPublished {
        lines.extend(page.requests());
        lines.extend(page.ways());
        lines.extend(page.published());
    }
    lines.extend(page.grant());
    lines.extend(page.addresses());
    lines.extend(page.broken());
    let mut text: String = lines.iter().flat_map(|line| folded(line)).map(|line| line + "\n").collect();
    text.truncate(text.trim_end().len());
    text + "\n"
}

/// The verdict on a hostname in one line, and the first cause where it is bad.
pub fn summary(explanation: &Explanation, published: &Publication, colour: Colour) -> String {
    let page = Page { explanation, published, colour };
    let cause = page.causes().into_iter().chain(page.broken()).next();
    let is_bad = published.verdict(explanation) != NameVerdict::Works;
    let lines = std::iter::once(page.headline()).chain(cause.filter(|_| is_bad));
    lines.flat_map(|line| folded(&line)).map(|line| line + "\n").collect()
}

struct Page<'a> {
    explanation: &'a Explanation,
    published: &'a Publication,
    colour: Colour,
}

impl Page<'_> {
    fn headline(&self) -> String {
        let name = &self.explanation.hostname;
        let is_attached = self.explanation.chains.iter().any(Chain::is_attached);
        let (is_good, says) = match self.published.verdict(self.explanation) {
            NameVerdict::Works if is_attached => (true, "is attached and published"),
            NameVerdict::Works => (true, "is published"),
            NameVerdict::RequestsFail => (false, "is published, but requests fail"),
            NameVerdict::NotPublished if is_attached => (false, "is attached, but not published"),
            NameVerdict::NotPublished => (false, "is not published"),
            NameVerdict::NotAttached => (false, "does not work"),
            NameVerdict::NotAsked => (false, "does not work: no route asks for it"),
        };
        match is_good {
            true => self.colour.paint("32", &format!("✓ {name} {says}")),
            false => self.colour.paint("31", &format!("✗ {name} {says}")),
        }
    }

    /// Why the verdict is bad, the first cause first.
    fn causes(&self) -> Vec<String> {
        match self.published.verdict(self.explanation) {
            NameVerdict::Works | NameVerdict::NotAttached => Vec::new(),
            NameVerdict::RequestsFail => {
                self.published.failures().take(1).flat_map(|d| said(&d, self.colour)).collect()
            }
            NameVerdict::NotPublished => self.withheld(),
            NameVerdict::NotAsked => self.nobody(),
        }
    }

    /// The addresses whose probes fail.
    fn addresses(&self) -> Vec<String> {
        let told = self.published.addresses.iter().filter_map(|(policy, address)| {
            let row = address.publication.reason()?.row();
            let line = format!("{} ({policy}) [{} {}]", address.message(), row.code, row.name);
            Some(format!("  {} {}", self.colour.paint("33", "!"), inert_line(&line)))
        });
        told.collect()
    }

    fn withheld(&self) -> Vec<String> {
        let is_told = |passed: &&PassedOver| {
            let says = |w: &Withheld| w.object == passed.object && w.message.ends_with(&passed.because);
            self.published.withheld.iter().any(says)
        };
        let left_out = self.published.passed_over.iter().filter(|passed| !is_told(passed)).map(|passed| {
            let row = gatepost_core::reason::NOT_SELECTED.row();
            format!("{} is left out: {} [{} {}]", passed.object, passed.because, row.code, row.name)
        });
        let withheld = self.published.withheld.iter().map(withheld);
        let all: Vec<String> = withheld.chain(left_out).collect();
        let more = all.len().saturating_sub(SHOWN);
        let mut lines: Vec<String> = all.iter().take(SHOWN).map(|line| format!("  {}", inert_line(line))).collect();
        lines.dedup();
        lines.extend((more > 0).then(|| format!("  … and {more} more; -o json shows all")));
        lines
    }

    fn nobody(&self) -> Vec<String> {
        let mut lines = Vec::new();
        match self.explanation.open_listeners.first() {
            Some(listener) => lines.push(format!("  {listener} would serve it: attach a route with this hostname")),
            None => lines.push("  no listener would serve it either: it needs a listener and a route".to_owned()),
        }
        if !self.explanation.similar.is_empty() {
            lines.push(inert_line(&format!("  similar names in use: {}", self.explanation.similar.join(", "))));
        }
        lines
    }

    /// What a client meets at each listener; causes that stand further up are not repeated.
    fn requests(&self) -> Vec<String> {
        let first = self.published.failures().next();
        let mut lines = Vec::new();
        for outcome in &self.published.requests {
            let certificate = self.published.certificate_problem(&outcome.listener);
            let is_bad = outcome.fails || certificate.is_some();
            let mark = if is_bad { self.colour.paint("31", "✗") } else { self.colour.paint("32", "✓") };
            let met = if certificate.is_some() { "gets no certificate".to_owned() } else { met(outcome) };
            lines.push(format!("  {mark} {}", inert_line(&format!("{} {met}", outcome.url))));
            let causes = certificate.into_iter().chain(outcome.cause.clone());
            for cause in causes.filter(|cause| Some(cause) != first.as_ref()) {
                lines.extend(said(&cause, self.colour).into_iter().map(|line| format!("  {line}")));
            }
        }
        let losing = self.published.losing.iter().filter(|cause| Some(*cause) != first.as_ref());
        lines.extend(losing.flat_map(|cause| said(cause, self.colour)));
        lines
    }

    /// The attached chains, those that publish first.
    fn ways(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut told: Vec<&Diagnostic> = self.published.requests.iter().filter_map(|o| o.cause.as_ref()).collect();
        for name in &self.published.annotated {
            let by = if name.source == NameSource::Template { "--fqdn-template for" } else { "the annotation of" };
            lines.push(inert_line(&format!("  published by {by} {}", name.object)));
        }
        let attached: Vec<&Chain> = self.explanation.chains.iter().filter(|chain| chain.works()).collect();
        for chain in attached.iter().take(SHOWN) {
            lines.push(format!("  {}", path(chain, self.colour)));
            if self.published.is_published() {
                lines.extend(
                    chain.withheld.iter().map(|w| inert_line(&format!("    not published here: {}", withheld(w)))),
                );
            }
            for note in &chain.notes {
                if !told.contains(&note) {
                    told.push(note);
                    lines.extend(said(note, self.colour).into_iter().map(|line| format!("  {line}")));
                }
            }
        }
        let more = attached.len().saturating_sub(SHOWN);
        lines.extend((more > 0).then(|| format!("  … and {more} more ways; -o json shows all")));
        lines
    }

    fn published(&self) -> Vec<String> {
        let records = self.published.records.iter();
        let mut lines: Vec<String> =
            records.map(|record| inert_line(&format!("  DNS          {}", super::plan::record_line(record)))).collect();
        let walks = self.published.certificates.iter();
        lines.extend(walks.map(|walk| inert_line(&format!("  certificate  {}", certificate(walk)))));
        lines
    }

    /// Which HostnameGrant decides who may have the name.
    fn grant(&self) -> Option<String> {
        let ExplainedGrant { grant, pattern, namespaces, selector, selected } = self.explanation.grant.as_ref()?;
        let names = |names: &[Str]| listed(names.iter().map(|name| &**name));
        let named = (!namespaces.is_empty()).then(|| format!("namespaces {}", names(namespaces)));
        let found = match selected.is_empty() {
            true => "none among those known".to_owned(),
            false => names(selected),
        };
        let selecting = selector.as_ref().map(|selector| match selector.is_empty() {
            true => "every namespace".to_owned(),
            false => format!("namespaces with {selector} ({found})"),
        });
        let all: Vec<String> = named.into_iter().chain(selecting).collect();
        let namespaces = if all.is_empty() { "no namespace".to_owned() } else { all.join(" and ") };
        Some(inert_line(&format!("  granted      by {grant} (`{pattern}`) to {namespaces}")))
    }

    fn broken(&self) -> Vec<String> {
        let broken: Vec<&Chain> = self.explanation.chains.iter().filter(|chain| !chain.works()).collect();
        let mut lines = Vec::new();
        let is_served = self.published.verdict(self.explanation) <= NameVerdict::NotPublished;
        if is_served && self.explanation.works() && !broken.is_empty() {
            let ways = if broken.len() == 1 { "way does" } else { "ways do" };
            lines.push(format!("  {} further {ways} not work:", broken.len()));
        }
        let first = self.published.failures().next();
        for chain in broken.iter().take(SHOWN) {
            let cause = chain.broken.iter().filter(|cause| Some(*cause) != first.as_ref());
            lines.extend(cause.flat_map(|cause| said(cause, self.colour)));
            lines.push(format!("    {}", path(chain, self.colour)));
        }
        if broken.len() > SHOWN {
            lines.push(format!("  … and {} more; -o json shows all", broken.len() - SHOWN));
        }
        lines
    }
}

/// What a client meets, in words.
fn met(outcome: &ListenerOutcome) -> String {
    let answer = &outcome.answer;
    let by = match (&answer.route, answer.rule) {
        (Some(route), Some(rule)) => format!(" (rule {rule} of {route}{})", at_listener(&outcome.listener)),
        _ => at_listener(&outcome.listener).trim_start_matches(" at ").to_owned(),
    };
    let status = answer.status.map(|status| status.to_string()).unwrap_or_default();
    match answer.outcome {
        RoutingOutcome::Forward => {
            let first = answer.backends.first();
            let port = first.and_then(|share| share.port).map(|port| format!(":{port}")).unwrap_or_default();
            let to = first.map(|share| format!("{}{port}", share.backend)).unwrap_or_default();
            let failing: u64 = answer.unavailable.iter().map(|share| u64::from(share.weight)).sum();
            let total: u64 = failing + answer.backends.iter().map(|share| u64::from(share.weight)).sum::<u64>();
            let part = if failing > 0 { format!(", and 500 for {failing} of {total}") } else { String::new() };
            format!("is served by {to}{part}{by}")
        }
        RoutingOutcome::Redirect => {
            format!("redirects to {} with {status}{by}", answer.location.as_deref().unwrap_or_default())
        }
        RoutingOutcome::Rejected => format!("is refused{}", spaced(&by)),
        _ => format!("is answered {status}{}", spaced(&by)),
    }
}

fn at_listener(listener: &ListenerKey) -> String {
    format!(" at {listener}")
}

/// A listener alone, in brackets.
fn spaced(by: &str) -> String {
    if by.starts_with(" (") { by.to_owned() } else { format!(" ({by})") }
}

fn withheld(withheld: &Withheld) -> String {
    let row = withheld.reason.row();
    let field = Some(withheld.field.to_string()).filter(|field| !field.is_empty());
    let object = withheld.object.to_string();
    let is_named = field.is_none() && withheld.message.starts_with(&object);
    let subject: Vec<String> = std::iter::once(object).chain(field).collect();
    let subject = if is_named { String::new() } else { format!("{}: ", subject.join(" ")) };
    format!("{subject}{} [{} {}]", withheld.message, row.code, row.name)
}

fn certificate(walk: &CertificateWalk) -> String {
    let held = match &walk.held {
        SecretContent::NotPermitted => "it is in another namespace, and no ReferenceGrant permits its use".to_owned(),
        SecretContent::Missing => "the Secret is not there yet".to_owned(),
        SecretContent::Provided => "another controller makes the Secret".to_owned(),
        SecretContent::Unusable(why) => format!("the Secret cannot be used: {why}"),
        SecretContent::Certificate { covers: true, not_after } => {
            format!("the Secret covers it until {}", date(*not_after))
        }
        SecretContent::Certificate { covers: false, .. } => "the Secret does not cover it".to_owned(),
    };
    let wanted = walk.unwanted.as_deref().unwrap_or("wanted");
    format!("{} for {}: {wanted}; {held}", walk.secret, walk.listener)
}

/// The day of an instant, as `2027-01-31`.
pub(super) fn date(seconds: i64) -> String {
    // Days since 0000-03-01, so that a leap day is the last of its year.
    let days = seconds.div_euclid(86_400) + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

/// Object, field and message of a diagnostic, with what to do.
fn said(diagnostic: &Diagnostic, colour: Colour) -> Vec<String> {
    let row = diagnostic.reason.row();
    let code = colour.paint("2", &format!("[{} {}]", row.code, row.name));
    let mut lines = vec![format!("  {} {code}", inert_line(&super::snippet::headline(diagnostic)))];
    for related in &diagnostic.related {
        lines.push(inert_line(&format!(
            "    see {} {}: {}{}",
            related.object,
            related.field,
            related.note,
            at(related.place.as_ref())
        )));
    }
    if let Some(place) = &diagnostic.place {
        lines.push(inert_line(&format!("    at {}:{}:{}", place.source, place.line, place.column)));
    }
    match (&diagnostic.fix, &diagnostic.help) {
        (Some(fix), _) => lines.push(format!("    {} {}", colour.paint("1", "fix:"), inert_line(fix))),
        (None, help) => lines.push(format!(
            "    {} {}",
            colour.paint("1", "help:"),
            inert_line(help.as_deref().unwrap_or(row.help))
        )),
    }
    lines
}

fn at(place: Option<&gatepost_core::diagnostic::SourcePosition>) -> String {
    place.map(|p| format!(" ({}:{}:{})", p.source, p.line, p.column)).unwrap_or_default()
}

fn path(chain: &Chain, colour: Colour) -> String {
    let links: Vec<_> = chain.links.iter().map(|link| shown(link, colour)).collect();
    let tail = chain.intersected.as_ref().map(|name| format!(" → {name}")).unwrap_or_default();
    inert_path(&format!("{}{tail}", links.join(" → ")), colour)
}

/// Colours are ours; what comes from objects is inert already where it was put in.
fn inert_path(text: &str, colour: Colour) -> String {
    if colour == Colour::On { text.to_owned() } else { inert_line(text) }
}

fn shown(link: &Link, colour: Colour) -> String {
    let mark = if link.holds { colour.paint("32", "✓") } else { colour.paint("31", "✗") };
    let detail = link.detail.as_ref().map(|d| format!(" ({d})")).unwrap_or_default();
    format!("{} {mark}", inert_line(&format!("{}{detail}", link.name)))
}

#[cfg(test)]
mod tests {
    use super::date;

    #[test]
    fn days_are_those_of_the_calendar() {
        let table = [(0, "1970-01-01"), (951_782_400, "2000-02-29"), (1_830_211_200, "2027-12-31"), (-1, "1969-12-31")];
        for (seconds, day) in table {
            assert_eq!(date(seconds), day);
        }
    }
}
