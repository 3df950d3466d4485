"""Pages of HTML that need nothing else: for a phone, a desk or paper, in light and dark."""

from __future__ import annotations

import html
import importlib.metadata
import platform
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from string import Template
from typing import Any

import numpy

from fliphat import __version__
from fliphat.lab.display.figure_style import DARK, LIGHT, css, save, themed


def page(title: str, body: str) -> str:
    """Return a whole page around a body that is HTML already."""
    frame = Template(Path(__file__).with_name("page.html").read_text(encoding="utf-8"))
    return frame.substitute(title=html.escape(title), body=body, light=css(LIGHT), dark=css(DARK))


def picture(draw: Callable[..., Any], alternative: str) -> str:
    """Return what `draw(narrow=...)` draws as part of the page, also for the width of a telephone."""
    label = html.escape(alternative, quote=True)
    with tempfile.TemporaryDirectory() as scratch:
        both = ""
        for name, narrow in (("broad", False), ("narrow", True)):
            path = Path(scratch) / f"{name}.svg"
            save(draw(narrow=narrow), [path])
            both += f'<div class="{name}" role="img" aria-label="{label}">{_inline(path)}</div>'
    return f"<figure>{both}</figure>"


def _inline(path: Path) -> str:
    """Return a figure without what only a file of its own needs, in colours that follow the theme."""
    text = path.read_text(encoding="utf-8")
    svg = themed(text[text.index("<svg") :])
    # Two figures of one page may give one name to different things.
    own = f"{path.stem}-"
    svg = re.sub(r'(id="|url\(#|href="#)', rf"\g<1>{own}", svg)
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    return re.sub(r"<svg [^>]*?viewBox=(\"[^\"]*\")[^>]*>", r"<svg viewBox=\1>", svg, count=1)


def versions() -> list[tuple[str, str]]:
    """Return what a result was made with."""
    known = {"fliphat": __version__, "Python": platform.python_version(), "NumPy": numpy.__version__}
    known["machine"] = f"{platform.system()} {platform.machine()}"
    return [*known.items(), *((name, importlib.metadata.version(name)) for name in ("scipy", "matplotlib"))]
