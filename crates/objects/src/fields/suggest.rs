//! Did you mean …? The nearest known word by edit distance.

/// Words longer than this are nobody's slip of the finger.
const LONGEST: usize = 64;

/// The known word that `word` was most likely meant to be.
pub(crate) fn closest<'k>(word: &str, known: impl Iterator<Item = &'k str>) -> Option<&'k str> {
    if word.len() > LONGEST {
        return None;
    }
    let allowed = (word.chars().count() / 3).clamp(1, 3);
    let scored = known.map(|k| (distance(&word.to_lowercase(), &k.to_lowercase()), k));
    scored.filter(|(d, _)| *d <= allowed).min().map(|(_, k)| k)
}

/// How many letters must be inserted, removed, replaced or swapped with their neighbour.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replaced = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(before[j - 2] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut last, row);
    }
    last.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_found_and_other_words_are_not() {
        let known = || ["hostname", "hostnames", "port", "protocol"].into_iter();
        assert_eq!(closest("hostnam", known()), Some("hostname"));
        assert_eq!(closest("hostName", known()), Some("hostname"));
        assert_eq!(closest("prot", known()), Some("port"));
        assert_eq!(closest("backend", known()), None);
        assert_eq!(closest(&"x".repeat(10_000), known()), None);
    }

    #[test]
    fn distances() {
        for (a, b, d) in [("", "", 0), ("a", "", 1), ("ab", "ba", 1), ("kitten", "sitting", 3), ("port", "ports", 1)] {
            assert_eq!(distance(a, b), d, "{a} {b}");
        }
    }
}
