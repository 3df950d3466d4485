"""The stores and the saved file of the first version, what they must say, and how they were made."""

import importlib.util
import json
from pathlib import Path

FIXTURES = Path(__file__).parents[1] / "fixtures" / "format-1"

_spec = importlib.util.spec_from_file_location("make_format_1", FIXTURES / "make.py")
make = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(make)

EXPECTED = json.loads((FIXTURES / "expected.json").read_text())


def plain(state):
    return json.loads(json.dumps(state))
