//! Coordinates grouped by level, proposed with weights that are powers of two.

use crate::noise::entropy::NoiseSource;
use crate::noise::exact::below;
use crate::runtime::error::Result;
use crate::runtime::memory::make_room;

/// Levels run from 0 to at most this.
pub(super) const MOST_LEVELS: usize = 62;

/// A coordinate of level l is proposed with weight 2^(last_level - l).
///
/// The total weight is below 2^62 because `last_level` leaves room for the number of coordinates.
#[derive(Default)]
pub(super) struct Buckets {
    /// Grouped by level; group l starts at `starts[l]` and holds `counts[l]`.
    members: Vec<u32>,
    starts: Vec<u32>,
    counts: Vec<u32>,
    /// What [`add`](Self::add) was given, before [`group`](Self::group).
    waiting: Vec<(u32, u8)>,
    last_level: usize,
    lowest: usize,
    total_weight: u64,
    /// Of the last level, how many are not in `members`: the caller knows who they are.
    unlisted: u32,
}

/// A proposal: who, or which of the unlisted.
pub(super) enum Proposed {
    Member { index: u32, level: usize, position: usize },
    Unlisted { rank: usize },
}

impl Buckets {
    /// Makes room for `size` coordinates: from then on nothing here asks for memory.
    ///
    /// # Errors
    /// If there is no room.
    pub(super) fn make_room(&mut self, size: usize) -> Result<()> {
        self.waiting.clear();
        make_room(&mut self.waiting, size)?;
        let missing = size.saturating_sub(self.members.len());
        make_room(&mut self.members, missing)
    }

    /// Starts an empty set of groups.
    pub(super) fn clear(&mut self, last_level: usize) {
        debug_assert!(last_level <= MOST_LEVELS);
        self.last_level = last_level;
        self.waiting.clear();
        self.counts.clear();
        self.counts.resize(last_level + 1, 0);
    }

    /// Adds a coordinate to the group of `level`; [`group`](Self::group) makes it count.
    #[inline]
    pub(super) fn add(&mut self, index: u32, level: usize) {
        self.waiting.push((index, level as u8));
        self.counts[level] += 1;
    }

    /// How many coordinates were added at `level` or below.
    pub(super) fn up_to(&self, level: usize) -> usize {
        self.counts[..=level].iter().map(|&count| count as usize).sum()
    }

    /// Groups what was added; `unlisted` others share the last level.
    pub(super) fn group(&mut self, unlisted: u32) {
        self.starts.clear();
        let mut end = 0;
        for &count in &self.counts {
            self.starts.push(end);
            end += count;
        }
        self.members.resize(self.waiting.len(), 0);
        for &(index, level) in &self.waiting {
            let slot = &mut self.starts[level as usize];
            self.members[*slot as usize] = index;
            *slot += 1;
        }
        for (start, count) in self.starts.iter_mut().zip(&self.counts) {
            *start -= count;
        }
        self.unlisted = unlisted;
        self.counts[self.last_level] += unlisted;
        self.lowest = 0;
        self.total_weight = (0..=self.last_level).map(|level| self.weight(level)).sum();
    }

    #[inline]
    fn weight(&self, level: usize) -> u64 {
        u64::from(self.counts[level]) << (self.last_level - level)
    }

    /// The lowest level that still has someone; beyond the last one if none has.
    pub(super) fn lowest_level(&mut self) -> usize {
        while self.lowest <= self.last_level && self.counts[self.lowest] == 0 {
            self.lowest += 1;
        }
        self.lowest
    }

    /// Proposes a coordinate with probability exactly proportional to its weight; someone must be left.
    #[inline]
    pub(super) fn propose(&mut self, noise: &mut impl NoiseSource) -> Proposed {
        let mut point = below(self.total_weight, noise);
        let mut level = self.lowest_level();
        while point >= self.weight(level) {
            point -= self.weight(level);
            level += 1;
        }
        let rank = (point >> (self.last_level - level)) as usize;
        let listed = self.counts[level] - if level == self.last_level { self.unlisted } else { 0 };
        if rank >= listed as usize {
            return Proposed::Unlisted { rank: rank - listed as usize };
        }
        let position = self.starts[level] as usize + rank;
        Proposed::Member { index: self.members[position], level, position }
    }

    /// Takes a proposed member out.
    pub(super) fn remove(&mut self, level: usize, position: usize) {
        self.total_weight -= 1 << (self.last_level - level);
        self.counts[level] -= 1;
        let listed = self.counts[level] - if level == self.last_level { self.unlisted } else { 0 };
        self.members.swap(position, (self.starts[level] + listed) as usize);
    }
}
