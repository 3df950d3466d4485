//! One vector of private integers, released with Gaussian noise.

use super::entropy::NoiseSource;
use super::exact::rounded::{RoundedGaussian, for_each};
use crate::runtime::error::{Error, Result};

/// Values are below this in magnitude, and so are releases.
const MAGNITUDE_LIMIT: u64 = 1 << 62;
const LIMIT: i64 = MAGNITUDE_LIMIT as i64 - 1;

/// Replaces each value by clamp(value + round(N(0, sigma^2)), +-(2^62 - 1)), noise independent of all others.
/// A single sigma is that of all values.
///
/// Post-processing of the Gaussian mechanism: if replacing a person moves the values by shifts d_j with
/// sum of (d_j/sigma_j)^2 at most mu^2, the releases are as private as N(0, 1) against N(mu, 1).
///
/// # Errors
/// If the lengths differ, a value is 2^62 or more in magnitude, or a sigma is not from 1 to 2^40. Then nothing is released.
pub fn release_vector(values: &mut [i64], sigmas: &[u64], noise: &mut impl NoiseSource) -> Result<()> {
    if sigmas.len() != 1 && values.len() != sigmas.len() {
        return Err(Error::invalid("sigmas must have one element, or one for each of values"));
    }
    if values.iter().any(|value| value.unsigned_abs() >= MAGNITUDE_LIMIT) {
        return Err(Error::invalid("values must lie strictly between -2**62 and 2**62"));
    }
    let (least, most) = (sigmas.iter().min(), sigmas.iter().max());
    for &sigma in least.into_iter().chain(most) {
        RoundedGaussian::new("sigmas", sigma)?;
    }
    let count = values.len();
    // Noise that saturated at 2^63 - 1 clamps just the same.
    let add =
        |index: usize, draw: i64| values[index] = values[index].saturating_add(draw).clamp(-LIMIT, LIMIT);
    super::observe::drawn(
        "vector",
        (0..count).map(|index| if sigmas.len() == 1 { sigmas[0] } else { sigmas[index] }),
    );
    match sigmas {
        [one] => for_each(count, |_| RoundedGaussian::of_checked(*one), add, noise),
        _ => for_each(sigmas.len(), |index| RoundedGaussian::of_checked(sigmas[index]), add, noise),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::entropy::predictable::SeededNoise;

    #[test]
    fn bad_input_releases_nothing() {
        let noise = &mut SeededNoise::new(1, 0);
        for (values, sigmas) in [
            (vec![1, 2, 3], vec![1, 1]),
            (vec![1, 2], vec![]),
            (vec![1 << 62], vec![1]),
            (vec![5, 6], vec![1 << 20, 0]),
            (vec![5, 6], vec![1 << 20, (1 << 40) + 1]),
        ] {
            let mut released = values.clone();
            assert!(release_vector(&mut released, &sigmas, noise).is_err());
            assert_eq!(released, values);
        }
        assert_eq!(noise.words_drawn(), 0);
    }
}
