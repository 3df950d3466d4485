//! Report-noisy-max with discrete Laplace noise: the paper's own Peeling.
//!
//! Each round adds fresh noise to every remaining |v_j| and picks the largest sum. Ties go to the lowest
//! index, a rule fixed in advance: given the others' sums, index j wins exactly when its noise reaches an
//! integer threshold, and both that threshold and |v_j| move by at most L between neighbours, so the chance
//! moves by a factor of at most exp(2L/scale), ties included.

use crate::noise::entropy::NoiseSource;
use crate::noise::exact::laplace::DiscreteLaplace;
use crate::runtime::error::Result;
use crate::runtime::memory::make_room;

/// Words drawn at a time.
const BLOCK: usize = 64;

/// Picks the largest |v_j| + Z_j, P(Z_j = z) proportional to exp(-|z|/pick_scale).
pub(super) struct NoisyMax {
    noise: DiscreteLaplace,
}

/// Memory shared by calls.
#[derive(Default)]
pub(super) struct NoisyMaxScratch {
    remaining: Vec<(u64, u32)>,
}

impl NoisyMax {
    pub(super) fn new(pick_scale: u64) -> Result<Self> {
        Ok(NoisyMax { noise: DiscreteLaplace::new("pick_scale", pick_scale)? })
    }

    pub(super) fn always_exact(mut self) -> Self {
        self.noise = self.noise.always_exact();
        self
    }

    /// Picks `count` <= d coordinates of `v`, all below 2^62 in magnitude.
    pub(super) fn pick(
        &self,
        v: &[i64],
        count: usize,
        source: &mut impl NoiseSource,
        scratch: &mut NoisyMaxScratch,
        keep: &mut impl FnMut(usize) -> bool,
    ) -> Result<()> {
        let remaining = &mut scratch.remaining;
        remaining.clear();
        make_room(remaining, v.len())?;
        remaining.extend(v.iter().zip(0u32..).map(|(x, index)| (x.unsigned_abs(), index)));
        let mut draws = [0i64; BLOCK];
        for _ in 0..count {
            let mut best = (i64::MIN, 0);
            for (block, chunk) in remaining.chunks(BLOCK).enumerate() {
                let draws = &mut draws[..chunk.len()];
                self.noise.fill(draws, source);
                for (offset, (&(magnitude, _), &draw)) in chunk.iter().zip(draws.iter()).enumerate() {
                    // |v| < 2^62 and noise saturates only when it would win or lose anyway.
                    let sum = (magnitude as i64).saturating_add(draw);
                    if sum > best.0 {
                        best = (sum, block * BLOCK + offset);
                    }
                }
            }
            if !keep(remaining.remove(best.1).1 as usize) {
                break;
            }
        }
        Ok(())
    }
}
