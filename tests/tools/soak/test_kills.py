"""kill -9 at every crash point and at random: no data is lost, duplicated or left over."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from storage.crash_points import POINTS
from tools.soak.checks.tally import Table
from tools.soak.checks.targets import RANDOM, SERVER
from tools.soak.rounds.kills import REPORT, kill_often
from tools.soak.rounds.pairs import PAIRS, Pair

# Kills per pair; four pairs make 40 in all.
KILLS = 10
WITH_SERVERS = ("after-batch", "before-seal", "after-seal", "after-flip", "after-removal")
WITH_LAYOUT = ("after-layout", "after-vectors", "before-write")
WITH_FILES = [point for point in POINTS if point not in WITH_SERVERS + WITH_LAYOUT]
EACH_POINT = [
    pytest.param("embedded/SQLite", ("after-parse", "after-seal"), id="one reading, one publishing"),
    pytest.param("embedded/SQLite", WITH_FILES[:7], id="taking in", marks=pytest.mark.long),
    pytest.param("embedded/SQLite", WITH_LAYOUT, id="full reading", marks=pytest.mark.long),
    pytest.param(
        "embedded/SQLite", (*WITH_FILES[8:], WITH_FILES[7]), id="taking away", marks=pytest.mark.long
    ),
    pytest.param("embedded/SQLite", WITH_SERVERS, id="publishing", marks=pytest.mark.long),
    pytest.param(
        "Weaviate/PostgreSQL",
        (SERVER, *WITH_SERVERS),
        id="servers",
        marks=[pytest.mark.engine("weaviate"), pytest.mark.engine("postgres"), pytest.mark.long],
    ),
]


def _marks(name: str) -> list[pytest.MarkDecorator]:
    engines = {"Weaviate": "weaviate", "PostgreSQL": "postgres"}
    return [pytest.mark.engine(engines[part]) for part in name.split("/") if part in engines]


def _pair(request: pytest.FixtureRequest, name: str, *, layout: bool = True) -> Pair:
    """Return an index and a database, with real servers."""
    return Pair(
        name,
        request.getfixturevalue("weaviate") if name.startswith("Weaviate") else None,
        request.getfixturevalue("postgres") if name.endswith("PostgreSQL") else None,
        layout,
    )


@pytest.mark.parametrize(("name", "aims"), EACH_POINT)
async def test_a_kill_at_each_crash_point_loses_nothing(
    name: str, aims: Sequence[str], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Shows that no file is lost, no chunk duplicated, and the old version answers throughout."""
    told: list[tuple[Table, list[str]]] = []
    pair = _pair(request, name, layout=aims == WITH_LAYOUT)
    await kill_often(pair, tmp_path, seed=1, aims=aims, tell=lambda *found: told.append(found))
    ((table, faults),) = told
    assert not faults, "\n".join(faults)
    assert set(aims) - {row["point"] for row in table.rows()} == set(), "nobody died there"


def test_the_table_covers_each_crash_point() -> None:
    """Shows that every long run kills at each crash point."""
    assert {point for one in EACH_POINT for point in one.values[1]} == {*POINTS, SERVER}


@pytest.mark.long
@pytest.mark.timeout(2400)
@pytest.mark.parametrize("name", [pytest.param(name, marks=_marks(name)) for name in PAIRS])
async def test_random_kills_lose_nothing(
    name: str,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    seed: int,
    record_property: Callable[[str, object], None],
) -> None:
    """Shows the same at random places chosen by the seed, including the index server and ghosts."""
    pair, table, faults = _pair(request, name), Table(), []

    def tell(found: Table, what: list[str]) -> None:
        nonlocal table
        table = Table([*table.rows(), *found.rows()])
        faults.extend(what)

    one = seed + PAIRS.index(name)
    await kill_often(pair, tmp_path, seed=one, aims=pair.aims(one, KILLS), tell=tell)
    record_property("table", str(table))
    _write(name, table)
    assert not faults, "\n".join(faults)
    assert table.total().kills >= KILLS


@pytest.mark.long
async def test_an_index_that_loses_chunks_is_detected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shows that the harness can fail: an index that loses chunks is reported."""
    monkeypatch.setenv("SOAK_SABOTAGE", "1")
    tables: list[Table] = []
    await kill_often(
        Pair(PAIRS[0], None, None, layout=False),
        tmp_path,
        seed=1,
        aims=(RANDOM, POINTS[0]),
        tell=lambda table, _: tables.append(table),
        evidence=tmp_path / "faults",
    )
    assert tables[0].total().lost > 0
    (kept,) = (tmp_path / "faults").iterdir()
    assert "publication " in (kept / "rows.txt").read_text()
    assert (kept / "life.log").stat().st_size > 0


def _write(pair: str, table: Table) -> None:
    """Write the pair's own table; other pairs may be tested by other processes."""
    REPORT.parent.mkdir(exist_ok=True)
    path = REPORT.with_name(f"kill-table-{pair.replace('/', '-')}")
    path.with_suffix(".json").write_text(json.dumps(table.rows()))
    path.with_suffix(".txt").write_text(f"{table}\n")
