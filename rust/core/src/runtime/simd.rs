//! Run-time choice of the instruction set, so that one portable wheel is fast everywhere.
//!
//! Kernels are written once, in plain Rust that the compiler vectorises. [`Level::run`] compiles that code
//! again for wider registers and picks the widest one the processor has. Every level computes the same bits:
//! the kernels use only integer sums and single IEEE operations, and Rust never fuses a multiply and an add.
#![allow(unsafe_code)]

pub mod draws;
pub mod rows;

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
    /// AVX-512 with an instruction that multiplies pairs of 16-bit integers and adds them to a sum.
    #[cfg(target_arch = "x86_64")]
    Vnni,
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
                let vnni = is_x86_feature_detected!("avx512vnni");
                return Level(if vnni { Set::Vnni } else { Set::Avx512 });
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
        let known = [Set::Baseline, Set::Avx2, Set::Avx512, Set::Vnni];
        #[cfg(not(target_arch = "x86_64"))]
        let known = [Set::Baseline];
        let widest = known.iter().position(|set| *set == best.0).unwrap_or(0);
        // Every processor with AVX-512 has AVX2 as well, and VNNI is asked for only where AVX-512 is.
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
            #[cfg(target_arch = "x86_64")]
            Set::Vnni => "avx512vnni",
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
            Set::Avx512 | Set::Vnni => unsafe { run_avx512(work) },
        }
    }
}

/// Columns of a panel.
pub const PANEL: usize = 16;

/// Two rows' integers at the columns of a panel: the first row's in the low 16 bits, the second's in the high ones.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub struct RowPair([i32; PANEL]);

impl RowPair {
    /// No rows.
    pub const ZERO: RowPair = RowPair([0; PANEL]);

    /// The low 16 bits of each row's integers.
    #[inline(always)]
    pub fn new(first: &[i32; PANEL], second: &[i32; PANEL]) -> RowPair {
        RowPair(std::array::from_fn(|j| first[j] & 0xffff | second[j] << 16))
    }
}

/// Sums of products of the columns of one panel with those of another.
pub type PanelProducts = [[i32; PANEL]; PANEL];

impl Level {
    /// Sums, over pairs of rows, of the products of each column of panel `a` with each of panel `b`.
    ///
    /// Both have the same number of pairs. Sums wrap; values of -2^15 are not allowed for.
    #[inline]
    pub fn panel_products(self, a: &[RowPair], b: &[RowPair]) -> PanelProducts {
        match self.0 {
            Set::Baseline => panel_products(a, b),
            // SAFETY: a set is only made by `best` and `available` after the processor was asked for all that the
            // function of that set enables.
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => unsafe { panel_products_avx2(a, b) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => unsafe { panel_products_avx512(a, b) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Set::Vnni => unsafe { panel_products_vnni(a, b) },
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
            // SAFETY: a set is only made by `best` and `available` after the processor was asked, and every processor
            // with AVX-512 has AVX2 as well.
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 | Set::Avx512 | Set::Vnni => unsafe { dot_products_avx2(a, others) },
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

fn panel_products(a: &[RowPair], b: &[RowPair]) -> PanelProducts {
    let mut sums = [[0i32; PANEL]; PANEL];
    let halves = |both: i32| [i32::from(both as i16), both >> 16];
    for (a, b) in a.iter().zip(b) {
        for (row, a) in sums.iter_mut().zip(a.0.map(halves)) {
            for (sum, b) in row.iter_mut().zip(b.0.map(halves)) {
                *sum = sum.wrapping_add((a[0] * b[0]).wrapping_add(a[1] * b[1]));
            }
        }
    }
    sums
}

/// The compiler does not find the instruction that multiplies two rows at once (`vpmaddwd`) by itself.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn panel_products_avx2(a: &[RowPair], b: &[RowPair]) -> PanelProducts {
    use std::arch::x86_64::{
        __m256i, _mm256_add_epi32, _mm256_load_si256, _mm256_madd_epi16, _mm256_set1_epi32,
        _mm256_setzero_si256, _mm256_storeu_si256,
    };
    // Eight of sixteen registers are sums: four columns of `a` at a time.
    const TALL: usize = 4;
    let mut products = [[0; PANEL]; PANEL];
    for (top, out) in products.as_chunks_mut::<TALL>().0.iter_mut().enumerate() {
        let mut sums = [[_mm256_setzero_si256(); 2]; TALL];
        for (a, b) in a.iter().zip(b) {
            let start = b.0.as_ptr().cast::<__m256i>();
            // SAFETY: `b` is 16 values of 4 bytes, that is two registers, and aligned for them.
            let wide = unsafe { [_mm256_load_si256(start), _mm256_load_si256(start.add(1))] };
            for (row, both) in sums.iter_mut().zip(&a.0.as_chunks::<TALL>().0[top]) {
                let both = _mm256_set1_epi32(*both);
                row[0] = _mm256_add_epi32(row[0], _mm256_madd_epi16(both, wide[0]));
                row[1] = _mm256_add_epi32(row[1], _mm256_madd_epi16(both, wide[1]));
            }
        }
        for (out, row) in out.iter_mut().zip(sums) {
            let start = out.as_mut_ptr().cast::<__m256i>();
            // SAFETY: `out` is 16 values of 4 bytes, that is two registers; these stores need no alignment.
            unsafe {
                _mm256_storeu_si256(start, row[0]);
                _mm256_storeu_si256(start.add(1), row[1]);
            }
        }
    }
    products
}

/// The same with registers of a whole panel: sixteen of thirty-two are sums.
#[cfg(target_arch = "x86_64")]
macro_rules! wide_panel_products {
    ($name:ident, $features:literal, |$sum:ident, $a:ident, $b:ident| $add:expr) => {
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = $features)]
        fn $name(a: &[RowPair], b: &[RowPair]) -> PanelProducts {
            #[allow(clippy::wildcard_imports)] // Each use takes the instructions that its set has.
            use std::arch::x86_64::*;
            let mut sums = [_mm512_setzero_si512(); PANEL];
            for (a, b) in a.iter().zip(b) {
                // SAFETY: `b` is 16 values of 4 bytes, that is one register, and aligned for it.
                let $b = unsafe { _mm512_load_si512(b.0.as_ptr().cast::<__m512i>()) };
                for (sum, both) in sums.iter_mut().zip(&a.0) {
                    let ($sum, $a) = (*sum, _mm512_set1_epi32(*both));
                    *sum = $add;
                }
            }
            let mut products = [[0; PANEL]; PANEL];
            for (out, sum) in products.iter_mut().zip(sums) {
                // SAFETY: `out` is 16 values of 4 bytes, that is one register; this store needs no alignment.
                unsafe { _mm512_storeu_si512(out.as_mut_ptr().cast::<__m512i>(), sum) };
            }
            products
        }
    };
}

#[cfg(target_arch = "x86_64")]
wide_panel_products!(panel_products_avx512, "avx512f,avx512bw", |sum, a, b| {
    _mm512_add_epi32(sum, _mm512_madd_epi16(a, b))
});
#[cfg(target_arch = "x86_64")]
wide_panel_products!(panel_products_vnni, "avx512f,avx512vnni", |sum, a, b| _mm512_dpwssd_epi32(sum, a, b));

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
    fn panel_products_are_the_same_at_every_level() {
        let value = |i: usize| (((i * 7919) % 65_535) as i32 - 32_767) / 3;
        let row = |r: usize| std::array::from_fn(|j| value(r * 101 + j));
        let panel = |p: usize| -> Vec<[[i32; PANEL]; 2]> {
            (0..3).map(|i| [row(10 * p + 2 * i), row(10 * p + 2 * i + 1)]).collect()
        };
        let pairs = |rows: &[[[i32; PANEL]; 2]]| -> Vec<RowPair> {
            rows.iter().map(|[first, second]| RowPair::new(first, second)).collect()
        };
        for (a, b) in [(0, 0), (0, 1), (5, 2)] {
            let (a, b) = (panel(a), panel(b));
            let slow = |i: usize, j: usize| {
                a.iter().zip(&b).map(|(a, b)| a[0][i] * b[0][j] + a[1][i] * b[1][j]).sum::<i32>()
            };
            let expected: PanelProducts = std::array::from_fn(|i| std::array::from_fn(|j| slow(i, j)));
            for level in Level::available() {
                assert_eq!(level.panel_products(&pairs(&a), &pairs(&b)), expected, "{}", level.name());
            }
        }
        // Two full rows just fit.
        let full = [i32::from(i16::MAX); PANEL];
        let (plus, minus) =
            ([RowPair::new(&full, &full)], [RowPair::new(&full.map(|q| -q), &full.map(|q| -q))]);
        for level in Level::available() {
            assert_eq!(level.panel_products(&plus, &plus), [[2 * 32_767 * 32_767; PANEL]; PANEL]);
            assert_eq!(level.panel_products(&plus, &minus), [[-2 * 32_767 * 32_767; PANEL]; PANEL]);
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
