"""Write the table of private models in docs/reproduction.md again, from docs/figures/real-models.csv.

::

    python benches/real_models.py     # or with --only or --data: what is run replaces its rows
    python benches/update_models.py

`tests/project/test_models_page.py` fails as long as this would change anything.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import real_models

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reproduction.md"


def updated(text: str) -> str:
    """Return the page with the numbers of the CSV."""
    table = real_models.table(real_models.open_kept(real_models.KEPT))
    block = r"(<!-- models: benches/update_models.py -->\n).*?(<!-- end -->)"
    text, count = re.subn(block, lambda found: f"{found[1]}{table}\n{found[2]}", text, flags=re.S)
    if count != 1:
        raise ValueError(f"docs/reproduction.md must have one block 'models', got {count}")
    return text


if __name__ == "__main__":
    PAGE.write_text(updated(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
