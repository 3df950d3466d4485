//! Uniform integers.

use crate::noise::entropy::NoiseSource;

/// Uniform on `0..end`, exactly; `end` is not zero.
///
/// The high half of word * end is uniform once the `2^64 mod end` smallest low halves are refused (Lemire
/// 2019).
#[inline]
pub(crate) fn below(end: u64, noise: &mut impl NoiseSource) -> u64 {
    debug_assert!(end > 0);
    loop {
        let product = u128::from(noise.next_u64()) * u128::from(end);
        let low = product as u64;
        // The remainder is below `end`: only then is the division worth its time.
        if low >= end || low >= end.wrapping_neg() % end {
            return (product >> 64) as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::entropy::predictable::{ScriptedNoise, SeededNoise};

    #[test]
    fn every_integer_is_equally_likely() {
        let mut noise = SeededNoise::new(11, 0);
        let mut counts = [0u32; 6];
        for _ in 0..600_000 {
            counts[below(6, &mut noise) as usize] += 1;
        }
        let chi_square: f64 = counts.iter().map(|&count| (f64::from(count) - 1e5).powi(2) / 1e5).sum();
        assert!(chi_square < 40.0, "{counts:?}");
    }

    #[test]
    fn the_words_that_would_favour_some_integers_are_refused() {
        // 2^64 mod 6 = 4 words are too many: exactly the products with low half 0..4 are drawn again.
        let mut noise = ScriptedNoise::new(vec![0, 1]);
        assert_eq!(below(6, &mut noise), 0);
        assert_eq!(noise.words_drawn, 2);
        let mut noise = ScriptedNoise::new(vec![u64::MAX]);
        assert_eq!(below(1, &mut noise), 0);
    }
}
