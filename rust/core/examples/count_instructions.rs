//! Runs one kernel on fixed inputs, for `benches/count_instructions.py`, which counts its instructions.
//!
//! Only what happens inside `counted` is counted: making the inputs is not.

use fliphat_core::matrix::scalar::Real;
use fliphat_core::matrix::{Csr, Dense};
use fliphat_core::noise::entropy::predictable::SeededNoise;
use fliphat_core::noise::gaussian_vector::release_vector;
use fliphat_core::noise::laplace_mechanism::LaplaceMechanism;
use fliphat_core::private::ball::{BallMap, MOST_RADIUS, second_moments};
use fliphat_core::private::gradient::{Loss, Plan, Rewards, RowMap, clipped_sums};
use fliphat_core::private::niht::{Settings, Threshold, niht};
use fliphat_core::private::peel::{Mechanism, PeelScratch, Peeler, ValueNoise};
use fliphat_core::private::relative::pass::{Kept, Public, relative_sums};
use fliphat_core::private::relative::settled::{Measure, Settled, settled_sums};
use fliphat_core::public::project::project_l1;
use fliphat_core::public::score::select_arms;
use fliphat_core::public::theta::Theta;
use fliphat_core::research::simulate::conditional::Dependence;
use fliphat_core::research::simulate::linear::Linear;
use fliphat_core::research::simulate::marginal::Marginal;
use fliphat_core::research::simulate::reward::Reward;
use fliphat_core::runtime::simd::Level;
use std::hint::black_box;

const ROWS: usize = 2000;
const COLUMNS: usize = 400;
const STORED: usize = 20;

/// The valgrind run collects only while this function is on the stack.
#[inline(never)]
fn counted<T>(kernel: impl FnOnce() -> T) {
    black_box(kernel());
}

/// A fixed sequence of numbers in [-1, 1), the same on every machine.
struct Numbers(u64);

impl Numbers {
    fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 11
    }

    fn number(&mut self) -> f64 {
        self.word() as f64 / (1u64 << 52) as f64 - 1.0
    }

    fn numbers<T: Real>(&mut self, count: usize) -> Vec<T> {
        (0..count).map(|_| T::from_f64(self.number())).collect()
    }
}

fn theta(numbers: &mut Numbers, dimension: usize) -> Theta {
    let pairs = (0..10).map(|place| (place * dimension / 10, numbers.number()));
    Theta::from_pairs(pairs, dimension).expect("valid")
}

fn one_thread() -> Plan {
    Plan { threads: Some(1), ..Plan::default() }
}

fn dense_gradient<T: Real>(numbers: &mut Numbers) {
    let (x, y) = (numbers.numbers::<T>(ROWS * COLUMNS), numbers.numbers::<f64>(ROWS));
    let theta = theta(numbers, COLUMNS);
    let rows = Dense::new(&x, ROWS, COLUMNS).expect("shape");
    let map = RowMap::new(&theta, 1.3, 5.0, Loss::Squared).expect("valid");
    counted(|| clipped_sums(&rows, Rewards::new(&y, None)?, &map, one_thread()));
}

fn sparse_gradient(numbers: &mut Numbers) {
    let columns = 100 * COLUMNS;
    let offsets: Vec<i32> = (0..=ROWS).map(|row| (row * STORED) as i32).collect();
    let mut columns_of = Vec::new();
    for _ in 0..ROWS {
        let start = numbers.word() as usize % (columns / STORED);
        columns_of.extend((0..STORED).map(|place| (place * (columns / STORED) + start) as i32));
    }
    let (x, y) = (numbers.numbers::<f32>(ROWS * STORED), numbers.numbers::<f64>(ROWS));
    let theta = theta(numbers, columns);
    let rows = Csr::new(&offsets, &columns_of, &x, columns).expect("valid");
    let map = RowMap::new(&theta, 1.3, 5.0, Loss::Squared).expect("valid");
    counted(|| clipped_sums(&rows, Rewards::new(&y, None)?, &map, one_thread()));
}

fn arms(numbers: &mut Numbers) {
    let (arms, rounds) = (3, 1000);
    let x = numbers.numbers::<f32>(rounds * arms * COLUMNS);
    let words: Vec<u64> = (0..rounds).map(|_| numbers.word()).collect();
    let theta = theta(numbers, COLUMNS);
    let contexts = Dense::new(&x, rounds * arms, COLUMNS).expect("shape");
    counted(|| select_arms(&contexts, arms, &theta, &words));
}

fn peeler(mechanism: Mechanism) -> Peeler {
    Peeler::new(mechanism, 1 << 20, ValueNoise::Gaussian, 1 << 20).expect("valid")
}

fn peel(numbers: &mut Numbers, mechanism: Mechanism) {
    let v: Vec<i64> = (0..COLUMNS * 25).map(|_| (numbers.number() * 3e7) as i64).collect();
    let peeler = peeler(mechanism);
    counted(|| {
        let (mut scratch, mut picked) = (PeelScratch::default(), Vec::new());
        let noise = &mut SeededNoise::new(1, 0);
        (0..50).try_for_each(|_| peeler.peel(&v, 10, noise, &mut scratch, &mut picked))
    });
}

fn fit(numbers: &mut Numbers) {
    let (x, y) = (numbers.numbers::<f32>(ROWS * COLUMNS), numbers.numbers::<f64>(ROWS));
    let rows = Dense::new(&x, ROWS, COLUMNS).expect("shape");
    let settings = Settings {
        sparsity: 10,
        iterations: 3,
        step_size: 1.0,
        l1_radius: 10.0,
        clip: 1.3,
        reward_clip: 5.0,
        loss: Loss::Squared,
        threshold: Threshold::Private(peeler(Mechanism::Exponential)),
    };
    counted(|| {
        let start = Theta::from_pairs([], COLUMNS)?;
        let noise = &mut SeededNoise::new(1, 0);
        niht(&rows, Rewards::new(&y, None)?, start, &settings, noise, one_thread(), |_| ())
    });
}

fn moments(numbers: &mut Numbers) {
    let (rows, columns) = (1024, 128);
    let x = numbers.numbers::<f64>(rows * columns);
    let rows = Dense::new(&x, rows, columns).expect("shape");
    let all: Vec<usize> = (0..columns).collect();
    let map = BallMap::new(&all, &vec![4000.0; columns], None, MOST_RADIUS, columns).expect("valid");
    counted(|| second_moments(&rows, &map, None, one_thread()));
}

/// Public columns of a fit that has found a few.
const KNOWN: [usize; 5] = [3, 80, 160, 240, 320];

fn relative<T: Real>(numbers: &mut Numbers) {
    let (x, y) = (numbers.numbers::<T>(ROWS * COLUMNS), numbers.numbers::<f64>(ROWS));
    let rows = Dense::new(&x, ROWS, COLUMNS).expect("shape");
    let weights = numbers.numbers::<f64>(1 + KNOWN.len());
    let (mut support, mut residuals) = (vec![0.0; ROWS * weights.len()], vec![0.0; ROWS]);
    let kept = Kept { support: &mut support, width: weights.len(), residuals: &mut residuals };
    let public = Public {
        one: 1.0,
        columns: &KNOWN,
        weights: &weights,
        shift: None,
        units: None,
        loss: Loss::Squared,
        range: None,
        clip: 0.5,
    };
    let present = vec![1; ROWS];
    counted(|| relative_sums(&rows, &y, Some(&present), public, kept, one_thread()));
}

fn settled(numbers: &mut Numbers) {
    let (x, residuals) = (numbers.numbers::<f32>(ROWS * COLUMNS), numbers.numbers::<f64>(ROWS));
    let rows = Dense::new(&x, ROWS, COLUMNS).expect("shape");
    let (filled, columns) = (1 + KNOWN.len(), [100]);
    let m = filled + columns.len();
    let (support, whiten) = (numbers.numbers::<f64>(ROWS * filled), numbers.numbers::<f64>(m * m));
    let present = vec![1; ROWS];
    let settled = Settled {
        support: &support,
        filled,
        columns: &columns,
        units: None,
        residuals: &residuals,
        present: Some(&present),
    };
    let measure = Measure { whiten: &whiten, clip: 0.5, radius: 4095, scale: 1000.0, cap: 2.0 };
    counted(|| settled_sums(&rows, settled, measure, one_thread()));
}

fn rounds(numbers: &mut Numbers) {
    let world = Linear {
        arms: 3,
        truth: theta(numbers, COLUMNS),
        marginal: Marginal::Gaussian,
        dependence: Dependence::Chain(0.1),
        scale: 1.0,
        reward: Reward::Gaussian(0.1),
        margin: None,
        seed: 1,
    };
    let (estimate, mut rows) = (theta(numbers, COLUMNS), vec![0.0; ROWS * COLUMNS]);
    counted(|| world.play(0, ROWS, &estimate, None, Some(&mut rows)));
}

fn main() {
    let numbers = &mut Numbers(1);
    match std::env::args().nth(1).as_deref() {
        Some("project_l1") => {
            let v = numbers.numbers::<f64>(100_000);
            counted(|| project_l1(&v, 10.0, Level::best()));
        }
        Some("clipped_gradient f32") => dense_gradient::<f32>(numbers),
        Some("clipped_gradient f64") => dense_gradient::<f64>(numbers),
        Some("clipped_gradient csr") => sparse_gradient(numbers),
        Some("relative_gradient f32") => relative::<f32>(numbers),
        Some("relative_gradient f64") => relative::<f64>(numbers),
        Some("settled_sums") => settled(numbers),
        Some("select_arms") => arms(numbers),
        Some("laplace") => {
            let mechanism = LaplaceMechanism::new(1.0).expect("valid");
            let mut out = vec![0.0; 100_000];
            counted(|| mechanism.fill(&mut out, &mut SeededNoise::new(1, 0)));
        }
        Some("gaussian_release") => {
            let mut values = vec![0; 100_000];
            counted(|| release_vector(&mut values, &[1000], &mut SeededNoise::new(1, 0)));
        }
        Some("peel exponential") => peel(numbers, Mechanism::Exponential),
        Some("peel laplace") => peel(numbers, Mechanism::Laplace),
        Some("simulated rounds") => rounds(numbers),
        Some("niht") => fit(numbers),
        Some("second_moments") => moments(numbers),
        other => panic!("no such kernel: {other:?}"),
    }
}
