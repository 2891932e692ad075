//! How quickly the API may be asked: a bucket of calls that fills again.
//!
//! The service has one for each account, which other programs take from as well. A zone of many pages would empty it, and a
//! refusal in the middle would waste all pages before; so calls wait here instead.

use std::time::{Duration, Instant};

use tokio::sync::Mutex;

/// Calls that may be made at once; the size of the bucket of the service.
const BURST: f64 = 50.0;

/// A bucket.
pub(super) struct Pace {
    per_second: f64,
    /// How many calls were left, and when.
    left: Mutex<(f64, Instant)>,
}

impl Pace {
    pub(super) fn new(per_second: u32) -> Pace {
        Pace { per_second: f64::from(per_second.max(1)), left: Mutex::new((BURST, Instant::now())) }
    }

    /// Waits until a call may be made.
    pub(super) async fn take(&self) {
        let wait = {
            let mut left = self.left.lock().await;
            let now = Instant::now();
            let (wait, after) = taken(left.0, now.duration_since(left.1), self.per_second);
            *left = (after, now);
            wait
        };
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
    }

    /// The service says that nothing is left.
    pub(super) async fn empty(&self) {
        let mut left = self.left.lock().await;
        *left = (left.0.min(0.0), Instant::now());
    }
}

/// How long to wait for one call, and what is left afterwards; less than nothing is owed by who waits.
fn taken(left: f64, since: Duration, per_second: f64) -> (Duration, f64) {
    let after = (left + since.as_secs_f64() * per_second).min(BURST) - 1.0;
    (Duration::from_secs_f64((-after / per_second).max(0.0)), after)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_free_and_then_calls_come_evenly() {
        let mut left = BURST;
        for _ in 0..50 {
            let (wait, after) = taken(left, Duration::ZERO, 5.0);
            assert!(wait.is_zero(), "{left}");
            left = after;
        }
        assert_eq!(taken(left, Duration::ZERO, 5.0), (Duration::from_millis(200), -1.0));
        assert_eq!(taken(-1.0, Duration::ZERO, 5.0), (Duration::from_millis(400), -2.0));
        assert_eq!(taken(-1.0, Duration::from_secs(1000), 5.0), (Duration::ZERO, BURST - 1.0));
    }
}
