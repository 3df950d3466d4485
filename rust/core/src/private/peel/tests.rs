use super::*;
use crate::noise::entropy::predictable::SeededNoise;

fn peeler(mechanism: Mechanism, pick_scale: u64) -> Peeler {
    Peeler::new(mechanism, pick_scale, ValueNoise::Gaussian, 3).expect("valid")
}

fn picks(peeler: &Peeler, v: &[i64], count: usize, seed: u64) -> Vec<usize> {
    let mut picked = Vec::new();
    let mut noise = SeededNoise::new(seed, 0);
    peeler.peel(v, count, &mut noise, &mut PeelScratch::default(), &mut picked).expect("valid");
    picked.iter().map(|pick| pick.index).collect()
}

/// Vectors that send the exponential mechanism down every path: flat, one giant, stairs, all levels at once.
fn shapes() -> Vec<Vec<i64>> {
    vec![
        vec![7],
        vec![0; 50],
        (0..300).map(|j| if j == 17 { -(1 << 50) } else { j % 5 }).collect(),
        (0..40).map(|j| j * 1000 * if j % 2 == 0 { 1 } else { -1 }).collect(),
        (0..61).map(|j| 1 << j).collect(),
        (0..1000).map(|j| (j * 7919) % 1009 * 1_000_000_007).collect(),
        vec![(1 << 62) - 1, -((1 << 62) - 1), 0, 1],
    ]
}

#[test]
fn integers_and_floats_pick_the_same_coordinates_from_the_same_bits() {
    for mechanism in [Mechanism::Exponential, Mechanism::Laplace] {
        for pick_scale in [1, 10, 1000, 1 << 30, (1 << 40) - 1] {
            for (shape, v) in shapes().iter().enumerate() {
                let (fast, exact) =
                    (peeler(mechanism, pick_scale), peeler(mechanism, pick_scale).always_exact());
                let (mut left, mut right) =
                    (SeededNoise::new(1, shape as u64), SeededNoise::new(1, shape as u64));
                let (mut quick, mut slow) = (Vec::new(), Vec::new());
                let mut scratch = PeelScratch::default();
                let count = v.len().min(20);
                fast.peel(v, count, &mut left, &mut scratch, &mut quick).expect("valid");
                exact.peel(v, count, &mut right, &mut scratch, &mut slow).expect("valid");
                assert_eq!(quick, slow, "{mechanism:?} {pick_scale} {shape}");
                assert_eq!(left.words_drawn(), right.words_drawn(), "{mechanism:?} {pick_scale} {shape}");
            }
        }
    }
}

#[test]
fn picks_are_distinct_and_all_of_them_is_a_permutation() {
    for mechanism in [Mechanism::Exponential, Mechanism::Laplace] {
        for v in shapes() {
            let mut all = picks(&peeler(mechanism, 100), &v, v.len(), 2);
            all.sort_unstable();
            assert!(all.into_iter().eq(0..v.len()), "{mechanism:?}");
        }
    }
}

#[test]
fn gaps_of_a_million_scales_leave_no_doubt() {
    // Stairs a million scales high: every pick brings the base down, and only one order is ever seen.
    let v: Vec<i64> = (0..2000).map(|j| (j * 1_000_000) * if j % 3 == 0 { -1 } else { 1 }).collect();
    for mechanism in [Mechanism::Exponential, Mechanism::Laplace] {
        let expected: Vec<usize> = (0..2000).rev().take(100).collect();
        assert_eq!(picks(&peeler(mechanism, 1), &v, 100, 3), expected, "{mechanism:?}");
    }
}

#[test]
fn words_spent_do_not_grow_with_the_dimension_whatever_the_spread() {
    // One giant, stairs, flat, and a spread over 10^12: a few words a pick in all of them.
    let spreads: [fn(i64) -> i64; 4] = [
        |j| if j == 5 { 1 << 40 } else { j % 3 },
        |j| j * 1_000_000,
        |_| 12,
        |j| 10i64.pow((j % 13) as u32) * (j % 9 + 1),
    ];
    for (which, spread) in spreads.iter().enumerate() {
        let v: Vec<i64> = (0..100_000).map(spread).collect();
        let mut noise = SeededNoise::new(4, which as u64);
        let mut picked = Vec::new();
        let peeler = Peeler::new(Mechanism::Exponential, 1000, ValueNoise::Laplace, 1000).expect("valid");
        peeler.peel(&v, 1000, &mut noise, &mut PeelScratch::default(), &mut picked).expect("valid");
        assert!(noise.words_drawn() < 8_000, "{which}: {}", noise.words_drawn());
    }
}

#[test]
fn a_scratch_carries_nothing_over_from_call_to_call() {
    let mut scratch = PeelScratch::default();
    for mechanism in [Mechanism::Exponential, Mechanism::Laplace] {
        let peeler = peeler(mechanism, 50);
        for round in 0..3 {
            for (shape, v) in shapes().iter().enumerate() {
                let (mut shared, mut fresh) = (Vec::new(), Vec::new());
                let noise = || SeededNoise::new(round, shape as u64);
                let count = v.len().min(7);
                peeler.peel(v, count, &mut noise(), &mut scratch, &mut shared).expect("valid");
                peeler.peel(v, count, &mut noise(), &mut PeelScratch::default(), &mut fresh).expect("valid");
                assert_eq!(shared, fresh, "{mechanism:?} {shape}");
            }
        }
    }
}

#[test]
fn values_of_every_size_and_rank_are_released_with_noise() {
    // Gaps of many scales: the order is certain, and of 12 values drawn 50 times a few at most get noise of 0.
    let v: Vec<i64> = (0..12).map(|j| (1 << (61 - 3 * j)) * if j % 2 == 0 { 1 } else { -1 }).collect();
    for mechanism in [Mechanism::Exponential, Mechanism::Laplace] {
        for values in [ValueNoise::Gaussian, ValueNoise::Laplace] {
            let peeler = Peeler::new(mechanism, 1, values, 1000).expect("valid");
            let mut untouched = [0; 12];
            let mut picked = Vec::new();
            for seed in 0..50 {
                let mut noise = SeededNoise::new(seed, 0);
                peeler.peel(&v, 12, &mut noise, &mut PeelScratch::default(), &mut picked).expect("valid");
                for (rank, pick) in picked.iter().enumerate() {
                    assert_eq!(pick.index, rank);
                    untouched[rank] += usize::from(pick.value == v[rank]);
                }
            }
            assert!(untouched.iter().all(|&count| count < 5), "{mechanism:?} {values:?} {untouched:?}");
        }
    }
}

#[test]
fn values_clamp_as_the_exact_sum_would() {
    const LIMIT: i64 = (1 << 62) - 1;
    assert_eq!(released(5, -7), -2);
    assert_eq!(released(LIMIT, 1), LIMIT);
    assert_eq!(released(-LIMIT, i64::MAX), LIMIT);
    assert_eq!(released(LIMIT, -i64::MAX), -LIMIT);
}

#[test]
fn bad_input_is_refused_without_a_value_and_nothing_is_released() {
    let peeler = peeler(Mechanism::Exponential, 5);
    let mut picked = vec![Pick { index: 9, value: 9 }];
    let mut noise = SeededNoise::new(1, 0);
    let mut refused = |v: &[i64], count| {
        let failure = peeler.peel(v, count, &mut noise, &mut PeelScratch::default(), &mut picked);
        assert!(picked.is_empty());
        failure.expect_err("refused").to_string()
    };
    assert_eq!(refused(&[1, 2], 3), "s must be an integer from 0 to the length of v (2), got 3");
    for outlier in [1 << 62, -(1 << 62), i64::MIN, i64::MAX] {
        assert_eq!(refused(&[1, outlier], 1), "v must lie strictly between -2**62 and 2**62");
    }
    assert!(picks(&peeler, &[], 0, 1).is_empty());
    assert!(picks(&peeler, &[3, 4], 0, 1).is_empty());
    assert!(Peeler::new(Mechanism::Laplace, 0, ValueNoise::Laplace, 1).is_err());
    assert!(Peeler::new(Mechanism::Laplace, 1, ValueNoise::Gaussian, 1 << 40).is_err());
}
