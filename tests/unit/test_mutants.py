"""The catalogue of broken copies still fits the source; `make mutants` runs it."""

import ast
from pathlib import Path

import pytest

from tests.mutants.catalogue import MUTANTS
from tests.mutants.mutant import Mutant

ROOT = Path(__file__).parents[2]
EACH = pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)


@EACH
def test_a_mutant_changes_exactly_one_place_and_still_parses(mutant: Mutant) -> None:
    source = (ROOT / mutant.path).read_text()
    assert source.count(mutant.before) == 1
    broken = source.replace(mutant.before, mutant.after)
    assert ast.dump(ast.parse(broken)) != ast.dump(ast.parse(source))


@EACH
def test_the_tests_that_catch_a_mutant_exist(mutant: Mutant) -> None:
    for each in mutant.caught_by:
        path, _, test = each.partition("::")
        assert f"def {test.partition('[')[0]}" in (ROOT / path).read_text()


def test_mutants_have_unique_names() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
