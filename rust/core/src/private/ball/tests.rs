use super::*;
use crate::matrix::{Csr, Dense};
use crate::runtime::parallel::Plan;
use crate::runtime::simd::Level;

/// Numbers in [-1, 1), the same every time.
fn numbers(count: usize, seed: usize) -> Vec<f64> {
    (0..count).map(|i| (((i + seed) * 7919 + seed) % 10_007) as f64 / 5003.5 - 1.0).collect()
}

fn map(width: usize, scale: f64, one: Option<f64>, radius: i64) -> BallMap {
    let columns: Vec<usize> = (0..width).collect();
    BallMap::new(&columns, &vec![scale; width], one, radius, width).expect("valid")
}

/// The integers of one row, the plain way.
fn slow(row: &[f64], scale: f64, one: Option<f64>, multiplier: f64, radius: i64) -> Vec<i64> {
    let mut v: Vec<f64> = row.iter().map(|x| x * scale).collect();
    v.extend(one);
    v.iter_mut().for_each(|v| *v *= multiplier);
    let mut lanes = [0.0; LANES];
    v.iter().enumerate().for_each(|(j, v)| lanes[j % LANES] += v * v);
    let square: f64 = lanes.iter().fold(0.0, |a, b| a + b);
    let reach = radius as f64;
    let factor = if square > reach * reach { reach / square.sqrt() } else { 1.0 };
    let q: Vec<i64> = v.iter().map(|v| (v * factor).trunc() as i64).collect();
    let fits = square.is_finite() && q.iter().map(|q| q * q).sum::<i64>() <= radius * radius;
    if fits { q } else { vec![0; v.len()] }
}

fn slow_moments(x: &[f64], width: usize, scale: f64, one: Option<f64>, radius: i64) -> Vec<i64> {
    let size = width + usize::from(one.is_some());
    let mut sums = vec![0; size * size];
    for row in x.chunks(width) {
        let q = slow(row, scale, one, 1.0, radius);
        for a in 0..size {
            for b in 0..size {
                sums[a * size + b] += q[a] * q[b];
            }
        }
    }
    sums
}

#[test]
fn moments_equal_the_plain_sums_however_they_are_computed() {
    for (n, width) in [(1, 1), (7, 3), (40, 16), (301, 17), (130, 40), (300, 25), (5, 48), (260, 65)] {
        let x = numbers(n * width, width);
        for (scale, radius) in [(3e4, MOST_RADIUS), (900.0, 1000), (0.5, 1), (1e9, 30_000)] {
            for one in [None, Some(500.0)] {
                let expected = slow_moments(&x, width, scale, one, radius);
                let (map, rows) = (map(width, scale, one, radius), Dense::new(&x, n, width).expect("shape"));
                for level in Level::available() {
                    for (threads, block_rows) in [(1, None), (2, Some(3)), (3, Some(64))] {
                        let plan = Plan { threads: Some(threads), block_rows, level };
                        assert_eq!(second_moments(&rows, &map, None, plan), Ok(expected.clone()));
                    }
                }
            }
        }
    }
}

#[test]
fn full_rows_do_not_overflow_the_narrow_sums() {
    // Every row has the largest integer in one column, and enough others, which cutting leaves at 1, that it is not
    // added entry by entry.
    for width in [3, 40] {
        let n = 1000;
        let x: Vec<f64> =
            (0..n * width).map(|i| if i % width == 0 { MOST_RADIUS as f64 } else { 2.0 }).collect();
        let rows = Dense::new(&x, n, width).expect("shape");
        let sums = second_moments(&rows, &map(width, 1.0, None, MOST_RADIUS), None, Plan::default());
        let q = slow(&x[..width], 1.0, None, 1.0, MOST_RADIUS);
        assert_eq!(sums.expect("valid")[0], n as i64 * q[0] * q[0]);
    }
    // Full rows of either sign, on two axes: their products are the largest and the smallest that there are.
    let (n, width) = (301, 40);
    let half = MOST_RADIUS as f64 / 2f64.sqrt();
    let value = |i: usize, j: usize| match j {
        0 => half,
        39 => half * (1.0 - 2.0 * (i % 2) as f64),
        _ => 2.0,
    };
    let x: Vec<f64> = (0..n * width).map(|k| value(k / width, k % width)).collect();
    for part in [1, 2] {
        // Every row, and every second one: signs that differ and signs that agree.
        let x: Vec<f64> = x.chunks(width).step_by(part).flatten().copied().collect();
        let rows = Dense::new(&x, x.len() / width, width).expect("shape");
        let expected = slow_moments(&x, width, 1.0, None, MOST_RADIUS);
        for level in Level::available() {
            let plan = Plan { level, ..Plan::default() };
            let sums = second_moments(&rows, &map(width, 1.0, None, MOST_RADIUS), None, plan);
            assert_eq!(sums, Ok(expected.clone()), "{}", level.name());
        }
    }
    let largest = [MOST_RADIUS as f64];
    let largest = Dense::new(&largest, 1, 1).expect("shape");
    let square = second_moments(&largest, &map(1, 1.0, None, MOST_RADIUS), None, Plan::default());
    assert_eq!(square, Ok(vec![MOST_RADIUS * MOST_RADIUS]));
}

#[test]
fn rows_of_few_and_of_many_integers_may_alternate() {
    let (n, width) = (77, 50);
    let x: Vec<f64> = numbers(n * width, 4)
        .into_iter()
        .enumerate()
        .map(|(k, x)| if k / width % 3 == 0 && k % 17 != 0 { 0.0 } else { x })
        .collect();
    let expected = slow_moments(&x, width, 9e3, None, MOST_RADIUS);
    let rows = Dense::new(&x, n, width).expect("shape");
    let sums = second_moments(&rows, &map(width, 9e3, None, MOST_RADIUS), None, Plan::default());
    assert_eq!(sums, Ok(expected));
}

#[test]
fn no_row_has_moments_beyond_the_ball_and_some_reach_it() {
    for width in [1, 2, 5, 9, 24, 25, 33] {
        for (size, radius) in [(1.0, 100), (1e5, 4095), (1e300, MOST_RADIUS), (1e5, MOST_RADIUS)] {
            let mut reached = 0;
            for row in numbers(30 * width, width).chunks(width) {
                let row: Vec<f64> = row.iter().map(|x| x * size).collect();
                let rows = Dense::new(&row, 1, width).expect("shape");
                let map = map(width, 1.0, None, radius);
                let moments = second_moments(&rows, &map, None, Plan::default()).expect("valid");
                // The trace of `q q'` is the squared length of `q`.
                let square: i64 = (0..width).map(|j| moments[j * width + j]).sum();
                assert!(square <= radius * radius, "{width} {size} {radius}");
                reached = reached.max(square);
            }
            // Rounding toward zero takes less than one off each of the integers.
            let (longest, off) = (radius as f64, (width as f64).sqrt() + 1.0);
            assert!(size != 1e5 || reached as f64 >= (longest - off) * (longest - off));
        }
    }
}

#[test]
fn integers_never_leave_the_ball_and_reach_its_surface() {
    for width in [1, 2, 5, 9, 33] {
        for radius in [1, 5, 1000, MOST_RADIUS] {
            let (map, mut most) = (map(width, 1.0, None, radius), 0);
            for seed in 0..200 {
                let size = 10f64.powi(seed as i32 % 12 - 3) * radius as f64;
                let mut values: Vec<f64> = numbers(width, seed).iter().map(|x| x * size).collect();
                let mut integers = vec![0i32; width];
                map.quantise(&mut values, 1.0, &mut integers);
                let norm: i64 = integers.iter().map(|q| i64::from(*q) * i64::from(*q)).sum();
                assert!(norm <= radius * radius);
                most = most.max(norm);
            }
            let reach = (radius as f64 - (width as f64).sqrt()).max(0.0);
            assert!(most as f64 >= reach * reach, "{width} {radius} {most}");
        }
    }
}

#[test]
fn values_that_are_not_finite_make_a_zero_row() {
    let map = map(3, 1.0, Some(7.0), 100);
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, 1e200] {
        for place in 0..3 {
            let (mut values, mut integers) = ([1.0, 2.0, 3.0, 0.0], [9i32; 4]);
            values[place] = bad;
            assert_eq!(map.quantise(&mut values, 1.0, &mut integers), 0);
            assert_eq!(integers, [0; 4]);
        }
    }
    for bad in [f64::NAN, f64::INFINITY] {
        let mut integers = [9i32; 4];
        assert_eq!(map.quantise(&mut [0.0, 2.0, 3.0, 0.0], bad, &mut integers), 0);
        assert_eq!(integers, [0; 4]);
    }
}

#[test]
fn groups_are_summed_apart_and_missing_rows_are_not_read() {
    let (n, width, count) = (50, 6, 3);
    let (mut x, residuals) = (numbers(n * width, 3), numbers(n, 8));
    let group_of: Vec<i64> = (0..n as i64).map(|i| i * i % 3).collect();
    let present: Vec<u8> = (0..n).map(|i| u8::from(i % 4 != 1)).collect();
    let map = map(width, 4e4, None, MOST_RADIUS);
    let mut expected = vec![0; count * width];
    for i in (0..n).filter(|i| present[*i] == 1) {
        let q = slow(&x[i * width..][..width], 4e4, None, residuals[i], MOST_RADIUS);
        (0..width).for_each(|j| expected[group_of[i] as usize * width + j] += q[j]);
    }
    x[width] = f64::NAN; // row 1 is missing
    let groups = Groups { residuals: &residuals, group_of: &group_of, count, present: Some(&present) };
    let rows = Dense::new(&x, n, width).expect("shape");
    for threads in [1, 3] {
        let plan = Plan { threads: Some(threads), block_rows: Some(7), ..Plan::default() };
        assert_eq!(ball_gradient(&rows, groups, &map, plan), Ok(expected.clone()));
    }
    for bad in [-1, 3] {
        let group_of = vec![bad; n];
        let groups = Groups { group_of: &group_of, ..groups };
        assert!(ball_gradient(&rows, groups, &map, Plan::default()).is_err());
    }
}

#[test]
fn sparse_rows_give_the_same_sums_in_the_order_of_the_columns_asked_for() {
    let x = [0.0f32, 3.0, 0.0, -4.0, 1.0, 0.0, 2.0, 0.0];
    let dense = Dense::new(&x, 2, 4).expect("shape");
    let csr = Csr::new(&[0i32, 2, 4], &[1, 3, 0, 2], &[3.0f32, -4.0, 1.0, 2.0], 4).expect("valid");
    let map = BallMap::new(&[3, 0, 1], &[1.0, 2.0, 1.0], Some(1.0), 100, 4).expect("valid");
    let expected = vec![16, 0, -12, -4, 0, 4, 0, 2, -12, 0, 9, 3, -4, 2, 3, 2];
    assert_eq!(second_moments(&dense, &map, None, Plan::default()), Ok(expected.clone()));
    assert_eq!(second_moments(&csr, &map, None, Plan::default()), Ok(expected));
    let repeated = Csr::new(&[0i32, 2], &[1, 1], &[3.0f32, -4.0], 4).expect("offsets");
    assert!(second_moments(&repeated, &map, None, Plan::default()).is_err());
}

#[test]
fn sizes_are_cut_and_rounded_toward_zero() {
    let size = |value: f64| clipped_size_of(value, 2.0);
    for large in [2.0, -1e300, f64::INFINITY, f64::NEG_INFINITY] {
        assert_eq!(size(large), 1 << 15);
    }
    for small in [f64::NAN, 0.0, -0.0, 1e-300, 1.999 / 32768.0] {
        assert_eq!(size(small), 0);
    }
    assert_eq!(size(-2.001 / 32768.0), 1);
}

#[test]
fn bad_maps_are_refused() {
    let new = |columns: &[usize], scale: f64, one, radius| {
        BallMap::new(columns, &vec![scale; columns.len()], one, radius, 4)
    };
    assert!(new(&[0, 3], 1.0, None, 5).is_ok());
    assert!(new(&[0, 0], 1.0, None, 5).is_err());
    assert!(new(&[4], 1.0, None, 5).is_err());
    assert!(new(&[], 1.0, None, 5).is_err());
    assert!(new(&[], 1.0, Some(1.0), 5).is_ok());
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(new(&[0], bad, None, 5).is_err());
    }
    assert!(new(&[0], 1.0, Some(f64::NAN), 5).is_err());
    for radius in [0, -1, MOST_RADIUS + 1] {
        assert!(new(&[0], 1.0, None, radius).is_err());
    }
}
