//! The price of a sequence of releases.

use fliphat_core::public::price::scales::{Claim, Release, priced};
use fliphat_core::public::price::{Event, Grid, delta, delta_of_user};
use fliphat_core::runtime::error::{Error, Result};
use pyo3::prelude::*;

use crate::runtime::Raised;

fn event((kind, size): (String, f64)) -> Result<Event> {
    match kind.as_str() {
        "pick" => Ok(Event::Pick(size)),
        "gaussian" => Ok(Event::Gaussian(size)),
        _ => Err(Error::invalid("an event must be 'pick' or 'gaussian'")),
    }
}

/// An upper bound on delta at `epsilon` of one fit of `menu`, or of `users` rows that may enter several.
#[pyfunction]
pub(crate) fn price(
    py: Python<'_>,
    epsilon: f64,
    menu: Vec<Vec<(String, f64)>>,
    users: u32,
    step: f64,
    below: u32,
    above: u32,
) -> PyResult<f64> {
    let grid = Grid { step, below, above };
    let run = || -> Result<f64> {
        let menu = menu
            .into_iter()
            .map(|events| events.into_iter().map(event).collect::<Result<Vec<_>>>())
            .collect::<Result<Vec<_>>>()?;
        match (menu.as_slice(), users) {
            ([events], 1) => delta(epsilon, events, &grid),
            _ => delta_of_user(epsilon, &menu, users, &grid),
        }
    };
    Ok(py.detach(run).map_err(Raised::from)?)
}

/// A pick as `(sensitivity, scale, count)`, or a vector as a list of `(squared sensitivity, sigma)`.
#[derive(FromPyObject)]
pub(crate) enum ReleaseArgument {
    /// See [`Release::Picks`].
    Picks(u64, u64, u32),
    /// See [`Release::Vector`].
    #[pyo3(transparent)]
    Vector(Vec<(u128, u64)>),
}

/// Scales of each release, in order; the price; the factor that was found.
type PricedScales = (Vec<Vec<u64>>, f64, f64);

/// The smallest integer scales of a template that (epsilon, delta) allows or, with `rho`, that zCDP cost.
#[pyfunction]
#[pyo3(signature = (template, epsilon, delta, users, rho=None, start=None))]
pub(crate) fn price_scales(
    py: Python<'_>,
    template: Vec<ReleaseArgument>,
    epsilon: f64,
    delta: f64,
    users: u32,
    rho: Option<f64>,
    start: Option<f64>,
) -> PyResult<PricedScales> {
    let release = |release| match release {
        ReleaseArgument::Picks(sensitivity, scale, count) => Release::Picks { sensitivity, scale, count },
        ReleaseArgument::Vector(parts) => Release::Vector(parts),
    };
    let template: Vec<Release> = template.into_iter().map(release).collect();
    let claim = rho.map_or(Claim::Exact { epsilon, delta }, |rho| Claim::Zcdp { rho });
    let found = py.detach(|| priced(&template, claim, users, start)).map_err(Raised::from)?;
    let scales = |release: &Release| match release {
        Release::Picks { scale, .. } => vec![*scale],
        Release::Vector(parts) => parts.iter().map(|(_, sigma)| *sigma).collect(),
    };
    Ok((found.releases.iter().map(scales).collect(), found.price, found.factor))
}
