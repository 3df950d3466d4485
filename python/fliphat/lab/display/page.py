"""Pages of HTML that need nothing else: for a phone, a desk or paper, in light and dark."""

from __future__ import annotations

import base64
import html
import importlib.metadata
import platform
from collections.abc import Iterable, Sequence
from pathlib import Path
from string import Template

import numpy

from fliphat import __version__

__all__ = ["page", "pairs", "picture", "table", "versions"]


def page(title: str, body: str) -> str:
    """Return a whole page around a body that is HTML already."""
    frame = Template(Path(__file__).with_name("page.html").read_text(encoding="utf-8"))
    return frame.substitute(title=html.escape(title), body=body)


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of texts, which may scroll sideways on a small screen."""
    head = "".join(f'<th scope="col">{html.escape(cell)}</th>' for cell in header)
    body = "\n".join(f"<tr>{''.join(_cell(cell) for cell in row)}</tr>" for row in rows)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table></div>'


def _cell(text: str) -> str:
    return f"<td>{html.escape(text.replace('+-', '±'))}</td>"


def picture(wide: Path, narrow: Path, alternative: str) -> str:
    """Return a PNG file as part of the page, with another one for the width of a telephone."""
    return (
        f'<figure><picture><source media="(max-width: 36rem)" srcset="{_data(narrow)}">'
        f'<img alt="{html.escape(alternative, quote=True)}" src="{_data(wide)}"></picture></figure>'
    )


def _data(png: Path) -> str:
    return f"data:image/png;base64,{base64.b64encode(png.read_bytes()).decode('ascii')}"


def pairs(named: Iterable[tuple[str, object]]) -> str:
    """Return names and values as entries of a list of definitions."""
    return "\n".join(
        f"<dt>{html.escape(name)}</dt><dd>{html.escape(str(value))}</dd>" for name, value in named
    )


def versions() -> list[tuple[str, str]]:
    """Return what a result was made with."""
    found = [
        ("fliphat", __version__),
        ("Python", platform.python_version()),
        ("NumPy", numpy.__version__),
        ("machine", f"{platform.system()} {platform.machine()}"),
    ]
    for name in ("scipy", "matplotlib"):
        found.append((name, importlib.metadata.version(name)))
    return found
