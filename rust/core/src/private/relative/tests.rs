//! What one row can do to the sums, and that storage, blocks and threads do nothing.

use super::shifted::{Moved, shifted_sums};
use super::support::gather_columns;
use super::whitened::whitened_sums;
use crate::matrix::{Csr, Dense};
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
            let sums = whitened_sums(
                &[shift, residual],
                &[residual],
                &[1.0, 1.0, 0.0, 2.0],
                0.5,
                None,
                Plan::default(),
            )
            .expect("valid");
            assert!(sums.iter().all(|sum| sum.abs() <= 1 << 15));
        }
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
