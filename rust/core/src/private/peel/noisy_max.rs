//! Report-noisy-max with discrete Laplace noise: the paper's own Peeling.
//!
//! Each round adds fresh noise to every remaining |v_j| and picks the largest sum. Ties go to the lowest
//! index, a rule fixed in advance: given the others' sums, index j wins exactly when its noise reaches an
//! integer threshold, and both that threshold and |v_j| move by at most L between neighbours, so the chance
//! moves by a factor of at most exp(2L/scale), ties included.
//!
//! Few coordinates come near the largest sum, so most noise need not be known in full. A round has a *bar*, and draws
//! 16 bits of each coordinate's noise. Those that can still reach the bar are drawn to the end; if one of
//! them does, the largest sum is among them, since all others are below the bar. If none does, the others are drawn to
//! the end, too. Whatever the bar, the noise is the same, bit for bit: a bar only decides when digits are looked at.

use crate::noise::entropy::NoiseSource;
use crate::noise::exact::laplace::{DiscreteLaplace, Head};
use crate::noise::exact::negative_exp;
use crate::runtime::error::Result;
use crate::runtime::memory::make_room;
use crate::runtime::simd::{Level, Vectorised};

/// Coordinates that reach the bar, on average: none does in one round of 400.
const EXPECTED: f64 = 6.0;

/// The bar is set again when the chance to reach it has fallen to this part.
const WORN: f64 = 0.7;

/// Weights are relative to the largest |v|. When together they are below this, that one has been picked.
const SPENT: f64 = 1.0 / (1 << 20) as f64;

/// Coordinates whose marks are looked at together.
const BLOCK: usize = 64;

/// The magnitude of a coordinate that has been picked.
const PICKED: i64 = -1;

/// Picks the largest |v_j| + Z_j, P(Z_j = z) proportional to exp(-|z|/pick_scale).
pub(super) struct NoisyMax {
    noise: DiscreteLaplace,
}

/// Memory shared by calls.
#[derive(Default)]
pub(super) struct NoisyMaxScratch {
    magnitudes: Vec<i64>,
    /// exp((magnitude - largest)/scale), nearly; 0 for those picked.
    weights: Vec<f64>,
    /// Largest head that may reach the bar.
    reaching: Vec<u16>,
    words: Vec<u64>,
    /// First bits of the noise of four coordinates each.
    heads: Vec<[u16; 4]>,
    /// Coordinates whose noise is drawn to the end.
    reached: Vec<u32>,
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
        scratch.start(v)?;
        let (level, scale) = (Level::best(), self.noise.scale() as f64);
        let (mut largest, mut total, mut bar, mut chance) = (0, 0.0, 0, 0.0);
        for _ in 0..count {
            if total < SPENT {
                largest = scratch.magnitudes.iter().copied().max().unwrap_or(0);
                let NoisyMaxScratch { magnitudes, weights, .. } = &mut *scratch;
                total = level.run(Weigh { magnitudes, largest, scale, weights });
                chance = 0.0;
            }
            if chance == 0.0 || total < WORN * chance {
                // On average total exp((largest - bar)/scale)/2 coordinates reach it.
                let above = (total / (2.0 * EXPECTED)).ln();
                bar = largest + (scale * above) as i64;
                let factor = (-above).exp();
                let NoisyMaxScratch { weights, magnitudes, reaching, .. } = &mut *scratch;
                level.run(SetBar { weights, magnitudes, bar, factor, reaching });
                chance = total;
            }
            let index = self.largest_sum(bar, level, source, scratch);
            total -= scratch.weights[index];
            scratch.magnitudes[index] = PICKED;
            scratch.weights[index] = 0.0;
            scratch.reaching[index] = 0;
            if !keep(index) {
                break;
            }
        }
        Ok(())
    }

    /// The coordinate with the largest noisy magnitude; among equal ones the first.
    fn largest_sum(
        &self,
        bar: i64,
        level: Level,
        source: &mut impl NoiseSource,
        scratch: &mut NoisyMaxScratch,
    ) -> usize {
        let NoisyMaxScratch { magnitudes, reaching, words, heads, reached, .. } = scratch;
        source.fill(words);
        for (four, word) in heads.iter_mut().zip(words.iter()) {
            *four = std::array::from_fn(|place| (word >> (16 * place)) as u16);
        }
        let heads = heads.as_flattened();
        let again = self.noise.drawn_again_from();
        reached.clear();
        level.run(Mark { heads, reaching, again, reached });
        let mut best = (i64::MIN, usize::MAX);
        let mut draw = |j: usize| {
            if magnitudes[j] != PICKED {
                // |v| < 2^62 and noise saturates only when it would win or lose anyway.
                let sum = magnitudes[j].saturating_add(self.noise.sample_from(Head(heads[j]), source));
                if sum > best.0 || sum == best.0 && j < best.1 {
                    best = (sum, j);
                }
            }
            best.0
        };
        let top = reached.iter().fold(i64::MIN, |_, j| draw(*j as usize));
        if top < bar {
            // In order of the coordinates, without those above.
            let mut above = reached.iter().peekable();
            for j in 0..magnitudes.len() {
                if above.next_if(|reached| **reached as usize == j).is_none() {
                    draw(j);
                }
            }
        }
        best.1
    }
}

impl NoisyMaxScratch {
    fn start(&mut self, v: &[i64]) -> Result<()> {
        let d = v.len();
        self.magnitudes.clear();
        make_room(&mut self.magnitudes, d)?;
        self.magnitudes.extend(v.iter().map(|x| x.unsigned_abs() as i64));
        sized(&mut self.weights, d, 0.0)?;
        sized(&mut self.reaching, d, 0)?;
        sized(&mut self.words, d.div_ceil(4), 0)?;
        sized(&mut self.heads, d.div_ceil(4), [0; 4])?;
        self.reached.clear();
        make_room(&mut self.reached, d)
    }
}

fn sized<T: Clone>(values: &mut Vec<T>, length: usize, value: T) -> Result<()> {
    values.clear();
    make_room(values, length)?;
    values.resize(length, value);
    Ok(())
}

struct Weigh<'a> {
    magnitudes: &'a [i64],
    largest: i64,
    scale: f64,
    weights: &'a mut [f64],
}

impl Vectorised for Weigh<'_> {
    /// The sum of all weights.
    type Output = f64;

    #[inline(always)]
    fn run(self) -> f64 {
        for (weight, &magnitude) in self.weights.iter_mut().zip(self.magnitudes) {
            let far = negative_exp((self.largest - magnitude) as f64 / self.scale);
            *weight = if magnitude == PICKED { 0.0 } else { far };
        }
        self.weights.iter().sum()
    }
}

struct SetBar<'a> {
    weights: &'a [f64],
    magnitudes: &'a [i64],
    bar: i64,
    factor: f64,
    reaching: &'a mut [u16],
}

impl Vectorised for SetBar<'_> {
    type Output = ();

    /// Noise of at least bar - magnitude takes a magnitude of noise with U <= exp(-(bar - magnitude)/scale), which is weight
    /// times factor, up to 2^-40 of it (the bar is rounded down, the exponentials are within 2^-49 of theirs, and the
    /// factor is 12 at most): less than the one that [`Head::up_to`] adds. A magnitude at the bar reaches it with any noise.
    #[inline(always)]
    fn run(self) {
        let numbers = self.weights.iter().zip(self.magnitudes);
        for (reaching, (weight, &magnitude)) in self.reaching.iter_mut().zip(numbers) {
            let some = Head::up_to(weight * self.factor);
            *reaching = if magnitude >= self.bar { u16::MAX } else { some };
        }
    }
}

struct Mark<'a> {
    heads: &'a [u16],
    reaching: &'a [u16],
    again: u16,
    reached: &'a mut Vec<u32>,
}

impl Vectorised for Mark<'_> {
    type Output = ();

    /// Writes down all coordinates whose head may reach the bar, or is drawn again.
    #[inline(always)]
    fn run(self) {
        let (blocks, rest) = self.reaching.as_chunks::<BLOCK>();
        for (b, (reaching, heads)) in blocks.iter().zip(self.heads.as_chunks::<BLOCK>().0).enumerate() {
            let mut any = 0u16;
            for i in 0..BLOCK {
                any |= u16::from((heads[i] <= reaching[i]) | (heads[i] >= self.again));
            }
            if any != 0 {
                for i in 0..BLOCK {
                    if heads[i] <= reaching[i] || heads[i] >= self.again {
                        self.reached.push((b * BLOCK + i) as u32);
                    }
                }
            }
        }
        let first = blocks.len() * BLOCK;
        for (i, reaching) in rest.iter().enumerate() {
            let head = self.heads[first + i];
            if head <= *reaching || head >= self.again {
                self.reached.push((first + i) as u32);
            }
        }
    }
}
