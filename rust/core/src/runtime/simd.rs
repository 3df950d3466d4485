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

/// Ask for the line that holds `values[index]`, if there is one; nothing waits for it.
#[inline(always)]
pub fn prefetch<T>(values: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(value) = values.get(index) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: SSE is part of every x86-64 processor, and a prefetch never faults or changes memory.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (values, index);
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
    fn the_best_level_is_the_last_available_one() {
        let all = Level::available();
        assert_eq!(all[0], Level::BASELINE);
        assert_eq!(all.last(), Some(&Level::best()));
    }
}
