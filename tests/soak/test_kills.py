"""kill -9 at every named place and at random: nothing is lost, doubled, left behind or silent meanwhile."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from checks.tally import Table
from soak_kills import REPORT, kill_often
from soak_pairs import PAIRS, Pair

from storage.crash_points import POINTS

KILLS, ROUNDS = 25, 2
"""On each of the four pairs: 200 kills in all. In one round of them a file that is being read whenever the
program dies would rightly be left alone after ten deaths."""


def _marks(name: str) -> list[pytest.MarkDecorator]:
    engines = {"Weaviate": "weaviate", "PostgreSQL": "postgres"}
    return [pytest.mark.engine(engines[part]) for part in name.split("/") if part in engines]


@pytest.fixture(params=[pytest.param(name, marks=_marks(name)) for name in PAIRS])
def pair(request: pytest.FixtureRequest) -> Pair:
    """An index and a database, with real servers."""
    name = request.param
    return Pair(
        name,
        request.getfixturevalue("weaviate") if name.startswith("Weaviate") else None,
        request.getfixturevalue("postgres") if name.endswith("PostgreSQL") else None,
    )


@pytest.mark.timeout(2400)
async def test_fifty_kills_cost_nothing_but_time(
    pair: Pair, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """Shows that no file is lost, no chunk doubled or left over, and the old version answers throughout."""
    table, faults = Table(), []

    def tell(found: Table, what: list[str]) -> None:
        nonlocal table
        table = Table([*table.rows(), *found.rows()])
        faults.extend(what)

    for seed in range(1, ROUNDS + 1):
        await kill_often(pair, tmp_path, seed=seed + PAIRS.index(pair.name), kills=KILLS, tell=tell)
    record_property("table", str(table))
    _write(pair.name, table)
    assert not faults, "\n".join(faults)
    assert table.total().kills >= KILLS * ROUNDS
    assert set(POINTS) - {row["point"] for row in table.rows()} == set(), "nobody died there"


async def test_an_index_that_loses_chunks_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shows that the harness can fail: an index that keeps less than it says is reported, and explained."""
    monkeypatch.setenv("SOAK_SABOTAGE", "1")
    tables: list[Table] = []
    await kill_often(
        Pair(PAIRS[0], None, None),
        tmp_path,
        seed=1,
        kills=2,
        tell=lambda table, _: tables.append(table),
        evidence=tmp_path / "faults",
    )
    assert tables[0].total().lost > 0
    (kept,) = (tmp_path / "faults").iterdir()
    assert "publication " in (kept / "rows.txt").read_text()
    assert (kept / "life.log").stat().st_size > 0


def _write(pair: str, table: Table) -> None:
    """The pair's own table; tests of other pairs may run in other processes."""
    REPORT.parent.mkdir(exist_ok=True)
    path = REPORT.with_name(f"kill-table-{pair.replace('/', '-')}")
    path.with_suffix(".json").write_text(json.dumps(table.rows()))
    path.with_suffix(".txt").write_text(f"{table}\n")
