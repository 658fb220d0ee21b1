"""Rounds of kills on one pair; used by the test and by ``make soak-kills``."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from tools.soak.checks.evidence import keep_evidence
from tools.soak.checks.tally import Table
from tools.soak.rounds.pairs import Pair
from tools.soak.rounds.round import open_round

REPORT = Path(__file__).parents[3] / "build" / "kill-table.txt"
EVIDENCE = REPORT.with_name("soak-faults")


async def kill_often(
    pair: Pair,
    folder: Path,
    *,
    seed: int,
    aims: Sequence[str],
    tell: Callable[[Table, list[str]], None],
    evidence: Path = EVIDENCE,
) -> None:
    """Kill at each of ``aims`` in a fresh home, and report table and faults.

    After a round with faults, or one that was aborted, its evidence is kept in a folder of its name in
    ``evidence``.

    Raises:
        AssertionError: a process exited on its own; its log is kept.
    """
    home = folder / f"{pair.name.replace('/', '-')} {seed}"
    shutil.rmtree(home, ignore_errors=True)
    async with open_round(pair, home, seed) as one:
        try:
            await one.run(aims)
        except Exception:
            await keep_evidence(one.audit, evidence / home.name)
            raise
        table = Table()
        one.count(pair.name, table)
        if faults := [*one.audit.faults, *one.witness.faults]:
            await keep_evidence(one.audit, evidence / home.name)
    tell(table, [f"{home.name}: {fault}" for fault in faults])
    if not faults:
        shutil.rmtree(home)
