//! What was drawn, for tests that price it again: laws, scales and counts, all of them public. Off unless a test asks.
//!
//! Every function that adds noise to private numbers reports here, so that a draw which nothing was charged for can't
//! go unseen, whichever way led to it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// One release: its law, and how many numbers in a row had which scale.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draw {
    /// "pick", "noisy max", "vector", "discrete gaussian" or "laplace".
    pub law: &'static str,
    /// (scale, numbers).
    pub runs: Vec<(u64, usize)>,
}

static WATCHED: AtomicBool = AtomicBool::new(false);
static SEEN: Mutex<Vec<Draw>> = Mutex::new(Vec::new());

/// Begin, or end, to keep what is drawn in this process, by any thread.
pub fn watch(on: bool) {
    WATCHED.store(on, Ordering::SeqCst);
    taken();
}

/// What was drawn since the last call, in order.
pub fn taken() -> Vec<Draw> {
    std::mem::take(&mut *SEEN.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Reports a release of numbers with these scales.
pub(crate) fn drawn(law: &'static str, scales: impl IntoIterator<Item = u64>) {
    if !WATCHED.load(Ordering::Relaxed) {
        return;
    }
    let mut runs: Vec<(u64, usize)> = Vec::new();
    for scale in scales {
        match runs.last_mut() {
            Some((last, count)) if *last == scale => *count += 1,
            _ => runs.push((scale, 1)),
        }
    }
    SEEN.lock().unwrap_or_else(PoisonError::into_inner).push(Draw { law, runs });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_kept_unless_it_is_asked_for() {
        let law = "of this test alone";
        let mine = |seen: Vec<Draw>| seen.into_iter().filter(|draw| draw.law == law).collect::<Vec<_>>();
        drawn(law, [3]);
        assert!(mine(taken()).is_empty());
        watch(true);
        drawn(law, [5, 5, 7, 5]);
        assert_eq!(mine(taken()), [Draw { law, runs: vec![(5, 2), (7, 1), (5, 1)] }]);
        drawn(law, [1]);
        watch(false);
        assert!(mine(taken()).is_empty());
    }
}
