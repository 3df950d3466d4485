//! Layers of equal area that cover the half bell exp(-x^2/2), x >= 0 (after Marsaglia and Tsang 2000), in integers.
//!
//! Heights are integers in units of 2^-40. Layer i is the rectangle of all x from 0 to `VOLUME / rise[i]` and all
//! heights from `floor[i]` to `floor[i] + rise[i]`: whatever its rise, its area is `VOLUME`, exactly. Together the
//! layers cover the curve up to x = 4; what lies beyond 4 is a slot of its own, of the same area (see [`super::rounded`]).
//! So a slot drawn uniformly, and a point drawn uniformly in it, is a point drawn uniformly from a region that covers
//! the curve, and the x of those points that are under the curve has the density of |N(0, 1)|. Nothing here is rounded:
//! floats only chose the integers, and a test holds those to the curve with integer arithmetic.

use std::sync::LazyLock;

use super::float::negative_log;

/// Slots that a proposal chooses from: the layers, and the tail.
pub(super) const SLOTS: usize = 512;

/// The slot of all x >= 4.
pub(super) const TAIL: usize = SLOTS - 1;

/// The height of the curve at 0.
pub(super) const TOP: u64 = 1 << HEIGHT_BITS;

/// Binary digits of a height.
pub(super) const HEIGHT_BITS: u32 = 40;

/// Width times rise of every slot: the smallest multiple of 4 (and a little more) with which 511 layers reach [`TOP`].
pub(super) const VOLUME: u64 = 2_706_421_488;

/// Binary digits of the place in a layer that the first word of a proposal gives.
pub(super) const PLACE_BITS: u32 = 52;

/// The geometry, and what the quick look needs of it.
pub(super) struct Layers {
    /// Height of the lower edge.
    pub(super) floor: [u64; SLOTS],
    /// Height of the upper edge above the lower one. Not 0 (1 for the tail, which has none).
    pub(super) rise: [u64; SLOTS],
    /// Widths as floats, each within u = 2^-53 of `VOLUME / rise`.
    pub(super) width: [f64; SLOTS],
    /// Places below this are under the curve, whatever their further digits and their height. 0 for the tail.
    pub(super) safe: [u64; SLOTS],
}

/// What floats may be wrong by when they choose a rise or a safe place, relative. [`negative_log`] is within 2^-46, and
/// no logarithm here is below 2^-7: their square roots are within 2^-40.
const MARGIN: f64 = 1.0 / (1u64 << 30) as f64;

/// Where the curve has the height `height`, nearly.
fn place_of(height: u64) -> f64 {
    // The logarithm takes 63 binary digits.
    (2.0 * negative_log((height << (63 - HEIGHT_BITS)) as f64)).sqrt()
}

impl Layers {
    /// The one table. The four IEEE operations and a square root make it, so it is the same everywhere.
    pub(super) fn shared() -> &'static Layers {
        static TABLE: LazyLock<Box<Layers>> = LazyLock::new(|| Box::new(Layers::new()));
        &TABLE
    }

    fn new() -> Self {
        let mut layers =
            Layers { floor: [0; SLOTS], rise: [1; SLOTS], width: [0.0; SLOTS], safe: [0; SLOTS] };
        let mut floor = 0;
        for i in 0..TAIL {
            // The lowest layer is 4 wide, exactly; a higher one as wide as the curve at its lower edge, or a little wider.
            let rise =
                if i == 0 { VOLUME / 4 } else { (VOLUME as f64 / (place_of(floor) * (1.0 + MARGIN))) as u64 };
            layers.floor[i] = floor;
            layers.rise[i] = rise;
            layers.width[i] = VOLUME as f64 / rise as f64;
            floor += rise;
            if floor < TOP {
                let safe = place_of(floor) * (1.0 - MARGIN) / layers.width[i];
                layers.safe[i] = (safe * (1u64 << PLACE_BITS) as f64) as u64;
            }
        }
        layers
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use super::*;
    use crate::noise::exact::scaled_exp::ScaledExp;
    use crate::noise::exact::wide;

    /// Whether the curve at `VOLUME * place / (rise * 2^52)` is certainly below `height`, and certainly above.
    fn curve_is(rise: u64, place: u64, height: u64) -> (bool, bool) {
        let root = u128::from(VOLUME) * u128::from(place);
        let number = ScaledExp::of_square(root, [rise, rise, 1 << PLACE_BITS, 1 << (PLACE_BITS + 1)]);
        let (lower, upper) = number.bounds(3);
        let bound = [0, 0, 0, height << (63 - HEIGHT_BITS)];
        (wide::compare(&upper, &bound) != Ordering::Greater, wide::compare(&lower, &bound) != Ordering::Less)
    }

    #[test]
    fn every_layer_covers_the_curve_and_every_safe_place_is_under_it() {
        let layers = Layers::shared();
        let whole = 1 << PLACE_BITS;
        assert_eq!(layers.rise[0] * 4, VOLUME);
        let mut safe = 0.0;
        for i in 0..TAIL {
            let top = layers.floor[i] + layers.rise[i];
            if i > 0 {
                assert_eq!(layers.floor[i], layers.floor[i - 1] + layers.rise[i - 1]);
                // Beyond its right edge the curve is below its lower edge: nothing is left out. And it ends before 4.
                assert!(curve_is(layers.rise[i], whole, layers.floor[i]).0, "{i}");
                assert!(4 * layers.rise[i] >= VOLUME, "{i}");
            }
            if layers.safe[i] > 0 {
                // The last safe place, with all digits that may follow, is below `safe[i]`.
                assert!(curve_is(layers.rise[i], layers.safe[i], top).1, "{i}");
                // Control: a little further on it is not.
                assert!(!curve_is(layers.rise[i], layers.safe[i] + (whole >> 28), top).1, "{i}");
            }
            let width = VOLUME as f64 / layers.rise[i] as f64;
            assert_eq!(layers.width[i], width);
            safe += layers.safe[i] as f64 / whole as f64;
        }
        let top = layers.floor[TAIL - 1] + layers.rise[TAIL - 1];
        assert!((TOP..TOP + (1 << 20)).contains(&top), "{top}");
        assert_eq!(layers.safe[TAIL - 1], 0);
        assert_eq!((layers.safe[TAIL], layers.width[TAIL]), (0, 0.0));
        assert!((safe / SLOTS as f64 - 0.990).abs() < 0.001, "{safe}");
    }

    #[test]
    fn numbers_fit_what_the_sampler_multiplies() {
        let layers = Layers::shared();
        const { assert!(VOLUME < 1 << 32) };
        assert!(layers.rise.iter().all(|rise| *rise < 1 << 35));
        assert!(layers.width[..TAIL].iter().all(|width| (0.1..=4.0).contains(width)));
    }
}
