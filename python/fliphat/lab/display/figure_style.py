"""How figures and pages look: colours of the palette, and labels at the lines they name."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

#: By role. Hues are those that colour-blind readers can tell apart, darker or lighter where needed.
LIGHT: Final = {
    "ink": "#1c1e21", "soft": "#5a606b", "paper": "#ffffff", "tint": "#f3f5f7", "line": "#d9dde2",
    "accent": "#0a5c8a", "blue": "#0068a8", "orange": "#b34a00", "green": "#00734f", "pink": "#a03a7c",
    "violet": "#5b3fa0", "brown": "#7a5a00",
}  # fmt: skip
DARK: Final = {
    "ink": "#e6e8ea", "soft": "#a2a9b4", "paper": "#15181c", "tint": "#20252b", "line": "#3a414a",
    "accent": "#7cc4ee", "blue": "#6cb8f0", "orange": "#ff9d57", "green": "#3fcb97", "pink": "#f092c8",
    "violet": "#b9a3ff", "brown": "#dbb84d",
}  # fmt: skip
GROUNDS: Final = ("paper", "tint")
TEXTS: Final = ("ink", "soft", "accent")
#: Series of a figure, in this order; "soft" is for random play and "ink" for the constant arm.
LINES: Final = ("blue", "green", "pink", "brown", "violet", "orange")

ORANGE: Final = LIGHT["orange"]
GREY: Final = LIGHT["soft"]


def css(colours: dict[str, str]) -> str:
    """Return colours as variables of a style sheet."""
    return " ".join(f"--{name}: {colour};" for name, colour in colours.items())


def themed(svg: str) -> str:
    """Return a figure drawn in light colours with variables in their place: it follows the page's theme."""
    for name, colour in {**LIGHT, "ink ": "#000000"}.items():
        svg = svg.replace(colour, f"var(--{name.strip()})").replace(colour.upper(), f"var(--{name.strip()})")
    return svg


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio of two colours (WCAG 2): 1 if they are the same, 21 for black on white."""
    lighter, darker = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


STYLE: Any = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": LIGHT["line"],
    "text.color": LIGHT["ink"],
    "axes.labelcolor": LIGHT["ink"],
    "axes.edgecolor": LIGHT["soft"],
    "xtick.color": LIGHT["soft"],
    "ytick.color": LIGHT["soft"],
    "grid.linewidth": 0.7,
    "axes.axisbelow": True,
    "lines.linewidth": 1.8,
    "legend.frameon": False,
    "figure.dpi": 100,
    "savefig.dpi": 200,
    "svg.fonttype": "none",
    # The same results give the same bytes.
    "svg.hashsalt": "fliphat",
}


def check_picture(out: Path, endings: Sequence[str] = (".png", ".svg", ".pdf")) -> None:
    """Find out before any work whether a picture can be drawn and written."""
    if importlib.util.find_spec("matplotlib") is None:
        raise ValueError("a picture needs matplotlib: pip install 'fliphat[experiments]'")
    if out.suffix.lower() not in endings:
        raise ValueError(f"--out must end in {', '.join(endings[:-1])} or {endings[-1]}, got {str(out)!r}")
    if not out.parent.is_dir():
        raise ValueError(f"--out must be in a directory that exists, got {str(out)!r}")


def epsilon_colours(epsilons: Sequence[float]) -> dict[float, Any]:
    """Return a colour for each epsilon, from violet for much privacy to brown for little."""
    ordered = sorted(set(epsilons))
    scale = ("violet", "blue", "green", "brown", "orange", "pink")
    return {epsilon: LIGHT[scale[i % len(scale)]] for i, epsilon in enumerate(ordered)}


def shade(axes: Any, x: Sequence[float], low: Sequence[float], high: Sequence[float], colour: Any) -> None:
    """Draw a 95 % band; a single repeat has none."""
    if not any(math.isnan(value) for value in low):
        axes.fill_between(x, low, high, color=colour, alpha=0.18, linewidth=0)


def label_lines(axes: Any, ends: Sequence[tuple[float, str, Any]], *, gap: float = 0.055) -> None:
    """Write each line's name beside its right end, moved apart where they would overlap.

    `gap`: smallest distance of two labels, in heights of the axes.
    """
    to_share = axes.transData + axes.transAxes.inverted()
    right = axes.get_xlim()[1]
    placed = sorted((to_share.transform((right, height))[1], text, colour) for height, text, colour in ends)
    heights = [share for share, _, _ in placed]
    for _ in range(200):  # push overlapping neighbours apart, half each, until none overlap
        moved = False
        for i in range(len(heights) - 1):
            overlap = gap - (heights[i + 1] - heights[i])
            if overlap > 1e-6:
                heights[i] -= overlap / 2
                heights[i + 1] += overlap / 2
                moved = True
        if not moved:
            break
    for height, (_, text, colour) in zip(heights, placed, strict=True):
        axes.annotate(
            text,
            (1.025, height),
            xycoords="axes fraction",
            color=colour,
            va="center",
            fontsize=9,
            annotation_clip=False,
        )


def save(figure: Any, paths: Sequence[Path]) -> None:
    """Write a figure to files whose endings name their formats; the same figure gives the same bytes."""
    import matplotlib

    dateless: dict[str, Any] = {".png": {"Software": None}, ".svg": {"Date": None}}
    with matplotlib.rc_context(STYLE):
        for path in paths:
            # On a page the ground is the page's.
            ground = {"facecolor": "none"} if path.suffix == ".svg" else {}
            figure.savefig(path, metadata=dateless.get(path.suffix), **ground)


def write_title(figure: Any, title: str, note: str) -> None:
    """Write what a figure shows above it, and what was run below it."""
    if title:
        figure.suptitle(title, x=0.012, ha="left", fontsize=12, fontweight="bold")
    figure.supxlabel(note, fontsize=8, color=GREY, x=0.012, ha="left")


def thousands(axis: Any) -> None:
    """Write an axis's numbers in full, with separators."""
    from matplotlib.ticker import FuncFormatter

    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
