//! Fast, seedable random words for simulated environments: the streams of ChaCha8, sixteen blocks at a time.
//!
//! They are never for noise: [`SimulationRng`] is not a [`NoiseSource`](crate::noise::entropy::NoiseSource), so a
//! mechanism that was handed one does not compile.

use rand::rngs::ChaCha8Rng;
use rand::{Rng, SeedableRng};

use crate::runtime::simd::Level;
use crate::runtime::simd::draws::{BLOCK, Drawn, Layers, SIDE, Start};

/// What ChaCha's blocks start with: "expand 32-byte k".
const CONSTANTS: [u32; 4] = [0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574];

/// Streams whose first blocks are made together.
pub const TOGETHER: usize = 4;

/// Words of a stream's first blocks.
const FIRST: usize = SIDE / TOGETHER * BLOCK;

/// The first words of several streams; see [`SimulationRng::starts`].
#[derive(Debug, Clone, Copy)]
pub struct Starts([u32; SIDE * BLOCK]);

/// One of the streams that a seed has; streams never overlap.
#[derive(Debug)]
pub struct SimulationRng {
    key: [u32; 8],
    stream: u64,
    /// The block after those whose words are here.
    next_block: u64,
    /// Words from `read` to `end` come next: an even number, because all draws take two.
    words: [u32; SIDE * BLOCK],
    read: usize,
    end: usize,
    level: Level,
    drawn: Drawn,
}

impl SimulationRng {
    /// Stream number `stream` of `seed`.
    pub fn new(seed: u64, stream: u64) -> Self {
        let seed = ChaCha8Rng::seed_from_u64(seed).get_seed();
        let key = std::array::from_fn(|w| u32::from_le_bytes(seed.as_chunks().0[w]));
        let words = [0; SIDE * BLOCK];
        let (level, drawn) = (Level::best(), Drawn::NONE);
        SimulationRng { key, stream, next_block: 0, words, read: 0, end: 0, level, drawn }
    }

    /// Go to the start of another stream of the same seed.
    #[inline]
    pub fn begin(&mut self, stream: u64) {
        (self.stream, self.next_block) = (stream, 0);
        (self.read, self.end) = (0, 0);
    }

    /// The first words of streams `first`, `first + step` and so on: several for what one takes.
    pub fn starts(&self, first: u64, step: u64) -> Starts {
        let each = FIRST / BLOCK;
        let mut words = [0; SIDE * BLOCK];
        let stream = |block: usize| first.wrapping_add(step.wrapping_mul((block / each) as u64));
        blocks(self.level, &self.key, |block| (stream(block), (block % each) as u64), &mut words);
        Starts(words)
    }

    /// As [`begin`](Self::begin), where stream `stream` is number `which` of `starts`.
    #[inline]
    pub fn begin_with(&mut self, stream: u64, starts: &Starts, which: usize) {
        self.words[..FIRST].copy_from_slice(&starts.0[which * FIRST..][..FIRST]);
        (self.stream, self.next_block) = (stream, (FIRST / BLOCK) as u64);
        (self.read, self.end) = (0, FIRST);
    }

    /// The next 64 uniform bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        if self.read >= self.end {
            self.refill();
        }
        // The remainder changes nothing: it is there for the compiler, which then checks no bounds.
        let at = |i: usize| self.words[(self.read + i) % (SIDE * BLOCK)];
        let (low, high) = (at(0), at(1));
        self.skip(2);
        u64::from(high) << 32 | u64::from(low)
    }

    /// Uniform on the multiples of 2^-53 in [0, 1).
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// The words that come next: at least two, an even number. They stay unread until they are skipped.
    #[inline]
    fn unread(&mut self) -> &[u32] {
        if self.read >= self.end {
            self.refill();
        }
        &self.words[self.read..self.end]
    }

    /// How many words can be read before more are made; 0 if there are none.
    #[inline]
    pub fn unread_count(&self) -> usize {
        self.end - self.read
    }

    /// Have `count` of the unread words read, an even number.
    #[inline]
    pub fn skip(&mut self, count: usize) {
        self.read += count;
    }

    /// Make a draw of each of the unread words, `most` at most; how many they are. The words stay unread.
    #[inline]
    pub fn draw_ahead(&mut self, layers: &Layers, most: usize) -> usize {
        let here = self.unread().len().min(most);
        self.level.draw(layers, &self.words[self.read..self.read + here], &mut self.drawn);
        here
    }

    /// What was drawn ahead.
    #[inline]
    pub fn drawn(&self) -> &Drawn {
        &self.drawn
    }

    #[cold]
    fn refill(&mut self) {
        let (stream, first) = (self.stream, self.next_block);
        let place = |block| (stream, first.wrapping_add(block as u64));
        blocks(self.level, &self.key, place, &mut self.words);
        self.next_block = first.wrapping_add(SIDE as u64);
        (self.read, self.end) = (0, self.words.len());
    }
}

/// Write sixteen blocks, each of which `place` gives the stream and the number of.
fn blocks(
    level: Level,
    key: &[u32; 8],
    place: impl Fn(usize) -> (u64, u64),
    words: &mut [u32; SIDE * BLOCK],
) {
    let mut start: Start = [[0; SIDE]; BLOCK];
    for (word, same) in start.iter_mut().zip(CONSTANTS.iter().chain(key)) {
        *word = [*same; SIDE];
    }
    let places: [(u64, u64); SIDE] = std::array::from_fn(&place);
    start[12] = places.map(|(_, number)| number as u32);
    start[13] = places.map(|(_, number)| (number >> 32) as u32);
    start[14] = places.map(|(stream, _)| stream as u32);
    start[15] = places.map(|(stream, _)| (stream >> 32) as u32);
    if !level.chacha8(&start, words) {
        blocks_by_streams(key, place, words);
    }
}

/// The same by the generator that defines the streams; places of four blocks follow one another.
fn blocks_by_streams(key: &[u32; 8], place: impl Fn(usize) -> (u64, u64), words: &mut [u32; SIDE * BLOCK]) {
    let mut seed = [0; 32];
    for (bytes, word) in seed.as_chunks_mut().0.iter_mut().zip(key) {
        *bytes = word.to_le_bytes();
    }
    let mut rng = ChaCha8Rng::from_seed(seed);
    for (quarter, words) in words.chunks_exact_mut(FIRST).enumerate() {
        let (stream, number) = place(quarter * FIRST / BLOCK);
        rng.set_stream(stream);
        rng.set_word_pos(u128::from(number) * BLOCK as u128);
        words.fill_with(|| rng.next_u32());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_those_of_the_generator_that_defines_them() {
        for (seed, stream) in [(0, 0), (1, 77), (u64::MAX, u64::MAX - 1), (5, 1 << 40)] {
            for level in Level::available() {
                let mut rng = SimulationRng { level, ..SimulationRng::new(seed, stream) };
                let mut known = ChaCha8Rng::seed_from_u64(seed);
                known.set_stream(stream);
                assert!((0..1000).all(|_| rng.next_u64() == known.next_u64()), "{}", level.name());

                let starts = rng.starts(stream, 3);
                for which in 0..TOGETHER {
                    let stream = stream.wrapping_add(3 * which as u64);
                    rng.begin_with(stream, &starts, which);
                    known.set_stream(stream);
                    assert!((0..300).all(|_| rng.next_u64() == known.next_u64()), "{}", level.name());
                    rng.begin(stream);
                    known.set_stream(stream);
                    assert!((0..3).all(|_| rng.next_u64() == known.next_u64()), "{}", level.name());
                }
            }
        }
    }

    #[test]
    fn streams_go_on_where_a_block_number_has_more_than_32_bits() {
        for level in Level::available() {
            let mut rng = SimulationRng { level, next_block: (1 << 32) - 8, ..SimulationRng::new(3, 4) };
            let mut known = ChaCha8Rng::seed_from_u64(3);
            known.set_stream(4);
            known.set_word_pos(((1 << 32) - 8) * BLOCK as u128);
            assert!((0..300).all(|_| rng.next_u64() == known.next_u64()), "{}", level.name());
        }
    }

    #[test]
    fn streams_are_pinned() {
        // Seeded experiments depend on these: a change here is a value-breaking changelog entry.
        let firsts = [SimulationRng::new(1, 0).next_u64(), SimulationRng::new(1, 1).next_u64()];
        assert_eq!(firsts, [7424550030962593201, 15715005604373573095]);
    }
}
