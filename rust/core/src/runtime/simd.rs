//! Run-time choice of the instruction set, so that one portable wheel is fast everywhere.
//!
//! Kernels are written once, in plain Rust that the compiler vectorises. [`Level::run`] compiles that code
//! again for wider registers and picks the widest one the processor has. Every level computes the same bits:
//! the kernels use only integer sums and single IEEE operations, and Rust never fuses a multiply and an add.
#![allow(unsafe_code)]

/// An instruction set that this processor has.
///
/// The field is private and filled only by detection: holding a `Level` is the proof that `run` relies on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Level(Set);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Set {
    Baseline,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

/// Work whose loops gain from wide registers. Implementations mark `run` as `#[inline(always)]`: only code
/// that is inlined is compiled for the wider instruction set.
pub trait Vectorised {
    /// What the work returns.
    type Output;
    /// Do the work.
    fn run(self) -> Self::Output;
}

impl Level {
    /// What every processor of this architecture has.
    pub const BASELINE: Level = Level(Set::Baseline);

    /// The widest level of this processor.
    pub fn best() -> Level {
        // Detection is cached by the standard library: a few loads.
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl")
            {
                return Level(Set::Avx512);
            }
            if is_x86_feature_detected!("avx2") {
                return Level(Set::Avx2);
            }
        }
        Level::BASELINE
    }

    /// All levels of this processor, narrowest first.
    pub fn available() -> Vec<Level> {
        let best = Level::best();
        #[cfg(target_arch = "x86_64")]
        let known = [Set::Baseline, Set::Avx2, Set::Avx512];
        #[cfg(not(target_arch = "x86_64"))]
        let known = [Set::Baseline];
        let widest = known.iter().position(|set| *set == best.0).unwrap_or(0);
        // Every processor with AVX-512 has AVX2 as well.
        known[..=widest].iter().map(|set| Level(*set)).collect()
    }

    /// The level's name, as the Python layer shows it.
    pub fn name(self) -> &'static str {
        match self.0 {
            Set::Baseline => "baseline",
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => "avx512",
        }
    }

    /// Run `work`, compiled for this level.
    #[inline]
    pub fn run<W: Vectorised>(self, work: W) -> W::Output {
        match self.0 {
            Set::Baseline => work.run(),
            // SAFETY: `Set::Avx2` is only made by `best` and `available` after the processor was asked.
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => unsafe { run_avx2(work) },
            // SAFETY: as above, for all four features that `run_avx512` enables.
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => unsafe { run_avx512(work) },
        }
    }
}

/// Columns on either side of a block of [`Level::pair_products`].
pub const TALL: usize = 4;
/// See [`TALL`].
pub const WIDE: usize = 16;

/// Sums of products: `TALL` columns times `WIDE` columns.
pub type PairProducts = [[i32; WIDE]; TALL];

impl Level {
    /// Sums, over pairs of rows, of the products of columns `top..top + TALL` with columns `left..left + WIDE`.
    ///
    /// `pairs` is the two rows' values at each of `stride` columns, pair after pair. Sums wrap; values of -2^15 are
    /// not allowed for.
    #[inline]
    pub fn pair_products(self, pairs: &[[i16; 2]], stride: usize, top: usize, left: usize) -> PairProducts {
        match self.0 {
            Set::Baseline => pair_products(pairs, stride, top, left),
            // SAFETY: both sets are only made by `best` and `available` after the processor was asked, and every
            // processor with AVX-512 has AVX2 as well.
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 | Set::Avx512 => unsafe { pair_products_avx2(pairs, stride, top, left) },
        }
    }
}

/// Columns that [`Level::dot_products`] multiplies one with.
pub const DOTS: usize = 4;

/// Values that one register's 32-bit lanes take at a time.
const DOT_ROWS: usize = 16;

impl Level {
    /// Sums of the products of `a` with each of `others`; lengths are equal and multiples of 16.
    ///
    /// The products of values `16 i + 2 l` and `16 i + 2 l + 1` are added in 32 bits for each `l` below 8, and wrap
    /// there; values of -2^15 are not allowed for.
    #[inline]
    pub fn dot_products(self, a: &[i16], others: [&[i16]; DOTS]) -> [i64; DOTS] {
        match self.0 {
            Set::Baseline => dot_products(a, others),
            // SAFETY: as in `pair_products`.
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 | Set::Avx512 => unsafe { dot_products_avx2(a, others) },
        }
    }
}

fn dot_products(a: &[i16], others: [&[i16]; DOTS]) -> [i64; DOTS] {
    others.map(|b| {
        let mut lanes = [0i32; DOT_ROWS / 2];
        for (a, b) in a.chunks_exact(DOT_ROWS).zip(b.chunks_exact(DOT_ROWS)) {
            for (l, sum) in lanes.iter_mut().enumerate() {
                let product = |i: usize| i32::from(a[i]) * i32::from(b[i]);
                *sum = sum.wrapping_add(product(2 * l).wrapping_add(product(2 * l + 1)));
            }
        }
        lanes.iter().map(|lane| i64::from(*lane)).sum()
    })
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn dot_products_avx2(a: &[i16], others: [&[i16]; DOTS]) -> [i64; DOTS] {
    use std::arch::x86_64::{
        __m256i, _mm256_add_epi32, _mm256_loadu_si256, _mm256_madd_epi16, _mm256_setzero_si256,
        _mm256_storeu_si256,
    };
    let length = others.iter().fold(a.len(), |length, b| length.min(b.len())) / DOT_ROWS * DOT_ROWS;
    let mut sums = [_mm256_setzero_si256(); DOTS];
    for i in (0..length).step_by(DOT_ROWS) {
        // SAFETY: all slices have 16 values of 2 bytes, that is one register, from `i` on; these loads need no
        // alignment.
        let load = |values: &[i16]| unsafe { _mm256_loadu_si256(values.as_ptr().add(i).cast::<__m256i>()) };
        let a = load(a);
        for (sum, b) in sums.iter_mut().zip(others) {
            *sum = _mm256_add_epi32(*sum, _mm256_madd_epi16(a, load(b)));
        }
    }
    let mut totals = [0; DOTS];
    for k in 0..DOTS {
        let mut lanes = [0i32; DOT_ROWS / 2];
        // SAFETY: `lanes` is 8 values of 4 bytes, that is one register; this store needs no alignment.
        unsafe { _mm256_storeu_si256(lanes.as_mut_ptr().cast::<__m256i>(), sums[k]) };
        for lane in lanes {
            totals[k] += i64::from(lane);
        }
    }
    totals
}

fn pair_products(pairs: &[[i16; 2]], stride: usize, top: usize, left: usize) -> PairProducts {
    let mut sums = [[0i32; WIDE]; TALL];
    for pair in pairs.chunks_exact(stride) {
        let (tall, wide) = (&pair[top..top + TALL], &pair[left..left + WIDE]);
        for (row, a) in sums.iter_mut().zip(tall) {
            for (sum, b) in row.iter_mut().zip(wide) {
                let products = [i32::from(a[0]) * i32::from(b[0]), i32::from(a[1]) * i32::from(b[1])];
                *sum = sum.wrapping_add(products[0].wrapping_add(products[1]));
            }
        }
    }
    sums
}

/// The compiler does not find the instruction that multiplies two rows at once (`vpmaddwd`) by itself.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn pair_products_avx2(pairs: &[[i16; 2]], stride: usize, top: usize, left: usize) -> PairProducts {
    use std::arch::x86_64::{
        __m256i, _mm256_add_epi32, _mm256_loadu_si256, _mm256_madd_epi16, _mm256_set1_epi32,
        _mm256_setzero_si256, _mm256_storeu_si256,
    };
    let mut sums = [[_mm256_setzero_si256(); 2]; TALL];
    for pair in pairs.chunks_exact(stride) {
        let (tall, wide) = (&pair[top..top + TALL], &pair[left..left + WIDE]);
        let start = wide.as_ptr().cast::<__m256i>();
        // SAFETY: `wide` is 16 pairs of 4 bytes, that is two registers; these loads need no alignment.
        let wide = unsafe { [_mm256_loadu_si256(start), _mm256_loadu_si256(start.add(1))] };
        for (row, a) in sums.iter_mut().zip(tall) {
            let bits = u32::from(a[0] as u16) | u32::from(a[1] as u16) << 16;
            let both = _mm256_set1_epi32(bits as i32);
            row[0] = _mm256_add_epi32(row[0], _mm256_madd_epi16(both, wide[0]));
            row[1] = _mm256_add_epi32(row[1], _mm256_madd_epi16(both, wide[1]));
        }
    }
    let mut products = [[0; WIDE]; TALL];
    for (out, row) in products.iter_mut().zip(sums) {
        let start = out.as_mut_ptr().cast::<__m256i>();
        // SAFETY: `out` is 16 values of 4 bytes, that is two registers; these stores need no alignment.
        unsafe {
            _mm256_storeu_si256(start, row[0]);
            _mm256_storeu_si256(start.add(1), row[1]);
        }
    }
    products
}

/// A number within 2^20 of 0, rounded toward zero; further off, and for NaN, one that is as large as that.
///
/// The conversion that the language offers asks what to do beyond 32 bits, value by value; this one is one instruction
/// for a register.
#[inline(always)]
pub fn rounded_to_zero(value: f64) -> i32 {
    const MOST: f64 = (1 << 20) as f64;
    let above = if value > -MOST { value } else { -MOST };
    let within = if above < MOST { above } else { MOST };
    // SAFETY: the comparisons leave a number from -2^20 to 2^20, whatever `value` is.
    unsafe { within.to_int_unchecked() }
}

/// Ask for the line that holds `value`; nothing waits for it.
#[inline(always)]
pub fn prefetch<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: SSE is part of every x86-64 processor, and a prefetch never faults or changes memory.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn run_avx2<W: Vectorised>(work: W) -> W::Output {
    work.run()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn run_avx512<W: Vectorised>(work: W) -> W::Output {
    work.run()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pair_products_are_the_same_at_every_level() {
        let stride = 48;
        let value = |i: usize| ((i * 7919) % 65_535) as i32 - 32_767;
        let pairs: Vec<[i16; 2]> =
            (0..3 * stride).map(|i| [value(i) as i16 / 3, value(i + 999) as i16 / 3]).collect();
        for (top, left) in [(0, 0), (4, 16), (44, 32)] {
            let expected = pair_products(&pairs, stride, top, left);
            let at = |p: usize, j: usize| pairs[p * stride + j].map(i32::from);
            let slow = |a: usize, b: usize| {
                (0..3).map(|p| at(p, a)[0] * at(p, b)[0] + at(p, a)[1] * at(p, b)[1]).sum::<i32>()
            };
            assert_eq!(expected[3][15], slow(top + 3, left + 15));
            for level in Level::available() {
                assert_eq!(level.pair_products(&pairs, stride, top, left), expected, "{}", level.name());
            }
        }
        // Two full rows just fit.
        let full = vec![[i16::MAX; 2]; WIDE];
        for level in Level::available() {
            assert_eq!(level.pair_products(&full, WIDE, 0, 0)[0][0], 2 * 32_767 * 32_767);
        }
    }

    #[test]
    fn dot_products_are_the_same_at_every_level() {
        let columns: Vec<Vec<i16>> = (0..5)
            .map(|c: i32| (0..48).map(|i: i32| ((i * 7919 + c * 104_729) % 4001 - 2000) as i16).collect())
            .collect();
        let others: [&[i16]; DOTS] = std::array::from_fn(|k| &columns[k + 1][..]);
        let slow =
            others.map(|b| columns[0].iter().zip(b).map(|(a, b)| i64::from(*a) * i64::from(*b)).sum::<i64>());
        for level in Level::available() {
            assert_eq!(level.dot_products(&columns[0], others), slow, "{}", level.name());
        }
        // Sixteen full values just fit.
        let full = [i16::MAX; DOT_ROWS];
        for level in Level::available() {
            assert_eq!(level.dot_products(&full, [&full; DOTS]), [16 * 32_767 * 32_767; DOTS]);
        }
    }

    #[test]
    fn rounding_toward_zero_is_that_of_the_language_and_far_off_is_large() {
        for value in [0.0, -0.0, 0.999, -1.5, 32_767.9, -40_000.1, 1e-300] {
            assert_eq!(rounded_to_zero(value), value as i32);
        }
        for value in [f64::NAN, f64::INFINITY, -f64::INFINITY, 1e300, -2f64.powi(31)] {
            assert_eq!(rounded_to_zero(value).abs(), 1 << 20);
        }
    }

    #[test]
    fn the_best_level_is_the_last_available_one() {
        let all = Level::available();
        assert_eq!(all[0], Level::BASELINE);
        assert_eq!(all.last(), Some(&Level::best()));
    }
}
