//! The noise of a release, in three types: [`SecureRng`] protects people; [`SeededNoise`] is the same samplers on bits
//! that anyone can repeat, for simulation; [`Recording`] keeps what noise is asked for and draws none, for the audit.
//!
//! A claim can be made with the first alone: [`Noise::PROTECTS`] is a constant of the type, and no other crate can
//! add a type.
//!
//! [`SecureRng`]: crate::noise::entropy::SecureRng
//! [`SeededNoise`]: crate::noise::entropy::predictable::SeededNoise

use std::collections::VecDeque;

use crate::noise::entropy::NoiseSource;
use crate::noise::gaussian_vector::release_vector;
use crate::private::peel::{ColumnPick, ColumnPicker, PeelScratch, Peeler};
use crate::private::totals::{Totals, kept_of, release_totals};
use crate::runtime::error::{Error, Result};
use crate::runtime::memory::{copied, with_room, zeros};

mod sealed {
    pub trait Sealed {}
}

/// One choice of columns by scores. Public.
#[derive(Clone, Copy)]
pub enum Choice<'a> {
    /// By [`ColumnPicker`]: columns that are not excluded, with or without a sign.
    Columns {
        /// How many.
        count: usize,
        /// Scale of the exponential mechanism.
        scale: u64,
        /// Whether a sign is picked with a column.
        signed: bool,
        /// Columns that can't be picked.
        excluded: &'a [usize],
    },
    /// By a [`Peeler`]: the largest, whatever their sign.
    Largest {
        /// How many.
        count: usize,
        /// What picks.
        peeler: &'a Peeler,
    },
}

/// What is added to the integers of a vector. Public.
#[derive(Clone, Copy)]
pub enum Added<'a> {
    /// Rounded Gaussians, one standard deviation for each integer.
    Gaussian(&'a [u64]),
    /// A [`Peeler`]'s noise of values.
    Values(&'a Peeler),
}

/// Draws picks and noise. Sealed.
pub trait Noise: sealed::Sealed {
    /// Whether what is drawn protects anybody.
    const PROTECTS: bool;

    /// Called before the noise of each step: sums may have run foreign code, a fork too.
    ///
    /// # Errors
    /// If the operating system has no key to give.
    fn renew(&mut self) -> Result<()>;

    /// Pick columns, in the order picked; their sign is 0 where none is picked.
    ///
    /// # Errors
    /// If scores or the choice break their rules. Then nothing is released.
    fn pick(&mut self, scores: &[i64], choice: Choice<'_>) -> Result<Vec<ColumnPick>>;

    /// Add noise to all values.
    ///
    /// # Errors
    /// If values or noise break their rules. Then nothing is released.
    fn add(&mut self, values: &mut [i64], added: Added<'_>) -> Result<()>;

    /// Add values to totals, and noise to these: see [`release_totals`].
    ///
    /// # Errors
    /// Those of [`release_totals`]. Then nothing is released.
    fn add_to_totals(&mut self, values: &[i64], totals: Totals<'_>) -> Result<(Vec<i64>, Vec<u8>)>;
}

impl<B: NoiseSource> sealed::Sealed for B {}

impl<B: NoiseSource> Noise for B {
    const PROTECTS: bool = B::SECURE;

    fn renew(&mut self) -> Result<()> {
        NoiseSource::renew(self)
    }

    fn pick(&mut self, scores: &[i64], choice: Choice<'_>) -> Result<Vec<ColumnPick>> {
        match choice {
            Choice::Columns { count, scale, signed, excluded } => {
                let mut picks = ColumnPicker::new(scale, signed)?.pick(scores, excluded, count, self)?;
                if !signed {
                    picks.iter_mut().for_each(|pick| pick.sign = 0);
                }
                Ok(picks)
            }
            Choice::Largest { count, peeler } => {
                let mut columns = Vec::new();
                peeler.pick(scores, count, self, &mut PeelScratch::default(), &mut columns)?;
                Ok(columns.into_iter().map(|column| ColumnPick { column, sign: 0 }).collect())
            }
        }
    }

    fn add(&mut self, values: &mut [i64], added: Added<'_>) -> Result<()> {
        match added {
            Added::Gaussian(sigmas) => release_vector(values, sigmas, self),
            Added::Values(peeler) => peeler.add(values, self),
        }
    }

    fn add_to_totals(&mut self, values: &[i64], totals: Totals<'_>) -> Result<(Vec<i64>, Vec<u8>)> {
        release_totals(values, totals, self)
    }
}

/// What a release asked of its noise. Private: it holds sums without noise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Call {
    /// A choice of columns.
    Picks {
        /// What columns were scored.
        scores: Vec<i64>,
        /// How many were to be picked.
        count: usize,
        /// Scale of the mechanism.
        scale: u64,
        /// Whether with a sign.
        signed: bool,
        /// Columns that could not be picked.
        excluded: Vec<usize>,
    },
    /// A vector.
    Vector {
        /// Integers without noise.
        values: Vec<i64>,
        /// Standard deviation, or scale, of each one's noise.
        sigmas: Vec<u64>,
    },
    /// A part that was added to a total.
    Total {
        /// Which part it is.
        name: u64,
        /// Integers that were added, without noise.
        values: Vec<i64>,
        /// What they were multiplied with.
        weight: u64,
        /// Releases and weight of the total before.
        before: (u64, u64),
        /// Standard deviation of each number's noise on the total, in steps of `2^shift`.
        sigmas: Vec<u64>,
        /// See `sigmas`.
        shift: u32,
        /// Whether the total is kept.
        kept: bool,
    },
}

/// Keeps what noise is asked for, and draws none. Picks are the given ones, then the first candidates; a vector shows
/// as zeros, so that no sum leaves by it.
#[derive(Debug, Default)]
pub struct Recording {
    given: VecDeque<ColumnPick>,
    calls: Vec<Call>,
}

impl Recording {
    /// The noise whose first picks are `given`.
    pub fn new(given: impl IntoIterator<Item = ColumnPick>) -> Self {
        Recording { given: given.into_iter().collect(), calls: Vec::new() }
    }

    /// What was asked for so far, in order.
    pub fn calls(&self) -> &[Call] {
        &self.calls
    }
}

impl sealed::Sealed for Recording {}

impl Noise for Recording {
    const PROTECTS: bool = false;

    fn renew(&mut self) -> Result<()> {
        Ok(())
    }

    fn pick(&mut self, scores: &[i64], choice: Choice<'_>) -> Result<Vec<ColumnPick>> {
        let (count, scale, signed, excluded) = match choice {
            Choice::Columns { count, scale, signed, excluded } => (count, scale, signed, excluded),
            Choice::Largest { count, peeler } => (count, peeler.pick_scale(), false, &[][..]),
        };
        let scores_seen = copied(scores)?;
        let call = Call::Picks { scores: scores_seen, count, scale, signed, excluded: copied(excluded)? };
        self.calls.push(call);
        let mut picks: Vec<ColumnPick> = with_room(count)?;
        for _ in 0..count {
            let free = |column: &usize| {
                !excluded.contains(column) && picks.iter().all(|pick| pick.column != *column)
            };
            let pick = match self.given.pop_front() {
                Some(given) if free(&given.column) && given.column < scores.len() => given,
                Some(_) => return Err(Error::invalid("picks that are given must be candidates")),
                None => {
                    let column = (0..scores.len())
                        .find(free)
                        .ok_or_else(|| Error::invalid("no column is left to pick"))?;
                    ColumnPick { column, sign: i64::from(signed) }
                }
            };
            picks.push(pick);
        }
        Ok(picks)
    }

    fn add(&mut self, values: &mut [i64], added: Added<'_>) -> Result<()> {
        let sigmas = match added {
            Added::Gaussian(sigmas) if sigmas.len() != values.len() => {
                return Err(Error::invalid("sigmas must have one element for each of values"));
            }
            Added::Gaussian(sigmas) => copied(sigmas)?,
            Added::Values(peeler) => vec![peeler.value_scale(); values.len()],
        };
        self.calls.push(Call::Vector { values: copied(values)?, sigmas });
        values.fill(0);
        Ok(())
    }

    fn add_to_totals(&mut self, values: &[i64], totals: Totals<'_>) -> Result<(Vec<i64>, Vec<u8>)> {
        let after = kept_of(values, totals)?;
        let mut left = values;
        for part in totals.parts {
            let (own, rest) = left.split_at(part.sigmas.len());
            self.calls.push(Call::Total {
                name: part.name,
                values: copied(own)?,
                weight: part.weight,
                before: part.before,
                sigmas: copied(part.sigmas)?,
                shift: part.shift,
                kept: part.kept,
            });
            left = rest;
        }
        Ok((zeros(values.len())?, after))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::entropy::SecureRng;
    use crate::noise::entropy::predictable::{RepeatedNoise, SeededNoise};

    /// What a claim may be made of.
    const fn protects<N: Noise>() -> bool {
        N::PROTECTS
    }

    #[test]
    fn only_bits_of_the_operating_system_protect() {
        assert!(protects::<SecureRng>());
        assert!(
            ![protects::<SeededNoise>(), protects::<RepeatedNoise>(), protects::<Recording>()]
                .contains(&true)
        );
    }
}
