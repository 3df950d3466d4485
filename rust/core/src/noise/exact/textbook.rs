//! The samplers of Canonne, Kamath and Steinke (2020), as printed: the slow yardstick of the fast ones.
//!
//! Shares nothing with them but uniform integers: no lazy comparison, no bounds on exponentials, no floats.

use super::below;
use crate::noise::entropy::NoiseSource;

/// Heads with probability `numerator/denominator`.
fn bernoulli(numerator: u128, denominator: u128, noise: &mut impl NoiseSource) -> bool {
    let bits = 128 - denominator.leading_zeros();
    loop {
        let wide = (u128::from(noise.next_u64()) << 64) | u128::from(noise.next_u64());
        let candidate = wide >> (128 - bits);
        if candidate < denominator {
            return candidate < numerator;
        }
    }
}

/// Heads with probability exp(-numerator/denominator) (algorithm 1).
///
/// The denominator must leave room for a factor below 2^20 in 128 bits.
pub fn bernoulli_exp(numerator: u128, denominator: u128, noise: &mut impl NoiseSource) -> bool {
    assert!(denominator > 0 && denominator < 1 << 108);
    for _ in 0..numerator / denominator {
        if !bernoulli_exp_fraction(denominator, denominator, noise) {
            return false;
        }
    }
    bernoulli_exp_fraction(numerator % denominator, denominator, noise)
}

fn bernoulli_exp_fraction(numerator: u128, denominator: u128, noise: &mut impl NoiseSource) -> bool {
    let mut k = 1;
    while bernoulli(numerator, denominator * k, noise) {
        k += 1;
    }
    k % 2 == 1
}

/// Discrete Laplace of scale `scale` (algorithm 2 with s = 1).
pub fn laplace(scale: u64, noise: &mut impl NoiseSource) -> i64 {
    loop {
        let remainder = below(scale, noise);
        if !bernoulli_exp(u128::from(remainder), u128::from(scale), noise) {
            continue;
        }
        let mut quotient = 0;
        while bernoulli_exp(1, 1, noise) {
            quotient += 1;
        }
        let magnitude = (remainder + scale * quotient) as i64;
        let negative = below(2, noise) == 1;
        if !(negative && magnitude == 0) {
            return if negative { -magnitude } else { magnitude };
        }
    }
}

/// Discrete Gaussian of parameter `sigma` (algorithm 3), for sigma up to 2^20.
pub fn gaussian(sigma: u64, noise: &mut impl NoiseSource) -> i64 {
    assert!((1..=1 << 20).contains(&sigma));
    let scale = u128::from(sigma) + 1;
    let variance = u128::from(sigma) * u128::from(sigma);
    loop {
        let proposal = laplace(sigma + 1, noise);
        let root = (u128::from(proposal.unsigned_abs()) * scale).abs_diff(variance);
        if bernoulli_exp(root * root, 2 * variance * scale * scale, noise) {
            return proposal;
        }
    }
}
