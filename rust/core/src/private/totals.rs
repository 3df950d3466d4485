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

/// One part of a release. Public.
#[derive(Debug, Clone, Copy)]
pub struct TotalPart<'a> {
    /// Which part it is, for ever.
    pub name: u64,
    /// What this episode's integers are multiplied with.
    pub weight: u64,
    /// How often, and with which weight last, the total was released that they are added to; (0, 0) starts an empty one.
    pub before: (u64, u64),
    /// Standard deviations in steps of `2^shift`, one for each integer of the part.
    pub sigmas: &'a [u64],
    /// See `sigmas`.
    pub shift: u32,
    /// Whether the total is kept for the next release.
    pub kept: bool,
}

/// Totals that an episode's integers are added to. Public but for `secret`.
#[derive(Debug, Clone, Copy)]
pub struct Totals<'a> {
    /// What the last release returned.
    pub secret: Option<&'a [u8]>,
    /// Parts, in the order of the integers.
    pub parts: &'a [TotalPart<'a>],
}

/// Releases all parts of `added`, one after the other, and returns them in steps of `2^shift`, with what is secret until
/// next time.
///
/// A part may be longer than it was: what is new was zero. Parts that are not asked for are dropped.
///
/// # Errors
/// If `secret` does not hold a total that a part is to be added to, released as often and with the weight it says, if
/// the part is shorter than that total, a weight does not increase or is not below 2^48, or a number is out of range.
/// Then nothing is released.
pub fn release_totals(
    added: &[i64],
    totals: Totals<'_>,
    noise: &mut impl NoiseSource,
) -> Result<(Vec<i64>, Vec<u8>)> {
    let parts = totals.parts;
    let sums = sums_of(added, totals)?;
    let mut released = with_room(added.len())?;
    crate::noise::observe::drawn("vector", parts.iter().flat_map(|part| part.sigmas.iter().copied()));
    for (part, total) in parts.iter().zip(&sums) {
        for (sum, sigma) in total.iter().zip(part.sigmas) {
            let (whole, fraction) = (sum >> part.shift, sum & ((1 << part.shift) - 1));
            let fraction = (fraction as u128) << (64 - part.shift);
            // A step of 2^0 has no fraction, and 2^64 does not come up.
            let drawn = RoundedGaussian::new("sigmas", *sigma)?.sample_around(fraction as u64, noise);
            let bound = i128::from(i64::MAX);
            released.push((whole + i128::from(drawn)).clamp(-bound, bound) as i64);
        }
    }
    Ok((released, written(parts, &sums)?))
}

/// Totals with what is added now, part after part, and nothing released.
fn sums_of(added: &[i64], totals: Totals<'_>) -> Result<Vec<Vec<i128>>> {
    let held = totals.secret.map_or(Ok(Vec::new()), read)?;
    let (mut sums, mut left) = (Vec::new(), added);
    for part in totals.parts {
        let own = left.split_at_checked(part.sigmas.len());
        let (own, rest) =
            own.ok_or_else(|| Error::invalid("sigmas must have one number for each integer"))?;
        sums.push(added_up(&held, part, own)?);
        left = rest;
    }
    if !left.is_empty() {
        return Err(Error::invalid("sigmas must have one number for each integer"));
    }
    Ok(sums)
}

/// What is secret until next time, where nothing is drawn.
///
/// # Errors
/// Those of [`release_totals`].
pub(super) fn kept_of(added: &[i64], totals: Totals<'_>) -> Result<Vec<u8>> {
    written(totals.parts, &sums_of(added, totals)?)
}

fn written(parts: &[TotalPart<'_>], sums: &[Vec<i128>]) -> Result<Vec<u8>> {
    let size =
        |(part, total): (&TotalPart<'_>, &Vec<i128>)| if part.kept { HEAD + 16 * total.len() } else { 0 };
    let mut kept = with_room(MAGIC.len() + parts.iter().zip(sums).map(size).sum::<usize>())?;
    kept.extend_from_slice(MAGIC);
    for (part, total) in parts.iter().zip(sums).filter(|(part, _)| part.kept) {
        for number in [part.name, part.before.0 + 1, part.weight, total.len() as u64] {
            kept.extend_from_slice(&number.to_le_bytes());
        }
        total.iter().for_each(|sum| kept.extend_from_slice(&sum.to_le_bytes()));
    }
    Ok(kept)
}

/// A part's total with what is added now; everything that could be wrong with it is found here.
fn added_up(held: &[Held<'_>], part: &TotalPart<'_>, added: &[i64]) -> Result<Vec<i128>> {
    part.sigmas.iter().try_for_each(|sigma| RoundedGaussian::new("sigmas", *sigma).map(drop))?;
    if !(part.before.1 + 1..MOST_WEIGHT).contains(&part.weight) {
        return Err(Error::invalid("weight must be above the last one and below 2**48"));
    }
    if part.shift > MOST_SHIFT {
        return Err(Error::invalid(format!("shift must be at most {MOST_SHIFT}")));
    }
    let mut total: Vec<i128> = zeros(added.len())?;
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
    for (total, added) in total.iter_mut().zip(added) {
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

    fn part(weight: u64, before: (u64, u64), sigmas: &[u64]) -> TotalPart<'_> {
        TotalPart { name: 1, weight, before, sigmas, shift: 0, kept: true }
    }

    fn released(
        secret: Option<&[u8]>,
        added: &[i64],
        part: TotalPart<'_>,
        noise: &mut SeededNoise,
    ) -> Result<(Vec<i64>, Vec<u8>)> {
        release_totals(added, Totals { secret, parts: &[part] }, noise)
    }

    fn sums(secret: &[u8]) -> Vec<i128> {
        let held = read(secret).expect("valid");
        held[0].sums.as_chunks::<16>().0.iter().map(|bytes| i128::from_le_bytes(*bytes)).collect()
    }

    #[test]
    fn totals_are_weighted_sums_and_may_get_longer() {
        let noise = &mut SeededNoise::new(1, 0);
        let (_, first) = released(None, &[5, -7], part(3, (0, 0), &[1, 1]), noise).expect("valid");
        let next = part(MOST_WEIGHT - 1, (1, 3), &[1 << 40; 3]);
        let (_, second) = released(Some(&first), &[1, 1, i64::MAX], next, noise).expect("valid");
        let weight = i128::from(MOST_WEIGHT - 1);
        assert_eq!(sums(&second), [15 + weight, -21 + weight, weight * i128::from(i64::MAX)]);
        let again = Totals { secret: Some(&first), parts: &[next] };
        assert_eq!(kept_of(&[1, 1, i64::MAX], again).expect("valid"), second);
    }

    #[test]
    fn noise_is_on_the_total_and_not_on_what_was_added() {
        let noise = &mut SeededNoise::new(2, 0);
        let added = vec![1 << 40; 4000];
        let sigmas = vec![1 << 10; 4000];
        let asked = TotalPart { shift: 7, ..part(5, (0, 0), &sigmas) };
        let (released, _) = released(None, &added, asked, noise).expect("valid");
        let errors = released.iter().map(|one| (one - (5 << 33)) as f64 / 1024.0);
        let square = errors.map(|error| error * error).sum::<f64>() / 4000.0;
        assert!((0.9..1.1).contains(&square), "{square}");
    }

    #[test]
    fn nothing_is_added_to_another_total() {
        let noise = &mut SeededNoise::new(3, 0);
        let (_, first) = released(None, &[5], part(3, (0, 0), &[1]), noise).expect("valid");
        let (_, second) = released(Some(&first), &[5], part(4, (1, 3), &[1]), noise).expect("valid");
        let drawn = noise.words_drawn();
        let usual: &[i64] = &[5];
        for (secret, added, asked) in [
            (None, usual, part(4, (1, 3), &[1])),          // nothing was kept
            (Some(&second), usual, part(4, (1, 3), &[1])), // the rows are in it already
            (Some(&first), usual, part(5, (2, 4), &[1])),  // an old total with newer rows
            (Some(&first), usual, part(3, (1, 3), &[1])),  // a weight that does not increase
            (Some(&first), usual, part(1 << 48, (1, 3), &[1])),
            (Some(&first), &[], part(4, (1, 3), &[])), // numbers that were released are left out
            (Some(&first), usual, TotalPart { name: 2, ..part(4, (1, 3), &[1]) }),
            (Some(&first), &[5, 5], part(4, (1, 3), &[1])), // more integers than noise
            (Some(&first), &[], part(4, (1, 3), &[1])),
        ] {
            assert!(released(secret.map(Vec::as_slice), added, asked, noise).is_err());
        }
        for cut in 1..first.len() {
            assert!(read(&first[..cut]).is_err() || cut == MAGIC.len());
        }
        assert_eq!(noise.words_drawn(), drawn);
    }
}
