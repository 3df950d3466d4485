//! The price of a sequence of releases: the value of the best adaptive adversary's game, rounded up.
//!
//! A person's rows enter releases of two kinds, in a fixed order: picks whose log-probability ratios span at
//! most eta (bounded range), and Gaussian vectors whose mean moves by at most mu standard deviations. The smallest
//! delta at which they are (epsilon, delta)-DP together is the value of a game with one number as its state, the
//! privacy loss l so far: the adversary chooses each mechanism knowing all that was released, and ends with
//! (1 - exp(epsilon - l))_+. Folding from the last event, with f as a function of x = exp(-l):
//!
//! * the end: f(x) = (1 - exp(epsilon) x)_+;
//! * a Gaussian: f(x) <- E f(x r), r the likelihood ratio of the two normal laws ([`gaussian`]);
//! * a pick: f(x) <- the largest chord of f at x with ends a <= x <= b, b/a = exp(eta) ([`pick`]).
//!
//! Every f is convex, non-increasing, at most 1. `docs/privacy.md` has the proof that two points are the worst
//! pick and that the order of events matters.
//!
//! # Why the result is an upper bound, whatever the step
//! Let f be the exact value after some events and F >= f what is stored: numbers at nodes l = i step, joined by
//! chords in x ([`value`]). Both operations are monotone and are applied to F exactly, up to float errors that are
//! bounded and added, so at the nodes the result is at least the exact f'. As f' is convex in x, chords
//! between its nodes lie above it. (Chords in l would not: f' need not be convex in l.) F itself need not be convex.

mod elementary;
mod gaussian;
mod pick;
pub mod scales;
mod value;

use crate::runtime::error::{Error, Result};
use crate::runtime::memory::{copied, with_room};
use value::Value;

/// Largest range of a pick and largest mu of a Gaussian.
pub const LARGEST: f64 = 300.0;
/// Largest step of the loss: the float errors are bounded for steps up to this.
pub const LARGEST_STEP: f64 = 0.5;
/// Bound on nodes and on cells of one event.
const MOST_NODES: usize = 1 << 22;

/// One release.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Event {
    /// Log-probability ratios of neighbours span at most this.
    Pick(f64),
    /// The mean of a Gaussian vector moves by at most this many standard deviations.
    Gaussian(f64),
}

/// Losses that are followed: `-below * step ..= above * step`.
#[derive(Debug, Clone, Copy)]
pub struct Grid {
    /// Distance of neighbouring losses.
    pub step: f64,
    /// Nodes below 0.
    pub below: u32,
    /// Nodes above 0.
    pub above: u32,
}

impl Grid {
    fn check(&self) -> Result<()> {
        if !(self.step > 0.0 && self.step <= LARGEST_STEP) {
            return Err(Error::invalid(format!(
                "step must be above 0 and at most {LARGEST_STEP}, got {}",
                self.step
            )));
        }
        if self.len() > MOST_NODES {
            return Err(Error::invalid(format!(
                "the grid must have at most {MOST_NODES} nodes, got {}",
                self.len()
            )));
        }
        Ok(())
    }

    fn len(&self) -> usize {
        self.below as usize + self.above as usize + 1
    }
}

impl Event {
    fn size(self) -> f64 {
        match self {
            Event::Pick(size) | Event::Gaussian(size) => size,
        }
    }

    /// The event with `factor` times the size.
    fn times(self, factor: f64) -> Event {
        match self {
            Event::Pick(size) => Event::Pick(size * factor),
            Event::Gaussian(size) => Event::Gaussian(size * factor),
        }
    }

    fn check(self, grid: &Grid) -> Result<()> {
        let size = self.size();
        if !(0.0..=LARGEST).contains(&size) || size / grid.step > MOST_NODES as f64 / 16.0 {
            let name = match self {
                Event::Pick(_) => "eta",
                Event::Gaussian(_) => "mu",
            };
            return Err(Error::invalid(format!("{name} must be a number from 0 to {LARGEST}, got {size}")));
        }
        Ok(())
    }

    /// The event when `rows` of `all` rows take part, rounded up.
    fn share(self, rows: u32, all: u32) -> Event {
        let share = |size: f64| size * f64::from(rows) / f64::from(all) * (1.0 + 1.0 / (1u64 << 50) as f64);
        match self {
            _ if rows == all => self,
            Event::Pick(size) => Event::Pick(share(size)),
            Event::Gaussian(size) => Event::Gaussian(share(size)),
        }
    }

    /// Nodes to either side of a state that the event may lead to.
    fn reach(self, step: f64) -> i64 {
        match self {
            Event::Pick(eta) => (eta / step).ceil() as i64 + 2,
            Event::Gaussian(mu) => gaussian::reach(mu, step) + 1,
        }
    }

    fn fold(self, after: &Value, step: f64, first: i64, len: usize) -> Result<Value> {
        match self {
            Event::Pick(eta) => pick::pick(after, eta, step, first, len),
            Event::Gaussian(mu) => gaussian::gaussian(after, mu, step, first, len),
        }
    }

    /// delta at `epsilon` of this event alone, in closed form.
    fn alone(self, epsilon: f64) -> f64 {
        match self {
            Event::Pick(eta) => pick::last(epsilon, eta),
            Event::Gaussian(mu) => gaussian::last(epsilon, mu),
        }
    }
}

/// An upper bound on delta at `epsilon` of `events`, in the order they are released.
///
/// # Errors
/// If a size is negative, not a number or above [`LARGEST`], or the grid is not usable.
pub fn delta(epsilon: f64, events: &[Event], grid: &Grid) -> Result<f64> {
    let events = checked(events, grid)?;
    Ok(match end(epsilon, &events, grid, true)? {
        Some(value) => at_zero(&value),
        None => (-elementary::exp_m1(epsilon.clamp(-700.0, 0.0)) * (1.0 + 1e-12)).min(1.0),
    })
}

/// An upper bound on delta at `epsilon` when `users` rows of one person enter one or more fits.
///
/// Each fit is one of `menu`, whose sizes are those of a fit that all the rows enter; i of them make its
/// events i/users as large. The state is (loss, rows left): W_0 is the end, and W_j the largest, over fits of
/// the menu and 1 <= i <= j, of the fit with i rows before W_(j-i). Which fit comes next, and how many rows enter
/// it, may depend on everything released.
///
/// # Errors
/// As [`delta`]; or if `users` is 0 or the menu empty.
pub fn delta_of_user(epsilon: f64, menu: &[Vec<Event>], users: u32, grid: &Grid) -> Result<f64> {
    if users == 0 || menu.is_empty() {
        return Err(Error::invalid("users must be at least 1 and the menu must not be empty"));
    }
    let menu = menu.iter().map(|events| checked(events, grid)).collect::<Result<Vec<_>>>()?;
    let mut left: Vec<Value> = Vec::new();
    for rows in 1..=users {
        let mut best: Option<Value> = None;
        for events in menu.iter().filter(|events| !events.is_empty()) {
            for entering in 1..=rows {
                let part: Vec<Event> = events.iter().map(|event| event.share(entering, users)).collect();
                let value = if entering == rows {
                    end(epsilon, &part, grid, false)?
                } else {
                    Some(before(&left[(rows - entering - 1) as usize], &part, grid)?)
                };
                match (&mut best, value) {
                    (Some(best), Some(value)) => best.raise(&value),
                    (None, value) => best = value,
                    (_, None) => {}
                }
            }
        }
        match best {
            Some(value) => left.push(value),
            None => return delta(epsilon, &[], grid),
        }
    }
    // Fewer rows than all may be used: the values grow with the rows, up to rounding.
    Ok(left.iter().map(at_zero).fold(0.0, f64::max))
}

/// Events that do something, or the reason one is not valid.
fn checked(events: &[Event], grid: &Grid) -> Result<Vec<Event>> {
    grid.check()?;
    events.iter().try_for_each(|event| event.check(grid))?;
    Ok(events.iter().copied().filter(|event| event.size() > 0.0).collect())
}

fn at_zero(value: &Value) -> f64 {
    value.nodes[(-value.first) as usize]
}

/// The value before `events` that are the last; None if there are none.
///
/// With `only_zero` it is right at loss 0, and nodes that can't be reached from there are left out.
fn end(epsilon: f64, events: &[Event], grid: &Grid, only_zero: bool) -> Result<Option<Value>> {
    let Some((last, others)) = events.split_last() else { return Ok(None) };
    let windows = windows(others, grid, only_zero);
    let (first, len) = windows[others.len()];
    let mut nodes = with_room(len)?;
    nodes.extend((0..len as i64).map(|i| {
        let loss = (first + i) as f64 * grid.step;
        // The difference is rounded: a little less epsilon makes delta larger.
        last.alone((epsilon - loss) - (epsilon.abs() + loss.abs()) * (1.0 / (1u64 << 51) as f64))
    }));
    fold(Value::new(first, nodes), others, grid, &windows).map(Some)
}

/// The value before `events` that `after` follows, on the whole grid.
fn before(after: &Value, events: &[Event], grid: &Grid) -> Result<Value> {
    let after = Value { first: after.first, nodes: copied(&after.nodes)? };
    fold(after, events, grid, &windows(events, grid, false))
}

fn fold(last: Value, events: &[Event], grid: &Grid, windows: &[(i64, usize)]) -> Result<Value> {
    events
        .iter()
        .zip(windows)
        .rev()
        .try_fold(last, |after, (event, &(first, len))| event.fold(&after, grid.step, first, len))
}

/// First node and number of nodes at which the value before each event is needed, and after the last.
fn windows(events: &[Event], grid: &Grid, only_zero: bool) -> Vec<(i64, usize)> {
    let (lowest, highest) = (-i64::from(grid.below), i64::from(grid.above));
    let (mut from, mut to) = if only_zero { (0, 0) } else { (lowest, highest) };
    let mut found = vec![(from, (to - from) as usize + 1)];
    for event in events {
        let reach = event.reach(grid.step);
        (from, to) = ((from - reach).max(lowest), (to + reach).min(highest));
        found.push((from, (to - from) as usize + 1));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRID: Grid = Grid { step: 0.01, below: 600, above: 800 };

    fn price(epsilon: f64, events: &[Event]) -> f64 {
        delta(epsilon, events, &GRID).expect("valid")
    }

    #[test]
    fn the_order_of_events_changes_the_price() {
        let (pick, gaussian) = (Event::Pick(0.47), Event::Gaussian(0.37));
        let last = price(1.0, &[pick, pick, gaussian]);
        let first = price(1.0, &[gaussian, pick, pick]);
        assert!((last - 0.00647).abs() < 2e-5, "{last}");
        assert!((first - 0.00808).abs() < 3e-5, "{first}");
    }

    #[test]
    fn one_event_is_its_closed_form_and_nothing_is_free() {
        let closed = (0.25f64.exp() - 0.1f64.exp()).powi(2) / 0.5f64.exp_m1();
        assert!((price(0.2, &[Event::Pick(0.5)]) / closed - 1.0).abs() < 1e-11);
        assert!(price(0.5, &[Event::Pick(0.5)]) < 1e-30);
        assert_eq!((price(1.0, &[]), price(0.0, &[Event::Pick(0.0)])), (0.0, 0.0));
        assert!((price(-1.0, &[]) - (1.0 - (-1.0f64).exp())).abs() < 1e-11);
    }

    #[test]
    fn four_picks_cost_what_the_optimal_adversary_takes() {
        // Four randomised responses of half the range, .3, give .0858; the adaptive optimum is larger.
        let bound = price(0.5, &[Event::Pick(0.6); 4]);
        assert!((bound - 0.0980).abs() < 2e-4, "{bound}");
    }

    #[test]
    fn gaussians_compose_to_one_gaussian_from_above() {
        let parts = price(1.0, &[Event::Gaussian(0.3), Event::Gaussian(0.4)]);
        let whole = price(1.0, &[Event::Gaussian(0.5)]);
        assert!(parts >= whole && parts < whole * 1.002, "{parts} {whole}");
    }

    #[test]
    fn ranges_that_are_no_multiple_of_the_step_are_not_rounded() {
        for (eta, excess) in [(0.4999, 1.001), (0.2505, 1.001), (0.0333, 1.1), (0.004, 3.0)] {
            let two = price(0.3 * eta, &[Event::Pick(eta), Event::Pick(0.7 * eta)]);
            let fine = Grid { step: 0.001, below: 2000, above: 3000 };
            let exact = delta(0.3 * eta, &[Event::Pick(eta), Event::Pick(0.7 * eta)], &fine).expect("valid");
            assert!(two >= exact * (1.0 - 1e-9) && two < exact * excess, "{eta}: {two} {exact}");
        }
    }

    #[test]
    fn rows_of_a_user_cost_most_in_one_fit() {
        let fit = vec![Event::Pick(0.4), Event::Pick(0.4), Event::Gaussian(0.4)];
        let all_in_one = price(1.0, &fit);
        for users in 1..4 {
            let split = delta_of_user(1.0, std::slice::from_ref(&fit), users, &GRID).expect("valid");
            assert!(split >= all_in_one * (1.0 - 1e-9) && split < all_in_one * 1.001, "{users}: {split}");
        }
    }

    #[test]
    fn what_can_not_be_priced_is_refused() {
        for event in [Event::Pick(-0.1), Event::Gaussian(f64::NAN), Event::Pick(301.0)] {
            assert!(delta(1.0, &[event], &GRID).is_err());
        }
        for step in [0.0, 0.6, f64::NAN] {
            assert!(delta(1.0, &[], &Grid { step, ..GRID }).is_err());
        }
        assert!(delta_of_user(1.0, &[], 1, &GRID).is_err());
    }
}
