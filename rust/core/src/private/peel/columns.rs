//! Picks outside a public set of columns, by the exponential mechanism, with or without their sign.
//!
//! Without signs a candidate is a column that is not excluded, with score |g_j|. With signs it is a column and a
//! sign, with score +g_j or -g_j; when one of the two is picked, the other is no candidate any more. If every g_j
//! moves by at most L between neighbours, so does every score, and a pick is (2L/scale)-bounded-range in either
//! case.

use super::MAGNITUDE_LIMIT;
use super::exponential::{ExponentialMechanism, ExponentialScratch};
use crate::noise::entropy::NoiseSource;
use crate::noise::observe::drawn;
use crate::runtime::error::{Error, Result};
use crate::runtime::memory::{with_room, zeros};

/// Scores of signed picks are below this in magnitude: they are shifted to be positive.
pub const SIGNED_LIMIT: u64 = MAGNITUDE_LIMIT / 2;

/// A column that was picked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ColumnPick {
    /// The column.
    pub column: usize,
    /// 1 or -1; 1 where picks have no sign.
    pub sign: i64,
}

/// Picks columns with probability exactly proportional to exp(score/scale) among the candidates that remain.
pub struct ColumnPicker {
    mechanism: ExponentialMechanism,
    scale: u64,
    signed: bool,
}

impl ColumnPicker {
    /// # Errors
    /// If `scale` is not in 1..2^40.
    pub fn new(scale: u64, signed: bool) -> Result<Self> {
        Ok(ColumnPicker { mechanism: ExponentialMechanism::new("scale", scale)?, scale, signed })
    }

    /// Picks `count` columns of `scores` that are not in `excluded`, in the order picked.
    ///
    /// # Errors
    /// If `excluded` has a column out of range, fewer than `count` columns are left, there are 2^31 or more, or a
    /// score is too large (2^62, or 2^61 with signs). Then nothing is released.
    pub fn pick(
        &self,
        scores: &[i64],
        excluded: &[usize],
        count: usize,
        noise: &mut impl NoiseSource,
    ) -> Result<Vec<ColumnPick>> {
        if scores.len() > i32::MAX as usize {
            return Err(Error::invalid("scores must have fewer than 2**31 elements"));
        }
        let limit = if self.signed { SIGNED_LIMIT } else { MAGNITUDE_LIMIT };
        let largest = scores.iter().map(|score| score.unsigned_abs()).max().unwrap_or(0);
        if largest >= limit {
            let power = limit.ilog2();
            return Err(Error::invalid(format!(
                "scores must lie strictly between -2**{power} and 2**{power}"
            )));
        }
        let columns = remaining(scores.len(), excluded)?;
        if count > columns.len() {
            return Err(Error::invalid(format!(
                "picks must be an integer from 0 to the number of columns that are not excluded ({}), got {count}",
                columns.len()
            )));
        }
        let mut picked = with_room(count)?;
        if count == 0 {
            return Ok(picked);
        }
        let mut candidates = with_room(columns.len() * if self.signed { 2 } else { 1 })?;
        if self.signed {
            // Adding the same number to all scores changes no probability; the mechanism takes magnitudes.
            let shift = largest as i64;
            candidates.extend(columns.iter().flat_map(|j| [shift + scores[*j], shift - scores[*j]]));
        } else {
            candidates.extend(columns.iter().map(|j| scores[*j]));
        }
        let top = candidates.iter().map(|score| score.unsigned_abs()).max().unwrap_or(0);
        // With signs a draw may be the other sign of a column that is already picked. It is dropped: what is
        // drawn next is in proportion among those that remain, as if it had never been there.
        let draws = candidates.len().min(if self.signed { 2 * count } else { count });
        let mut taken: Vec<u8> = zeros(columns.len())?;
        let mut keep = |candidate: usize| {
            let place = if self.signed { candidate / 2 } else { candidate };
            if taken[place] == 0 {
                taken[place] = 1;
                let sign = if self.signed && candidate % 2 == 1 { -1 } else { 1 };
                picked.push(ColumnPick { column: columns[place], sign });
            }
            picked.len() < count
        };
        drawn("pick", std::iter::repeat_n(self.scale, count));
        self.mechanism.pick(&candidates, top, draws, noise, &mut ExponentialScratch::default(), &mut keep)?;
        Ok(picked)
    }
}

/// Columns below `dimension` that are not excluded, ascending.
fn remaining(dimension: usize, excluded: &[usize]) -> Result<Vec<usize>> {
    let mut is_excluded: Vec<u8> = zeros(dimension)?;
    for column in excluded {
        match is_excluded.get_mut(*column) {
            Some(flag) => *flag = 1,
            None => return Err(Error::invalid("excluded must be columns of scores")),
        }
    }
    let mut columns = with_room(dimension)?;
    columns.extend((0..dimension).filter(|column| is_excluded[*column] == 0));
    Ok(columns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::entropy::predictable::SeededNoise;

    #[test]
    fn every_column_that_is_not_excluded_is_picked_once() {
        for signed in [false, true] {
            let picker = ColumnPicker::new(3, signed).expect("valid");
            for scores in [vec![0; 9], vec![5, -900, 7, 7, -7, 0, 1000, 2, 3]] {
                let noise = &mut SeededNoise::new(1, 0);
                let picked = picker.pick(&scores, &[2, 6, 2], 7, noise).expect("valid");
                let mut columns: Vec<usize> = picked.iter().map(|pick| pick.column).collect();
                columns.sort_unstable();
                assert_eq!(columns, [0, 1, 3, 4, 5, 7, 8]);
            }
        }
    }

    #[test]
    fn signs_follow_scores_that_stand_out() {
        let picker = ColumnPicker::new(1, true).expect("valid");
        let noise = &mut SeededNoise::new(1, 0);
        let limit = SIGNED_LIMIT as i64 - 1;
        for _ in 0..100 {
            let picked = picker.pick(&[limit, -limit, 0], &[], 2, noise).expect("valid");
            assert!(picked.iter().all(|pick| pick.sign == if pick.column == 0 { 1 } else { -1 }));
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let pick = |signed, scores: &[i64], excluded: &[usize], count| {
            let noise = &mut SeededNoise::new(1, 0);
            ColumnPicker::new(2, signed).and_then(|picker| picker.pick(scores, excluded, count, noise))
        };
        assert!(pick(false, &[1, 2], &[2], 1).is_err());
        assert!(pick(false, &[1, 2], &[0], 2).is_err());
        assert!(pick(true, &[1, 2], &[0, 1], 1).is_err());
        assert_eq!(pick(true, &[], &[], 0), Ok(vec![]));
        assert!(pick(true, &[1 << 61], &[], 1).is_err());
        assert!(pick(false, &[1 << 61], &[], 1).is_ok());
        assert!(pick(false, &[i64::MIN], &[], 1).is_err());
        for scale in [0, 1 << 40] {
            assert!(ColumnPicker::new(scale, true).is_err());
        }
    }
}
