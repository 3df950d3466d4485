"""What a claim is worth for a group, and a record of a claim that somebody else can check."""

import copy
import importlib.util
import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from fliphat import FLIPHAT, Iht, PrivateLinear, PrivateSparseRegressor
from fliphat.privacy import Ledger, composition, group
from fliphat.privacy.composition import Gaussian, Pick
from fliphat.privacy.conversion import epsilon_from_rho
from fliphat.privacy.guarantee import group_table

EXAMPLE = Path(__file__).parents[2] / "examples" / "check_guarantee.py"
DELTA = 1e-5


def sparse(**given):
    return FLIPHAT(**{"dim": 30, "sparsity": 4, "epsilon": 1.0, "delta": DELTA} | given)


def linear(**given):
    return PrivateLinear(["a", "b"], dim=5, epsilon=1.0, delta=DELTA, context_norm=1.0, **given)


class TestGroup:
    def test_one_gaussian_is_known_in_closed_form(self):
        claim = linear().guarantee
        (mu,) = (event.mu for event in claim.release.events)
        for m in (2, 5, 20):
            eps = claim.group(m)
            delta = stats.norm.sf(eps / (m * mu) - m * mu / 2) - np.exp(
                eps + stats.norm.logsf(eps / (m * mu) + m * mu / 2)
            )
            assert DELTA * (1 - 1e-4) < delta <= DELTA * (1 + 1e-9)

    @pytest.mark.parametrize("fit", [{}, {"fit": Iht()}, {"fit": Iht(), "rounds_per_user": 2}])
    def test_rounds_in_one_fit_or_one_after_the_other_are_covered(self, fit):
        within = DELTA * (1 + 1e-3)  # bounds on other grids of losses differ by some millionths
        claim = sparse(**fit).guarantee
        k = claim.rounds_per_user
        kinds, spread = claim._kinds(claim.release)
        assert spread and len(kinds) > 1
        for m in (k + 1, 2 * k, 3 * k):
            eps = claim.group(m)
            assert eps > m / k  # privacy of a group falls faster than in proportion
            for kind in kinds:
                grown = [event.scaled(m / k) for event in kind]
                assert composition.delta(eps, grown) <= within
            parts = [
                event.scaled(rows / k)
                for kind, rows in zip(kinds[:2], (m - 1, 1), strict=True)
                for event in kind
            ]
            assert composition.delta(eps, parts) <= within
        assert claim.group(1) == claim.group(k) == 1.0

    @pytest.mark.parametrize(
        "given", [{"epsilon": 1.0}, {"epsilon": 8.0, "sparsity": 10}, {"reward_scale": "estimate"}]
    )
    def test_every_episode_of_pursuit_is_of_a_kind_that_was_priced(self, given):
        policy = sparse(**given)
        fit = policy._fit
        kinds = [[(type(event), event) for event in kind] for kind in fit.kinds()]
        rng = np.random.default_rng(3)
        for episode in range(6):
            plan = fit.plan(episode, policy._engine.known)
            events = plan.release.events
            assert any(
                [type(event) for event in events] == [law for law, _ in kind]
                and all(mine.variance <= its.variance for mine, (_, its) in zip(events, kind, strict=True))
                for kind in kinds
            )
            contexts = rng.standard_normal((policy.remaining, 2, 30)).astype(np.float32)
            decisions = policy.select_batch(contexts)
            policy.update_batch(decisions, contexts[np.arange(len(contexts)), decisions.arms, 0])
            policy.select(contexts[0])

    def test_fits_of_the_same_price_differ_for_a_group(self):
        # The control: the price of one kind, as one person's claim has it, would be too little for another.
        one, other = [Gaussian(1.0)], [Pick(2.0)]
        kinds = []
        for events in (one, other):
            factor = composition.largest_factor(1.0, 0.01, events)
            kinds.append(tuple(event.scaled(factor) for event in events))
        alone = [group.epsilon_of(Fraction(5), (0.0, 0.01), None, (kind,), 5) for kind in kinds]
        together = group.epsilon_of(Fraction(5), (0.0, 0.01), None, tuple(kinds), 5)
        assert together > (1 - 1e-6) * max(alone) > 1.2 * min(alone)
        worst = kinds[int(np.argmax(alone))]
        assert composition.delta(min(alone), [event.scaled(5) for event in worst]) > 1.2 * 0.01

    def test_zcdp_and_pure_claims(self):
        claim = sparse(rounds_per_user=3).guarantee
        assert claim.accounting == "zcdp"
        assert claim.group(6) == epsilon_from_rho(claim.rho * 4, DELTA)
        assert claim.group(3) == 1.0 < claim.group(4)
        pure = sparse(fit=Iht(), delta=0.0).guarantee
        assert pure.group(7) == 7.0

    def test_a_regression_has_all_rows_in_one_fit(self):
        X = np.random.default_rng(0).standard_normal((300, 4))
        model = PrivateSparseRegressor(epsilon=1.0, delta=DELTA, solver=Iht()).fit(X, X[:, 0])
        events = model.guarantee_.release.events
        eps = model.guarantee_.group(3)
        assert composition.delta(eps, [event.scaled(3) for event in events]) == pytest.approx(DELTA, rel=1e-3)
        ledger = Ledger(delta=DELTA)
        model.set_params(ledger=ledger).fit(X, X[:, 0])
        both = model.fit(X, X[:, 0]).guarantee_
        assert both.kinds is None and both.group(2) > both.epsilon

    def test_what_has_no_group(self):
        with pytest.raises(ValueError, match="must be known beforehand"):
            sparse(fit=Iht(iterations=lambda rows: 2)).guarantee.group(2)
        with pytest.raises(ValueError, match="rounds must be an integer"):
            linear().guarantee.group(0)

    def test_the_table_says_what_the_claim_says(self):
        for policy in (sparse(), linear(), sparse(rounds_per_user=2), sparse(fit=Iht(), delta=0.0)):
            claim = policy.guarantee
            k = claim.rounds_per_user
            table = group_table(json.loads(json.dumps(claim.to_dict())))
            assert table == [(m * k, pytest.approx(claim.group(m * k), rel=1e-12)) for m in group.GROUPS]


@pytest.fixture(scope="module")
def checker():
    spec = importlib.util.spec_from_file_location("check_guarantee", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def record_of(policy):
    return json.loads(json.dumps(policy.guarantee.to_dict()))


POLICIES = {
    "pursuit": sparse,
    "a pick and a vector, thrice": lambda: sparse(fit=Iht(iterations=3, warm_start=False)),
    "rounds that may be spread": lambda: sparse(fit=Iht(), rounds_per_user=2),
    "dense": linear,
    "zcdp": lambda: sparse(rounds_per_user=3),
}


class TestCertificate:
    def test_the_checker_is_short_and_needs_numpy_alone(self):
        lines = EXAMPLE.read_text(encoding="utf-8").splitlines()
        assert len(lines) < 200
        imports = {line.split()[1] for line in lines if line.startswith(("import ", "from "))}
        assert imports == {"itertools", "json", "math", "sys", "fractions", "numpy"}

    @pytest.mark.parametrize("name", POLICIES)
    def test_a_claim_is_computed_again_from_its_record(self, checker, name):
        record = record_of(POLICIES[name]())
        assert "1e-05)-DP" in checker.check(record)
        assert "1e-05)-DP" in checker.check(
            record | {"group": group_table(record)[:2]} if name != "zcdp" else record
        )

    @pytest.mark.parametrize(
        ("name", "thorough"),
        [
            ("pursuit", False),
            ("pursuit", True),
            ("a pick and a vector, thrice", True),
            # The price is that of the dearer of two kinds: what is cheaper may be forged to be cheaper still.
            ("rounds that may be spread", False),
        ],
    )
    @pytest.mark.parametrize(
        "tampering",
        [
            "a smaller scale",
            "a larger scale",
            "a smaller sigma",
            "an event less",
            "another order",
            "epsilon",
            "delta",
        ],
    )
    def test_a_record_that_was_changed_is_refused(self, checker, name, tampering, thorough):
        record = record_of(POLICIES[name]())
        release = record["release"]
        noise = release["noise"][0]
        pick = next(one for one in noise if "picks" in one)
        if tampering == "a smaller scale":
            pick["scale"] = pick["scale"] * 99 // 100
        elif tampering == "a larger scale":
            pick["scale"] = pick["scale"] * 101 // 100
        elif tampering == "a smaller sigma":
            vector = next(one for one in noise if "vector" in one)
            vector["vector"][0][1] = vector["vector"][0][1] * 99 // 100
        elif tampering == "an event less":
            noise.pop()
        elif tampering == "another order":
            noise.insert(0, noise.pop())
        else:
            record[tampering] = release[tampering] = record[tampering] * 0.99
        if thorough:  # whoever forges scales forges events, too
            release["events"] = checker.events_of(noise, release["users"])
        with pytest.raises(checker.Refused):
            checker.check(record)

    def test_a_price_that_is_too_high_for_the_claim_is_refused_though_it_is_said(self, checker):
        record = record_of(sparse())
        release = record["release"]
        for noise in release["noise"][0]:
            if "picks" in noise:
                noise["scale"] //= 2
        release["events"] = checker.events_of(release["noise"][0], 1)
        release["price"] = checker.price(1.0, [release["events"]], 1, release["grid"])
        assert release["price"] > DELTA
        with pytest.raises(checker.Refused, match="the releases cost"):
            checker.check(record)

    def test_other_claims_that_do_not_hold_are_refused(self, checker):
        record = record_of(sparse(rounds_per_user=3))
        forged = record | {"rho_exact": str(Fraction(record["rho_exact"]) * Fraction(101, 100))}
        with pytest.raises(checker.Refused, match="rho"):
            checker.check(forged)
        with pytest.raises(checker.Refused, match="nothing is claimed"):
            checker.check(record_of(sparse(seed=1)))
        whole = record_of(sparse())
        group = [[2, group_table(whole)[0][1] * 0.95]]
        with pytest.raises(checker.Refused, match="2 rounds together"):
            checker.check(copy.deepcopy(whole) | {"group": group})
        assert math.isclose(whole["epsilon"], 1.0)
