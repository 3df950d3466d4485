//! The exponential mechanism, pick after pick, in O(d) once and O(1) a pick.
//!
//! With base B >= all |v_j| and level l_j <= (B - |v_j|)/(pick_scale ln 2), propose j with weight 2^-l_j
//! and keep it with probability 2^l_j exp(-(B - |v_j|)/pick_scale), which is at most 1. Whoever is kept
//! first was picked with probability exactly proportional to exp(|v_j|/pick_scale), whatever the levels
//! are: they only decide how many proposals that takes. With l_j rounded down from the bound it takes two
//! on average.
//!
//! Levels stop at a last one, which all smaller coordinates share. That is enough while somebody is left at
//! a low level. When a few large coordinates have been taken and the others all sit at the end, the base
//! has to come down (`Contest::rebase`). So that it does not cost O(d) each time, only the `count` largest
//! coordinates (the top, sorted) are looked at: the largest remaining one is always among them. The rest
//! join the groups only once their bound, the smallest of the top, is in reach of the levels; from then on
//! the base can come down only once more (a few times if d >= 2^20).

use super::buckets::{Buckets, MOST_LEVELS, Proposed};
use crate::noise::entropy::NoiseSource;
use crate::noise::exact::{Decider, INVERSE_LN_2, ScaledExp, checked_scale};
use crate::runtime::error::Result;
use crate::runtime::memory::make_room;

/// Picks with probability exactly proportional to exp(|v_j|/pick_scale).
pub(super) struct ExponentialMechanism {
    scale: u64,
    /// gap * `level_factor` / 2^`level_shift` is at most gap/(scale ln 2), and short of it by a relative
    /// 2^-62 only.
    level_factor: u64,
    level_shift: u32,
    decider: Decider,
}

/// Memory shared by calls.
#[derive(Default)]
pub(super) struct ExponentialScratch {
    buckets: Buckets,
    magnitudes: Vec<u64>,
    top: Vec<u32>,
    rest: Vec<u32>,
    taken: Vec<bool>,
}

impl ExponentialMechanism {
    pub(super) fn new(name: &str, scale: u64) -> Result<Self> {
        let scale = checked_scale(name, scale)?;
        let bits = scale.ilog2();
        let level_factor = ((u128::from(INVERSE_LN_2) << bits) / u128::from(scale)) as u64;
        Ok(ExponentialMechanism { scale, level_factor, level_shift: 63 + bits, decider: Decider::FAST })
    }

    pub(super) fn always_exact(mut self) -> Self {
        self.decider = Decider::EXACT;
        self
    }

    /// A lower bound of gap/(scale ln 2), at most `last_level`.
    #[inline(always)]
    fn level(&self, gap: u64, last_level: usize) -> usize {
        let level = (u128::from(gap) * u128::from(self.level_factor)) >> self.level_shift;
        (level as u64).min(last_level as u64) as usize
    }

    /// Heads with probability exactly 2^level exp(-gap/scale).
    #[inline]
    fn keeps(&self, gap: u64, level: usize, noise: &mut impl NoiseSource) -> bool {
        if gap == 0 {
            return true;
        }
        // The quotient is within 4u of gap/scale; level ln 2 and the difference, both below quotient + 1,
        // within 2u and 1u.
        // 16u are allowed; the exponent itself is not negative, so a rounding below zero only brings it
        // closer.
        let quotient = gap as f64 / self.scale as f64;
        let exponent = (quotient - level as f64 * std::f64::consts::LN_2).max(0.0);
        let error = (quotient + 1.0) * (1.0 / (1u64 << 49) as f64);
        let number = || ScaledExp::new(gap, self.scale, level as u64);
        self.decider.flip(exponent, error, number, noise)
    }

    /// Picks `count` >= 1 coordinates of `v`, whose largest magnitude is `largest` < 2^62; fewer if `keep`, which
    /// gets one after the other, returns false.
    ///
    /// # Errors
    /// If there is no memory for the work; then nothing was picked.
    pub(super) fn pick(
        &self,
        v: &[i64],
        largest: u64,
        count: usize,
        noise: &mut impl NoiseSource,
        scratch: &mut ExponentialScratch,
        keep: &mut impl FnMut(usize) -> bool,
    ) -> Result<()> {
        // d coordinates of weight up to 2^last_level sum to less than 2^62.
        let size_bits = usize::BITS - v.len().leading_zeros();
        let last_level = MOST_LEVELS - size_bits as usize;
        let mut contest = Contest {
            mechanism: self,
            v,
            base: largest,
            last_level,
            // Somebody at this level outweighs everybody at the last one.
            patience: last_level.saturating_sub(size_bits as usize),
            next: 0,
            reached: 0,
            scratch,
        };
        contest.set_up(count)?;
        for _ in 0..count {
            if !keep(contest.pick(noise)) {
                break;
            }
        }
        Ok(())
    }
}

/// One call: who is left, and at which level.
struct Contest<'a> {
    mechanism: &'a ExponentialMechanism,
    v: &'a [i64],
    base: u64,
    last_level: usize,
    /// The base comes down when nobody is left up to this level.
    patience: usize,
    /// The first of the top that may still be there.
    next: usize,
    /// The first of the top that is not in a group.
    reached: usize,
    scratch: &'a mut ExponentialScratch,
}

impl Contest<'_> {
    #[inline(always)]
    fn level_of(&self, index: u32) -> usize {
        self.mechanism.level(self.base - self.v[index as usize].unsigned_abs(), self.last_level)
    }

    fn set_up(&mut self, count: usize) -> Result<()> {
        self.scratch.buckets.make_room(self.v.len())?;
        self.scratch.top.clear();
        self.scratch.rest.clear();
        self.scratch.taken.clear();
        self.scratch.buckets.clear(self.last_level);
        for index in 0..self.v.len() as u32 {
            let level = self.level_of(index);
            self.scratch.buckets.add(index, level);
        }
        if self.scratch.buckets.up_to(self.patience) >= count {
            // However the picks go, somebody stays at a low level: the base never has to move.
            self.scratch.buckets.group(0);
        } else {
            self.split(count)?;
            self.rebase();
        }
        Ok(())
    }

    /// Splits the coordinates into the `count` largest, sorted, and the rest.
    fn split(&mut self, count: usize) -> Result<()> {
        let ExponentialScratch { magnitudes, top, rest, taken, .. } = &mut *self.scratch;
        magnitudes.clear();
        make_room(taken, self.v.len())?;
        make_room(magnitudes, self.v.len())?;
        make_room(top, count)?;
        make_room(rest, self.v.len() - count)?;
        taken.resize(self.v.len(), false);
        magnitudes.extend(self.v.iter().map(|x| x.unsigned_abs()));
        let last_of_top = *magnitudes.select_nth_unstable_by(count - 1, |left, right| right.cmp(left)).1;
        let above = self.v.iter().filter(|x| x.unsigned_abs() > last_of_top).count();
        let mut ties_to_take = count - above;
        for (index, x) in self.v.iter().enumerate() {
            let in_top = match x.unsigned_abs().cmp(&last_of_top) {
                std::cmp::Ordering::Greater => true,
                std::cmp::Ordering::Equal if ties_to_take > 0 => {
                    ties_to_take -= 1;
                    true
                }
                _ => false,
            };
            if in_top { top.push(index as u32) } else { rest.push(index as u32) }
        }
        top.sort_unstable_by_key(|&index| std::cmp::Reverse(self.v[index as usize].unsigned_abs()));
        Ok(())
    }

    /// Brings the base down to the largest remaining coordinate and groups who is within reach of it.
    fn rebase(&mut self) {
        while self.scratch.taken[self.scratch.top[self.next] as usize] {
            self.next += 1;
        }
        self.base = self.v[self.scratch.top[self.next] as usize].unsigned_abs();
        self.scratch.buckets.clear(self.last_level);
        self.reached = self.next;
        while let Some(&index) = self.scratch.top.get(self.reached) {
            let level = self.level_of(index);
            if level == self.last_level {
                break;
            }
            self.list(index, level);
            self.reached += 1;
        }
        let beyond_reach = self.scratch.top.len() - self.reached;
        if beyond_reach > 0 {
            let unlisted = beyond_reach + self.scratch.rest.len();
            self.scratch.buckets.group(unlisted as u32);
            return;
        }
        for position in 0..self.scratch.rest.len() {
            let index = self.scratch.rest[position];
            self.list(index, self.level_of(index));
        }
        self.scratch.buckets.group(0);
    }

    fn list(&mut self, index: u32, level: usize) {
        if !self.scratch.taken[index as usize] {
            self.scratch.buckets.add(index, level);
        }
    }

    fn pick(&mut self, noise: &mut impl NoiseSource) -> usize {
        if self.scratch.buckets.lowest_level() > self.patience {
            self.rebase();
        }
        loop {
            let index = match self.scratch.buckets.propose(noise) {
                Proposed::Member { index, level, position } => {
                    if !self.keeps(index, level, noise) {
                        continue;
                    }
                    self.scratch.buckets.remove(level, position);
                    index
                }
                Proposed::Unlisted { rank } => {
                    let index = self.unlisted(rank);
                    // Those already taken stay in the list and are refused, which leaves the others'
                    // chances in proportion.
                    if self.scratch.taken[index as usize] || !self.keeps(index, self.last_level, noise) {
                        continue;
                    }
                    index
                }
            };
            if let Some(taken) = self.scratch.taken.get_mut(index as usize) {
                *taken = true;
            }
            return index as usize;
        }
    }

    fn unlisted(&self, rank: usize) -> u32 {
        let top = &self.scratch.top[self.reached..];
        top.get(rank).copied().unwrap_or_else(|| self.scratch.rest[rank - top.len()])
    }

    #[inline]
    fn keeps(&self, index: u32, level: usize, noise: &mut impl NoiseSource) -> bool {
        self.mechanism.keeps(self.base - self.v[index as usize].unsigned_abs(), level, noise)
    }
}
