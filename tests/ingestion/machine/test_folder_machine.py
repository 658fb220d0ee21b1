"""A state machine over whole homes: the state always follows the folders, through faults and clock jumps.

``make test`` runs the same few examples each time, ``make test-all`` many that its seed chooses, and
``HYPOTHESIS_PROFILE=soak`` 20,000.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from engines.postgres import RealPostgres
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from machine_home import Bench, Databases, PostgresCopies, SqliteFiles
from machine_rules import FolderMachine

# Number of examples in the short and in the long run.
EXAMPLES = {
    "embedded/SQLite": (3, 20),
    "embedded/PostgreSQL": (2, 6),
    "Weaviate/SQLite": (1, 2),
    "Weaviate/PostgreSQL": (1, 2),
}
STEPS = 20
# For each of the four pairs.
SOAK_EXAMPLES, SOAK_STEPS = 5000, 50
ENGINES = {"Weaviate": "weaviate", "PostgreSQL": "postgres"}


# Covers each engine once.
DAILY = ("embedded/SQLite", "Weaviate/PostgreSQL")


def _marks(pair: str) -> list[pytest.MarkDecorator]:
    engines = [pytest.mark.engine(ENGINES[part]) for part in pair.split("/") if part in ENGINES]
    return engines if pair in DAILY else [*engines, pytest.mark.long]


def _databases(request: pytest.FixtureRequest, folder: Path, name: str) -> Databases:
    if name == "SQLite":
        return SqliteFiles()
    server: RealPostgres = request.getfixturevalue("postgres")
    return PostgresCopies(server)


@pytest.fixture(params=[pytest.param(pair, marks=_marks(pair), id=pair) for pair in EXAMPLES])
def pair(request: pytest.FixtureRequest) -> str:
    """An index and a database."""
    return str(request.param)


@pytest.fixture
def bench(request: pytest.FixtureRequest, tmp_path: Path, pair: str) -> Iterator[Bench]:
    """The engines of one pair."""
    index, _, database = pair.partition("/")
    connect = request.getfixturevalue("weaviate").connect() if index == "Weaviate" else None
    made = Bench(_databases(request, tmp_path, database), connect)
    yield made
    made.close()


def settings_of(pair: str, *, is_long: bool) -> settings:
    """Return the settings of hypothesis: fixed examples, or many random ones.

    A failure is printed with its steps; only the soak shrinks them first, which takes minutes.
    """
    is_soak = os.environ.get("HYPOTHESIS_PROFILE") == "soak"
    return settings(
        max_examples=SOAK_EXAMPLES if is_soak else EXAMPLES[pair][is_long],
        stateful_step_count=SOAK_STEPS if is_soak else STEPS,
        derandomize=not (is_soak or is_long),
        database=None,  # no example database: a failure becomes a test of its own
        # real engines take as long as they take
        print_blob=True,
        report_multiple_bugs=False,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
        phases=[Phase.generate, Phase.shrink] if is_soak else [Phase.generate],
    )


@pytest.mark.timeout(0 if os.environ.get("HYPOTHESIS_PROFILE") == "soak" else 2400)
def test_the_state_always_follows_the_folders(
    bench: Bench, pair: str, pytestconfig: pytest.Config, record_property: Callable[[str, object], None]
) -> None:
    """Shows that no order of changes, faults and crashes loses, duplicates or resurrects documents."""
    machine = type("Machine", (FolderMachine,), {"bench": bench})
    run_state_machine_as_test(machine, settings=settings_of(pair, is_long=pytestconfig.option.all))
    record_property("table", f"{pair}: {bench.examples} examples, {bench.steps} steps")
