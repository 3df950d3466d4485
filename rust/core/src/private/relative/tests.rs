//! What one row can do to the sums, and that storage, blocks and threads do nothing.

use super::settled::{Measure, Settled, SettledSums, settled_sums};
use super::shifted::{Moved, shifted_sums};
use super::support::gather_columns;
use crate::matrix::{Csr, Dense};
use crate::private::ball::{BallMap, MOST_RADIUS, second_moments};
use crate::private::gradient::Plan;
use crate::runtime::simd::Level;

fn plan(threads: usize, block_rows: usize) -> Plan {
    Plan { threads: Some(threads), block_rows: Some(block_rows), level: Level::best() }
}

/// Rows of 5 columns with every second value 0.
fn dense(n: usize) -> Vec<f32> {
    (0..5 * n).map(|i| if i % 2 == 0 { 0.0 } else { (i * 37 % 101) as f32 * 0.1 - 5.0 }).collect()
}

#[test]
fn dense_and_sparse_rows_have_the_same_sums_in_any_blocks() {
    let n = 43;
    let values = dense(n);
    let (mut offsets, mut columns, mut data) = (vec![0i32], Vec::new(), Vec::new());
    for row in values.chunks(5) {
        for (j, x) in row.iter().enumerate().filter(|(_, x)| **x != 0.0) {
            columns.push(j as i32);
            data.push(*x);
        }
        offsets.push(columns.len() as i32);
    }
    let rows = Dense::new(&values, n, 5).expect("valid");
    let sparse = Csr::new(&offsets, &columns, &data, 5).expect("valid");
    let residuals: Vec<f64> = (0..n).map(|i| (i as f64 * 0.7).sin()).collect();
    let shifts: Vec<f64> = (0..n).map(|i| (i as f64).cos()).collect();
    let units = [1.0, 2.0, 1e-3, 1e3, 1e-300];
    for units in [None, Some(&units[..])] {
        let moved =
            Moved { residuals: &residuals, shifts: Some(&shifts), units, clip: 0.8, present: None, first: 0 };
        let sums = shifted_sums(&rows, moved, plan(1, 100)).expect("valid");
        for (threads, block) in [(1, 1), (2, 7), (3, 10)] {
            assert_eq!(shifted_sums(&rows, moved, plan(threads, block)).expect("valid"), sums);
            assert_eq!(shifted_sums(&sparse, moved, plan(threads, block)).expect("valid"), sums);
        }
    }
}

#[test]
fn no_row_moves_a_sum_by_more_than_the_limit_whatever_its_numbers_are() {
    let extremes = [0.0, 1.0, -1e-300, 1e300, f64::MAX, f64::MIN, f64::INFINITY, f64::NAN];
    for residual in extremes {
        for shift in extremes {
            for x in [0.0f32, 1.0, f32::MAX, f32::MIN, 1e-45] {
                for unit in [1.0, 1e-300, 1e300] {
                    let (residuals, shifts, units) = ([residual], [shift], [unit, 1.0]);
                    let moved = Moved {
                        residuals: &residuals,
                        shifts: Some(&shifts),
                        units: Some(&units),
                        clip: 0.5,
                        present: None,
                        first: 0,
                    };
                    let values = [x, 0.0];
                    let rows = Dense::new(&values, 1, 2).expect("valid");
                    let sums = shifted_sums(&rows, moved, Plan::default()).expect("valid");
                    assert!(sums.iter().all(|sum| sum.abs() <= 1 << 15), "{residual} {shift} {x} {unit}");
                    let (offsets, columns) = ([0i32, 1], [0i32]);
                    let sparse = Csr::new(&offsets, &columns, &values[..1], 2).expect("valid");
                    assert_eq!(shifted_sums(&sparse, moved, Plan::default()).expect("valid"), sums);
                }
            }
            let values = [shift, residual];
            let rows = Dense::new(&values, 1, 2).expect("valid");
            let settled = Settled {
                support: &[],
                filled: 0,
                columns: &[0, 1],
                units: None,
                residuals: &[residual],
                present: None,
            };
            let measure =
                Measure { whiten: &[1.0, 1.0, 0.0, 2.0], clip: 0.5, radius: 100, scale: 1.0, cap: 0.5 };
            let sums = settled_sums(&rows, settled, measure, Plan::default()).expect("valid");
            assert!((0..=1 << 15).contains(&sums.size));
            let sums = sums.gradient;
            assert!(sums.iter().all(|sum| sum.abs() <= 1 << 15));
        }
    }
}

/// The gradient's sums, number by number.
fn whitened_slowly(values: &[f64], residuals: &[f64], whiten: &[f64], clip: f64, present: &[u8]) -> Vec<i64> {
    let m = values.len() / residuals.len();
    let coordinate = |row: &[f64], c: usize| (0..m).fold(0.0, |sum, j| sum + row[j] * whiten[c * m + j]);
    let integer = |row: &[f64], c: usize, residual: f64| {
        let product = coordinate(row, c) * (residual * 32768.0 / clip);
        if product.is_nan() { 0 } else { product.clamp(-32768.0, 32768.0).round_ties_even() as i64 }
    };
    let rows = || values.chunks(m).zip(residuals).zip(present).filter(|(_, flag)| **flag != 0);
    (0..m).map(|c| rows().map(|((row, residual), _)| integer(row, c, *residual)).sum()).collect()
}

#[test]
fn settled_columns_have_the_sums_of_each_kind() {
    let (n, m) = (91, 4);
    let values = dense(n);
    let rows = Dense::new(&values, n, 5).expect("valid");
    let residuals: Vec<f64> =
        (0..n).map(|i| if i == 7 { f64::INFINITY } else { (i as f64 * 0.7).sin() }).collect();
    let present: Vec<u8> = (0..n).map(|i| u8::from(i % 5 != 3)).collect();
    let whiten: Vec<f64> = (0..m * m).map(|i| (i as f64).cos()).collect();
    let mut all = vec![1.0; n * m];
    gather_columns(&rows, &[1, 3, 2], Some(&[1.0, 1.0, 0.5]), &mut all, m, 1, Plan::default())
        .expect("valid");
    let support: Vec<f64> = all.chunks(m).flat_map(|row| row[..2].to_vec()).collect();
    let settled = Settled {
        support: &support,
        filled: 2,
        columns: &[3, 2],
        units: Some(&[1.0, 0.5]),
        residuals: &residuals,
        present: Some(&present),
    };
    for radius in [5, 4095, MOST_RADIUS] {
        let scale = radius as f64 / 6.0;
        let measure = Measure { whiten: &whiten, clip: 0.8, radius, scale, cap: 0.6 };
        let map = BallMap::new(&[0, 1, 2, 3], &[scale; 4], None, radius, m).expect("valid");
        let apart = Dense::new(&all, n, m).expect("valid");
        let expected = SettledSums {
            gradient: whitened_slowly(&all, &residuals, &whiten, 0.8, &present),
            moments: second_moments(&apart, &map, Some(&present), plan(1, 100)).expect("valid"),
            size: residuals
                .iter()
                .zip(&present)
                .map(|(r, flag)| i64::from(*flag) * (r.abs().min(0.6) / 0.6 * 32768.0).trunc() as i64)
                .sum(),
        };
        for (threads, block) in [(1, 100), (2, 7), (3, 16)] {
            assert_eq!(settled_sums(&rows, settled, measure, plan(threads, block)), Ok(expected.clone()));
        }
    }
    let measure = Measure { whiten: &whiten, clip: 0.8, radius: 9, scale: 1.0, cap: 0.6 };
    for (settled, measure) in [
        (Settled { filled: 1, ..settled }, measure),
        (Settled { columns: &[3], ..settled }, measure),
        (Settled { units: Some(&[1.0]), ..settled }, measure),
        (Settled { residuals: &residuals[1..], ..settled }, measure),
        (Settled { present: Some(&present[1..]), ..settled }, measure),
        (settled, Measure { radius: 0, ..measure }),
        (settled, Measure { scale: 0.0, ..measure }),
        (settled, Measure { cap: f64::NAN, ..measure }),
        (settled, Measure { clip: f64::INFINITY, ..measure }),
        (settled, Measure { whiten: &whiten[1..], ..measure }),
    ] {
        assert!(settled_sums(&rows, settled, measure, Plan::default()).is_err());
    }
}

#[test]
fn values_that_are_not_finite_and_lengths_that_do_not_fit_are_refused() {
    let values = [1.0f32, f32::NAN];
    let rows = Dense::new(&values, 1, 2).expect("valid");
    let moved = Moved { residuals: &[1.0], shifts: None, units: None, clip: 1.0, present: None, first: 0 };
    assert!(shifted_sums(&rows, moved, Plan::default()).is_err());
    assert_eq!(
        shifted_sums(&rows, Moved { present: Some(&[0]), ..moved }, Plan::default()).expect("valid"),
        [0, 0]
    );
    for wrong in [
        Moved { residuals: &[], ..moved },
        Moved { shifts: Some(&[]), ..moved },
        Moved { units: Some(&[1.0]), ..moved },
        Moved { units: Some(&[1.0, 0.0]), ..moved },
        Moved { clip: 0.0, ..moved },
        Moved { present: Some(&[]), ..moved },
    ] {
        assert!(shifted_sums(&rows, wrong, Plan::default()).is_err());
    }
    let mut out = [0.0; 2];
    for (columns, first) in [(&[2usize][..], 0), (&[0, 0][..], 0), (&[0][..], 2)] {
        assert!(gather_columns(&rows, columns, None, &mut out, 2, first, Plan::default()).is_err());
    }
}
