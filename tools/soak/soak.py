"""``make soak``: all kinds of failures at once, for [MINUTES=30] on each pair of engine and database.

Ctrl-C interrupts, the next run resumes: progress is saved in ``build/soak/chaos.json``.
``--pair Weaviate/SQLite --seed 7`` repeats a single round, to examine its faults.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import sys
from dataclasses import asdict
from pathlib import Path

from tools.soak.chaos.questions import PATIENCE_SECONDS
from tools.soak.chaos.round import run_chaos
from tools.soak.chaos.tally import ChaosTally, grown, table
from tools.soak.rounds.pairs import PAIRS, Pair, servers

FOLDER = Path(__file__).parents[2] / "build" / "soak"
STATE, REPORT, EVIDENCE = FOLDER / "chaos.json", FOLDER.with_name("chaos-table.txt"), FOLDER / "faults"
# Time with failures; rest and audit come on top. An interrupted round is repeated.
ROUND_SECONDS = 300.0
OWN_MOUNTS = "SOAK_OWN_MOUNTS"


class Chaos:
    """State of a long run."""

    def __init__(self, minutes: float, seconds: float, patience: float) -> None:
        state = json.loads(STATE.read_text()) if STATE.exists() else {"rows": {}, "done": {}, "faults": []}
        self._rounds, self._seconds = max(1, round(minutes * 60 / seconds)), seconds
        self._patience = patience
        self._done: dict[str, int] = state["done"]
        self._faults: list[str] = state["faults"]
        self.tallies = {pair: ChaosTally(**row) for pair, row in state["rows"].items()}

    @property
    def faults(self) -> list[str]:
        """Faults of all rounds, and of memory growth."""
        return [*self._faults, *(one for pair, tally in self.tallies.items() for one in grown(pair, tally))]

    async def run(self, pairs: list[Pair]) -> None:
        """Run all pairs concurrently, up to one per CPU, round after round."""
        turns = asyncio.Semaphore(os.cpu_count() or 1)
        await asyncio.gather(*(self._run_pair(pair, turns) for pair in pairs))

    async def _run_pair(self, pair: Pair, turns: asyncio.Semaphore) -> None:
        while (number := self._done.get(pair.name, 0)) < self._rounds:
            async with turns:
                tally, faults = await run_chaos(
                    pair,
                    FOLDER,
                    seed=number + 1,
                    seconds=self._seconds,
                    patience=self._patience,
                    evidence=EVIDENCE,
                )
            self.tallies.setdefault(pair.name, ChaosTally()).add(tally)
            self._faults += faults
            self._done[pair.name] = number + 1
            self._save()
            print(f"{pair.name}, seed {number + 1}: {len(faults)} faults", flush=True)

    def _save(self) -> None:
        rows = {pair: asdict(tally) for pair, tally in self.tallies.items()}
        draft = STATE.with_suffix(".draft")
        draft.write_text(json.dumps({"rows": rows, "done": self._done, "faults": self._faults}))
        draft.replace(STATE)
        REPORT.write_text(f"{table(self.tallies)}\n")


async def repeat(pair: Pair, seed: int, seconds: float, patience: float) -> list[str]:
    """Run a single round; print its table and return its faults."""
    tally, faults = await run_chaos(
        pair, FOLDER / "again", seed=seed, seconds=seconds, patience=patience, evidence=EVIDENCE
    )
    print(table({pair.name: tally}))
    return [*faults, *grown(pair.name, tally)]


def main() -> int:
    """Run for the requested time; return 1 if anything was lost, duplicated, damaged or grew."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seconds", type=float, default=ROUND_SECONDS, help="seconds of failures per round")
    parser.add_argument(
        "--patience", type=float, default=PATIENCE_SECONDS, help="seconds without progress until it fails"
    )
    parser.add_argument("--pair", choices=PAIRS)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if os.geteuid() == 0 and OWN_MOUNTS not in os.environ:  # private mounts for the small disks
        os.environ[OWN_MOUNTS] = "1"
        os.execvp("unshare", ["unshare", "--mount", sys.executable, "-m", "tools.soak.soak", *sys.argv[1:]])  # noqa: S606
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)  # errors of connections cut by a kill
    FOLDER.mkdir(parents=True, exist_ok=True)
    if options.pair:
        with servers([options.pair], FOLDER) as pairs:
            faults = asyncio.run(repeat(pairs[0], options.seed, options.seconds, options.patience))
        print(*faults, sep="\n")
    else:
        faults = _go_on(Chaos(options.minutes, options.seconds, options.patience))
    return 1 if faults else 0


def _go_on(chaos: Chaos) -> list[str]:
    try:
        with servers(PAIRS, FOLDER) as pairs:
            asyncio.run(chaos.run(pairs))
    except KeyboardInterrupt:
        print("interrupted; `make soak` goes on from here", file=sys.stderr)
    print(table(chaos.tallies), *chaos.faults, sep="\n")
    return chaos.faults


if __name__ == "__main__":
    sys.exit(main())
