"""The list of mutants is up to date; whether each dies is a matter of minutes, behind a marker."""

import re

import pytest

from mutants.catalog import MUTANTS
from mutants.runner import ROOT


@pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant.name for mutant in MUTANTS])
def test_the_text_of_a_mutant_and_its_killer_are_there(mutant):
    source = (ROOT / mutant.file).read_text(encoding="utf-8")
    assert mutant.applied_to(source) != source
    if not mutant.rust:
        file, _, name = mutant.killer.partition("::")
        killer = (ROOT / file).read_text(encoding="utf-8")
        assert not name or re.search(
            rf"def {re.escape(name.partition('[')[0].rpartition('::')[2])}\b", killer
        )
