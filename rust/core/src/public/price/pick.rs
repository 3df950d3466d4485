//! One bounded-range pick: the adversary's best two-point mechanism, maximised exactly.
//!
//! With u = exp(-t), 0 <= t <= eta and E = exp(eta), the mechanism multiplies x by u with probability 1 - q and
//! by E u with probability q = (1 - u)/((E - 1) u); the mean of the factor is 1. The new value at x is the largest
//! over t of (1 - q) f(x u) + q f(x E u). Between two values of t at which x u or x E u meets a node, both f are
//! linear, and with u = U w the sum is B + A/w + D w with A = (gamma - alpha)/((E - 1) U) and
//! D = -c (E da - k db)/(E - 1): da and db are the differences of f across the two cells, c = 1/(1 - exp(-step)),
//! alpha = a0 + c da and gamma = b0 + c db the lines' values at x = 0, and k places x E u in its cell. For a
//! convex f, A and D are at most 0 and the largest value is at w = sqrt(A/D), or at the end of the piece next to it.
//! Ends are tried in any case: rounding may leave f not quite convex, and then they are the largest.
//!
//! # Error of floats
//! Let F be the largest of the values that take part, f at loss l + eta, and u the unit 2^-53.
//! 1. q, and the places of both points in their cells, are sums and quotients of positive terms, within
//!    (150 + 3 eta) u <= 1050u relative for eta <= 300. The sum is a combination of values of at most F with weights
//!    that sum to 1 by construction: within 2400u F.
//! 2. The place of the maximum is rounded, and missing it costs at most |slope| times the width of the piece. The
//!    slope at the rounded place is at most the error of its two terms, 60u (alpha + gamma)/w and
//!    200u c U (E da + k db) w, over (E - 1) U w. Times the width, at most min(1/c, 1 - 1/E), that is below
//!    640u exp(2 step) F / (1 - 1/E); steps are at most 1/2.
//!
//! Together below 2^12 u F/(1 - 1/E) = 2^-41 F/(1 - 1/E), which is added to every value.

use super::elementary::{exp, exp_m1};
use super::value::Value;
use crate::runtime::error::Result;
use crate::runtime::memory::{with_room, zeros};
use crate::runtime::simd::{Level, Vectorised};

/// What is added for float errors, times the largest value that takes part and 1/(1 - exp(-eta)).
const ERROR: f64 = 1.0 / (1u64 << 41) as f64;

/// A piece of the adversary's choice: t from `k step` plus something, on which f is linear at both points.
struct Piece {
    /// Nodes below the point of larger loss, and below the point of smaller loss, relative to the state's node.
    upper: i64,
    lower: i64,
    /// U = exp(-k step), and 1 - U.
    at: f64,
    short_of_one: f64,
    /// w at the two ends of the piece, smaller first.
    ends: (f64, f64),
    /// The smaller loss is at `place + scale (1 - w)` of 1 - exp(-step) in its cell.
    place: f64,
    scale: f64,
}

/// The value before a pick of range `eta` (rounded up by at most one part in 10^9), at `len` nodes from `first`.
pub(super) fn pick(after: &Value, eta: f64, step: f64, first: i64, len: usize) -> Result<Value> {
    let (pieces, eta) = pieces(eta, step)?;
    let cells = pieces.iter().map(|piece| -piece.lower).max().unwrap_or(1);
    let nodes = after.between(first - cells, first + len as i64 + cells + 1, step)?;
    let mut best: Vec<f64> = zeros(len)?;
    let work =
        Maximise { nodes: &nodes, origin: cells as usize, pieces: &pieces, eta, step, best: &mut best };
    Level::best().run(work);
    let error = ERROR / -exp_m1(-eta);
    let top = &nodes[2 * cells as usize..];
    for (value, top) in best.iter_mut().zip(top) {
        *value += error * top;
    }
    Ok(Value::new(first, best))
}

/// The pieces of a range, and that range rounded up to where the pieces end.
fn pieces(eta: f64, step: f64) -> Result<(Vec<Piece>, f64)> {
    // A quotient is rounded by a relative 2^-53: 2^-51 more is at least the range that was asked for.
    let eta = eta * (1.0 + 1.0 / (1u64 << 51) as f64);
    let whole = (eta / step).ceil().max(1.0);
    let slack = whole - eta / step;
    let cells = whole as i64;
    let piece = |k: i64, lower: i64, from: f64, to: f64, place: f64| Piece {
        upper: k,
        lower,
        at: exp(-(k as f64 * step)),
        short_of_one: -exp_m1(-(k as f64 * step)),
        ends: (exp(-to * step), exp(-from * step)),
        place: -exp_m1(-place * step),
        scale: exp(-place * step),
    };
    if slack <= 1e-9 * whole {
        // Both points meet nodes together: one piece a cell.
        let mut pieces = with_room(cells as usize)?;
        pieces.extend((0..cells).map(|k| piece(k, k - cells, 0.0, 1.0, 0.0)));
        return Ok((pieces, whole * step));
    }
    // The smaller loss meets a node a fraction of a cell after the larger one does.
    let part = (1.0 - slack) + 1e-12 * whole;
    let mut found = with_room(2 * cells as usize)?;
    for k in 0..cells {
        found.push(piece(k, k - cells, 0.0, part, 1.0 - part));
        if k + 1 < cells {
            found.push(piece(k, k - cells + 1, part, 1.0, -part));
        }
    }
    Ok((found, (whole - 1.0 + part) * step))
}

/// The largest value over all pieces, for a run of nodes.
struct Maximise<'a> {
    nodes: &'a [f64],
    /// Place of the first state's node in `nodes`.
    origin: usize,
    pieces: &'a [Piece],
    eta: f64,
    step: f64,
    best: &'a mut [f64],
}

impl Vectorised for Maximise<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let len = self.best.len();
        let (growth, growth_m1) = (exp(self.eta), exp_m1(self.eta));
        let c = 1.0 / -exp_m1(-self.step);
        // t = 0, which tells nothing, leaves the value as it is.
        self.best.copy_from_slice(&self.nodes[self.origin..][..len]);
        for piece in self.pieces {
            let run = |offset: i64| &self.nodes[(self.origin as i64 + offset) as usize..][..len];
            let (a0, a1) = (run(piece.upper), run(piece.upper + 1));
            let (b0, b1) = (run(piece.lower), run(piece.lower + 1));
            let (low, high) = piece.ends;
            let (at, short, place, scale) = (piece.at, piece.short_of_one, piece.place, piece.scale);
            let weight = growth_m1 * at;
            let end = 1.0 - high;
            let (end_a, end_b) = (c * end, c * (place + scale * end));
            let end_q = (short + at * end) / (weight * high);
            for j in 0..len {
                let (da, db) = (a1[j] - a0[j], b1[j] - b0[j]);
                let top = (a0[j] + c * da) - (b0[j] + c * db);
                let bottom = c * at * (growth * da - scale * db);
                let w = (top / bottom).sqrt();
                // Written so that a quotient that is not a number gives an end.
                let w = if w > low { w } else { low };
                let w = if w < high { w } else { high };
                let rest = 1.0 - w;
                let (a, b) = (a0[j] + da * (c * rest), b0[j] + db * (c * (place + scale * rest)));
                let inside = a - (short + at * rest) / (weight * w) * (a - b);
                let (a, b) = (a0[j] + da * end_a, b0[j] + db * end_b);
                let at_end = a - end_q * (a - b);
                let larger = if inside > at_end { inside } else { at_end };
                self.best[j] = if larger > self.best[j] { larger } else { self.best[j] };
            }
        }
    }
}

/// The value before a last pick, in closed form: delta at `epsilon` of the worst mechanism of range `eta`.
///
/// (exp(eta/2) - exp(epsilon/2))^2 / (exp(eta) - 1) for 0 <= epsilon <= eta, and 1 - exp(epsilon) +
/// exp(epsilon) delta(-epsilon) below 0, because the class is the same with the neighbours exchanged.
/// Within 400u, relative, of which 2^-41 is added.
pub(super) fn last(epsilon: f64, eta: f64) -> f64 {
    let tail = |distance: f64| {
        let root = exp_m1(0.5 * distance.max(0.0));
        root * root / exp_m1(eta)
    };
    let exact = if epsilon >= 0.0 {
        exp(epsilon.min(eta)) * tail(eta - epsilon)
    } else {
        -exp_m1(epsilon.max(-700.0)) + tail(eta + epsilon)
    };
    (exact * (1.0 + ERROR)).min(1.0)
}
