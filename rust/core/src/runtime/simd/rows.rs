//! Eight rows added to integer sums, with fewer instructions than the compiler finds for the same bits.
//!
//! For each value: multiply, clamp, round by adding a large number, add its bits (see [`Real`](crate::matrix::scalar::Real)).
//! AVX-512 clamps both ways in one instruction, and one multiply-add with 0 tells whether all values were finite.

use super::{Level, Set};
use crate::matrix::scalar::{LIMIT, Real};

/// Rows added together. Eight streams are as many as hardware prefetchers follow well.
pub const GROUP: usize = 8;

impl Level {
    /// Add `rows`, each times its finite factor, clamped and rounded, to biased `sums`. False if a value is not finite;
    /// sums are garbage then. Values `ahead` behind those that are read are asked for, wherever that is.
    #[inline(always)]
    pub fn add_rows<T: Real>(
        self,
        rows: [&[T]; GROUP],
        factors: &[T; GROUP],
        ahead: usize,
        sums: &mut [T::Sum],
    ) -> bool {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 | Set::Vnni => T::add_rows_wide(AvxProof(()), rows, factors, ahead, sums),
            _ => add_rows(rows, factors, sums),
        }
    }
}

/// The same, one value after the other.
#[inline(always)]
pub fn add_rows<T: Real>(rows: [&[T]; GROUP], factors: &[T; GROUP], sums: &mut [T::Sum]) -> bool {
    let rows = rows.map(|row| &row[..sums.len()]);
    let mut probe = T::Sum::default();
    for (j, sum) in sums.iter_mut().enumerate() {
        let mut total = *sum;
        for g in 0..GROUP {
            let x = rows[g][j];
            total = x.add_biased(factors[g], total);
            probe = T::join(probe, x.probe());
        }
        *sum = total;
    }
    !T::tripped(probe)
}

/// Only made where the processor was found to have AVX-512 F and DQ.
#[derive(Debug, Clone, Copy)]
pub struct AvxProof(());

#[cfg(target_arch = "x86_64")]
macro_rules! add_rows_wide {
    (
        $name:ident, $inner:ident, $float:ty, $int:ty, $lanes:literal, $mask:ty, $magic:literal,
        $set:ident, $load:ident, $load_int:ident, $store_int:ident, $multiply:ident, $range:ident, $add:ident,
        $bits:ident, $add_int:ident, $fma:ident, $not_number:ident
    ) => {
        /// [`add_rows`] with wide registers.
        #[inline(always)]
        pub fn $name(
            _: AvxProof,
            rows: [&[$float]; GROUP],
            factors: &[$float; GROUP],
            ahead: usize,
            sums: &mut [$int],
        ) -> bool {
            // SAFETY: the proof is only made where the processor has what `inner` enables.
            unsafe { $inner(rows, factors, ahead, sums) }
        }

        #[target_feature(enable = "avx512f,avx512dq")]
        fn $inner(
            rows: [&[$float]; GROUP],
            factors: &[$float; GROUP],
            ahead: usize,
            sums: &mut [$int],
        ) -> bool {
            #[allow(clippy::wildcard_imports)] // Each use takes the instructions of its type.
            use std::arch::x86_64::*;
            /// The smaller magnitude, with the sign of the first operand.
            const CLAMP: i32 = 0b0010;
            let length = sums.len();
            let rows = rows.map(|row| &row[..length]);
            let factors = factors.map(|factor| $set(factor));
            let (limit, magic, zero) = ($set(LIMIT as $float), $set($magic), $set(0.0));
            let mut probes = [zero; 2];
            for first in (0..length).step_by($lanes) {
                let here = (length - first).min($lanes);
                let mask = (1u32 << here).wrapping_sub(1) as $mask;
                // SAFETY: rows and sums have `here` values from `first` on, and the mask leaves out all others.
                let mut total = unsafe { $load_int(mask, sums.as_ptr().add(first).cast()) };
                for g in 0..GROUP {
                    // SAFETY: as above; a prefetch never faults.
                    let x = unsafe {
                        _mm_prefetch::<_MM_HINT_T0>(rows[g].as_ptr().wrapping_add(first + ahead).cast());
                        $load(mask, rows[g].as_ptr().add(first))
                    };
                    let clamped = $range::<CLAMP>($multiply(x, factors[g]), limit);
                    total = $add_int(total, $bits($add(clamped, magic)));
                    // 0 unless a value is infinite or no number: then it is no number from then on.
                    probes[g % 2] = $fma(x, zero, probes[g % 2]);
                }
                // SAFETY: as above.
                unsafe { $store_int(sums.as_mut_ptr().add(first).cast(), mask, total) };
            }
            $not_number::<_CMP_UNORD_Q>(probes[0], probes[1]) == 0
        }
    };
}

#[cfg(target_arch = "x86_64")]
add_rows_wide!(
    add_rows_f32,
    add_rows_f32_inner,
    f32,
    i32,
    16,
    u16,
    12_582_912.0,
    _mm512_set1_ps,
    _mm512_maskz_loadu_ps,
    _mm512_maskz_loadu_epi32,
    _mm512_mask_storeu_epi32,
    _mm512_mul_ps,
    _mm512_range_ps,
    _mm512_add_ps,
    _mm512_castps_si512,
    _mm512_add_epi32,
    _mm512_fmadd_ps,
    _mm512_cmp_ps_mask
);
#[cfg(target_arch = "x86_64")]
add_rows_wide!(
    add_rows_f64,
    add_rows_f64_inner,
    f64,
    i64,
    8,
    u8,
    6_755_399_441_055_744.0,
    _mm512_set1_pd,
    _mm512_maskz_loadu_pd,
    _mm512_maskz_loadu_epi64,
    _mm512_mask_storeu_epi64,
    _mm512_mul_pd,
    _mm512_range_pd,
    _mm512_add_pd,
    _mm512_castpd_si512,
    _mm512_add_epi64,
    _mm512_fmadd_pd,
    _mm512_cmp_pd_mask
);

#[cfg(test)]
mod tests {
    use super::*;

    fn check<T: Real>(value: impl Fn(usize) -> f64, factor: impl Fn(usize) -> f64, finite: bool) {
        for columns in [1, 7, 8, 15, 16, 17, 33, 100] {
            let rows: Vec<Vec<T>> = (0..GROUP)
                .map(|g| (0..columns).map(|j| T::from_f64(value(g * 101 + j * 7))).collect())
                .collect();
            let slices: [&[T]; GROUP] = std::array::from_fn(|g| &rows[g][..]);
            let factors: [T; GROUP] = std::array::from_fn(|g| T::from_f64(factor(g)));
            let mut expected = vec![T::Sum::default(); columns];
            assert_eq!(add_rows(slices, &factors, &mut expected), finite);
            for level in Level::available() {
                let mut sums = vec![T::Sum::default(); columns];
                assert_eq!(
                    level.add_rows(slices, &factors, 64, &mut sums),
                    finite,
                    "{} {columns}",
                    level.name()
                );
                let equal = sums.iter().zip(&expected).all(|(a, b)| T::unbiased(*a, 8) == T::unbiased(*b, 8));
                assert!(equal || !finite, "{} {columns}", level.name());
            }
        }
    }

    #[test]
    fn wide_registers_add_the_same_bits_and_see_what_is_not_finite() {
        let spread = |i: usize| ((i * 7919 % 1009) as f64 - 500.0) * 10f64.powi((i % 13) as i32 - 6);
        let halves = |i: usize| (i as f64 - 300.0) * 0.5;
        for value in [&spread as &dyn Fn(usize) -> f64, &halves, &|i| if i % 2 == 0 { -0.0 } else { 3e38 }] {
            let factors: [&dyn Fn(usize) -> f64; 2] = [&|_| 1.0, &|g| (g as f64 - 3.5) * 1e4];
            for factor in factors {
                check::<f32>(value, factor, true);
                check::<f64>(value, factor, true);
            }
        }
        // The last row alone, in its first column, which every width has.
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let value = |i: usize| if i == 7 * 101 { bad } else { 1.0 };
            check::<f32>(value, |_| 1e-3, false);
            check::<f64>(value, |_| 0.0, false);
        }
    }
}
