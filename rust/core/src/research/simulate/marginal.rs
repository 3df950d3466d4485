//! The distribution of one coordinate of a context before neighbours and scale are mixed in.

use crate::research::simulate::gaussian::ziggurat;
use crate::research::simulate::words::SimulationRng;

/// Distribution of one coordinate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Marginal {
    /// Standard normal.
    Gaussian,
    /// Uniform on `(-sqrt 3, sqrt 3)`: variance 1.
    Uniform,
    /// Standard normal given that its size is at most the bound.
    Truncated(f32),
    /// Student's t with 4 degrees of freedom, divided by sqrt 2: variance 1, fourth moment infinite.
    StudentT4,
}

impl Marginal {
    /// Fill with independent draws.
    #[inline]
    pub fn fill(self, rng: &mut SimulationRng, out: &mut [f32]) {
        match self {
            Marginal::Gaussian => ziggurat().fill(rng, out),
            Marginal::Uniform => fill_uniform(rng, out),
            Marginal::Truncated(bound) => {
                ziggurat().fill(rng, out);
                for x in out {
                    while x.abs() > bound {
                        *x = ziggurat().double(rng) as f32;
                    }
                }
            }
            Marginal::StudentT4 => {
                ziggurat().fill(rng, out);
                for x in out {
                    // A chi-square of 4 degrees over 2 is a sum of two exponentials: -ln(u v).
                    *x /= (-(open_uniform(rng) * open_uniform(rng)).ln()).sqrt() as f32;
                }
            }
        }
    }
}

/// Uniform on multiples of 2^-53 in (0, 1]: its logarithm is finite.
fn open_uniform(rng: &mut SimulationRng) -> f64 {
    1.0 - rng.uniform()
}

fn fill_uniform(rng: &mut SimulationRng, out: &mut [f32]) {
    /// Half the variance-1 width over 2^23 cells, each hit in its middle.
    const CELL: f32 = 1.732_050_8 / (1 << 23) as f32;
    for pair in out.chunks_mut(2) {
        let mut word = rng.next_u64();
        for x in pair {
            *x = (((word as i32) >> 8) as f32 + 0.5) * CELL;
            word >>= 32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mean, variance and largest size of many draws.
    fn moments(marginal: Marginal) -> (f64, f64, f64) {
        let mut draws = vec![0.0f32; 1_000_001];
        marginal.fill(&mut SimulationRng::new(5, 0), &mut draws);
        let n = draws.len() as f64;
        let mean = draws.iter().map(|x| f64::from(*x)).sum::<f64>() / n;
        let square = draws.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>() / n;
        (mean, square - mean * mean, draws.iter().fold(0.0, |top: f64, x| top.max(f64::from(x.abs()))))
    }

    #[test]
    fn variances_and_bounds_are_those_stated() {
        let (mean, variance, largest) = moments(Marginal::Gaussian);
        assert!(mean.abs() < 0.005 && (variance - 1.0).abs() < 0.008 && largest > 4.0);
        let (mean, variance, largest) = moments(Marginal::Uniform);
        assert!(mean.abs() < 0.005 && (variance - 1.0).abs() < 0.005);
        assert!(largest <= f64::from(3.0f32.sqrt()) && largest > 1.732);
        // Variance of a normal cut at 1: 1 - 2 phi(1) / (2 Phi(1) - 1) = 0.29112.
        let (mean, variance, largest) = moments(Marginal::Truncated(1.0));
        assert!(mean.abs() < 0.003 && (variance - 0.29112).abs() < 0.002 && largest <= 1.0);
        // The fourth moment is infinite, so the variance seen is rough; a normal never reaches 10.
        let (mean, variance, largest) = moments(Marginal::StudentT4);
        assert!(mean.abs() < 0.005 && (variance - 1.0).abs() < 0.03 && largest > 10.0);
    }
}
