//! Standard normal draws by the ziggurat method (Marsaglia and Tsang 2000), in f32 and f64.
//!
//! The density is covered by 256 layers of equal area. A draw picks a layer and a point in its width; 98.8 % of
//! draws are under the curve at once, the rest are settled against the density itself. Layer and point come
//! from different bits of a word (Doornik 2005: sharing them correlates neighbours).
//!
//! f32 draws live on a grid of 2^-23 layer widths (4e-7 at most) and reach 3.65 and beyond by the exact tail.

use std::sync::LazyLock;

use crate::research::simulate::words::SimulationRng;
use crate::runtime::simd::draws::Layers;

const LAYERS: usize = 256;
/// Fewer pairs than these are drawn one by one.
const WIDE_FROM: usize = 8;
/// Where the tail begins, for 256 layers.
const TAIL: f64 = 3.654_152_885_361_009;
/// Area of each layer, under the unnormalised density `exp(-x^2/2)`; the tail is part of the lowest one.
const AREA: f64 = 0.004_928_673_233_974_655;

/// Layer edges and heights of the density, from the widest layer to the peak.
pub struct Ziggurat {
    edges: [f64; LAYERS + 1],
    heights: [f64; LAYERS + 1],
    /// For f32: width of a grid cell of the layer, and where the next layer's edge cuts it.
    narrow: Layers,
}

static TABLES: LazyLock<Ziggurat> = LazyLock::new(Ziggurat::build);

/// The tables, built at first use.
pub fn ziggurat() -> &'static Ziggurat {
    &TABLES
}

fn density(x: f64) -> f64 {
    (-0.5 * x * x).exp()
}

impl Ziggurat {
    fn build() -> Self {
        let mut edges = [0.0; LAYERS + 1];
        // The lowest layer as a rectangle of the same area, tail included.
        edges[0] = AREA / density(TAIL);
        edges[1] = TAIL;
        for i in 1..LAYERS - 1 {
            edges[i + 1] = (-2.0 * (AREA / edges[i] + density(edges[i])).ln()).sqrt();
        }
        let heights = edges.map(density);
        let narrow = Layers {
            cells: std::array::from_fn(|i| (edges[i] / f64::from(1 << 23)) as f32),
            inner: std::array::from_fn(|i| edges[i + 1] as f32),
        };
        Ziggurat { edges, heights, narrow }
    }

    /// Fill with standard normals, two from each word.
    #[inline]
    pub fn fill(&self, rng: &mut SimulationRng, out: &mut [f32]) {
        let (pairs, last) = out.as_chunks_mut::<2>();
        let mut rest = pairs;
        while rest.len() >= WIDE_FROM {
            let here = rng.draw_ahead(&self.narrow, 2 * rest.len());
            let mut at = 0;
            while at < here {
                // Of a pair of which one draw must be settled, both are drawn again.
                let end = rng.drawn().next_doubtful(at, here) & !1;
                let (run, others) = rest.split_at_mut((end - at) / 2);
                run.as_flattened_mut().copy_from_slice(&rng.drawn().draws[at..end]);
                rng.skip(end - at);
                (at, rest) = (end, others);
                if end < here {
                    let before = rng.unread_count();
                    self.pairs(rng, &mut rest[..1]);
                    rest = &mut rest[1..];
                    let after = rng.unread_count();
                    if after > before {
                        break; // These are other words than those that the draws were made of.
                    }
                    at += before - after;
                }
            }
        }
        self.pairs(rng, rest);
        for last in last {
            *last = self.single((rng.next_u64() >> 32) as u32, rng);
        }
    }

    #[inline(always)]
    fn pairs(&self, rng: &mut SimulationRng, pairs: &mut [[f32; 2]]) {
        for pair in pairs {
            let word = rng.next_u64();
            *pair = [self.single(word as u32, rng), self.single((word >> 32) as u32, rng)];
        }
    }

    #[inline(always)]
    fn single(&self, bits: u32, rng: &mut SimulationRng) -> f32 {
        let (layer, x) = self.narrow.draw(bits);
        if x.abs() < self.narrow.inner[layer] { x } else { self.settle(layer, f64::from(x), rng) as f32 }
    }

    /// A standard normal from (nearly always) one word.
    #[inline]
    pub fn double(&self, rng: &mut SimulationRng) -> f64 {
        let word = rng.next_u64();
        let layer = (word & 255) as usize;
        let x = (((word as i64) >> 11) as f64 + 0.5) * (self.edges[layer] / (1u64 << 52) as f64);
        if x.abs() < self.edges[layer + 1] { x } else { self.settle(layer, x, rng) }
    }

    /// A point beyond the part of its layer that is surely under the curve.
    #[cold]
    fn settle(&self, layer: usize, x: f64, rng: &mut SimulationRng) -> f64 {
        if layer == 0 {
            return tail(rng).copysign(x);
        }
        let (low, high) = (self.heights[layer], self.heights[layer + 1]);
        if low + rng.uniform() * (high - low) < density(x) { x } else { self.double(rng) }
    }
}

/// A normal beyond `TAIL` (Marsaglia 1964).
fn tail(rng: &mut SimulationRng) -> f64 {
    loop {
        // 1 - u is never 0, so that its logarithm is finite.
        let beyond = -(1.0 - rng.uniform()).ln() / TAIL;
        let height = -(1.0 - rng.uniform()).ln();
        if 2.0 * height >= beyond * beyond {
            return TAIL + beyond;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_have_equal_areas_and_meet_at_the_peak() {
        let tables = ziggurat();
        for i in 1..LAYERS {
            let area = tables.edges[i] * (tables.heights[i + 1] - tables.heights[i]);
            assert!((area / AREA - 1.0).abs() < 1e-9, "layer {i}: {area}");
        }
        assert_eq!(tables.edges[LAYERS], 0.0);
    }

    /// Pearson's statistic of draws against the normal probabilities of 80 cells of width 0.1, tails beyond 4.
    fn pearson(mut draw: impl FnMut() -> f64) -> f64 {
        const DRAWS: usize = 2_000_000;
        let mut counts = [0u32; 82];
        for _ in 0..DRAWS {
            counts[((draw() + 4.0) * 10.0 + 1.0).floor().clamp(0.0, 81.0) as usize] += 1;
        }
        let mut total = 0.0;
        for (cell, count) in counts.iter().enumerate() {
            let low = if cell == 0 { f64::NEG_INFINITY } else { -4.0 + 0.1 * (cell as f64 - 1.0) };
            let high = if cell == 81 { f64::INFINITY } else { -4.0 + 0.1 * cell as f64 };
            let expected = DRAWS as f64 * (distribution(high) - distribution(low));
            total += (f64::from(*count) - expected).powi(2) / expected;
        }
        total
    }

    /// The normal distribution function by Simpson's rule: slow, and independent of the sampler.
    fn distribution(x: f64) -> f64 {
        if x.is_infinite() {
            return if x < 0.0 { 0.0 } else { 1.0 };
        }
        let (steps, mut sum) = (2000, 0.0);
        for i in 0..=steps {
            let weight = if i == 0 || i == steps { 1.0 } else { 2.0 + 2.0 * f64::from(i % 2) };
            sum += weight * density(x * f64::from(i) / f64::from(steps));
        }
        0.5 + sum * x / (3.0 * f64::from(steps)) / (2.0 * std::f64::consts::PI).sqrt()
    }

    // 81 degrees of freedom: beyond 150 with probability 5e-6.
    const REJECT: f64 = 150.0;

    #[test]
    fn both_widths_follow_the_normal_distribution() {
        let mut rng = SimulationRng::new(1, 0);
        let doubles = pearson(|| ziggurat().double(&mut rng));
        let mut rng = SimulationRng::new(2, 0);
        let mut pair = [0.0f32; 3];
        let mut used = 3;
        let singles = pearson(|| {
            if used == 3 {
                ziggurat().fill(&mut rng, &mut pair);
                used = 0;
            }
            used += 1;
            f64::from(pair[used - 1])
        });
        assert!(doubles < REJECT && singles < REJECT, "{doubles} {singles}");
    }

    #[test]
    fn a_ziggurat_that_never_settles_is_rejected() {
        let mut rng = SimulationRng::new(1, 0);
        let tables = ziggurat();
        let statistic = pearson(|| {
            let word = rng.next_u64();
            (((word as i64) >> 11) as f64 + 0.5) * (tables.edges[(word & 255) as usize] / (1u64 << 52) as f64)
        });
        assert!(statistic > 2.0 * REJECT, "{statistic}");
    }

    #[test]
    fn a_scale_one_percent_too_large_is_rejected() {
        let mut rng = SimulationRng::new(1, 0);
        assert!(pearson(|| 1.01 * ziggurat().double(&mut rng)) > 2.0 * REJECT);
    }
}
