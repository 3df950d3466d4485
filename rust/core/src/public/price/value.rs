//! A value function: an upper bound, piecewise linear in x = exp(-loss).

use crate::runtime::error::Result;
use crate::runtime::memory::with_room;

/// The bound at losses `(first + i) * step`, chords in x between them.
///
/// Below the first node it is constant; above the last it is the line in x to the value 1 at x = 0. For any
/// function that is convex and non-increasing in x and at most 1, chords, that constant and that line all
/// lie above it, so this is an upper bound everywhere when it is one at the nodes.
pub(super) struct Value {
    pub(super) first: i64,
    pub(super) nodes: Vec<f64>,
}

impl Value {
    /// From values that are upper bounds; they are made non-decreasing in the loss and at most 1, by raising
    /// and by what every such function is.
    pub(super) fn new(first: i64, mut nodes: Vec<f64>) -> Self {
        let mut highest: f64 = 0.0;
        for node in &mut nodes {
            highest = highest.max(node.min(1.0));
            *node = highest;
        }
        Value { first, nodes }
    }

    /// The values at nodes `from..to`, whether inside or not; within 64u of the line above the last node.
    ///
    /// # Errors
    /// If there is no memory for them.
    pub(super) fn between(&self, from: i64, to: i64, step: f64) -> Result<Vec<f64>> {
        let last = self.first + self.nodes.len() as i64 - 1;
        let mut values = with_room((to - from).max(0) as usize)?;
        values.extend((from..to).map(|at| {
            if at <= last {
                self.nodes[(at - self.first).max(0) as usize]
            } else {
                let top = self.nodes[self.nodes.len() - 1];
                let beyond = super::elementary::exp(-((at - last) as f64 * step));
                (1.0 - (1.0 - top) * beyond).clamp(top, 1.0)
            }
        }));
        Ok(values)
    }

    /// The larger of two bounds on the same nodes.
    pub(super) fn raise(&mut self, other: &Value) {
        debug_assert!(self.first == other.first && self.nodes.len() == other.nodes.len());
        for (node, &value) in self.nodes.iter_mut().zip(&other.nodes) {
            *node = node.max(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beyond_the_nodes_it_stays_above_every_convex_function_through_them() {
        // f(x) = (1 - x)^2 for x = exp(-loss) up to 1: convex, falling, 1 at x = 0.
        let (step, exact) = (0.25, |at: i64| (1.0 - (-0.25 * at as f64).exp()).powi(2));
        let value = Value::new(1, (1..6).map(exact).collect());
        let found = value.between(0, 40, step).expect("memory");
        for (at, bound) in (0..40).zip(&found) {
            assert!(*bound >= exact(at) - 1e-12, "{at}: {bound} below {}", exact(at));
        }
        assert_eq!(found[0], found[1]);
        assert!(found[39] > 0.999 && found.iter().all(|bound| *bound <= 1.0));
    }
}
