//! Small square matrices, row after row: products, equations, and symmetric ones with no small eigenvalue.

use crate::runtime::error::{Error, Result};
use crate::runtime::memory::{copied, zeros};

/// Steps in which an eigenvalue is found, or never: three are usual.
const MOST_STEPS: usize = 100;

/// `a b` of `m` times `m` matrices.
///
/// # Errors
/// If there is no memory for it.
pub(super) fn product(a: &[f64], b: &[f64], m: usize) -> Result<Vec<f64>> {
    let mut c = zeros(m * m)?;
    for (out, row) in c.chunks_exact_mut(m).zip(a.chunks_exact(m)) {
        for (weight, other) in row.iter().zip(b.chunks_exact(m)) {
            out.iter_mut().zip(other).for_each(|(sum, value)| *sum += weight * value);
        }
    }
    Ok(c)
}

/// The matrix with rows and columns exchanged.
///
/// # Errors
/// If there is no memory for it.
pub(super) fn transposed(a: &[f64], m: usize) -> Result<Vec<f64>> {
    let mut out = zeros(m * m)?;
    for (i, row) in a.chunks_exact(m).enumerate() {
        row.iter().enumerate().for_each(|(j, value)| out[j * m + i] = *value);
    }
    Ok(out)
}

/// `a^-1 b`, written over `b`, whose rows have any length; `a` is used up. By elimination, the largest pivot first.
///
/// # Errors
/// If `a` has no inverse.
pub(super) fn solve(a: &mut [f64], b: &mut [f64], m: usize) -> Result<()> {
    let width = b.len() / m;
    for step in 0..m {
        let size = |row: &usize| a[row * m + step].abs();
        let pivot = (step..m).max_by(|one, two| size(one).total_cmp(&size(two))).unwrap_or(step);
        if size(&pivot) == 0.0 || !size(&pivot).is_finite() {
            return Err(Error::invalid(
                "the step's equations must have a solution: released numbers are not finite",
            ));
        }
        if pivot != step {
            (0..m).for_each(|j| a.swap(step * m + j, pivot * m + j));
            (0..width).for_each(|j| b.swap(step * width + j, pivot * width + j));
        }
        let (above, below) = a.split_at_mut((step + 1) * m);
        let (given, wanted) = b.split_at_mut((step + 1) * width);
        let (top, known) = (&above[step * m..], &given[step * width..]);
        for (row, value) in below.chunks_exact_mut(m).zip(wanted.chunks_exact_mut(width)) {
            let factor = row[step] / top[step];
            row[step..].iter_mut().zip(&top[step..]).for_each(|(x, y)| *x -= factor * y);
            value.iter_mut().zip(known).for_each(|(x, y)| *x -= factor * y);
        }
    }
    for step in (0..m).rev() {
        let (given, solved) = b.split_at_mut((step + 1) * width);
        let row = &mut given[step * width..];
        for (weight, known) in a[step * m + step + 1..(step + 1) * m].iter().zip(solved.chunks_exact(width)) {
            row.iter_mut().zip(known).for_each(|(x, y)| *x -= weight * y);
        }
        row.iter_mut().for_each(|x| *x /= a[step * m + step]);
    }
    Ok(())
}

/// The symmetric part of `h` with eigenvalues below `smallest` raised to it.
///
/// # Errors
/// If a number is not finite.
pub(super) fn raised(h: &[f64], smallest: f64, m: usize) -> Result<Vec<f64>> {
    let mut symmetric = zeros(m * m)?;
    for i in 0..m {
        (0..m).for_each(|j| symmetric[i * m + j] = (h[i * m + j] + h[j * m + i]) / 2.0);
    }
    // Most matrices have no eigenvalue below: this is cheaper to see than what the eigenvalues are.
    if is_above(&symmetric, smallest, m)? {
        return Ok(symmetric);
    }
    let mut vectors = symmetric;
    let values = eigen(&mut vectors, m)?;
    let mut scaled = copied(&vectors)?;
    for row in scaled.chunks_exact_mut(m) {
        row.iter_mut().zip(&values).for_each(|(x, value)| *x *= value.max(smallest));
    }
    product(&scaled, &transposed(&vectors, m)?, m)
}

/// Whether all eigenvalues of a symmetric matrix are above `smallest`: whether what is left without it has a root.
fn is_above(h: &[f64], smallest: f64, m: usize) -> Result<bool> {
    let mut root: Vec<f64> = zeros(m * m)?;
    for i in 0..m {
        for j in 0..=i {
            let (one, two) = (&root[i * m..i * m + j], &root[j * m..j * m + j]);
            let left = h[i * m + j] - one.iter().zip(two).map(|(a, b)| a * b).sum::<f64>();
            if i > j {
                root[i * m + j] = left / root[j * m + j];
            } else if left > smallest {
                root[i * m + i] = (left - smallest).sqrt();
            } else {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// Eigenvalues of a symmetric matrix, which becomes its eigenvectors, one a column: reflections to three diagonals
/// (Householder), then rotations (QL with implicit shifts).
///
/// # Errors
/// If a number is not finite.
fn eigen(vectors: &mut [f64], m: usize) -> Result<Vec<f64>> {
    let mut off: Vec<f64> = zeros(m)?;
    let mut values = three_diagonals(vectors, &mut off, m)?;
    off.rotate_left(1);
    for l in 0..m {
        for step in 0.. {
            let small = |i: &usize| {
                let beside = values[*i].abs() + values[i + 1].abs();
                off[*i].abs() <= f64::EPSILON * beside
            };
            let end = (l..m - 1).find(small).unwrap_or(m - 1);
            if end == l {
                break;
            }
            if step == MOST_STEPS || !off[l].is_finite() {
                return Err(Error::invalid("the step's moments must be finite"));
            }
            rotate(vectors, &mut values, &mut off, l, end, m);
        }
    }
    Ok(values)
}

/// One sweep of rotations over places `l` to `end`.
fn rotate(vectors: &mut [f64], values: &mut [f64], off: &mut [f64], l: usize, end: usize, m: usize) {
    let half = (values[l + 1] - values[l]) / (2.0 * off[l]);
    let root = half.hypot(1.0);
    let mut g = values[end] - values[l] + off[l] / (half + root.copysign(half));
    let (mut sine, mut cosine, mut shift) = (1.0, 1.0, 0.0);
    for i in (l..end).rev() {
        let (f, b) = (sine * off[i], cosine * off[i]);
        let length = f.hypot(g);
        off[i + 1] = length;
        if length == 0.0 {
            values[i + 1] -= shift;
            off[end] = 0.0;
            return;
        }
        (sine, cosine) = (f / length, g / length);
        let less = values[i + 1] - shift;
        let turned = (values[i] - less) * sine + 2.0 * cosine * b;
        shift = sine * turned;
        values[i + 1] = less + shift;
        g = cosine * turned - b;
        for row in vectors.chunks_exact_mut(m) {
            let (one, two) = (row[i], row[i + 1]);
            row[i + 1] = sine * one + cosine * two;
            row[i] = cosine * one - sine * two;
        }
    }
    values[l] -= shift;
    off[l] = g;
    off[end] = 0.0;
}

/// The diagonal of `q' a q`, whose next diagonal is written to `off` from place 1 on; `a` becomes `q`.
fn three_diagonals(a: &mut [f64], off: &mut [f64], m: usize) -> Result<Vec<f64>> {
    let mut q = zeros(m * m)?;
    (0..m).for_each(|i| q[i * m + i] = 1.0);
    let (mut v, mut p): (Vec<f64>, Vec<f64>) = (zeros(m)?, zeros(m)?);
    for step in 0..m.saturating_sub(2) {
        // A reflection that leaves one number below the diagonal of this column.
        let below = step + 1..m;
        v.fill(0.0);
        below.clone().for_each(|i| v[i] = a[i * m + step]);
        let largest = below.clone().fold(0.0, |most: f64, i| most.max(v[i].abs()));
        if v[step + 2..].iter().all(|x| *x == 0.0) {
            continue;
        }
        v.iter_mut().for_each(|x| *x /= largest);
        let length = v.iter().map(|x| x * x).sum::<f64>().sqrt();
        v[step + 1] += length.copysign(v[step + 1]);
        let scale = 2.0 / v.iter().map(|x| x * x).sum::<f64>();
        // a - v w' - w v', with w = scale (a v) - v (v'a v) scale^2 / 2.
        for (p, row) in p.iter_mut().zip(a.chunks_exact(m)) {
            *p = scale * row.iter().zip(&v).map(|(x, y)| x * y).sum::<f64>();
        }
        let half = scale / 2.0 * p.iter().zip(&v).map(|(x, y)| x * y).sum::<f64>();
        p.iter_mut().zip(&v).for_each(|(p, v)| *p -= half * v);
        for (i, row) in a.chunks_exact_mut(m).enumerate() {
            for (j, x) in row.iter_mut().enumerate() {
                *x -= v[i] * p[j] + p[i] * v[j];
            }
        }
        for row in q.chunks_exact_mut(m) {
            let along = scale * row.iter().zip(&v).map(|(x, y)| x * y).sum::<f64>();
            row.iter_mut().zip(&v).for_each(|(x, v)| *x -= along * v);
        }
    }
    let mut diagonal = zeros(m)?;
    for i in 0..m {
        diagonal[i] = a[i * m + i];
        off[i] = if i > 0 { a[i * m + i - 1] } else { 0.0 };
    }
    a.copy_from_slice(&q);
    Ok(diagonal)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A symmetric matrix with entries within 1.
    fn symmetric(m: usize, seed: usize) -> Vec<f64> {
        let number = |i: usize, j: usize| ((i * 7 + j * 13 + seed) as f64 * 1.7).sin();
        (0..m * m).map(|k| number((k / m).min(k % m), (k / m).max(k % m))).collect()
    }

    fn farthest(a: &[f64], b: &[f64]) -> f64 {
        a.iter().zip(b).map(|(x, y)| (x - y).abs()).fold(0.0, f64::max)
    }

    #[test]
    fn eigenvectors_are_orthogonal_and_give_the_matrix_back() {
        for m in [1, 2, 3, 4, 7, 20, 41] {
            for seed in 0..5 {
                let h = symmetric(m, seed);
                let mut vectors = h.clone();
                let values = eigen(&mut vectors, m).expect("finite");
                let back = transposed(&vectors, m).expect("room");
                let mut one = product(&back, &vectors, m).expect("room");
                (0..m).for_each(|i| one[i * m + i] -= 1.0);
                assert!(farthest(&one, &vec![0.0; m * m]) < 1e-13 * m as f64);
                let mut scaled = vectors.clone();
                scaled
                    .chunks_exact_mut(m)
                    .for_each(|row| row.iter_mut().zip(&values).for_each(|(x, v)| *x *= v));
                assert!(farthest(&product(&scaled, &back, m).expect("room"), &h) < 1e-13 * (m * m) as f64);
            }
        }
        // Zeros, a diagonal, and eigenvalues that are equal.
        for h in [vec![0.0; 9], vec![2.0, 0.0, 0.0, 0.0, -1.0, 0.0, 0.0, 0.0, 2.0], vec![1.0; 9]] {
            let mut vectors = h.clone();
            let mut values = eigen(&mut vectors, 3).expect("finite");
            values.sort_by(f64::total_cmp);
            let expected = if h[0] == 2.0 { [-1.0, 2.0, 2.0] } else { [0.0, 0.0, 3.0 * h[1]] };
            assert!(farthest(&values, &expected) < 1e-14, "{values:?}");
        }
        assert!(eigen(&mut [f64::NAN; 9], 3).is_err());
    }

    #[test]
    fn what_is_raised_has_no_eigenvalue_below_and_what_is_above_stays_as_it_is() {
        for m in [1, 2, 5, 12] {
            let h = symmetric(m, 3);
            let up = raised(&h, 0.5, m).expect("finite");
            let mut values = eigen(&mut up.clone(), m).expect("finite");
            values.sort_by(f64::total_cmp);
            assert!(values[0] >= 0.5 - 1e-12);
            assert!(farthest(&raised(&up, 0.4, m).expect("finite"), &up) < 1e-15);
            // Raising by eigenvalues what needs no raising changes nothing either: both ways are one function.
            assert_eq!(is_above(&up, 0.4, m), Ok(true));
            assert_eq!(is_above(&up, values[0] + 0.01, m), Ok(false));
        }
    }

    #[test]
    fn solutions_solve_and_what_has_none_is_refused() {
        for m in [1, 2, 5, 12] {
            let (a, b) = (symmetric(m, 9), symmetric(m, 4));
            let mut x = b.clone();
            solve(&mut a.clone(), &mut x, m).expect("solvable");
            assert!(farthest(&product(&a, &x, m).expect("room"), &b) < 1e-10);
        }
        assert!(solve(&mut [1.0, 2.0, 2.0, 4.0], &mut [1.0, 1.0], 2).is_err());
        assert!(solve(&mut [f64::NAN], &mut [1.0], 1).is_err());
        let mut x = [3.0, 4.0];
        solve(&mut [0.0, 1.0, 1.0, 0.0], &mut x, 2).expect("solvable after an exchange");
        assert_eq!(x, [4.0, 3.0]);
    }
}
