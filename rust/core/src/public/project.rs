//! Euclidean projection on the l1 ball, in expected linear time and without a sort.
//!
//! The projection of `v` is `sign(v) * max(|v| - threshold, 0)` for the one threshold at which the result
//! has l1 norm `radius`. For any set S of coordinates, `(sum_S |v| - radius) / |S|` is at most the threshold:
//! so one pass collects candidates above a bound that rises as they come, and a few short passes over the
//! candidates (Michelot's iteration) finish. Compare L. Condat, "Fast projection onto the simplex and the l1
//! ball", Mathematical Programming 158 (2016).

use crate::runtime::error::{Error, Result};
use crate::runtime::memory::{copied, make_room, zeros};
use crate::runtime::simd::{Level, Vectorised};

/// Sums run over fixed lanes, so that every instruction set adds in the same order.
const LANES: usize = 16;

/// Values looked at together for a candidate; the bound rises between chunks.
const CHUNK: usize = 32;

/// Project `v` on `{w : |w|_1 <= radius}`.
///
/// The result's l1 norm, added over the lanes of this module, is at most `radius`: projecting again returns
/// the same bits.
///
/// # Errors
/// If `radius` is not finite and above zero, or `v` is not finite.
pub fn project_l1(v: &[f64], radius: f64, level: Level) -> Result<Vec<f64>> {
    if !(radius.is_finite() && radius > 0.0) {
        return Err(Error::invalid(format!("radius must be a finite number above 0, got {radius}")));
    }
    let size = level.run(Size(v));
    if !size.finite {
        return Err(Error::invalid("v must be finite"));
    }
    if size.norm <= radius {
        return copied(v);
    }
    // The largest coordinate alone reaches the radius above `largest - radius`: whatever is below that ends
    // at zero, and only the excess over it counts. Written as a distance from the largest, the excess is at
    // most the radius, so that huge inputs neither overflow nor cancel.
    let (top, base) = if size.largest > radius { (size.largest, radius) } else { (0.0, 0.0) };
    let mut above = level.run(Candidates { v, top, base, radius })?;
    let mut threshold = michelot(&mut above, radius);
    // Rounding may leave the sum a few units above the radius: raise the threshold until it is not.
    let mut nudge = f64::EPSILON * radius;
    while norm_above(&above, threshold) > radius {
        threshold += nudge;
        nudge *= 2.0;
    }
    let mut projected = zeros(v.len())?;
    for (j, excess) in above {
        projected[j] = (excess - threshold).max(0.0).copysign(v[j]);
    }
    Ok(projected)
}

/// Drop candidates below the threshold that the rest imply, until none is.
fn michelot(above: &mut Vec<(usize, f64)>, radius: f64) -> f64 {
    loop {
        let sum: f64 = above.iter().map(|(_, excess)| excess).sum();
        let threshold = ((sum - radius) / above.len().max(1) as f64).max(0.0);
        let before = above.len();
        above.retain(|(_, excess)| *excess > threshold);
        if above.len() == before {
            return threshold;
        }
    }
}

/// The norm of the result, added exactly as [`Size`] would add it: zeros change no sum.
fn norm_above(above: &[(usize, f64)], threshold: f64) -> f64 {
    let mut lanes = [0.0; LANES];
    for (j, excess) in above {
        lanes[j % LANES] += (excess - threshold).max(0.0);
    }
    lanes.iter().sum()
}

struct Sized {
    norm: f64,
    largest: f64,
    finite: bool,
}

/// One pass for the norm, the largest magnitude and whether all is finite.
struct Size<'a>(&'a [f64]);

impl Vectorised for Size<'_> {
    type Output = Sized;

    #[inline(always)]
    fn run(self) -> Sized {
        let mut norm = [0.0; LANES];
        let mut largest = [0.0; LANES];
        let chunks = self.0.chunks_exact(LANES);
        let rest = chunks.remainder();
        for chunk in chunks {
            for lane in 0..LANES {
                let size = chunk[lane].abs();
                norm[lane] += size;
                largest[lane] = if size > largest[lane] { size } else { largest[lane] };
            }
        }
        for (lane, value) in rest.iter().enumerate() {
            norm[lane] += value.abs();
            largest[lane] = largest[lane].max(value.abs());
        }
        let norm: f64 = norm.iter().sum();
        let largest = largest.iter().fold(0.0, |a: f64, b| a.max(*b));
        // NaN hides from the maximum but not from the sum; an infinite sum may also be a finite overflow.
        Sized { norm, largest, finite: !norm.is_nan() && largest.is_finite() }
    }
}

/// Coordinates that may stay above the threshold, with their excess `base - (top - |v|)`.
struct Candidates<'a> {
    v: &'a [f64],
    top: f64,
    base: f64,
    radius: f64,
}

impl Vectorised for Candidates<'_> {
    type Output = Result<Vec<(usize, f64)>>;

    #[inline(always)]
    fn run(self) -> Result<Vec<(usize, f64)>> {
        let Candidates { v, top, base, radius } = self;
        let excess_of = |value: f64| base - (top - value.abs());
        let mut above = Vec::new();
        let (mut sum, mut bound) = (0.0, 0.0);
        for (c, chunk) in v.chunks(CHUNK).enumerate() {
            // Most chunks have no candidate: find that out without a branch for each value.
            if !chunk.iter().fold(false, |any, value| any | (excess_of(*value) > bound)) {
                continue;
            }
            make_room(&mut above, CHUNK)?;
            for (k, value) in chunk.iter().enumerate() {
                let excess = excess_of(*value);
                if excess > bound {
                    above.push((c * CHUNK + k, excess));
                    sum += excess;
                }
            }
            bound = ((sum - radius) / above.len() as f64).max(bound);
        }
        Ok(above)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn norm(v: &[f64]) -> f64 {
        v.iter().map(|x| x.abs()).sum()
    }

    #[test]
    fn known_projections() {
        let at = Level::BASELINE;
        assert_eq!(project_l1(&[3.0, -1.0], 2.0, at), Ok(vec![2.0, 0.0]));
        assert_eq!(project_l1(&[1.0, -1.0], 1.0, at), Ok(vec![0.5, -0.5]));
        assert_eq!(project_l1(&[0.25, -0.25], 1.0, at), Ok(vec![0.25, -0.25]));
        assert_eq!(project_l1(&[], 1.0, at), Ok(vec![]));
        let huge = project_l1(&[f64::MAX, f64::MAX, 0.0], 1.0, at).unwrap_or_default();
        assert!(norm(&huge) <= 1.0 && huge[2] == 0.0);
    }

    #[test]
    fn every_level_gives_the_same_bits_and_projecting_again_changes_none() {
        for d in [1, 15, 16, 17, 63, 64, 65, 1000, 10_007] {
            let v: Vec<f64> = (0..d).map(|i| ((i * 7919) % 1013) as f64 / 97.0 - 5.0).collect();
            for radius in [1e-9, 0.3, 3.0, 40.0, 1e9] {
                let plain = project_l1(&v, radius, Level::BASELINE).unwrap_or_default();
                assert!(norm(&plain) <= radius * (1.0 + 1e-12));
                for level in Level::available() {
                    assert_eq!(project_l1(&v, radius, level).as_ref(), Ok(&plain));
                }
                assert_eq!(project_l1(&plain, radius, Level::BASELINE), Ok(plain));
            }
        }
    }

    #[test]
    fn values_that_are_not_finite_are_refused() {
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            for place in [0, 5, 40] {
                let mut v = vec![1.0; 41];
                v[place] = bad;
                assert!(project_l1(&v, 1.0, Level::best()).is_err());
            }
        }
        for radius in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(project_l1(&[1.0], radius, Level::best()).is_err());
        }
    }
}
