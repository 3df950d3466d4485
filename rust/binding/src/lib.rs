//! `fliphat._native`: converts arguments and errors, and calls the core with the interpreter released.
//!
//! Nothing is decided here. Arguments arrive checked by `fliphat.kernels`; the core checks again whatever
//! memory safety or privacy rests on. Rooms and files mirror those of the core.

mod matrix;
mod noise;
mod private;
mod public;
mod research;
mod runtime;
mod serving;

use pyo3::prelude::*;

/// The kernels themselves, without checks of arguments: use `fliphat.kernels`.
#[pymodule]
mod _native {
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");

    #[pymodule_export]
    use super::noise::kinds::{RecordingNoise, SecureNoise, SeededNoise};
    #[pymodule_export]
    use super::noise::observe::{taken_draws, watch_draws};
    #[pymodule_export]
    use super::noise::release::{gaussian_release, laplace_fill, laplace_release, peel, pick_columns};
    #[pymodule_export]
    use super::noise::seeded::{seeded_draw, seeded_peel, seeded_picks, seeded_words};
    #[pymodule_export]
    use super::private::ball::{arm_sums, ball_gradient, second_moments};
    #[pymodule_export]
    use super::private::gradient::{clipped_sums, partial_gradient};
    #[pymodule_export]
    use super::private::niht::{FitSettings, niht_fit, niht_fit_sums};
    #[pymodule_export]
    use super::private::pilot::release_pilot;
    #[pymodule_export]
    use super::private::pursuit::{PursuitQuestion, add_sums, partial_sums, release_rows, release_sums};
    #[pymodule_export]
    use super::private::relative::{
        gather_columns, relative_gradient, row_numbers, settled_sums, shifted_gradient,
    };
    #[pymodule_export]
    use super::private::totals::{release_dense, release_totals};
    #[pymodule_export]
    use super::public::kalman::kalman_step;
    #[pymodule_export]
    use super::public::play::Estimate;
    #[pymodule_export]
    use super::public::price::{price, price_scales};
    #[pymodule_export]
    use super::public::project::project_l1;
    #[pymodule_export]
    use super::public::score::{scores, select_arms};
    #[pymodule_export]
    use super::public::vote::Votes;
    #[pymodule_export]
    use super::research::audit::{audit_fits, audit_niht, audit_peel, audit_permute_and_flip};
    #[pymodule_export]
    use super::research::bandwidth::read_all;
    #[pymodule_export]
    use super::research::lasso::lasso_fit;
    #[pymodule_export]
    use super::research::paper::squared_loss_gradient;
    #[pymodule_export]
    use super::research::simulate::{ClickWorld, LinearWorld, round_words};
    #[pymodule_export]
    use super::runtime::simd_levels;
    #[pymodule_export]
    use super::serving::read_body;
}
