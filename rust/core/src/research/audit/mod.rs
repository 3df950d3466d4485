//! The audit's trial loop: run a mechanism many times on two neighbouring inputs and count what is seen.
//!
//! An auditor looks at a mechanism's whole output through *views*: each maps an output to one of a few bins.
//! The counts go to Python, which chooses the most telling event on one half of the runs and bounds its
//! probability on the other. Nothing here knows what the mechanism claims.

mod replay;
mod trials;

pub use replay::{FitCall, ReplayTrial, RowValues};
pub use trials::{NihtTrial, PeelTrial, PermuteAndFlipTrial, Reuse, Side};

use crate::noise::entropy::NoiseSource;
use crate::runtime::error::{Error, Result};
use crate::runtime::memory::zeros;
use crate::runtime::parallel::on_threads;

/// One released number: the `rank`-th coordinate of the `slot`-th release.
#[derive(Debug, Clone, Copy)]
pub struct Released {
    /// Which release of the run (iterate, or 0).
    pub slot: usize,
    /// Place in the order of release within the slot.
    pub rank: usize,
    /// Coordinate.
    pub index: usize,
    /// Value.
    pub value: f64,
}

/// Everything one run released.
pub type Output = Vec<Released>;

/// A mechanism together with its two neighbouring inputs.
pub trait Trial: Sync {
    /// What a thread keeps between runs.
    type State: Default;

    /// Run once on input `side` (0 or 1) and write what is released.
    ///
    /// # Errors
    /// Whatever the mechanism refuses.
    fn run(
        &self,
        side: usize,
        state: &mut Self::State,
        noise: &mut impl NoiseSource,
        output: &mut Output,
    ) -> Result<()>;
}

/// A linear score of the output, cut into equal bins; what falls outside goes to the first or last.
#[derive(Debug, Clone)]
pub struct View {
    pick_weights: Vec<f64>,
    value_weights: Vec<f64>,
    ranks: usize,
    columns: usize,
    low: f64,
    width: f64,
    bins: usize,
}

impl View {
    /// `pick_weights[slot, rank, index]` is added for a coordinate that is there,
    /// `value_weights[slot, index]` times its value; the score is cut into `bins` bins from `low` to `high`.
    ///
    /// # Errors
    /// If shapes do not fit, or the range or the number of bins is empty.
    pub fn new(
        pick_weights: Vec<f64>,
        value_weights: Vec<f64>,
        (slots, ranks, columns): (usize, usize, usize),
        (low, high): (f64, f64),
        bins: usize,
    ) -> Result<Self> {
        if pick_weights.len() != slots * ranks * columns || value_weights.len() != slots * columns {
            return Err(Error::invalid("weights must fit the view's slots, ranks and columns"));
        }
        if bins == 0 || !(low < high && (high - low).is_finite()) {
            return Err(Error::invalid("a view needs at least one bin and a finite range"));
        }
        let width = (high - low) / bins as f64;
        Ok(View { pick_weights, value_weights, ranks, columns, low, width, bins })
    }

    fn bin(&self, output: &Output) -> usize {
        let mut score = 0.0;
        for seen in output {
            let pick = (seen.slot * self.ranks + seen.rank) * self.columns + seen.index;
            let value = seen.slot * self.columns + seen.index;
            score += self.pick_weights.get(pick).unwrap_or(&0.0);
            score += self.value_weights.get(value).unwrap_or(&0.0) * seen.value;
        }
        // The cast saturates: what lies below goes to bin 0.
        (((score - self.low) / self.width) as usize).min(self.bins - 1)
    }
}

/// Counts of each view on each side: `counts[view][side][bin]`.
pub type Counts = Vec<[Vec<u64>; 2]>;

/// Run `trial` `runs` times on each side, on `threads` threads, each with the noise that `source(thread)` makes.
///
/// # Errors
/// Whatever the mechanism or the entropy source refuses.
pub fn count<T: Trial, N: NoiseSource>(
    trial: &T,
    views: &[View],
    runs: u64,
    threads: usize,
    source: impl Fn(u64) -> Result<N> + Sync,
) -> Result<Counts> {
    let threads = threads.max(1) as u64;
    let work = |thread: u64| -> Result<Counts> {
        let mut noise = source(thread)?;
        let mut state = T::State::default();
        let mut output = Output::new();
        let mut counts: Counts =
            views.iter().map(|view| Ok([zeros(view.bins)?, zeros(view.bins)?])).collect::<Result<_>>()?;
        let share = runs / threads + u64::from(thread < runs % threads);
        for _ in 0..share {
            for side in 0..2 {
                output.clear();
                trial.run(side, &mut state, &mut noise, &mut output)?;
                for (view, count) in views.iter().zip(&mut counts) {
                    count[side][view.bin(&output)] += 1;
                }
            }
        }
        Ok(counts)
    };
    let mut parts = on_threads(threads as usize, |thread| work(thread as u64))?.into_iter();
    let mut total = parts.next().unwrap_or_default();
    for part in parts {
        for (all, new) in total.iter_mut().flatten().flatten().zip(part.iter().flatten().flatten()) {
            *all += new;
        }
    }
    Ok(total)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::entropy::predictable::SeededNoise;

    /// Releases its side as a value: every view must tell the sides apart.
    struct Leak;

    impl Trial for Leak {
        type State = ();
        fn run(&self, side: usize, _: &mut (), _: &mut impl NoiseSource, output: &mut Output) -> Result<()> {
            output.push(Released { slot: 0, rank: 0, index: 1, value: side as f64 });
            Ok(())
        }
    }

    #[test]
    fn every_run_is_counted_once_a_side() {
        let view = View::new(vec![0.0; 2], vec![0.0, 1.0], (1, 1, 2), (0.0, 2.0), 2).expect("fits");
        for threads in [1, 3] {
            let counts =
                count(&Leak, std::slice::from_ref(&view), 10, threads, |t| Ok(SeededNoise::new(1, t)));
            assert_eq!(counts, Ok(vec![[vec![10, 0], vec![0, 10]]]));
        }
    }

    #[test]
    fn scores_outside_the_range_go_to_the_end_bins() {
        let view = View::new(vec![5.0], vec![1.0], (1, 1, 1), (-1.0, 1.0), 4).expect("fits");
        let at = |value| view.bin(&vec![Released { slot: 0, rank: 0, index: 0, value }]);
        assert_eq!([at(-100.0), at(-5.9), at(-5.1), at(-4.6), at(-4.1), at(100.0)], [0, 0, 1, 2, 3, 3]);
    }
}
