//! `explain` as text: one screen, the first broken link first.

use gatepost_core::diagnostic::Diagnostic;
use gatepost_core::explain::{CertificateWalk, Chain, Explanation, Link, Publication, SecretContent};

use super::{Colour, inert_line};

/// How many chains are shown in full.
const SHOWN: usize = 5;

/// The explanation of a hostname, from the class to its record and certificate.
pub fn render(explanation: &Explanation, published: &Publication, colour: Colour) -> String {
    let mut lines = Vec::new();
    if explanation.works() {
        lines.extend(working(explanation, published, colour));
    } else if explanation.chains.is_empty() {
        lines.extend(nobody(explanation, colour));
    } else {
        lines.push(colour.paint("31", &format!("✗ {} does not work", explanation.hostname)));
    }
    lines.extend(broken(explanation, colour));
    lines.push(String::new());
    lines.join("\n")
}

fn working(explanation: &Explanation, published: &Publication, colour: Colour) -> Vec<String> {
    let name = &explanation.hostname;
    let headline = match published.is_published() {
        true => colour.paint("32", &format!("✓ {name} is attached and published")),
        false => colour.paint("31", &format!("✗ {name} is attached, but not published")),
    };
    let mut lines = vec![headline];
    if !published.is_published() {
        lines.extend(published.withheld.first().map(|w| format!("  {}", inert_line(&withheld(w)))));
    }
    for chain in explanation.chains.iter().filter(|c| c.works()).take(SHOWN) {
        lines.push(format!("  {}", path(chain, colour)));
        lines.extend(chain.notes.iter().flat_map(|note| said(note, colour)));
    }
    for record in &published.records {
        let by = if *record.name == *name.as_str() { String::new() } else { format!(" (answered by {})", record.name) };
        lines.push(inert_line(&format!("  DNS          {}{by}", super::plan::record_line(record))));
    }
    lines
        .extend(published.certificates.iter().map(|walk| inert_line(&format!("  certificate  {}", certificate(walk)))));
    lines
}

fn withheld(withheld: &gatepost_core::publication::Withheld) -> String {
    let row = withheld.reason.row();
    format!("{} {}: {} [{} {}]", withheld.object, withheld.field, withheld.message, row.code, row.name)
}

fn certificate(walk: &CertificateWalk) -> String {
    let held = match &walk.held {
        SecretContent::Missing => "the Secret is not there yet".to_owned(),
        SecretContent::Unusable(why) => format!("the Secret cannot be used: {why}"),
        SecretContent::Certificate { covers: true, not_after } => {
            format!("the Secret covers it until {}", date(*not_after))
        }
        SecretContent::Certificate { covers: false, .. } => "the Secret does not cover it".to_owned(),
    };
    let wanted = if walk.wanted { "wanted" } else { "not wanted by any policy" };
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

fn broken(explanation: &Explanation, colour: Colour) -> Vec<String> {
    let broken: Vec<_> = explanation.chains.iter().filter(|c| !c.works()).collect();
    let mut lines = Vec::new();
    if explanation.works() && !broken.is_empty() {
        let ways = if broken.len() == 1 { "way does" } else { "ways do" };
        lines.push(format!("  {} further {ways} not attach:", broken.len()));
    }
    for chain in broken.iter().take(SHOWN) {
        lines.extend(chain.broken.iter().flat_map(|d| said(d, colour)));
        lines.push(format!("    {}", path(chain, colour)));
    }
    if broken.len() > SHOWN {
        lines.push(format!("  … and {} more; -o json shows all", broken.len() - SHOWN));
    }
    lines
}

fn nobody(explanation: &Explanation, colour: Colour) -> Vec<String> {
    let name = &explanation.hostname;
    let mut lines = vec![colour.paint("31", &format!("✗ {name} does not work: no route asks for it"))];
    match explanation.open_listeners.first() {
        Some(listener) => lines.push(format!("  {listener} would serve it: attach a route with this hostname")),
        None => lines.push("  no listener would serve it either: it needs a listener and a route".to_owned()),
    }
    if !explanation.similar.is_empty() {
        lines.push(inert_line(&format!("  similar names in use: {}", explanation.similar.join(", "))));
    }
    lines
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
