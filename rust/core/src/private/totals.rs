//! Sums of everybody so far, released again and again: the secret between two releases, and the noise on it.
//!
//! A part of a release is a vector of integers. Its total is `S_t = S_(t-1) + W_t x_t` with public weights that
//! increase, so nothing is ever rounded, and a row that entered with the weight `W_s` moves every later total by
//! `W_s` times its own integers. What is released is `round((S_t + N(0, s_t^2)) / 2^m)`, with `s_t = sigma 2^m`:
//! post-processing of the Gaussian mechanism on `S_t`. Whoever asks chooses `s_t` so that the squared shifts of a row's
//! whole life add up to at most one release's: `1/s_t^2 <= (1/W_t^2 - 1/W_(t+1)^2) / sigma_t^2`.
//!
//! What is kept is bytes that nothing outside this file reads. They say of each part how often it was released and
//! with which weight: rows can't be added twice, nor to a total of another release.

use crate::noise::entropy::NoiseSource;
use crate::noise::exact::rounded::RoundedGaussian;
use crate::runtime::error::{Error, Result};
use crate::runtime::memory::{with_room, zeros};

/// Weights are below this: with 2^31 rows of integers below 2^31, totals stay below 2^110.
pub const MOST_WEIGHT: u64 = 1 << 48;

/// Noise is counted in steps of at most 2^this.
pub const MOST_SHIFT: u32 = 60;

const MAGIC: &[u8; 8] = b"totals 1";
const HEAD: usize = 32;

/// One part of a release. Everything but `added` is public.
#[derive(Debug, Clone, Copy)]
pub struct TotalPart<'a> {
    /// Which part it is, for ever.
    pub name: u64,
    /// This episode's integers. Private.
    pub added: &'a [i64],
    /// What they are multiplied with.
    pub weight: u64,
    /// How often, and with which weight last, the total was released that they are added to; (0, 0) starts an empty one.
    pub before: (u64, u64),
    /// Standard deviations in steps of `2^shift`, one for each integer.
    pub sigmas: &'a [u64],
    /// See `sigmas`.
    pub shift: u32,
    /// Whether the total is kept for the next release.
    pub kept: bool,
}

/// Releases all parts, one after the other, and returns them in steps of `2^shift`, with what is secret until next time.
///
/// A part may be longer than it was: what is new was zero. Parts that are not asked for are dropped.
///
/// # Errors
/// If `secret` does not hold a total that a part is to be added to, released as often and with the weight it says, if
/// the part is shorter than that total, a weight does not increase or is not below 2^48, or a number is out of range.
/// Then nothing is released.
pub fn release_totals(
    secret: Option<&[u8]>,
    parts: &[TotalPart<'_>],
    noise: &mut impl NoiseSource,
) -> Result<(Vec<i64>, Vec<u8>)> {
    let held = secret.map_or(Ok(Vec::new()), read)?;
    let mut totals = Vec::new();
    let (mut count, mut bytes) = (0, MAGIC.len());
    for part in parts {
        let total = added_up(&held, part)?;
        count += total.len();
        bytes += if part.kept { HEAD + 16 * total.len() } else { 0 };
        totals.push(total);
    }
    let (mut released, mut kept) = (with_room(count)?, with_room(bytes)?);
    kept.extend_from_slice(MAGIC);
    crate::noise::observe::drawn("vector", parts.iter().flat_map(|part| part.sigmas.iter().copied()));
    for (part, total) in parts.iter().zip(&totals) {
        for (sum, sigma) in total.iter().zip(part.sigmas) {
            let (whole, fraction) = (sum >> part.shift, sum & ((1 << part.shift) - 1));
            let fraction = (fraction as u128) << (64 - part.shift);
            // A step of 2^0 has no fraction, and 2^64 does not come up.
            let drawn = RoundedGaussian::new("sigmas", *sigma)?.sample_around(fraction as u64, noise);
            let bound = i128::from(i64::MAX);
            released.push((whole + i128::from(drawn)).clamp(-bound, bound) as i64);
        }
        if part.kept {
            for number in [part.name, part.before.0 + 1, part.weight, total.len() as u64] {
                kept.extend_from_slice(&number.to_le_bytes());
            }
            total.iter().for_each(|sum| kept.extend_from_slice(&sum.to_le_bytes()));
        }
    }
    Ok((released, kept))
}

/// A part's total with what is added now; everything that could be wrong with it is found here.
fn added_up(held: &[Held<'_>], part: &TotalPart<'_>) -> Result<Vec<i128>> {
    if part.sigmas.len() != part.added.len() {
        return Err(Error::invalid("sigmas must have one number for each integer"));
    }
    part.sigmas.iter().try_for_each(|sigma| RoundedGaussian::new("sigmas", *sigma).map(drop))?;
    if !(part.before.1 + 1..MOST_WEIGHT).contains(&part.weight) {
        return Err(Error::invalid("weight must be above the last one and below 2**48"));
    }
    if part.shift > MOST_SHIFT {
        return Err(Error::invalid(format!("shift must be at most {MOST_SHIFT}")));
    }
    let mut total: Vec<i128> = zeros(part.added.len())?;
    if part.before.0 > 0 {
        let found = held.iter().find(|one| one.name == part.name);
        let found = found.filter(|one| (one.releases, one.weight) == part.before);
        let found = found.ok_or_else(|| Error::invalid("secret must hold the total of the last release"))?;
        let sums = found.sums.as_chunks::<16>().0;
        if sums.len() > total.len() {
            return Err(Error::invalid("a part must not be shorter than its total"));
        }
        total.iter_mut().zip(sums).for_each(|(total, bytes)| *total = i128::from_le_bytes(*bytes));
    }
    for (total, added) in total.iter_mut().zip(part.added) {
        let more = i128::from(part.weight) * i128::from(*added);
        *total = total.checked_add(more).ok_or_else(|| Error::invalid("totals must be below 2**127"))?;
    }
    Ok(total)
}

/// One part of what was kept.
struct Held<'a> {
    name: u64,
    releases: u64,
    weight: u64,
    sums: &'a [u8],
}

fn read(bytes: &[u8]) -> Result<Vec<Held<'_>>> {
    let damaged = || Error::invalid("secret must be what a release returned");
    let mut left = bytes.strip_prefix(MAGIC).ok_or_else(damaged)?;
    let mut held = Vec::new();
    while !left.is_empty() {
        let (head, rest) = left.split_at_checked(HEAD).ok_or_else(damaged)?;
        let mut numbers = head.as_chunks::<8>().0.iter().map(|number| u64::from_le_bytes(*number));
        let mut next = || numbers.next().unwrap_or(0);
        let (name, releases, weight) = (next(), next(), next());
        let size =
            usize::try_from(next()).ok().and_then(|count| count.checked_mul(16)).ok_or_else(damaged)?;
        let (sums, rest) = rest.split_at_checked(size).ok_or_else(damaged)?;
        held.push(Held { name, releases, weight, sums });
        left = rest;
    }
    Ok(held)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::entropy::predictable::SeededNoise;

    fn part<'a>(added: &'a [i64], weight: u64, before: (u64, u64), sigmas: &'a [u64]) -> TotalPart<'a> {
        TotalPart { name: 1, added, weight, before, sigmas, shift: 0, kept: true }
    }

    fn sums(secret: &[u8]) -> Vec<i128> {
        let held = read(secret).expect("valid");
        held[0].sums.as_chunks::<16>().0.iter().map(|bytes| i128::from_le_bytes(*bytes)).collect()
    }

    #[test]
    fn totals_are_weighted_sums_and_may_get_longer() {
        let noise = &mut SeededNoise::new(1, 0);
        let (_, first) = release_totals(None, &[part(&[5, -7], 3, (0, 0), &[1, 1])], noise).expect("valid");
        let next = part(&[1, 1, i64::MAX], MOST_WEIGHT - 1, (1, 3), &[1 << 40; 3]);
        let (_, second) = release_totals(Some(&first), &[next], noise).expect("valid");
        let weight = i128::from(MOST_WEIGHT - 1);
        assert_eq!(sums(&second), [15 + weight, -21 + weight, weight * i128::from(i64::MAX)]);
    }

    #[test]
    fn noise_is_on_the_total_and_not_on_what_was_added() {
        let noise = &mut SeededNoise::new(2, 0);
        let added = vec![1 << 40; 4000];
        let sigmas = vec![1 << 10; 4000];
        let asked = TotalPart { shift: 7, ..part(&added, 5, (0, 0), &sigmas) };
        let (released, _) = release_totals(None, &[asked], noise).expect("valid");
        let errors = released.iter().map(|one| (one - (5 << 33)) as f64 / 1024.0);
        let square = errors.map(|error| error * error).sum::<f64>() / 4000.0;
        assert!((0.9..1.1).contains(&square), "{square}");
    }

    #[test]
    fn nothing_is_added_to_another_total() {
        let noise = &mut SeededNoise::new(3, 0);
        let (_, first) = release_totals(None, &[part(&[5], 3, (0, 0), &[1])], noise).expect("valid");
        let (_, second) = release_totals(Some(&first), &[part(&[5], 4, (1, 3), &[1])], noise).expect("valid");
        let drawn = noise.words_drawn();
        for (secret, asked) in [
            (None, part(&[5], 4, (1, 3), &[1])),          // nothing was kept
            (Some(&second), part(&[5], 4, (1, 3), &[1])), // the rows are in it already
            (Some(&first), part(&[5], 5, (2, 4), &[1])),  // an old total with newer rows
            (Some(&first), part(&[5], 3, (1, 3), &[1])),  // a weight that does not increase
            (Some(&first), part(&[5], 1 << 48, (1, 3), &[1])),
            (Some(&first), part(&[], 4, (1, 3), &[])), // numbers that were released are left out
            (Some(&first), TotalPart { name: 2, ..part(&[5], 4, (1, 3), &[1]) }),
        ] {
            assert!(release_totals(secret.map(Vec::as_slice), &[asked], noise).is_err());
        }
        for cut in 1..first.len() {
            assert!(read(&first[..cut]).is_err() || cut == MAGIC.len());
        }
        assert_eq!(noise.words_drawn(), drawn);
    }
}
