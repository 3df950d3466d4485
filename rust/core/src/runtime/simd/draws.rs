//! Random words and normal draws of simulations, with AVX-512: neither is found by the compiler.

use super::{Level, Set};

/// Blocks of the ChaCha stream cipher that are made side by side.
pub const SIDE: usize = 16;

/// Words of a block.
pub const BLOCK: usize = 16;

/// What ChaCha turns into blocks: word `w` of block `b` is `start[w][b]`.
pub type Start = [[u32; SIDE]; BLOCK];

impl Level {
    /// Write the ChaCha8 blocks of `start`, one after the other. False if this level has no instructions for it;
    /// nothing is written then.
    #[inline]
    pub fn chacha8(self, start: &Start, words: &mut [u32; SIDE * BLOCK]) -> bool {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 | Set::Vnni => {
                // SAFETY: a set is only made by `best` and `available` after the processor was asked.
                unsafe { chacha8_avx512(start, words) };
                true
            }
            _ => false,
        }
    }

    /// Make a draw of each word, at most [`MOST`].
    #[inline]
    pub fn draw(self, layers: &Layers, words: &[u32], drawn: &mut Drawn) {
        let words = &words[..words.len().min(MOST)];
        match self.0 {
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 | Set::Vnni => unsafe { draw_avx512(layers, words, drawn) },
            _ => draw(layers, words, drawn),
        }
    }
}

/// Words that are turned into draws together: as many as are made together.
pub const MOST: usize = SIDE * BLOCK;

/// Draws and whether they are good.
#[derive(Debug)]
pub struct Drawn {
    /// A draw for each word.
    pub draws: [f32; MOST],
    /// A bit for each draw: whether it may lie above the curve.
    doubtful: [u16; MOST / 16],
}

impl Drawn {
    /// No draws yet.
    pub const NONE: Drawn = Drawn { draws: [0.0; MOST], doubtful: [0; MOST / 16] };

    /// The first draw from number `at` on, and before `end`, that may lie above the curve; or else `end`.
    #[inline(always)]
    pub fn next_doubtful(&self, at: usize, end: usize) -> usize {
        let mut first = at / 16;
        let mut bits = u32::from(self.doubtful[first]) >> (at % 16) << (at % 16);
        while bits == 0 && 16 * (first + 1) < end {
            first += 1;
            bits = u32::from(self.doubtful[first]);
        }
        if bits == 0 { end } else { end.min(16 * first + bits.trailing_zeros() as usize) }
    }
}

/// The layers of a ziggurat.
#[derive(Debug)]
pub struct Layers {
    /// Width of a grid cell of each layer.
    pub cells: [f32; 256],
    /// Draws of a smaller size than this are under the curve.
    pub inner: [f32; 256],
}

impl Layers {
    /// The layer of a word and its draw.
    #[inline(always)]
    pub fn draw(&self, word: u32) -> (usize, f32) {
        let layer = (word & 255) as usize;
        // Cells are hit in their middle: the draw is symmetric and never 0.
        (layer, (((word as i32) >> 8) as f32 + 0.5) * self.cells[layer])
    }
}

fn draw(layers: &Layers, words: &[u32], drawn: &mut Drawn) {
    for ((words, draws), doubtful) in
        words.chunks(16).zip(drawn.draws.chunks_mut(16)).zip(&mut drawn.doubtful)
    {
        *doubtful = 0;
        for (i, (word, draw)) in words.iter().zip(draws).enumerate() {
            let (layer, x) = layers.draw(*word);
            *draw = x;
            *doubtful |= u16::from(x.abs() >= layers.inner[layer]) << i;
        }
    }
}

/// The tables of 256 values are sixteen registers each: looking them up there is three times as fast as in memory.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn draw_avx512(layers: &Layers, words: &[u32], drawn: &mut Drawn) {
    #[allow(clippy::wildcard_imports)]
    use std::arch::x86_64::*;
    for ((words, draws), doubtful) in
        words.chunks(16).zip(drawn.draws.as_chunks_mut::<16>().0).zip(&mut drawn.doubtful)
    {
        let mask = (1u32 << words.len()).wrapping_sub(1) as u16;
        // SAFETY: the mask leaves out all words that there are not.
        let word = unsafe { _mm512_maskz_loadu_epi32(mask, words.as_ptr().cast()) };
        let bit = |i: i32| _mm512_test_epi32_mask(word, _mm512_set1_epi32(1 << i));
        let (bit5, bit6, bit7) = (bit(5), bit(6), bit(7));
        let look_up = |table: &[f32; 256]| {
            // SAFETY: each of these loads reads sixteen of the table's 256 values.
            let part = |i: usize| unsafe { _mm512_loadu_ps(table.as_ptr().add(16 * i)) };
            // The low five bits choose among two registers, each further bit between what was found.
            let by4: [__m512; 8] =
                std::array::from_fn(|i| _mm512_permutex2var_ps(part(2 * i), word, part(2 * i + 1)));
            let by5: [__m512; 4] =
                std::array::from_fn(|i| _mm512_mask_blend_ps(bit5, by4[2 * i], by4[2 * i + 1]));
            let by6: [__m512; 2] =
                std::array::from_fn(|i| _mm512_mask_blend_ps(bit6, by5[2 * i], by5[2 * i + 1]));
            _mm512_mask_blend_ps(bit7, by6[0], by6[1])
        };
        let point = _mm512_cvtepi32_ps(_mm512_srai_epi32::<8>(word));
        let draw = _mm512_mul_ps(_mm512_add_ps(point, _mm512_set1_ps(0.5)), look_up(&layers.cells));
        *doubtful = mask & _mm512_cmp_ps_mask::<_CMP_GE_OQ>(_mm512_abs_ps(draw), look_up(&layers.inner));
        // SAFETY: there is room for sixteen draws.
        unsafe { _mm512_storeu_ps(draws.as_mut_ptr(), draw) };
    }
}

/// Sixteen blocks in sixteen registers of one word each, then turned into blocks.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn chacha8_avx512(start: &Start, words: &mut [u32; SIDE * BLOCK]) {
    #[allow(clippy::wildcard_imports)]
    use std::arch::x86_64::*;
    // SAFETY: each word of `start` is sixteen values of 4 bytes, that is one register.
    let load = |w: usize| unsafe { _mm512_loadu_si512(start[w].as_ptr().cast()) };
    let mut v: [__m512i; BLOCK] = std::array::from_fn(load);
    macro_rules! half_quarter {
        ($a:expr, $b:expr, $c:expr, $d:expr, $first:literal, $second:literal) => {
            v[$a] = _mm512_add_epi32(v[$a], v[$b]);
            v[$d] = _mm512_rol_epi32::<$first>(_mm512_xor_si512(v[$d], v[$a]));
            v[$c] = _mm512_add_epi32(v[$c], v[$d]);
            v[$b] = _mm512_rol_epi32::<$second>(_mm512_xor_si512(v[$b], v[$c]));
        };
    }
    for _ in 0..4 {
        for shift in [0, 1] {
            // Columns first, then diagonals. All that does not wait for each other stands side by side.
            for k in 0..4 {
                let (b, c, d) = (4 + (k + shift) % 4, 8 + (k + 2 * shift) % 4, 12 + (k + 3 * shift) % 4);
                half_quarter!(k, b, c, d, 16, 12);
                half_quarter!(k, b, c, d, 8, 7);
            }
        }
    }
    for (w, word) in v.iter_mut().enumerate() {
        *word = _mm512_add_epi32(*word, load(w));
    }
    // Four words of four blocks at a time: after this, part q of `v[4 g + k]` has words 4 g to 4 g + 3 of block 4 q + k.
    for [a, b, c, d] in v.as_chunks_mut::<4>().0 {
        let low = [_mm512_unpacklo_epi32(*a, *b), _mm512_unpacklo_epi32(*c, *d)];
        let high = [_mm512_unpackhi_epi32(*a, *b), _mm512_unpackhi_epi32(*c, *d)];
        (*a, *b) = (_mm512_unpacklo_epi64(low[0], low[1]), _mm512_unpackhi_epi64(low[0], low[1]));
        (*c, *d) = (_mm512_unpacklo_epi64(high[0], high[1]), _mm512_unpackhi_epi64(high[0], high[1]));
    }
    for k in 0..4 {
        let (front, back) = ([v[k], v[4 + k]], [v[8 + k], v[12 + k]]);
        let low = [front, back].map(|[a, b]| _mm512_shuffle_i32x4::<0b01_00_01_00>(a, b));
        let high = [front, back].map(|[a, b]| _mm512_shuffle_i32x4::<0b11_10_11_10>(a, b));
        let blocks = [
            _mm512_shuffle_i32x4::<0b10_00_10_00>(low[0], low[1]),
            _mm512_shuffle_i32x4::<0b11_01_11_01>(low[0], low[1]),
            _mm512_shuffle_i32x4::<0b10_00_10_00>(high[0], high[1]),
            _mm512_shuffle_i32x4::<0b11_01_11_01>(high[0], high[1]),
        ];
        for (q, block) in blocks.into_iter().enumerate() {
            // SAFETY: block 4 q + k, of 16, is sixteen words.
            unsafe { _mm512_storeu_si512(words.as_mut_ptr().add(BLOCK * (4 * q + k)).cast(), block) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_registers_draw_the_same_bits_and_doubt_the_same_ones() {
        let layers = Layers {
            cells: std::array::from_fn(|i| (i as f32 + 1.0).recip() / (1 << 23) as f32),
            inner: std::array::from_fn(|i| (i as f32 + 2.0).recip()),
        };
        let mut words: Vec<u32> = (0..5000u32).map(|i| i.wrapping_mul(0x9E37_79B9) ^ (i << 7)).collect();
        words.extend([0, u32::MAX, 1 << 31, (1 << 31) - 1]);
        let (mut doubted, mut sure) = (0, 0);
        for level in Level::available() {
            for (first, length) in (0..words.len()).map(|first| (first, first % (MOST + 1))) {
                let words = &words[first..words.len().min(first + length)];
                let mut drawn = Drawn { doubtful: [!0; MOST / 16], ..Drawn::NONE };
                level.draw(&layers, words, &mut drawn);
                let mut next = 0;
                for (i, word) in words.iter().enumerate() {
                    let (layer, x) = layers.draw(*word);
                    assert_eq!(drawn.draws[i], x, "{}", level.name());
                    if x.abs() >= layers.inner[layer] {
                        assert_eq!(drawn.next_doubtful(next, words.len()), i, "{}", level.name());
                        (next, doubted) = (i + 1, doubted + 1);
                    } else {
                        sure += 1;
                    }
                }
                if next < words.len() {
                    assert_eq!(drawn.next_doubtful(next, words.len()), words.len());
                }
            }
        }
        assert!(doubted > 10_000 && sure > 10_000);
    }
}
