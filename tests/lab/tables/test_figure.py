"""What a study's figure shows is what it found, and its words need no explanation."""

import itertools

import numpy as np
import pytest

import fliphat
from fliphat.lab.display.figure_style import LIGHT
from fliphat.lab.tables.output import draw
from invented_study import CONSTANT, RANDOM, study
from made_tables import labelled

LEVELS = {
    ("LinUCB", None): 0.8,
    ("FLIPHAT", 1.0): 0.55,
    ("FLIPHAT", 10.0): 0.7,
    ("PrivateLinear", 1.0): (0.5, 0.7, 0.2, 0.65),
    ("PrivateLinear", 10.0): 0.75,
}
LABELS = {"random", "always a", "no privacy", "FLIPHAT", "PrivateLinear"}


@pytest.fixture(params=[False, True], ids=["wide", "narrow"])
def axes(request):
    return draw(study(LEVELS), narrow=request.param).axes


def lines(axes):
    """Return what is drawn in each colour."""
    return {line.get_color(): np.array(line.get_data()) for line in axes.lines}


def test_reward_against_epsilon_has_private_policies_bands_and_three_lines(axes):
    found, drawn = study(LEVELS), lines(axes[0])
    assert np.allclose(drawn[LIGHT["soft"]][1], found.result("random").mean)
    assert np.allclose(drawn[LIGHT["ink"]][1], found.result("constant").mean)
    assert np.allclose(drawn[LIGHT["orange"]][1], found.result("LinUCB").mean)
    for policy in ("FLIPHAT", "PrivateLinear"):
        own = [found.result(policy, epsilon) for epsilon in (1.0, 10.0)]
        (colour,) = (c for c, (_, y) in drawn.items() if np.allclose(y, [one.mean for one in own]))
        (band,) = (one for one in axes[0].collections if one.get_facecolor()[0][:3].tolist() == rgb(colour))
        heights = band.get_paths()[0].vertices[:, 1]
        assert heights.min() == pytest.approx(min(one.low for one in own))
        assert heights.max() == pytest.approx(max(one.high for one in own))
    assert "epsilon (smaller is more private)" in axes[0].get_xlabel()


def test_a_band_of_losses_is_drawn_below_zero():
    loss = study({("FLIPHAT", 1.0): (-0.5, -0.4, -0.6, -0.5)})
    lowest = min(band.get_paths()[0].vertices[:, 1].min() for band in draw(loss).axes[0].collections)
    assert lowest == pytest.approx(loss.result("FLIPHAT", 1.0).low)


def rgb(colour):
    return [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]


def test_learning_over_time_shows_the_worst_and_the_best_order(axes):
    found, drawn = study(LEVELS), lines(axes[1])
    one = found.result("FLIPHAT", 1.0)
    assert found.recommended.epsilon == 1.0 and "epsilon = 1" in axes[1].get_title(loc="left")
    assert any(np.allclose(y, one.curve) for _, y in drawn.values() if len(y) == len(one.curve))
    ends = [band.get_paths()[0].vertices[:, 1] for band in axes[1].collections]
    curves = np.array(found.result("PrivateLinear", 1.0).curves)
    assert any(np.isclose(y.min(), curves.min()) and np.isclose(y.max(), curves.max()) for y in ends)


def test_every_line_is_named_at_its_end_and_names_do_not_overlap(axes):
    for panel in axes:
        texts = [text for text in panel.texts if text.get_text() in LABELS]
        assert {text.get_text() for text in texts} == LABELS
        panel.figure.draw_without_rendering()
        boxes = sorted((text.get_window_extent() for text in texts), key=lambda box: box.y0)
        assert all(low.y1 <= high.y0 + 0.5 for low, high in itertools.pairwise(boxes))
        assert max(box.x1 for box in boxes) <= panel.figure.bbox.x1
    assert RANDOM < CONSTANT


def test_fliphat_is_given_nothing_that_was_tuned_and_never_stays_on_a_wrong_arm():
    found = fliphat.simulate(labelled(3000), label="arm", policies=["FLIPHAT"], epsilons=[10.0], orders=10)
    (settings,) = found.settings.values()
    assert set(settings) == {"dim", "sparsity", "epsilon", "delta", "reward_range"}
    assert min(found.result("FLIPHAT", 10.0).means) > found.result("random").mean + 0.05
