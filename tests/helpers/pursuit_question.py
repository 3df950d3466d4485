"""Questions to an episode of pursuit, its private sums, and what one pilot asks of its noise."""

from __future__ import annotations

from typing import Any

import numpy as np

from fliphat import _native

RADIUS = 2**12 - 1


def question(
    columns: Any = (),
    theta: Any = (0.0,),
    *,
    one: float = 1.0,
    shift: Any = None,
    units: Any = None,
    loss: str = "squared",
    reward_range: tuple[float, float] | None = None,
    pick_clip: float = 0.7,
    picks: int = 1,
    pick_scale: int = 1000,
    signed: bool = True,
    last_signed: bool = True,
    assumed: float = 0.0,
    whiten: Any = None,
    value_clip: float = 0.7,
    radius: int = RADIUS,
    scale: float = RADIUS / 3.0,
    cap: float = 2.0,
    sigmas: tuple[int, int, int] = (1, 1, 1),
    octaves: float | None = None,
    row_sigmas: tuple[int, int, int] = (1, 1, 1),
    board: tuple[float, float, int] | None = None,
) -> _native.PursuitQuestion:
    """Return a question, whose arguments are those of the twin `fliphat.reference._fits.episode`."""

    def floats(values: Any) -> Any:
        return None if values is None else np.ascontiguousarray(values, np.float64)

    whiten = np.eye(1 + len(columns) + picks) if whiten is None else whiten
    return _native.PursuitQuestion(
        np.array(columns, np.int64),
        floats(theta),
        floats(shift),
        floats(units),
        (one, loss, reward_range, pick_clip),
        (picks, pick_scale, signed, last_signed, assumed),
        floats(whiten),
        (value_clip, radius, scale, cap),
        sigmas,
        None if octaves is None else (octaves, row_sigmas),
        board,
    )


def native(rows: Any) -> Any:
    """Return rows as native functions take them."""
    return rows if isinstance(rows, np.ndarray) else (rows.indptr, rows.indices, rows.data, rows.shape[1])


def sums(
    asked: _native.PursuitQuestion,
    step: str,
    rows: Any,
    rewards: Any,
    present: Any = None,
    picked: Any = (),
    signs: Any = (),
) -> np.ndarray:
    """Return the private integers of one step, which leave the native code as bytes."""
    flags = None if present is None else np.asarray(present, bool).view(np.uint8)
    rewards = np.ascontiguousarray(rewards, float)
    found = _native.partial_sums(asked, step, native(rows), rewards, flags, list(picked), list(signs))
    return np.frombuffer(found, "<i8")
