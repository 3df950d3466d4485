"""Check the record of a guarantee: compute its price again, with NumPy alone and none of fliphat.

    fliphat inspect STORE --json > facts.json
    python examples/check_guarantee.py facts.json

The record has the integers of noise that was added, in order. From these alone this program computes delta at
the claimed epsilon for the best adversary, who sees everything and adapts to it: the value of a game whose
state is the privacy loss so far, folded from the last event (docs/privacy.md, "The exact price"). It refuses
a record whose events do not follow from its scales, or whose price is not what it says or above its delta.

Values are kept at multiples of a step of the loss and joined by chords in x = exp(-loss). They are convex in
x, so chords lie above them; beyond the grid they are bounded by 1 at x = 0 and by the last value: each number
is an upper bound, up to the rounding of floats (a billionth; fliphat's own kernel bounds that as well).
"""

import itertools
import json
import math
import sys
from fractions import Fraction

import numpy as np

#: A price is computed twice in floats: so much may it differ.
TOLERANCE = 1e-6


class Refused(ValueError):
    """The record does not support its claim."""


def normal_tail(z):
    """Return P(N(0, 1) > z)."""
    return np.array([math.erfc(value / math.sqrt(2)) / 2 for value in np.ravel(z)])


def gaussian_delta(epsilon, mu):
    """Return delta at each epsilon of a Gaussian that moves by mu standard deviations."""
    first, second = normal_tail(epsilon / mu - mu / 2), normal_tail(epsilon / mu + mu / 2)
    return np.maximum(first - np.exp(np.minimum(epsilon, 700.0)) * second, 0.0)


def pick_delta(epsilon, eta):
    """Return delta at each epsilon of the worst release whose log-ratios span eta."""
    inside = np.clip(epsilon, 0, eta)
    above = (np.exp(eta / 2) - np.exp(inside / 2)) ** 2 / np.expm1(eta)
    rest = np.expm1((eta + np.clip(epsilon, -eta, 0)) / 2)
    return np.where(epsilon >= 0, above, -np.expm1(np.minimum(epsilon, 0)) + rest**2 / np.expm1(eta))


def extended(value, count, step):
    """Return values with `count` more nodes on both sides: constant below, the line in x to 1 above."""
    line = 1 - (1 - value[-1]) * np.exp(-step * np.arange(1, count + 1))
    return np.concatenate([np.full(count, value[0]), value, line])


def before_pick(value, eta, step):
    """Return the value before a pick: at each node the largest chord between losses t and t - eta from it."""
    cells = max(math.ceil(eta / step - 1e-9), 1)
    nodes, width, here = extended(value, cells + 1, step), -math.expm1(-step), np.arange(len(value))

    def at(offset):
        cell = math.floor(offset / step + 1e-9)
        place = min(max(-math.expm1(cell * step - offset) / width, 0.0), 1.0)
        low, high = nodes[here + cells + 1 + cell], nodes[here + cells + 2 + cell]
        return low + (high - low) * place

    def lines(offset):
        """Value at x = 0 and slope, in the factor of x, of the line that the cell of an offset is on."""
        cell = math.floor(offset / step)
        low, high = nodes[here + cells + 1 + cell], nodes[here + cells + 2 + cell]
        slope = (low - high) / (math.exp(-cell * step) * width)
        return low - slope * math.exp(-cell * step), slope

    def chord(t):
        q = math.expm1(t) / math.expm1(eta)
        return (1 - q) * at(t) + q * at(t - eta)

    ends = np.unique(np.clip(np.r_[step * np.arange(cells + 1), eta - step * np.arange(cells + 1)], 0, eta))
    best, growth = value.copy(), math.exp(eta)
    for low, high in itertools.pairwise(ends):
        best = np.maximum(best, chord(float(high)))
        if high - low < 1e-9 * step:
            continue
        # With u = exp(-t) the chord is B + A/u + D u on this piece: largest at sqrt(A/D), or at an end.
        middle = float(low + high) / 2
        (top_a, slope_a), (top_b, slope_b) = lines(middle), lines(middle - eta)
        q_top = 1 / (growth - 1)
        A = (top_b - top_a) * q_top
        D = slope_a * (1 + q_top) - growth * slope_b * q_top
        B = top_a * (1 + q_top) - top_b * q_top + (growth * slope_b - slope_a) * q_top
        with np.errstate(divide="ignore", invalid="ignore"):
            u = np.sqrt(A / D)
        u = np.clip(np.where(np.isfinite(u), u, 1.0), math.exp(-high), math.exp(-low))
        best = np.maximum(best, B + A / u + D * u)
    return np.minimum(best, 1.0)


def before_gaussian(value, mu, step):
    """Return the value before a Gaussian: the mean of a sum of ramps, each in closed form."""
    reach = math.ceil((12.0 * mu + mu * mu) / step) + 1
    nodes, count = extended(value, reach + 1, step)[1:], len(value)
    at = gaussian_delta(step * np.arange(-reach, reach + 1), mu)
    ramps = np.clip((math.exp(step) * at[:-1] - at[1:]) / math.expm1(step), 0, 1)
    beyond = (1 - nodes[2 * reach : 2 * reach + count]) * ramps[-1]
    return nodes[:count] + np.convolve(np.diff(nodes), ramps[::-1], "valid")[:count] + beyond


def price(epsilon, kinds, users, grid):
    """Return delta at `epsilon` when `users` rows of a person are spread over fits of these kinds."""
    step, losses = grid["step"], grid["step"] * np.arange(-grid["below"], grid["above"] + 1)
    left = []
    for rows in range(1, users + 1):
        found = []
        for fit in kinds:
            for entering in range(1, rows + 1):
                events = [(kind, size * entering / users) for kind, size, count in fit for _ in range(count)]
                if entering == rows:
                    kind, size = events.pop()
                    value = (gaussian_delta if kind == "gaussian" else pick_delta)(epsilon - losses, size)
                else:
                    value = left[rows - entering - 1]
                for kind, size in reversed(events):
                    value = (before_gaussian if kind == "gaussian" else before_pick)(value, size, step)
                found.append(value)
        left.append(np.max(found, axis=0))
    return float(max(value[grid["below"]] for value in left))


def events_of(fit, users):
    """Return the events of a fit from its integers: [kind, size, how many in a row]."""
    found = []
    for noise in fit:
        if "picks" in noise:
            eta = Fraction(2 * users * noise["sensitivity"], noise["scale"])
            event = ["pick", float(eta), noise["picks"]]
        else:
            squared = sum(Fraction(moved) / sigma**2 for moved, sigma in noise["vector"])
            event = ["gaussian", math.sqrt(users**2 * squared), 1]
        if found and found[-1][0] == event[0] and math.isclose(found[-1][1], event[1], rel_tol=1e-12):
            found[-1][2] += event[2]
        else:
            found.append(event)
    return found


def same(one, other):
    """Whether two lists of events are the same, up to rounding."""
    return len(one) == len(other) and all(
        a[0] == b[0] and a[2] == b[2] and math.isclose(a[1], b[1], rel_tol=1e-12)
        for a, b in zip(one, other, strict=True)
    )


def check(record):
    """Return what was checked, in a sentence; Refused if the record does not support its claim."""
    epsilon, delta, release = record["epsilon"], record["delta"], record["release"]
    if not record["proven"]:
        raise Refused(f"nothing is claimed to be proven: {record['reasons']}")
    if release is None:
        if delta == 0:
            raise Refused("a pure claim has no price to compute: its scales are in fliphat's documentation")
        rho, orders = float(Fraction(record["rho_exact"])), np.geomspace(1e-6, 1e6, 100_001)
        # Any order gives a bound: exp(b (1 + b) rho - b epsilon) / b * (b / (1 + b))^(1 + b), b = order - 1.
        log = orders * ((1 + orders) * rho - epsilon) - (1 + orders) * np.log1p(1 / orders) - np.log(orders)
        if math.exp(log.min()) > delta * (1 + TOLERANCE):
            raise Refused(f"rho = {rho:.6g} costs delta = {math.exp(log.min()):.6g}, {delta:g} is claimed")
        return f"{rho:.6g}-zCDP is ({epsilon:g}, {delta:g})-DP"
    if (release["epsilon"], release["delta"]) != (epsilon, delta):
        raise Refused("the release was priced for another epsilon or delta")
    kinds = [events_of(fit, release["users"]) for fit in release["noise"]]
    written = [release["events"], *release["beside"]]
    if len(kinds) != len(written) or not all(map(same, kinds, written)):
        raise Refused("the events do not follow from the scales")
    largest = [sum(n * s if k == "pick" else math.inf for k, s, n in fit) for fit in kinds]
    found = price(epsilon, kinds, release["users"], release["grid"]) if max(largest) > epsilon else 0.0
    if abs(found - release["price"]) > TOLERANCE * release["price"] or found > delta * (1 + TOLERANCE):
        price_written = f"{release['price']:.9g} is written, {delta:g} is claimed"
        raise Refused(f"the releases cost delta = {found:.9g}, {price_written}")
    for rounds, stated in record.get("group", ()):
        times = rounds / record["rounds_per_user"]
        spread = release["kinds"] or [release["events"]]
        grown = [[[kind, size * times, count] for kind, size, count in fit] for fit in spread]
        variance = max(sum(n * s**2 / (4 if k == "pick" else 1) for k, s, n in fit) for fit in grown)
        step = min(math.sqrt(variance / max(sum(n for _, _, n in fit) for fit in grown)) / 6, 0.45)
        wide = math.ceil(5 * math.sqrt(variance) / step) + 2
        grid = {"step": step, "below": wide, "above": wide + math.ceil(stated / step)}
        if price(stated, grown, rounds if release["kinds"] else 1, grid) > 1.1 * delta:
            raise Refused(f"{rounds} rounds together cost more than epsilon = {stated:g}")
    return f"({epsilon:g}, {delta:g})-DP: the price is {found:.6g}"


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        given = json.load(file)
    print(check(given.get("guarantee", given)))
