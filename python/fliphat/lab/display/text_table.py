"""Tables as aligned text: the one place that pads cells."""

from __future__ import annotations

from collections.abc import Collection, Sequence


class TextTable:
    """Columns of fixed widths, given a line at a time, so that rows can be printed as they come.

    Parameters
    ----------
    names : sequence of str
        The header.
    widths : sequence of int
        Of the columns; a column is at least as wide as its name.
    left : collection of int
        Columns aligned on the left; the others are numbers, aligned on the right.
    markdown : bool
        Whether lines are rows of a Markdown table.
    """

    def __init__(
        self,
        names: Sequence[str],
        widths: Sequence[int],
        *,
        left: Collection[int] = (0,),
        markdown: bool = False,
    ) -> None:
        self.names = tuple(names)
        self._widths = [max(width, len(name)) for width, name in zip(widths, names, strict=True)]
        self._left, self._markdown = frozenset(left), markdown

    @classmethod
    def fitting(
        cls,
        names: Sequence[str],
        rows: Sequence[Sequence[str]],
        *,
        left: Collection[int] = (0,),
        markdown: bool = False,
    ) -> TextTable:
        """Return a table as wide as its widest cells."""
        widths = [max([0, *(len(row[i]) for row in rows)]) for i in range(len(names))]
        return cls(names, widths, left=left, markdown=markdown)

    def heading(self) -> str:
        """Return the header and the rule under it, on two lines."""
        return f"{self.line(self.names)}\n{self.line(['-' * width for width in self._widths])}"

    def line(self, row: Sequence[str]) -> str:
        """Return one row."""
        cells = [
            cell.ljust(width) if i in self._left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, self._widths, strict=True))
        ]
        return f"| {' | '.join(cells)} |" if self._markdown else "  ".join(cells).rstrip()

    def text(self, rows: Sequence[Sequence[str]]) -> str:
        """Return the header and all rows."""
        return "\n".join([self.heading(), *(self.line(row) for row in rows)])
