"""Every draw of a fit is priced again, from what the samplers really drew.

The core reports each draw of noise where it happens: law, scale, count. A fit's draws are taken while it runs; how
far one row can move what they protect is written down here, once more and by hand, and the whole is priced. A
fit that drew less noise, or drew more often, than its claim allows fails the test that ran it. So do draws that no
fit accounts for.
"""

import contextlib
import functools
import math
import threading
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from fliphat import _native
from fliphat.fit import dense
from fliphat.fit.dense import parts as dense_parts
from fliphat.fit.iht import run
from fliphat.fit.pursuit import fit as pursuit
from fliphat.lab.peers import sums as peers
from fliphat.privacy import composition
from fliphat.privacy.accounting import pure_dp_zcdp
from fliphat.privacy.composition import Gaussian, Pick
from fliphat.privacy.conversion import rho_from_epsilon

#: How far replacing a row moves a sum of integers within -2^15 .. 2^15, and within 0 .. 2^15.
SIGNED, ONE_SIDED = 2**16, 2**15
#: A pilot's counts move by 1, in steps of so much; second moments are of rows within a ball of this radius.
COUNT, RADIUS = 2**10, 2**12 - 1
#: Steps of a reward to either side: what an episode earned moves by sqrt(9/2) of them.
REWARD = 2**10

_SLACK = 1 + 1e-6
_MOST_EVENTS = 400


class Uncharged(AssertionError):
    """More was drawn, or with less noise, than was charged for."""


@dataclass
class Observer:
    """What was seen: fits whose draws were priced, and draws."""

    fits: int = 0
    draws: int = 0
    uncharged: list = field(default_factory=list)
    stray: list = field(default_factory=list)
    _open: int = 0
    _mixed: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _inside: threading.local = field(default_factory=threading.local)

    @contextlib.contextmanager
    def fit(self, price):
        """Take the draws of a fit, and price them when it is over."""
        if getattr(self._inside, "fit", False):
            yield  # a step of a fit that is watched as a whole
            return
        with self._lock:
            if self._open == 0:
                self.stray += _native.taken_draws()
            self._open += 1
            self._mixed |= self._open > 1  # fits of two threads: whose draw is whose is not known
        self._inside.fit = True
        try:
            yield
        finally:
            self._inside.fit = False
            with self._lock:
                self._open -= 1
                drawn = _native.taken_draws() if self._open == 0 else []
                mixed, self._mixed = self._mixed, self._mixed and self._open > 0
            if drawn and not mixed:
                self._price(price, drawn)

    def _price(self, price, drawn):
        self.fits += 1
        self.draws += sum(count for _, runs in drawn for _, count in runs)
        try:
            price(drawn)
        except Uncharged as problem:
            self.uncharged.append(str(problem))  # not raised here, where a policy would try the fit again


def _refuse_above(cost, allowed, what):
    if float(cost) > float(allowed) * _SLACK:
        raise Uncharged(
            f"what was drawn costs {what} = {float(cost):.6g}, and {float(allowed):.6g} was charged"
        )


def within_claim(events, epsilon, delta, rho=None):
    """Refuse events that cost more than the claim."""
    rho, allowed = (
        composition.zcdp(events) if rho is None else rho,
        Fraction(rho_from_epsilon(epsilon, delta)),
    )
    if rho <= allowed * Fraction(_SLACK):
        return  # zCDP is a bound as well
    if len(events) > _MOST_EVENTS or delta < composition.SMALLEST_DELTA:
        _refuse_above(rho, allowed, "rho")
    _refuse_above(composition.delta(epsilon, events), delta, "delta")


def vector_of_pursuit(runs, m):
    """Return the squared shift of a vector: m gradients, moments, a size, the board; or of whole rows."""
    sigmas = np.repeat(*np.array(runs, np.int64).T).astype(float)
    rows = np.array([SIGNED, SIGNED, ONE_SIDED])
    if len(sigmas) == 3 and sigmas[0] == sigmas[1]:
        return float(np.sum((rows / sigmas) ** 2))
    if len(sigmas) - (m + m * (m + 1) // 2 + 1) not in (0, 5):
        raise Uncharged(f"pursuit drew a vector of {len(sigmas)} numbers about {m} columns")
    gradient, moments, size, board = np.split(sigmas, np.cumsum([m, m * (m + 1) // 2, 1]))
    above = np.zeros((m, m))
    above[np.triu_indices(m)] = moments
    # |v v' - w w'|_F^2 <= 2 B^4, half of it above the diagonal, whose noise must be sqrt(2) times as large.
    smallest = min(*np.diag(above) / math.sqrt(2), *above[np.triu_indices(m, 1)], math.inf)
    shifts = (SIGNED / gradient, RADIUS**2 / smallest, ONE_SIDED / size)
    earned = 4.5 * REWARD**2 / min(board, default=math.inf) ** 2
    return float(sum(np.sum(shift**2) for shift in shifts) + earned)


def price_pursuit(drawn, settings, plan):
    """Price an episode of pursuit, a part of a regression, or a pilot."""
    moved = COUNT if isinstance(plan, pursuit.PilotPlan) else SIGNED
    events = []
    for law, runs in drawn:
        if law == "pick":
            events += [Pick(2 * moved / scale) for scale, count in runs for _ in range(count)]
        elif law == "vector" and moved == SIGNED:
            events.append(Gaussian(math.sqrt(vector_of_pursuit(runs, len(plan.steps.whiten)))))
        else:
            raise Uncharged(f"pursuit drew {law}")
    users = settings.rounds_per_user
    if users > 1:  # rows are spread over episodes that differ: only zCDP adds up
        allowed = Fraction(rho_from_epsilon(settings.epsilon, settings.delta))
        _refuse_above(composition.zcdp(events) * users**2, allowed, "rho")
    else:
        within_claim(events, settings.epsilon, settings.delta)


def price_iht(drawn, plan):
    """Price a fit by hard thresholding: picks and values, as often as they were drawn."""
    epsilon, delta, users = plan.budget.epsilon, plan.budget.delta, plan.budget.rounds_per_user
    events, rho, pure = [], Fraction(0), Fraction(0)
    for law, runs in drawn:
        for scale, count in runs:
            ratio = Fraction(SIGNED * users, scale)
            if law in ("pick", "noisy max", "laplace"):
                # Ranges of the loss: 2 L/beta, twice 2 L/t, twice L/t.
                largest = ratio if law == "laplace" else 2 * ratio
                span = largest if law == "pick" else 2 * largest
                events += [Pick(float(span))] * count
                pure += count * largest
                rho += count * (span**2 / 8 if law == "pick" else pure_dp_zcdp(largest))
            elif law in ("vector", "discrete gaussian"):
                events.append(Gaussian(float(ratio) * math.sqrt(count)))
                rho += count * ratio**2 / 2
                pure = Fraction(10**9)
            else:
                raise Uncharged(f"hard thresholding drew {law}")
    if delta == 0:
        return _refuse_above(pure, Fraction(epsilon), "epsilon")
    if any(law == "discrete gaussian" for law, _ in drawn):
        return _refuse_above(rho, Fraction(rho_from_epsilon(epsilon, delta)), "rho")
    return within_claim(events, epsilon, delta, rho)


def price_dense(drawn, fit, plan):
    """Price a dense episode: picks, if any, and one vector with the noise of its parts."""
    found = [np.repeat(*np.array(runs, np.int64).T) for law, runs in drawn if law == "vector"]
    picked = [scale for law, runs in drawn if law == "pick" for scale, count in runs for _ in range(count)]
    charged = []
    for steps in (plan.steps, {name: step.anew() for name, step in plan.steps.items()}):
        noise = [
            dense_parts.noise_steps(name, step, len(plan.row_map.center), fit.groups)[0]
            for name, step in steps.items()
        ]
        charged.append(np.concatenate(noise).astype(np.int64))
    laws = [law for law, _ in drawn]
    if laws[-1:] != ["vector"] or len(found) != 1 or set(laws[:-1]) - {"pick"}:
        raise Uncharged("a dense episode drew something else than picks and then a vector")
    if not any(np.array_equal(found[0], one) for one in charged):
        raise Uncharged("a dense episode drew noise that its parts do not have")
    users = fit.settings.rounds_per_user
    # A row has one arm: a column's score, which adds up what arms say, moves as far as one arm's does.
    events = [Pick(users * 2 * SIGNED / scale) for scale in picked]
    events.append(Gaussian(math.sqrt(plan.mu_squared) * users))
    _refuse_above(composition.delta(fit.settings.epsilon, events), fit.settings.delta, "delta")


def price_peer(drawn, released):
    """Refuse noise of a peer that is not what its statistic was priced for."""
    charged = set(released._sigmas.tolist())
    for law, runs in drawn:
        if law != "vector" or {scale for scale, _ in runs} != charged:
            raise Uncharged("a peer drew noise that its statistic was not priced for")


@contextlib.contextmanager
def observed():
    """Watch all fits, and yield what is seen of them."""
    seen, undo = Observer(), []
    if not hasattr(_native, "watch_draws"):
        # Built before it was there: the tests of the observer itself fail then, and say so once.
        yield seen
        return

    def wrap(owner, name, price):
        real = getattr(owner, name)

        @functools.wraps(real)
        def watched(*given, **more):
            with seen.fit(functools.partial(price, given)):
                return real(*given, **more)

        setattr(owner, name, watched)
        undo.append(lambda: setattr(owner, name, real))

    for name in ("run", "run_sums"):
        wrap(pursuit.PursuitFit, name, lambda given, drawn: price_pursuit(drawn, given[0].settings, given[1]))
    for name in ("from_rows", "from_sums"):
        wrap(run, name, lambda given, drawn: price_iht(drawn, given[0]))
    wrap(dense.Dense, "run_totals", lambda given, drawn: price_dense(drawn, given[0], given[1]))
    wrap(peers.Noise, "__call__", lambda given, drawn: price_peer(drawn, given[0]))
    _native.watch_draws(True)
    try:
        yield seen
        seen.stray += _native.taken_draws()
    finally:
        _native.watch_draws(False)
        for act in undo:
            act()
