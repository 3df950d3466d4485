"""The colours of pages and figures, in light and dark: every text and line is readable on its ground."""

from __future__ import annotations

from typing import Final

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
