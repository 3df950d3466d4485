"""Every text and line of pages and figures stands out from its ground by 4.5 to 1, in light and dark."""

import re

import pytest

from fliphat.lab.display.figure_style import DARK, GROUNDS, LIGHT, LINES, TEXTS, contrast, css, themed


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_texts_and_lines_can_be_read(colours):
    for ground in GROUNDS:
        for name in (*TEXTS, *LINES):
            assert contrast(colours[name], colours[ground]) >= 4.5, (name, ground)


def test_contrast_is_that_of_the_standard():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)  # the usual example that fails
    assert contrast("#123456", "#123456") == 1


def test_a_figure_follows_the_theme():
    assert set(LIGHT) == set(DARK) and len(set(LIGHT.values())) == len(LIGHT)
    drawn = f'<path style="stroke: {LIGHT["blue"]}"/><text style="fill: #000000"/>'
    assert themed(drawn) == '<path style="stroke: var(--blue)"/><text style="fill: var(--ink)"/>'
    assert re.findall(r"--(\w+): (#\w{6});", css(DARK)) == list(DARK.items())
