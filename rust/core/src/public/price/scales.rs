//! The smallest integer scales that a claim allows: `price(template, claim)` in one call.
//!
//! A template says what is released, in order, and the ratios of its scales. All scales grow by one factor, the
//! smallest for which the price of the *rounded* scales is within the claim: what is returned was priced as it is.
//! Sizes of events follow from integers and are rounded up, operation by operation.

use super::{Event, Grid, LARGEST, LARGEST_STEP, delta, delta_of_user};
use crate::runtime::error::{Error, Result};

/// Largest scale, exclusive.
const SCALE_LIMIT: u64 = 1 << 40;

/// Cells in a typical pick, the finest first; fewer where that would take long.
const CELLS: [f64; 7] = [32.0, 24.0, 16.0, 12.0, 8.0, 6.0, 4.0];
/// Cells of the first, rough search.
const ROUGH: f64 = 8.0;
/// Work of a price, in cells of all events at all nodes: up to which it is easy, and allowed at all.
const EASY: f64 = 1e7;
const MOST: f64 = 4e8;
/// Losses that are followed, in standard deviations; what lies beyond is bounded, not left out.
const REACH: f64 = 5.0;
/// Beyond this many standard deviations no float tells a chance from 0.
const FAR: f64 = 40.0;
/// Each makes all noise a hundred-thousandth larger; a grid differs from the next by less than a thousandth.
const CORRECTIONS: usize = 100;

/// One release of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Release {
    /// `count` picks, whose scores move by at most `sensitivity`.
    Picks {
        /// How far one row moves a score.
        sensitivity: u64,
        /// Scale of the exponential mechanism.
        scale: u64,
        /// How many.
        count: u32,
    },
    /// A vector with rounded Gaussian noise: squared sensitivity and standard deviation of each part.
    Vector(Vec<(u128, u64)>),
}

/// What noise must support.
#[derive(Debug, Clone, Copy)]
pub enum Claim {
    /// (epsilon, delta) by the price of the sequence.
    Exact {
        /// Epsilon, at least 0.
        epsilon: f64,
        /// Delta, above 0 and below 1.
        delta: f64,
    },
    /// This zCDP cost.
    Zcdp {
        /// rho, above 0.
        rho: f64,
    },
}

/// A template with the scales that were found.
#[derive(Debug, Clone)]
pub struct Priced {
    /// The releases, with integer scales.
    pub releases: Vec<Release>,
    /// An upper bound on delta, or on rho.
    pub price: f64,
    /// What events could grow by: where a search for the same shares may start.
    pub factor: f64,
}

/// Find scales for `users` rows of one person. `start` is the factor of an earlier search with the same shares.
///
/// # Errors
/// If a number is out of range, or no scales below `2^40` are enough.
pub fn priced(template: &[Release], claim: Claim, users: u32, start: Option<f64>) -> Result<Priced> {
    let events = events_of(template, users)?;
    let variance = variance_of(&events);
    if !(variance > 0.0 && users > 0) {
        return Err(Error::invalid("events must hold at least one that is larger than 0"));
    }
    let cost = |events: &[Event]| match claim {
        Claim::Exact { epsilon, .. } => price(epsilon, events, users, None),
        Claim::Zcdp { .. } => Ok(up(variance_up(events) / 2.0)),
    };
    let (allowed, mut factor) = match claim {
        Claim::Exact { epsilon, delta } => {
            if !(epsilon.is_finite() && epsilon >= 0.0 && delta > 0.0 && delta < 1.0) {
                return Err(Error::invalid("epsilon must be at least 0 and delta above 0 and below 1"));
            }
            let found = match start {
                Some(factor) => factor,
                None => largest_factor(epsilon, delta, &events, users)?,
            };
            (delta, found)
        }
        Claim::Zcdp { rho } => (rho, (2.0 * rho / variance).sqrt() * (1.0 - 1e-12)),
    };
    for _ in 0..CORRECTIONS {
        let releases = grown(template, factor)?;
        let events = events_of(&releases, users)?;
        let price = cost(&events)?;
        if price <= allowed {
            return Ok(Priced { releases, price, factor });
        }
        factor *= 1.0 - 1e-5;
    }
    Err(Error::invalid("the price did not settle; this is a defect of the search"))
}

/// The price that is found for events of `users` rows, on a grid that follows from them; `cells` instead of the finest.
fn price(epsilon: f64, events: &[Event], users: u32, cells: Option<f64>) -> Result<f64> {
    let largest_loss = events.iter().try_fold(0.0, |sum, event| match event {
        Event::Gaussian(mu) if *mu > 0.0 => None,
        event => Some(up(sum + event.size())),
    });
    // Pure differential privacy: no loss reaches epsilon.
    if largest_loss.is_some_and(|loss| loss <= epsilon) {
        return Ok(0.0);
    }
    let grid = grid(epsilon, events, users, cells)?;
    let epsilon = epsilon.min(far(variance_of(events)));
    match users {
        1 => delta(epsilon, events, &grid),
        _ => delta_of_user(epsilon, &[events.to_vec()], users, &grid),
    }
}

fn grid(epsilon: f64, events: &[Event], users: u32, cells: Option<f64>) -> Result<Grid> {
    if let Some(cells) = cells {
        return Ok(grid_with(epsilon, events, cells).0);
    }
    let spread = f64::from(users) * (f64::from(users) + 1.0) / 2.0;
    for (at, cells) in CELLS.into_iter().enumerate() {
        let (grid, work) = grid_with(epsilon, events, cells);
        if work * spread <= EASY || (at + 1 == CELLS.len() && work * spread <= MOST) {
            return Ok(grid);
        }
    }
    Err(Error::invalid(format!("events must be fewer to be priced, got {}", events.len())))
}

fn grid_with(epsilon: f64, events: &[Event], cells: f64) -> (Grid, f64) {
    let variance = variance_of(events);
    let folded = events.len().saturating_sub(1).max(1) as f64;
    let mut step = (2.0 / cells * (variance / folded).sqrt()).min(0.98 * LARGEST_STEP);
    let mut etas = events.iter().filter_map(|event| match event {
        Event::Pick(eta) if *eta > 0.0 => Some(*eta),
        _ => None,
    });
    if let Some(eta) = etas.next()
        && etas.all(|other| other == eta)
        && eta > step
    {
        // A little above the quotient, so that so many steps are never less than eta.
        step = eta / (eta / step).ceil() * (1.0 + 1.0 / (1u64 << 49) as f64);
    }
    let reach = REACH * variance.sqrt();
    let below = (reach / step).ceil() as u32 + 2;
    let above = ((epsilon.min(far(variance)) + reach) / step).ceil() as u32 + 2;
    let work: f64 = events[..events.len().saturating_sub(1)]
        .iter()
        .map(|event| match event {
            Event::Pick(eta) => eta / step + 2.0,
            Event::Gaussian(mu) => 4.0 * mu / step + 2.0,
        })
        .sum();
    (Grid { step, below, above }, f64::from(below + above) * work)
}

/// The largest factor (within a millionth) by which all events can grow within (epsilon, delta).
fn largest_factor(epsilon: f64, target: f64, events: &[Event], users: u32) -> Result<f64> {
    let variance = variance_of(events);
    let largest = events.iter().fold(0.0, |largest: f64, event| largest.max(event.size()));
    let excess = |log_factor: f64, cells: Option<f64>| -> Result<f64> {
        let factor = log_factor.exp();
        if factor * largest > LARGEST {
            return Ok(f64::INFINITY);
        }
        let grown: Vec<Event> = events.iter().map(|event| event.times(factor)).collect();
        let price = price(epsilon, &grown, users, cells)?;
        Ok(if price == 0.0 { f64::NEG_INFINITY } else { (price / target).ln() })
    };
    // zCDP is a bound as well, a tenth to a fifth too dear.
    let far = -target.ln();
    let rho = ((far + epsilon).sqrt() - far.sqrt()).powi(2).max(1e-300);
    let start = (1.1 * (2.0 * rho / variance).sqrt()).min(LARGEST / largest).ln();
    // Found roughly first; what coarse cells cost is known well enough to start the finer search there.
    let rough = root(|at| excess(at, Some(ROUGH)), start, 0.05, 1e-3)? + 1.0 / (3.0 * ROUGH * ROUGH);
    Ok(root(|at| excess(at, None), rough, 5e-4, 1e-6)?.exp())
}

/// A place where an increasing function is at most 0 and which is about `within` below its root: secants that aim half
/// of `within` below the root, kept inside what is known of it.
fn root(excess: impl Fn(f64) -> Result<f64>, start: f64, mut stride: f64, within: f64) -> Result<f64> {
    let (mut below, mut above) = (f64::NEG_INFINITY, f64::INFINITY);
    let (mut at, mut found) = (start, excess(start)?);
    let (mut before, mut earlier) = (f64::NAN, f64::NAN);
    for _ in 0..200 {
        let slope = (found - earlier) / (at - before);
        let usable = slope > 0.0 && slope < f64::INFINITY;
        if found <= 0.0 {
            below = below.max(at);
            if usable && found >= -slope * within {
                return Ok(at);
            }
        } else {
            above = above.min(at);
        }
        if above - below <= within {
            return Ok(below);
        }
        (before, earlier) = (at, found);
        at = if usable { at - found / slope - within / 2.0 } else { f64::NAN };
        if !(below < at && at < above) {
            // No use yet: go on from the known side, or halve.
            stride *= 2.0;
            at = if above.is_infinite() {
                below + stride
            } else if below.is_infinite() {
                above - stride
            } else {
                (below + above) / 2.0
            };
        }
        found = excess(at)?;
    }
    Err(Error::invalid("the price did not settle; this is a defect of the search"))
}

/// The template whose events are `factor` times as large, with scales rounded up.
fn grown(template: &[Release], factor: f64) -> Result<Vec<Release>> {
    let scaled = |scale: u64| {
        let scaled = up(scale as f64 / factor).ceil();
        if scaled >= 1.0 && scaled < SCALE_LIMIT as f64 {
            Ok(scaled as u64)
        } else {
            Err(Error::invalid(format!("scale must be an integer from 1 to 2**40 - 1, got {scaled}")))
        }
    };
    let release = |release: &Release| {
        Ok(match release {
            Release::Picks { sensitivity, scale, count } => {
                Release::Picks { sensitivity: *sensitivity, scale: scaled(*scale)?, count: *count }
            }
            Release::Vector(parts) => {
                let part = |(squared, sigma): &(u128, u64)| Ok((*squared, scaled(*sigma)?));
                Release::Vector(parts.iter().map(part).collect::<Result<_>>()?)
            }
        })
    };
    template.iter().map(release).collect()
}

/// Events when `users` rows of one person are replaced, never smaller than they are.
fn events_of(releases: &[Release], users: u32) -> Result<Vec<Event>> {
    let mut events = Vec::new();
    for release in releases {
        match release {
            Release::Picks { sensitivity, scale, count } => {
                let moved = up(2.0 * f64::from(users) * up(*sensitivity as f64));
                let eta = up(moved / down(*scale as f64));
                events.extend(std::iter::repeat_n(Event::Pick(eta), *count as usize));
            }
            Release::Vector(parts) => {
                let squared = |(squared, sigma): &(u128, u64)| {
                    let sigma = down(*sigma as f64);
                    up(up(*squared as f64) / down(sigma * sigma))
                };
                let sum = parts.iter().fold(0.0, |sum, part| up(sum + squared(part)));
                events.push(Event::Gaussian(up(f64::from(users) * up(sum.sqrt()))));
            }
        }
    }
    if events.len() > 20_000 || events.iter().any(|event| !event.size().is_finite()) {
        return Err(Error::invalid("events must be at most 20000, of finite size"));
    }
    Ok(events)
}

/// The next float above: what was rounded to nearest is at most this.
fn up(rounded: f64) -> f64 {
    if rounded == 0.0 { 0.0 } else { rounded.next_up() }
}

/// The next float below.
fn down(rounded: f64) -> f64 {
    rounded.next_down()
}

fn variance_of(events: &[Event]) -> f64 {
    events.iter().map(|event| variance(*event)).sum()
}

/// Twice the zCDP cost, rounded up.
fn variance_up(events: &[Event]) -> f64 {
    events.iter().fold(0.0, |sum, event| up(sum + up(variance(*event))))
}

fn variance(event: Event) -> f64 {
    match event {
        Event::Pick(eta) => eta * eta / 4.0,
        Event::Gaussian(mu) => mu * mu,
    }
}

fn far(variance: f64) -> f64 {
    variance / 2.0 + FAR * variance.sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template() -> Vec<Release> {
        vec![
            Release::Vector(vec![(1 << 32, 300_000), (1 << 30, 200_000)]),
            Release::Picks { sensitivity: 1 << 16, scale: 200_000, count: 3 },
            Release::Vector(vec![(4 << 32, 400_000), (1 << 48, 30_000_000)]),
        ]
    }

    #[test]
    fn the_price_is_within_the_claim_and_all_of_it_is_used() {
        for (epsilon, delta) in [(0.1, 1e-3), (1.0, 0.01), (2.0, 1e-6), (10.0, 1e-5)] {
            let found = priced(&template(), Claim::Exact { epsilon, delta }, 1, None).expect("valid");
            assert!(found.price <= delta && found.price > 0.999 * delta, "{epsilon} {delta} {}", found.price);
            let events = events_of(&found.releases, 1).expect("valid");
            assert_eq!(price(epsilon, &events, 1, None), Ok(found.price));
            // Started where an earlier search ended it is the same, and priced all the same.
            let again =
                priced(&template(), Claim::Exact { epsilon, delta }, 1, Some(found.factor)).expect("valid");
            assert_eq!(again.releases, found.releases);
            let greedy = priced(&template(), Claim::Exact { epsilon, delta }, 1, Some(1.0005 * found.factor));
            assert!(greedy.expect("corrected").price <= delta);
            assert!(
                priced(&template(), Claim::Exact { epsilon, delta }, 1, Some(2.0 * found.factor)).is_err()
            );
        }
    }

    #[test]
    fn rows_of_a_person_and_zcdp() {
        let one = priced(&template(), Claim::Zcdp { rho: 0.05 }, 1, None).expect("valid");
        let three = priced(&template(), Claim::Zcdp { rho: 0.05 }, 3, None).expect("valid");
        for found in [&one, &three] {
            assert!(found.price <= 0.05 && found.price > 0.0499);
        }
        assert!((one.factor / three.factor - 3.0).abs() < 1e-9);
        let exact = Claim::Exact { epsilon: 1.0, delta: 0.01 };
        let few = vec![Release::Vector(vec![(1 << 32, 300_000)])];
        assert!(priced(&few, exact, 2, None).expect("valid").price <= 0.01);
    }

    #[test]
    fn what_has_no_price_is_refused() {
        let exact = |epsilon, delta| Claim::Exact { epsilon, delta };
        for claim in [exact(-1.0, 0.1), exact(f64::NAN, 0.1), exact(1.0, 0.0), exact(1.0, 1.0)] {
            assert!(priced(&template(), claim, 1, None).is_err());
        }
        assert!(priced(&[], exact(1.0, 0.1), 1, None).is_err());
        assert!(priced(&template(), exact(1.0, 0.1), 0, None).is_err());
        let huge = vec![Release::Vector(vec![(1 << 100, 1 << 39)])];
        assert!(priced(&huge, exact(1.0, 1e-9), 1, None).is_err());
    }
}
