"""``make soak-kills``: thousands of kills in slices; Ctrl-C interrupts, the next run resumes.

Progress is saved in ``build/soak-kills/state.json``: seed and rounds of every pair, and the table.
``--pair Weaviate/SQLite --seed 7`` repeats a single round, to examine its faults.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys

from tools.soak.checks.tally import Table
from tools.soak.rounds.kills import REPORT, kill_often
from tools.soak.rounds.pairs import PAIRS, Pair, servers

FOLDER = REPORT.parent / "soak-kills"
STATE = FOLDER / "state.json"
# Kills per round: an interrupted slice is lost and repeated.
SLICE = 25


class Soak:
    """State of a long run."""

    def __init__(self, kills: int) -> None:
        self._rounds = -(-kills // (SLICE * len(PAIRS)))
        state = json.loads(STATE.read_text()) if STATE.exists() else {"done": {}, "rows": [], "faults": []}
        self._done: dict[str, int] = state["done"]
        self.table = Table(state["rows"])
        self.faults: list[str] = state["faults"]

    async def run(self, pairs: list[Pair]) -> None:
        """Run all pairs concurrently, round after round."""
        turns = asyncio.Semaphore(os.cpu_count() or 1)
        await asyncio.gather(*(self._run_pair(pair, turns) for pair in pairs))

    async def _run_pair(self, pair: Pair, turns: asyncio.Semaphore) -> None:
        while (number := self._done.get(pair.name, 0)) < self._rounds:
            async with turns:
                await kill_often(
                    pair, FOLDER, seed=number + 1, aims=pair.aims(number + 1, SLICE), tell=self._take
                )
            self._done[pair.name] = number + 1
            self._save()
            print(f"{self.table.total().kills} kills, {self.table.total().faults} faults", flush=True)

    def _take(self, table: Table, faults: list[str]) -> None:
        self.table = Table([*self.table.rows(), *table.rows()])
        self.faults += faults

    def _save(self) -> None:
        draft = STATE.with_suffix(".draft")
        draft.write_text(json.dumps({"done": self._done, "rows": self.table.rows(), "faults": self.faults}))
        draft.replace(STATE)
        REPORT.write_text(f"{self.table}\n")


async def repeat(pair: Pair, seed: int, kills: int) -> list[str]:
    """Run a single round; print its table and return its faults."""
    found: list[str] = []

    def tell(table: Table, faults: list[str]) -> None:
        print(table, *faults, sep="\n")
        found.extend(faults)

    await kill_often(pair, FOLDER / "again", seed=seed, aims=pair.aims(seed, kills), tell=tell)
    return found


def main() -> int:
    """Run until the requested number of kills; return 1 if anything was lost, duplicated or left over."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=2000)
    parser.add_argument("--pair", choices=PAIRS)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    if options.pair:
        with servers([options.pair], FOLDER) as pairs:
            return 1 if asyncio.run(repeat(pairs[0], options.seed, min(options.kills, SLICE))) else 0
    return _go_on(Soak(options.kills))


def _go_on(soak: Soak) -> int:
    try:
        with servers(PAIRS, FOLDER) as pairs:
            asyncio.run(soak.run(pairs))
    except KeyboardInterrupt:
        print("interrupted; `make soak-kills` goes on from here", file=sys.stderr)
    print(soak.table, *soak.faults, sep="\n")
    return 1 if soak.table.total().faults else 0


if __name__ == "__main__":
    sys.exit(main())
