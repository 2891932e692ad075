//! When a certificate is to be renewed: in the window that its issuer suggests, else by its lifetime.
//!
//! Pure. The instant inside a window or a margin hangs on the serial number alone, so that it is the same after a restart and
//! spread over many certificates.

use crate::chain::Leaf;
use crate::history::{DAY, spread};

/// When to renew, in seconds since 1970.
///
/// `window` is the issuer's suggestion (RFC 9773), `before` what a policy asks for, in seconds before the end.
pub fn due(leaf: &Leaf, window: Option<(i64, i64)>, before: Option<u64>) -> i64 {
    let usual = usual(leaf, before);
    match window {
        // A window that ends before it begins is no answer.
        Some((begin, end)) if end > begin => {
            let chosen = begin.saturating_add((end.saturating_sub(begin) as f64 * spread(&leaf.serial)) as i64);
            // Whatever the issuer suggests: never so late that the certificate has expired.
            chosen.min(last_call(leaf))
        }
        _ => usual,
    }
}

/// With a third of the lifetime left, half where it is shorter than ten days, a little earlier for some than for others.
fn usual(leaf: &Leaf, before: Option<u64>) -> i64 {
    let lifetime = leaf.lifetime();
    let share = if lifetime < 10 * DAY { lifetime / 2 } else { lifetime / 3 };
    let asked = before.and_then(|before| i64::try_from(before).ok()).filter(|before| *before < lifetime);
    let margin = asked.unwrap_or(share);
    let jitter = (lifetime as f64 * 0.02 * spread(&leaf.serial)) as i64;
    leaf.not_after.saturating_sub(margin).saturating_sub(jitter)
}

/// The moment from which a certificate is renewed at any price: a sixth of the lifetime is left.
pub fn last_call(leaf: &Leaf) -> i64 {
    leaf.not_after.saturating_sub(leaf.lifetime() / 6)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaf(days: i64) -> Leaf {
        Leaf { not_before: 0, not_after: days * DAY, serial: "01".into(), ..Leaf::default() }
    }

    #[test]
    fn a_third_is_left_and_half_of_short_ones() {
        for (days, margin) in [(90, 30), (45, 15), (10, 10 / 3), (6, 3)] {
            let at = due(&leaf(days), None, None);
            let end = days * DAY - margin * DAY;
            assert!(at <= end && at >= end - days * DAY / 20, "{days} days: {at}");
        }
    }

    #[test]
    fn the_issuers_window_wins_and_never_past_the_end() {
        let leaf = leaf(90);
        let at = due(&leaf, Some((10 * DAY, 12 * DAY)), None);
        assert!((10 * DAY..=12 * DAY).contains(&at), "{at}");
        assert_eq!(due(&leaf, Some((100 * DAY, 120 * DAY)), None), 75 * DAY, "an odd window");
        assert_eq!(due(&leaf, Some((12 * DAY, 12 * DAY)), None), due(&leaf, None, None), "no window at all");
        assert!(due(&leaf, Some((i64::MIN / 2, -DAY)), None) < 0, "a window in the past is now");
    }

    #[test]
    fn a_policy_may_ask_for_more_time_but_not_for_all_of_it() {
        let leaf = leaf(90);
        let at = due(&leaf, None, Some(60 * DAY as u64));
        assert!(at <= 30 * DAY && at > 25 * DAY, "{at}");
        assert_eq!(due(&leaf, None, Some(100 * DAY as u64)), due(&leaf, None, None));
        assert_eq!(due(&leaf, None, Some(u64::MAX)), due(&leaf, None, None));
    }
}
