"""Mistakes that would cost people their privacy, and the test that notices each.

A mutant is here because it once survived the tests, or because it is the kind of mistake that would.
"""

from mutants.runner import Mutant

PURSUIT_CLAIM = (
    "tests/fit/test_fit_pursuit_noise.py::test_every_episode_asks_for_the_noise_that_its_claim_needs"
)

MUTANTS = [
    Mutant(
        "noise for k = 1 from episode 2 on",
        "python/fliphat/fit/iht/fit.py",
        '"value_scale": noise.value_scale,',
        '"value_scale": noise.value_scale // (noise.rounds_per_user if self.episode > 1 else 1),',
        "tests/fit/test_fit_noise.py::test_every_episode_draws_the_noise_that_k_rounds_of_a_user_need",
        "users with several rounds, in all episodes but the first two",
    ),
    Mutant(
        "picks for k = 1 from episode 2 on",
        "python/fliphat/fit/iht/fit.py",
        '"pick_scale": noise.pick_scale,',
        '"pick_scale": noise.pick_scale // (noise.rounds_per_user if self.episode > 1 else 1),',
        "tests/fit/test_fit_noise.py::test_every_episode_draws_the_noise_that_k_rounds_of_a_user_need",
        "users with several rounds, in all episodes but the first two",
    ),
    Mutant(
        "a plan for k = 1 from episode 2 on",
        "python/fliphat/fit/iht/fit.py",
        "            noise=self._proven(rows, sparsity, iterations, step_size),\n            episode=episode,",
        "            noise=(\n"
        "                self if episode < 2 else IhtFit(dataclasses.replace(settings, rounds_per_user=1))\n"
        "            )._proven(rows, sparsity, iterations, step_size),\n            episode=episode,",
        "tests/fit/test_fit_noise.py::test_every_episode_draws_the_noise_that_k_rounds_of_a_user_need",
        "users with several rounds, in all episodes but the first two",
    ),
    Mutant(
        "iterations as a function are charged once",
        "python/fliphat/fit/iht/fit.py",
        "            noise=self._proven(rows, sparsity, iterations, step_size),\n            episode=episode,",
        "            noise=dataclasses.replace(\n"
        "                self._proven(rows, sparsity, 1 if callable(settings.iterations) else iterations, step_size),\n"
        "                iterations=iterations,\n"
        "            ),\n            episode=episode,",
        "tests/fit/test_fit_noise.py::test_iterations_given_as_a_function_cost_what_the_number_costs",
        "every iteration but one is free",
    ),
    Mutant(
        "one iteration more than is paid for",
        "python/fliphat/fit/iht/fit.py",
        '"iterations": noise.iterations,',
        '"iterations": noise.iterations + 1,',
        "tests/fit/test_fit_noise.py::test_every_episode_draws_the_noise_that_k_rounds_of_a_user_need",
        "everyone",
    ),
    Mutant(
        "one pick more than is paid for",
        "python/fliphat/fit/iht/fit.py",
        '"sparsity": noise.sparsity,',
        '"sparsity": min(noise.sparsity + 1, self.dim),',
        "tests/fit/test_fit_noise.py::test_without_a_reward_noise_is_released_all_the_same",
        "everyone",
    ),
    Mutant(
        "Gaussian values where delta = 0",
        "python/fliphat/fit/iht/fit.py",
        '"value_noise": noise.value_noise,',
        '"value_noise": "gaussian",',
        "tests/fit/test_fit_noise.py::test_pure_privacy_releases_laplace_values_and_only_it",
        "the claim of pure privacy, which no Gaussian noise supports",
    ),
    Mutant(
        "an invalid round is free in a store",
        "python/fliphat/policies/store/sqlite.py",
        "                if owner is not None:\n",
        "                if owner is not None and learned:\n",
        "tests/store/test_store_users.py::test_an_invalid_round_counts_for_its_user_when_the_journal_is_read_again",
        "whether a context was valid decides which later round is learned from",
    ),
    Mutant(
        "a commit whose fence is old is taken",
        "python/fliphat/policies/engine/lifecycle.py",
        '(_P.CLAIMED, "commit"): Step(_P.COMMITTED, _mine, _commit)',
        '(_P.CLAIMED, "commit"): Step(_P.COMMITTED, change=_commit)',
        "tests/policies/test_lifecycle.py",
        "a worker that was overtaken commits after another has read the rows",
    ),
    Mutant(
        "what is committed can be seen",
        "python/fliphat/policies/engine/lifecycle.py",
        '"see": frozenset({_P.SHOWN',
        '"see": frozenset({_P.COMMITTED, _P.SHOWN',
        "tests/policies/test_lifecycle.py",
        "an estimate that the witness refused is shown",
    ),
    Mutant(
        "save does not complete a turn",
        "python/fliphat/policies/live.py",
        '            engine.settle("save")\n',
        "",
        "tests/policies/test_second_release.py",
        "rows of a release that was cut off are fitted again after save and load",
    ),
    Mutant(
        "shrinking depends on how many rewards came",
        "python/fliphat/fit/iht/fit.py",
        "theta = shrunk(theta, _value_noise(plan))",
        "theta = shrunk(theta, _value_noise(plan) * (2 - present.mean()))",
        "tests/fit/test_fit_noise.py::test_how_many_rewards_came_moves_no_estimate_of_rows_that_say_nothing",
        "an exact count of private things leaves with the estimate",
    ),
    Mutant(
        "rounds_per_user may change between openings",
        "python/fliphat/policies/store/sql.py",
        "for name in now if recorded.get(name) != now[name])",
        'for name in now if recorded.get(name) != now[name] and name != "rounds_per_user")',
        "tests/store/test_store_users.py::test_no_argument_of_the_guarantee_can_change_between_openings",
        "rows of k rounds a user are fitted with noise for fewer",
    ),
    Mutant(
        "no fit where no reward came",
        "python/fliphat/fit/iht/fit.py",
        "        if isinstance(plan, EmptyPlan):\n            estimate",
        "        if isinstance(plan, EmptyPlan) or not present.any():\n            estimate",
        "tests/fit/test_fit_noise.py::test_without_a_reward_noise_is_released_all_the_same",
        "an estimate without noise tells that nobody's reward came",
    ),
    Mutant(
        "values with 2/3 of their noise",
        "python/fliphat/fit/iht/fit.py",
        '"value_scale": noise.value_scale,',
        '"value_scale": noise.value_scale * 2 // 3,',
        "tests/fit/test_fit_noise.py::test_every_episode_draws_the_noise_that_k_rounds_of_a_user_need",
        "everyone",
    ),
    Mutant(
        "picks with 2/3 of their noise",
        "python/fliphat/fit/iht/fit.py",
        '"pick_scale": noise.pick_scale,',
        '"pick_scale": noise.pick_scale * 2 // 3,',
        "tests/fit/test_fit_noise.py::test_every_episode_draws_the_noise_that_k_rounds_of_a_user_need",
        "everyone",
    ),
    Mutant(
        "an episode's rows are fitted twice",
        "python/fliphat/policies/engine/turn.py",
        "known, totals = fit.run(episode.plan, rows, numbers, present, before), None",
        "fit.run(episode.plan, rows, numbers, present, before)\n"
        "        known, totals = fit.run(episode.plan, rows, numbers, present, before), None",
        "tests/lab/audit/test_audit.py::test_claims_stand_and_controls_are_caught[FLIPHAT, one round a person]",
        "everyone",
    ),
    Mutant(
        "one round too many of a user is learned from",
        "python/fliphat/policies/engine/identities.py",
        "within[i] = before < self.settings.rounds_per_user",
        "within[i] = before <= self.settings.rounds_per_user",
        "tests/lab/audit/test_audit.py::test_claims_stand_and_controls_are_caught[FLIPHAT, ids, a second episode where k = 1]",
        "users with more rounds than k",
    ),
    Mutant(
        "pursuit: picks with 2/3 of their noise",
        "python/fliphat/fit/pursuit/fit.py",
        "1 if picks is None else picks.scale,",
        "1 if picks is None else picks.scale * 2 // 3,",
        PURSUIT_CLAIM,
        "everyone",
    ),
    Mutant(
        "pursuit: a pick inside the support",
        "rust/core/src/private/episode.rs",
        "    outside.extend_from_slice(excluded);\n",
        "    let _ = excluded;\n",
        "private::pursuit::tests::a_release_is_its_steps_on_the_same_words",
        "nobody, but a fit that asks for a column twice",
    ),
    Mutant(
        "a last vector without noise",
        "rust/core/src/private/episode.rs",
        "noise.add(&mut vector, added)?;",
        "noise.add(&mut vector.clone(), added)?;",
        "private::pursuit::tests::a_release_is_its_steps_on_the_same_words",
        "everyone",
    ),
    Mutant(
        "numbers of whole rows without noise",
        "rust/core/src/private/episode.rs",
        "noise.add(&mut numbers, added)?;",
        "noise.add(&mut numbers.clone(), added)?;",
        "private::pursuit::tests::a_release_is_its_steps_on_the_same_words",
        "everyone in the first episode",
    ),
    Mutant(
        "pursuit: one pick more than is paid for",
        "python/fliphat/fit/pursuit/fit.py",
        "0 if picks is None else picks.count,",
        "0 if picks is None else picks.count + 1,",
        PURSUIT_CLAIM,
        "everyone",
    ),
    Mutant(
        "pursuit: further picks at the scale of one",
        "python/fliphat/fit/pursuit/fit.py",
        "1 if picks is None else picks.scale,",
        "1 if picks is None else int(picks.scale / picks.count**0.5),",
        PURSUIT_CLAIM,
        "everyone in an episode of several picks",
    ),
    Mutant(
        "pursuit: the vector with 2/3 of its noise",
        "python/fliphat/fit/pursuit/fit.py",
        "(gradient.sigma, moments.sigma, size.sigma),",
        "(gradient.sigma * 2 // 3, moments.sigma * 2 // 3, size.sigma * 2 // 3),",
        PURSUIT_CLAIM,
        "everyone",
    ),
    Mutant(
        "pursuit: the moments' diagonal without sqrt 2",
        "rust/core/src/private/pursuit.rs",
        "(2 * squared).isqrt() as u64 + 1",
        "squared.isqrt() as u64",
        "private::pursuit::tests::the_diagonal_of_second_moments_has_sqrt_2_times_the_noise",
        "whoever has one large column",
    ),
    Mutant(
        "numbers that come first priced as if they cost nothing",
        "python/fliphat/fit/pursuit/plan.py",
        'template.append(_scaled([(2 * LIMIT) ** 2, (2 * LIMIT) ** 2, LIMIT**2], [share["rows"] / 3] * 3))',
        'template.append(_scaled([1, 1, 1], [share["rows"] / 3 / (2 * LIMIT) ** 2] * 3))',
        PURSUIT_CLAIM,
        "everyone in the first episode",
    ),
    Mutant(
        "pursuit: moments charged for B^2 where sqrt 2 B^2 is due",
        "python/fliphat/fit/pursuit/plan.py",
        "squares = [m * ROW_SENSITIVITY**2, RADIUS**4, LIMIT**2, BOARD_SQUARED]",
        "squares = [m * ROW_SENSITIVITY**2, RADIUS**4 // 2, LIMIT**2, BOARD_SQUARED]",
        PURSUIT_CLAIM,
        "everyone",
    ),
    Mutant(
        "pursuit: noise for k = 1 from episode 2 on",
        "python/fliphat/fit/pursuit/fit.py",
        "            release = priced_noise(self._claim, len",
        "            claim = self._claim if episode < 2 else self._claim._replace(users=1)\n"
        "            release = priced_noise(claim, len",
        "tests/fit/test_fit_pursuit_noise.py::test_every_episode_asks_for_the_noise_that_k_rounds_of_a_user_need",
        "users with several rounds, in all episodes but the first two",
    ),
    Mutant(
        "a key of 32 random bits",
        "rust/core/src/noise/entropy.rs",
        "source.try_fill_bytes(&mut key).map_err",
        "source.try_fill_bytes(&mut key[..4]).map_err",
        "noise::entropy::tests::all_256_bits_of_a_key_come_from_the_source",
        "who tries all keys takes the noise off",
    ),
    Mutant(
        "moments of rows in a box, whose norm nobody checks",
        "rust/core/src/private/ball/mod.rs",
        "        let factor = if square > radius * radius { radius / square.sqrt() } else { 1.0 };\n"
        "        // Loops of one thing each: the compiler does not find whole registers of numbers of different sizes.\n"
        "        for (integer, value) in integers.iter_mut().zip(values.iter()) {\n"
        "            *integer = rounded_to_zero(value * factor);\n"
        "        }\n"
        "        // Sums of squares up to 2^53 are exact in a float, and one beyond stays beyond.\n"
        "        let mut norms = [0.0; LANES];\n",
        "        let factor = values.iter().fold(1.0f64, |factor, value| factor.min(radius / value.abs()));\n"
        "        // Loops of one thing each: the compiler does not find whole registers of numbers of different sizes.\n"
        "        for (integer, value) in integers.iter_mut().zip(values.iter()) {\n"
        "            *integer = rounded_to_zero(value * factor);\n"
        "        }\n"
        "        // Sums of squares up to 2^53 are exact in a float, and one beyond stays beyond.\n"
        "        let mut norms = [f64::NEG_INFINITY; LANES];\n",
        "private::ball::tests::integers_never_leave_the_ball_and_reach_its_surface",
        "whoever has many large columns",
    ),
    Mutant(
        "moments of few columns of rows whose norm nobody checks",
        "rust/core/src/private/ball/tile.rs",
        "            factors[r] = if squares[r] > radius * radius { cut } else { 1.0 };\n"
        "        }\n"
        "        let mut norms = [0.0; TILE];\n",
        "            factors[r] = if squares[r] > radius * radius { 1.1 * cut } else { 1.0 };\n"
        "        }\n"
        "        let mut norms = [f64::NEG_INFINITY; TILE];\n",
        "private::ball::tests::no_row_has_moments_beyond_the_ball_and_some_reach_it",
        "pursuit's second moments, which are priced for the ball",
    ),
    Mutant(
        "batches of rows whose products pass 32 bits",
        "rust/core/src/private/ball/batch.rs",
        "const REACH: u32 = i32::MAX as u32;",
        "const REACH: u32 = u32::MAX;",
        "private::ball::tests::full_rows_do_not_overflow_the_narrow_sums",
        "rows at the surface of the ball: a sum that wraps moves further than it is priced for",
    ),
    Mutant(
        "large values without noise",
        "rust/core/src/private/peel/mod.rs",
        "*value = released(*value, draw);",
        "if value.unsigned_abs() <= 1 << 40 {\n *value = released(*value, draw);\n }",
        "private::peel::tests::values_of_every_size_and_rank_are_released_with_noise",
        "long episodes and small steps: lattice values pass 2^40 there",
    ),
    Mutant(
        "the last of more than four values without noise",
        "rust/core/src/private/peel/mod.rs",
        "for value in values {",
        "let count = values.len();\n for value in values.iter_mut().take(if count > 4 { count - 1 } else { count }) {",
        "private::peel::tests::values_of_every_size_and_rank_are_released_with_noise",
        "one coefficient of every estimate",
    ),
    Mutant(
        "a ledger that prices one row of a person",
        "python/fliphat/privacy/ledger.py",
        "rows=noise.rounds_per_user,  # all",
        "rows=1,  # all",
        "tests/privacy/test_ledger.py::test_rows_of_one_person_make_every_release_as_much_larger",
        "people with several rows, whose fits are priced together",
    ),
    Mutant(
        "a fit in parts that is written down when it is over",
        "python/fliphat/regression/linear_estimator.py",
        "            guarantee = self.ledger.spend(guarantee.rho, guarantee)\n"
        "        if isinstance(rows, arrays.DaskRows):\n"
        "            known, releases = parts_from_blocks(plan, rows, y)\n"
        "        else:\n"
        "            known, releases = parts.parts_from_rows(plan, rows, y)\n",
        "            pass\n"
        "        if isinstance(rows, arrays.DaskRows):\n"
        "            known, releases = parts_from_blocks(plan, rows, y)\n"
        "        else:\n"
        "            known, releases = parts.parts_from_rows(plan, rows, y)\n"
        "        if self.ledger is not None:\n"
        "            guarantee = self.ledger.spend(guarantee.rho, guarantee)\n",
        "tests/privacy/test_ledger.py::test_a_refused_fit_has_read_no_row",
        "everyone, once the budget is spent",
    ),
    Mutant(
        "a ledger that takes a release of one row for one of several",
        "python/fliphat/privacy/ledger.py",
        "if noise.users != 1 or noise.beside or rows != 1:",
        "if noise.users != 1 or noise.beside:",
        "tests/privacy/test_ledger.py::test_a_release_priced_for_one_row_is_not_written_down_for_several",
        "people with several rows",
    ),
    Mutant(
        "a ledger that forked children spend",
        "python/fliphat/privacy/ledger_file.py",
        "if self._owner != (process.token, os.getpid()):",
        "if self._owner is None:",
        "tests/privacy/test_ledger.py::test_a_forked_child_can_read_and_cannot_spend",
        "everyone, once for each child",
    ),
    Mutant(
        "a ledger's file that is read before it is locked",
        "python/fliphat/privacy/ledger_file.py",
        'with self._transaction("BEGIN IMMEDIATE") as connection:\n            fits = self._read(connection)\n',
        'with self._transaction("BEGIN") as connection:\n            connection.execute("COMMIT")\n'
        '            fits = self._read(connection)\n            connection.execute("BEGIN IMMEDIATE")\n',
        "tests/privacy/test_ledger.py::test_processes_at_once_never_spend_more_than_there_is",
        "everyone, when two processes fit at once",
    ),
    Mutant(
        "each kind of fit by zCDP or exactly, as it likes",
        "python/fliphat/privacy/calibration.py",
        "less = all(scale <= picks for scale, (picks, _) in zip(priced, by_cost, strict=True))",
        "less = priced[0] <= by_cost[0][0]",
        "tests/privacy/test_calibration.py::TestKindsOfFits::test_all_are_priced_in_the_same_way",
        "people whose rows are spread over fits of two kinds",
    ),
    Mutant(
        "pursuit states the first episode's zCDP cost",
        "python/fliphat/fit/pursuit/fit.py",
        "rho=None if exact else Fraction(rho_from_epsilon(settings.epsilon, settings.delta)),",
        "rho=None if exact else first.rho,",
        "tests/fit/test_fit_pursuit.py::TestPrice::test_what_is_stated_in_zcdp_covers_every_episode",
        "people whose rows are in a later episode, by some 1e-8",
    ),
    Mutant(
        "the pure shortcut looks at the first fit only",
        "python/fliphat/privacy/composition.py",
        "if all(_most(fit) <= Fraction(epsilon) for fit in menu):",
        "if all(_most(fit) <= Fraction(epsilon) for fit in menu[:1]):",
        "tests/privacy/test_composition.py::TestUsers::test_a_fit_beside_a_pure_one_is_priced_as_well",
        "people whose rows enter a fit that has no pure price",
    ),
    Mutant(
        "values are constant above the last node",
        "rust/core/src/public/price/value.rs",
        "(1.0 - (1.0 - top) * beyond).clamp(top, 1.0)",
        "(1.0 - (1.0 - top) * beyond).clamp(top, top)",
        "public::price::value::tests::beyond_the_nodes_it_stays_above_every_convex_function_through_them",
        "everyone, where losses are larger than the grid",
    ),
    Mutant(
        "a pilot priced for half of what a row moves",
        "python/fliphat/fit/pursuit/fit.py",
        "PickNoise(PILOT_STEPS, 100 * PILOT_STEPS), PickNoise(PILOT_STEPS, 100 * PILOT_STEPS)",
        "PickNoise(PILOT_STEPS // 2, 100 * PILOT_STEPS), PickNoise(PILOT_STEPS // 2, 100 * PILOT_STEPS)",
        "tests/fit/test_observed_draws.py::test_fits_of_every_kind_are_observed_and_charged",
        "everyone whose round is in a pilot",
    ),
    Mutant(
        "a pilot's scores are doubled",
        "rust/core/src/private/pilot.rs",
        "raised + count * self.step -",
        "raised + 2 * count * self.step -",
        "private::pilot::tests::one_reward_moves_a_score_by_one_step_and_what_did_not_come_by_none",
        "everyone whose round is in a pilot",
    ),
    Mutant(
        "a pilot counts in twice the steps that it is priced for",
        "python/fliphat/fit/pursuit/fit.py",
        "(c.PILOT_PLACES, PILOT_STEPS),",
        "(c.PILOT_PLACES, 2 * PILOT_STEPS),",
        "tests/fit/test_observed_draws.py::test_a_pilot_is_priced_for_the_steps_that_its_kernel_counts_in",
        "everyone whose round is in a pilot",
    ),
    Mutant(
        "a pilot priced for one round of a person",
        "python/fliphat/fit/pursuit/fit.py",
        "users=settings.rounds_per_user,",
        "users=1,",
        "tests/fit/test_observed_draws.py::test_a_pilot_is_priced_for_the_steps_that_its_kernel_counts_in",
        "people with several rounds in a pilot",
    ),
    Mutant(
        "a pilot counts distances of rewards that never came",
        "rust/core/src/private/pilot.rs",
        "if present.iter().all(|flag| *flag != 0) {",
        "if present.iter().all(|flag| *flag < 2) {",
        "private::pilot::tests::one_reward_moves_a_score_by_one_step_and_what_did_not_come_by_none",
        "whoever was cancelled, forgotten or is beyond the limit",
    ),
    Mutant(
        "a pilot counts places of rewards that never came",
        "rust/core/src/private/pilot.rs",
        ".filter(|(_, flag)| **flag != 0)",
        ".filter(|(_, flag)| **flag < 2)",
        "private::pilot::tests::one_reward_moves_a_score_by_one_step_and_what_did_not_come_by_none",
        "whoever was cancelled, forgotten or is beyond the limit",
    ),
    Mutant(
        "further picks read rows whose reward never came",
        "rust/core/src/private/pursuit.rs",
        "        let present = self.present;\n        let moved",
        "        let present = None;\n        let moved",
        "private::pursuit::tests::sparse_rows_threads_and_parts_change_nothing_and_rows_that_are_absent_are_not_read",
        "whoever was cancelled, forgotten or is beyond the limit",
    ),
    Mutant(
        "the last vector counts rows whose reward never came",
        "rust/core/src/private/pursuit.rs",
        "(self.rows, self.present, self.asked, self.plan)",
        "(self.rows, None, self.asked, self.plan)",
        "private::pursuit::tests::sparse_rows_threads_and_parts_change_nothing_and_rows_that_are_absent_are_not_read",
        "whoever was cancelled, forgotten or is beyond the limit",
    ),
    Mutant(
        "sizes of rows whose reward never came",
        "rust/core/src/private/pursuit.rs",
        "row_numbers(self.rows, ruler, self.present, self.plan)",
        "row_numbers(self.rows, ruler, None, self.plan)",
        "private::pursuit::tests::sparse_rows_threads_and_parts_change_nothing_and_rows_that_are_absent_are_not_read",
        "whoever was cancelled, forgotten or is beyond the limit",
    ),
    Mutant(
        "grouped rounds beyond the limit keep their rows",
        "python/fliphat/policies/engine/each.py",
        "Rounds(engine.chooser, stacked, arms, words, learned, explored)",
        "Rounds(engine.chooser, stacked, arms, words, None, explored)",
        "tests/store/test_store_group.py::test_rounds_of_a_group_beyond_the_limit_are_zeros_in_the_fit",
        "people with more rounds than k, over HTTP",
    ),
    Mutant(
        "what was shown can be committed once more",
        "python/fliphat/policies/engine/lifecycle.py",
        '    (_P.COMMITTED, "accept"): Step(_P.WITNESSED),\n',
        '    (_P.COMMITTED, "accept"): Step(_P.WITNESSED),\n'
        '    (_P.SHOWN, "commit"): Step(_P.COMMITTED, change=_commit),\n',
        "tests/policies/test_lifecycle.py",
        "an episode is released with two values",
    ),
    Mutant(
        "a claim does not wait for rewards that are under way",
        "python/fliphat/policies/store/sql.py",
        '            if event == "claim":\n                self.wait_for_rewards(tx)\n',
        "",
        "tests/store/test_postgres.py::test_a_reward_after_forget_and_one_that_races_a_claim",
        "a reward is acknowledged and not learned from",
    ),
    Mutant(
        "a forgotten row in a database is still learned from",
        "python/fliphat/policies/store/postgres/store.py",
        "SET learned = false, columns = NULL,",
        "SET columns = NULL,",
        "tests/store/test_postgres.py::test_a_reward_after_forget_and_one_that_races_a_claim",
        "a reward that comes after forget is learned from",
    ),
    Mutant(
        "a load that is cut off has consumed its file",
        "python/fliphat/policies/live.py",
        "            if file.consumed and",
        "            if not file.consumed and",
        "tests/store/test_cuts.py::test_a_call_cut_off_before_some_lines[('load', 'FLIPHAT', 'memory')]",
        "everything that a saved policy had learned",
    ),
    Mutant(
        "what a killed process committed stays in the log",
        "python/fliphat/policies/store/sqlite.py",
        "                self._settle_log()  # what a process",
        "                pass  # what a process",
        "tests/store/test_store_damage.py::"
        "test_a_commit_that_a_killed_process_left_in_the_log_leaves_it_before_it_is_shown",
        "a release that was shown is lost with the log, and its rows are fitted again",
    ),
    Mutant(
        "a store has two owners once its lock is lost",
        "python/fliphat/policies/store/sqlite.py",
        'if name != "open" and connection',
        'if name == "none" and connection',
        "tests/store/test_store.py::"
        "test_an_owner_whose_lock_was_lost_does_nothing_after_another_opened_the_store",
        "a reward is acknowledged into rows that another owner has fitted",
    ),
    Mutant(
        "a witness is replaced under the name of a link to it",
        "python/fliphat/policies/store/witness.py",
        "self._path = path.resolve()",
        "self._path = path",
        "tests/store/test_witness.py::test_a_link_to_a_witness_is_the_witness",
        "a copy finds the record of before, and releases the same rows",
    ),
    Mutant(
        "rows and rewards of a fit are read at two moments",
        "python/fliphat/policies/store/postgres/store.py",
        'LEVEL REPEATABLE READ READ ONLY")\n                    return work',
        'LEVEL READ COMMITTED READ ONLY")\n                    return work',
        "tests/store/test_postgres.py::test_rows_and_rewards_are_read_as_they_are_at_one_moment",
        "a row that is forgotten meanwhile is fitted as zeros with its reward",
    ),
]
