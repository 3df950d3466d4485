//! How fast this machine reads memory: the bar that a one-pass kernel is measured against.

use crate::runtime::parallel::on_threads;
use crate::runtime::simd::{Level, Vectorised};

/// Read every word once, on `threads` threads, and fold them so that no read can be skipped.
pub fn read_all(words: &[u64], threads: usize, level: Level) -> u64 {
    let share = words.len().div_ceil(threads.max(1)).max(1);
    let read = |number| Ok(words.chunks(share).nth(number).map_or(0, |part| level.run(Fold(part))));
    on_threads(threads, read).map_or(0, |folded| folded.iter().fold(0, |all, part| all ^ part))
}

struct Fold<'a>(&'a [u64]);

impl Vectorised for Fold<'_> {
    type Output = u64;

    #[inline(always)]
    fn run(self) -> u64 {
        self.0.iter().fold(0, |all, word| all ^ word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_read() {
        let words: Vec<u64> = (0..1001).map(|i| 1u64 << (i % 64)).collect();
        let expected = words.iter().fold(0, |all, word| all ^ word);
        for threads in [0, 1, 2, 7] {
            assert_eq!(read_all(&words, threads, Level::best()), expected);
        }
    }
}
