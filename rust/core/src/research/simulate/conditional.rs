//! How a coordinate depends on those already drawn: the step that lets a row be drawn in any order, exactly.
//!
//! For the AR(1) chain, `Sigma_ij = phi^|i-j|`, the Markov property makes the nearest known coordinates on either
//! side all that matters. With those at distances `l` and `r`, and `w(k) = 1 - phi^(2k)`:
//!
//! ```text
//! x | left, right ~ N( phi^l w(r)/w(l+r) left + phi^r w(l)/w(l+r) right,  w(l) w(r)/w(l+r) )
//! ```
//!
//! A missing side is one infinitely far away. So a policy's few coordinates can be drawn first, skipping the
//! gaps, and the rest of a row completed between them later.

/// Dependence between the coordinates of a context.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Dependence {
    /// None.
    Independent,
    /// `Sigma_ij = phi^|i-j|`.
    Chain(f64),
    /// `Sigma_ij = rho` for `i != j` in one group of `width` neighbouring columns, else 0: a group's coordinates
    /// share one normal factor. A width of the dimension correlates all.
    Shared {
        /// Correlation within a group.
        rho: f64,
        /// Columns of a group; the last group may be smaller.
        width: usize,
    },
}

/// A coordinate given two earlier cells of its row: `left_weight * left + right_weight * right + spread * z`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ConditionalDraw {
    /// The cell to draw.
    pub cell: usize,
    /// An earlier cell, or any if its weight is 0.
    pub left: usize,
    /// An earlier cell, or any if its weight is 0.
    pub right: usize,
    /// Weight of `left`.
    pub left_weight: f64,
    /// Weight of `right`.
    pub right_weight: f64,
    /// Standard deviation of what is new.
    pub spread: f64,
}

impl Dependence {
    /// How many factors a row of `dimension` columns has. Its cells after the last column hold them.
    pub fn factors(self, dimension: usize) -> usize {
        match self {
            Dependence::Shared { width, .. } => dimension.div_ceil(width),
            _ => 0,
        }
    }

    /// The end of the run of columns from `start` that depend on the same earlier cells.
    pub fn run_end(self, start: usize) -> usize {
        match self {
            Dependence::Shared { width, .. } => (start / width).saturating_add(1).saturating_mul(width),
            _ => usize::MAX,
        }
    }

    /// The step that draws `cell`, given the nearest known cells on either side.
    pub fn step(
        self,
        cell: usize,
        left: Option<usize>,
        right: Option<usize>,
        dimension: usize,
    ) -> ConditionalDraw {
        let alone =
            ConditionalDraw { cell, left: 0, right: 0, left_weight: 0.0, right_weight: 0.0, spread: 1.0 };
        match self {
            Dependence::Independent => alone,
            Dependence::Shared { rho, width } => ConditionalDraw {
                right: dimension + cell / width,
                right_weight: rho.sqrt(),
                spread: (1.0 - rho).sqrt(),
                ..alone
            },
            Dependence::Chain(phi) => {
                let (l, r) = (left.map(|known| cell - known), right.map(|known| known - cell));
                let (left_weight, right_weight, variance) = bridge(phi, l, r);
                ConditionalDraw {
                    cell,
                    left: left.unwrap_or(0),
                    right: right.unwrap_or(0),
                    left_weight,
                    right_weight,
                    spread: variance.sqrt(),
                }
            }
        }
    }

    /// Steps for `cells` in turn, each given those of `known` (ascending) and those before it. `known` grows.
    pub fn steps(self, cells: &[usize], known: &mut Vec<usize>, dimension: usize) -> Vec<ConditionalDraw> {
        let mut steps = Vec::with_capacity(cells.len());
        for cell in cells {
            let place = known.partition_point(|other| other < cell);
            let left = place.checked_sub(1).map(|before| known[before]);
            steps.push(self.step(*cell, left, known.get(place).copied(), dimension));
            known.insert(place, *cell);
        }
        steps
    }
}

/// Weights of the chain's neighbours at distances `l` and `r`, and the variance left over.
fn bridge(phi: f64, l: Option<usize>, r: Option<usize>) -> (f64, f64, f64) {
    let power = |k: Option<usize>| k.map_or(0.0, |k| phi.powi(k.min(i32::MAX as usize) as i32));
    // 1 - phi^(2k) without cancellation for phi near 1.
    let rest = |k: Option<usize>| k.map_or(1.0, |k| -(2.0 * k as f64 * phi.abs().ln()).exp_m1());
    let both = l.zip(r).map(|(l, r)| l + r);
    let share = 1.0 / rest(both);
    (power(l) * rest(r) * share, power(r) * rest(l) * share, rest(l) * rest(r) * share)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covariance of a row drawn by steps: each cell as a combination of the independent z's.
    fn covariance(steps: &[ConditionalDraw], factors: usize, d: usize) -> Vec<Vec<f64>> {
        let mut rows = vec![vec![0.0; d + factors]; d + factors];
        (d..d + factors).for_each(|factor| rows[factor][factor] = 1.0);
        for step in steps {
            let mut row: Vec<f64> = (0..d + factors)
                .map(|j| step.left_weight * rows[step.left][j] + step.right_weight * rows[step.right][j])
                .collect();
            row[step.cell] += step.spread;
            rows[step.cell] = row;
        }
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| x * y).sum();
        (0..d).map(|i| (0..d).map(|j| dot(&rows[i], &rows[j])).collect()).collect()
    }

    fn worst(
        steps: &[ConditionalDraw],
        factors: usize,
        d: usize,
        sigma: impl Fn(usize, usize) -> f64,
    ) -> f64 {
        let seen = covariance(steps, factors, d);
        let cells = (0..d).flat_map(|i| (0..d).map(move |j| (i, j)));
        cells.map(|(i, j)| (seen[i][j] - sigma(i, j)).abs()).fold(0.0, f64::max)
    }

    const ORDERS: [[usize; 8]; 4] = [
        [0, 1, 2, 3, 4, 5, 6, 7],
        [7, 6, 5, 4, 3, 2, 1, 0],
        [3, 6, 1, 0, 7, 2, 4, 5],
        [4, 0, 7, 5, 6, 1, 2, 3],
    ];

    #[test]
    fn any_order_gives_the_chains_covariance_exactly() {
        for phi in [0.1, 0.9, -0.6, 0.999_999] {
            for order in ORDERS {
                let steps = Dependence::Chain(phi).steps(&order, &mut Vec::new(), 8);
                let sigma = |i: usize, j: usize| f64::powi(phi, i.abs_diff(j) as i32);
                assert!(worst(&steps, 0, 8, sigma) < 1e-9, "{phi} {order:?}");
            }
        }
    }

    #[test]
    fn any_order_gives_equal_correlations_and_independence() {
        for order in ORDERS {
            let steps = Dependence::Shared { rho: 0.3, width: 8 }.steps(&order, &mut Vec::new(), 8);
            assert!(worst(&steps, 1, 8, |i, j| if i == j { 1.0 } else { 0.3 }) < 1e-12);
            let steps = Dependence::Independent.steps(&order, &mut Vec::new(), 8);
            assert!(worst(&steps, 0, 8, |i, j| f64::from(u8::from(i == j))) < 1e-12);
        }
    }

    #[test]
    fn any_order_gives_groups_their_correlation_and_none_to_others() {
        let groups = Dependence::Shared { rho: 0.6, width: 3 };
        assert_eq!(groups.factors(8), 3);
        for order in ORDERS {
            let steps = groups.steps(&order, &mut Vec::new(), 8);
            let sigma = |i: usize, j: usize| {
                if i == j { 1.0 } else { 0.6 * f64::from(u8::from(i / 3 == j / 3)) }
            };
            assert!(worst(&steps, 3, 8, sigma) < 1e-12);
            // Control: one factor for all is not the same.
            let all = Dependence::Shared { rho: 0.6, width: 8 }.steps(&order, &mut Vec::new(), 8);
            assert!(worst(&all, 1, 8, sigma) > 0.5);
        }
    }

    #[test]
    fn forgetting_the_right_neighbour_is_caught() {
        let mut steps = Dependence::Chain(0.5).steps(&ORDERS[2], &mut Vec::new(), 8);
        for step in &mut steps {
            step.right_weight = 0.0;
        }
        assert!(worst(&steps, 0, 8, |i, j| f64::powi(0.5, i.abs_diff(j) as i32)) > 0.1);
    }
}
