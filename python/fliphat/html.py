"""Results as plain HTML: cards for notebooks, and the tables that reports are made of.

A card takes text colour and ground from where it is shown, so it is readable in light and in dark.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

__all__ = ["bullets", "card", "pairs", "paragraph", "table"]

_LINE = "1px solid color-mix(in srgb, currentColor 25%, transparent)"
_STYLE = (
    ".fliphat-card{max-width:54rem;line-height:1.5}.fliphat-card "
    "table{border-collapse:collapse;margin:.6em 0;"
    f"font-variant-numeric:tabular-nums}}.fliphat-card :is(th,td){{padding:.15em .8em .15em "
    "0;text-align:right;"
    f"border-bottom:{_LINE};background:none}}.fliphat-card :is(th,td):first-child{{text-align:left}}"
    ".fliphat-card dl{display:grid;grid-template-columns:max-content 1fr;gap:.1em 1em;margin:.6em 0}"
    ".fliphat-card dd{margin:0;overflow-wrap:anywhere}.fliphat-card .wide{overflow-x:auto}"
)


def card(title: str, *parts: str) -> str:
    """Return a title and parts that are HTML already, for the output of a notebook's cell.

    Examples
    --------
    >>> card("A < B", "<p>so be it</p>").endswith("<strong>A &lt; B</strong><p>so be it</p></div>")
    True
    """
    body = f"<strong>{html.escape(title)}</strong>{''.join(parts)}"
    return f'<div class="fliphat-card"><style>{_STYLE}</style>{body}</div>'


def paragraph(text: str) -> str:
    """Return a text as a paragraph."""
    return f"<p>{html.escape(text)}</p>"


def bullets(sentences: Iterable[str]) -> str:
    """Return texts as a list."""
    told = "\n".join(f"<li>{html.escape(sentence)}</li>" for sentence in sentences)
    return f"<ul>\n{told}\n</ul>"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of texts, which may scroll sideways on a small screen."""
    head = "".join(f'<th scope="col">{html.escape(cell)}</th>' for cell in header)
    body = "\n".join(f"<tr>{''.join(_cell(cell) for cell in row)}</tr>" for row in rows)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table></div>'


def _cell(text: str) -> str:
    return f"<td>{html.escape(text.replace('+-', '±'))}</td>"


def pairs(named: Iterable[tuple[str, object]]) -> str:
    """Return names and values as entries of a list of definitions."""
    return "\n".join(
        f"<dt>{html.escape(name)}</dt><dd>{html.escape(str(value))}</dd>" for name, value in named
    )
