"""The mutation list matches the code."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.mutations.mutation_list import MUTATIONS, Mutation

TREE = Path(__file__).parents[2]


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda one: one.fault)
def test_a_mutation_applies_to_the_current_code(mutation: Mutation) -> None:
    """Shows that the text to mutate occurs once in its file, and that its test exists."""
    file, test = mutation.test.partition("[")[0].split("::")
    assert (TREE / mutation.file).read_text().count(mutation.before) == 1
    assert f"def {test}(" in (TREE / file).read_text()
