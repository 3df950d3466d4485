"""A small PrivateLinear in a store."""

from fliphat import PrivateLinear

DIM, FIRST = 3, 6
ARMS = ("red", 7, b"\x00blue")


class Growing(PrivateLinear):
    """One whose episodes get longer sooner."""

    _growth = 1.5


def open_linear(place, arms=ARMS, **changes):
    given = {"epsilon": 5.0, "delta": 1e-3, "context_norm": 2.0, "first_episode": FIRST}
    return Growing(arms, DIM, **given | changes, store=place)
