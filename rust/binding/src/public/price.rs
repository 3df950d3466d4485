//! The price of a sequence of releases.

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
