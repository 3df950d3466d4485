//! The release of an episode: the only sequence of private steps there is.
//!
//! | step | private integers | noise | priced as |
//! |---|---|---|---|
//! | 1 | [`Sums::numbers`], where they are asked for | a Gaussian vector | Gaussian |
//! | 2 | [`Sums::candidates`], [`Sums::further`] after each pick where picks follow one another | picks | picks |
//! | 3 | [`Sums::vector`] of what was picked | a Gaussian vector, on it or on totals that it is added to | Gaussian |
//!
//! Pursuit takes all three steps; a dense fit the last, which has no picks; an iteration of N-IHT picks and then
//! their values; a pilot picks alone. Events are priced in this order: a Gaussian before picks costs more than after.
//!
//! Who holds the rows ([`Sums`]) and where bits come from ([`Noise`]) are arguments: production, simulation, planning
//! and the audit run these lines. What noise there must be is the caller's to price.

use std::borrow::Cow;

use crate::private::draws::{Added, Choice, Noise};
use crate::private::peel::{ColumnPick, Peeler};
use crate::private::totals::Totals;
use crate::runtime::error::Error;
use crate::runtime::memory::with_room;

/// Which picks have a sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signs {
    /// None.
    None,
    /// All.
    All,
    /// All but the last: where picks follow one another a sign says what the earlier ones explain.
    AllButLast,
}

/// How columns are picked. Public.
#[derive(Clone, Copy)]
pub enum Picking<'a> {
    /// Not at all.
    None,
    /// `count` columns that are not excluded, by the exponential mechanism.
    Columns {
        /// How many, at least 1.
        count: usize,
        /// Scale of the mechanism.
        scale: u64,
        /// Which of them have a sign.
        signs: Signs,
        /// Whether each is picked by sums of its own, which know those before it.
        following: bool,
        /// Columns that can't be picked.
        excluded: &'a [usize],
    },
    /// The `count` largest, whatever their sign, with a [`Peeler`].
    Largest {
        /// How many.
        count: usize,
        /// What picks.
        peeler: &'a Peeler,
    },
}

/// What an episode asks for, fixed before its rows are read. Public.
#[derive(Clone, Copy)]
pub struct Question<'a> {
    /// Noise of the numbers that come first; nothing if they are not asked for.
    pub numbers: Option<Added<'a>>,
    /// How columns are picked.
    pub picking: Picking<'a>,
    /// What becomes of the last vector.
    pub vector: Last<'a>,
}

/// What becomes of the last vector. Public but for the secret that totals hold.
#[derive(Clone, Copy)]
pub enum Last<'a> {
    /// None is asked for.
    None,
    /// It is released with noise.
    Fresh(Added<'a>),
    /// It is added to totals, which are released with noise.
    Totals(Totals<'a>),
}

/// An episode's private integers. Each is asked for at most once, in the order of the methods; `further` once after
/// each pick but the last.
pub trait Sums {
    /// What can go wrong.
    type Error: From<Error>;

    /// Numbers that are released before anything else.
    ///
    /// # Errors
    /// Whatever can go wrong; nothing is released then.
    fn numbers(&mut self) -> std::result::Result<Vec<i64>, Self::Error> {
        Err(Error::invalid("these sums have no numbers that come first").into())
    }

    /// Scores that columns are picked by, one a column.
    ///
    /// # Errors
    /// Whatever can go wrong; no pick is released then.
    fn candidates(&mut self) -> std::result::Result<Cow<'_, [i64]>, Self::Error> {
        Err(Error::invalid("these sums have nothing to pick").into())
    }

    /// Scores that the next column is picked by, after these.
    ///
    /// # Errors
    /// Whatever can go wrong; nothing more is released then.
    fn further(&mut self, _picked: &[ColumnPick]) -> std::result::Result<Cow<'_, [i64]>, Self::Error> {
        Err(Error::invalid("picks of these sums do not follow one another").into())
    }

    /// The integers that are released about what is public then.
    ///
    /// # Errors
    /// Whatever can go wrong; nothing more is released then.
    fn vector(&mut self, _picked: &[ColumnPick]) -> std::result::Result<Vec<i64>, Self::Error> {
        Err(Error::invalid("these sums have no vector").into())
    }
}

/// What may be seen of an episode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Noisy numbers; empty if none were asked for.
    pub numbers: Vec<i64>,
    /// Columns in the order picked.
    pub picks: Vec<ColumnPick>,
    /// The noisy vector; empty if none was asked for.
    pub vector: Vec<i64>,
    /// Totals for the next release, secret; empty where there are none.
    pub secret: Vec<u8>,
}

/// Release what is asked. Every call is a release: twice on the same rows costs twice.
///
/// # Errors
/// If sums fail, lengths do not fit, a parameter breaks its rule, or there is no memory or entropy. What was drawn
/// until then is dropped: nothing is released.
pub fn release<S: Sums>(
    question: &Question<'_>,
    sums: &mut S,
    noise: &mut impl Noise,
) -> std::result::Result<Answer, S::Error> {
    let mut numbers = Vec::new();
    if let Some(added) = question.numbers {
        numbers = sums.numbers()?;
        noise.renew()?;
        noise.add(&mut numbers, added)?;
    }
    let picks = pick(question.picking, sums, noise)?;
    let (mut vector, mut secret) = (Vec::new(), Vec::new());
    match question.vector {
        Last::None => {}
        Last::Fresh(added) => {
            vector = sums.vector(&picks)?;
            noise.renew()?;
            noise.add(&mut vector, added)?;
        }
        Last::Totals(totals) => {
            let added = sums.vector(&picks)?;
            noise.renew()?;
            (vector, secret) = noise.add_to_totals(&added, totals)?;
        }
    }
    Ok(Answer { numbers, picks, vector, secret })
}

fn pick<S: Sums>(
    picking: Picking<'_>,
    sums: &mut S,
    noise: &mut impl Noise,
) -> std::result::Result<Vec<ColumnPick>, S::Error> {
    let (count, scale, signs, following, excluded) = match picking {
        Picking::None => return Ok(Vec::new()),
        Picking::Largest { count, peeler } => {
            let scores = sums.candidates()?;
            noise.renew()?;
            return Ok(noise.pick(&scores, Choice::Largest { count, peeler })?);
        }
        Picking::Columns { count, scale, signs, following, excluded } => {
            (count, scale, signs, following, excluded)
        }
    };
    if !following && signs == Signs::AllButLast {
        return Err(Error::invalid("picks must follow one another for the last alone to have no sign").into());
    }
    if !following {
        let scores = sums.candidates()?;
        let signed = signs == Signs::All;
        noise.renew()?;
        return Ok(noise.pick(&scores, Choice::Columns { count, scale, signed, excluded })?);
    }
    let mut outside: Vec<usize> = with_room(excluded.len() + count)?;
    outside.extend_from_slice(excluded);
    let mut picks: Vec<ColumnPick> = with_room(count)?;
    for made in 0..count {
        let scores = if made == 0 { sums.candidates()? } else { sums.further(&picks)? };
        let signed = signs == Signs::All || (signs == Signs::AllButLast && made + 1 < count);
        noise.renew()?;
        let found = noise.pick(&scores, Choice::Columns { count: 1, scale, signed, excluded: &outside })?;
        outside.extend(found.iter().map(|pick| pick.column));
        picks.extend(found);
    }
    Ok(picks)
}
