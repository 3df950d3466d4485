"""Which room may import which (design: the library never imports the lab or the service)."""

import ast

import pytest

from code_names import ROOT

PACKAGE = ROOT / "python" / "fliphat"
#: Each room may import rooms of its own line and of the lines above it.
ORDER = [
    {"_native", "arguments", "html", "process"},
    {"kernels", "reference", "contexts"},
    {"privacy"},
    {"fit"},
    {"policies", "regression", "environments"},
    {"simulation", "evaluation", "paper"},
    {"lab"},
    {"serve", "cli"},
]
FLOOR = {room: floor for floor, rooms in enumerate(ORDER) for room in rooms}
LAZY = {"lab"}  # `fliphat.plan` and `fliphat.simulate`, imported when first asked for


def imported_rooms(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module == "fliphat":
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("fliphat."):
            yield node.module.split(".")[1]
        elif isinstance(node, ast.Import):
            yield from (name.name.split(".")[1] for name in node.names if name.name.startswith("fliphat."))


def crossed(room, text):
    return sorted({other for other in imported_rooms(text) if FLOOR.get(other, -1) > FLOOR[room]})


@pytest.mark.parametrize(
    "path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE))
)
def test_no_module_imports_a_later_room(path):
    room = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    if room == "__init__":
        lazily = {"fit", "policies", "regression"} | LAZY
        assert set(imported_rooms(path.read_text("utf-8"))) <= {"_native", "kernels", "reference"} | lazily
    else:
        assert crossed(room, path.read_text("utf-8")) == []


def test_every_room_has_a_floor_and_a_crossed_wall_is_seen():
    rooms = {path.name.removesuffix(".py") for path in PACKAGE.iterdir() if path.suffix in {"", ".py"}}
    assert rooms - {"__init__", "__pycache__", "_native"} <= set(FLOOR)
    assert crossed("fit", "from fliphat.policies.types import Decision") == ["policies"]
    assert crossed("policies", "def late():\n    import fliphat.lab.tables") == ["lab"]
    assert crossed("privacy", "from fliphat import fit, kernels") == ["fit"]
