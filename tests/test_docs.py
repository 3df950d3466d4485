"""The proof names functions and tests; a name that does not exist would be a step nobody can tick off."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PRIVACY = (ROOT / "docs" / "privacy.md").read_text()
SOURCES = [
    path.read_text()
    for folder in ("tests", "python", "rust")
    for path in (ROOT / folder).rglob("*")
    if path.suffix in (".py", ".rs")
]


@pytest.mark.parametrize("name", sorted(set(re.findall(r"\b(test_\w+)\b(?!\.py)", PRIVACY))))
def test_tests_named_in_the_proof_exist(name):
    assert any(f"def {name}(" in source for source in SOURCES)


@pytest.mark.parametrize("name", sorted(set(re.findall(r"\.rs: (\w+)`", PRIVACY))))
def test_rust_names_in_the_proof_exist(name):
    assert any(re.search(rf"(fn|struct|trait|const) {name}\b", source) for source in SOURCES)


def test_the_names_are_found():
    assert len(re.findall(r"\btest_\w+", PRIVACY)) > 25
