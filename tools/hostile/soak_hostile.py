"""``make soak-hostile``: thousands of hostile files in slices; Ctrl-C interrupts, the next run resumes.

Progress is saved in ``build/soak-hostile/hostile.json``: seed, next number and table.
``--first 4200 --files 1`` runs some files again on their own, to examine their faults.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from harness.hostile_run import CHANNEL, SECRET, Ending, besieged, make_files

from storage.embeddings.onnx_embedder import BundledEmbedder

FOLDER = Path(__file__).parents[2] / "build" / "soak-hostile"
STATE, REPORT = FOLDER / "hostile.json", FOLDER.parent / "hostile-table.txt"
# Files per home: an interrupted slice is lost and repeated.
SLICE = 250
MEGABYTE = 1 << 20


@dataclass
class Tally:
    """Outcomes of the files of one kind."""

    files: int = 0
    live: int = 0
    quarantined: int = 0
    # Files without an outcome, with a wrong one, or with an unhelpful message.
    faults: int = 0
    # Crashes of the reader; each may affect its own file only.
    crashes: int = 0
    # Longest reading.
    seconds: float = 0.0
    # Peak memory of a reader, in megabytes.
    peak: int = 0

    def add(self, other: Tally) -> None:
        """Add counts, and take the maximum of measurements."""
        for name in ("files", "live", "quarantined", "faults", "crashes"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.seconds, self.peak = max(self.seconds, other.seconds), max(self.peak, other.peak)


def tally_of(one: Ending) -> Tally:
    """Return the tally of one file."""
    return Tally(
        files=1,
        live=one.state == "live",
        quarantined=one.state == "quarantined",
        faults=one.fault is not None,
        crashes="crashed" in one.reason,
        seconds=round(one.seconds, 1),
        peak=one.peak // MEGABYTE,
    )


class Soak:
    """State of a long run."""

    def __init__(self, seed: int) -> None:
        state = json.loads(STATE.read_text()) if STATE.exists() else {}
        if state.get("seed") != seed:
            state = {"seed": seed, "next": 0, "kinds": {}, "faults": []}
        self.seed = seed
        self.next: int = state["next"]
        self.faults: list[str] = state["faults"]
        self._kinds = {kind: Tally(**row) for kind, row in state["kinds"].items()}

    async def run(self, files: int, embedder: BundledEmbedder) -> None:
        """Continue until ``files`` files were tested."""
        while self.next < files:
            count = min(SLICE, files - self.next)
            self._take(await besiege(self.seed, self.next, count, embedder))
            self.next += count
            self._save()
            total = self.total()
            print(f"{total.files} files, {total.live} live, {total.quarantined} quarantined, "
                  f"{len(self.faults)} faults, {total.peak} MB", flush=True)  # fmt: skip

    def _take(self, endings: Iterable[Ending]) -> None:
        for one in endings:
            self._kinds.setdefault(one.kind, Tally()).add(tally_of(one))
            if one.fault:
                self.faults.append(f"seed {self.seed} file {one.number} ({one.kind}) {one.fault}")

    def _save(self) -> None:
        kinds = {kind: asdict(tally) for kind, tally in self._kinds.items()}
        draft = STATE.with_suffix(".draft")
        draft.write_text(
            json.dumps({"seed": self.seed, "next": self.next, "kinds": kinds, "faults": self.faults})
        )
        draft.replace(STATE)
        REPORT.write_text(f"{self}\n")

    def total(self) -> Tally:
        """Return the tally of all kinds."""
        total = Tally()
        for tally in self._kinds.values():
            total.add(tally)
        return total

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        columns = [field.name for field in fields(Tally)]
        yield _line("kind", columns)
        for kind, tally in [*sorted(self._kinds.items()), ("all", self.total())]:
            yield _line(kind, asdict(tally).values())


def _line(kind: str, columns: Iterable[object]) -> str:
    return f"{kind:<34}" + "".join(f"{column:>12}" for column in columns)


async def besiege(seed: int, first: int, count: int, embedder: BundledEmbedder) -> list[Ending]:
    """Run one slice in its own home.

    Raises:
        AssertionError: the service broke: it no longer reads, shows hidden text, or lost a parent process.
    """
    folder = FOLDER / f"hostile {seed} {first}"
    shutil.rmtree(folder, ignore_errors=True)
    await make_files(folder / "files", seed, first, count)
    async with besieged(folder / "home", embedder) as siege:
        endings = await siege.withstand(folder / "files")
        shown = await siege.home.find(CHANNEL, SECRET)
    assert not shown, f"hidden words are found in {sorted(shown)}"
    shutil.rmtree(folder)
    return endings


def main() -> int:
    """Run until the requested number of files; return 1 if one had a wrong outcome."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int)
    options = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    embedder = BundledEmbedder.load(None, 2)
    try:
        if options.first is not None:
            return _repeat(options.seed, options.first, options.files, embedder)
        return _go_on(Soak(options.seed), options.files, embedder)
    finally:
        embedder.close()


def _repeat(seed: int, first: int, files: int, embedder: BundledEmbedder) -> int:
    endings = asyncio.run(besiege(seed, first, files, embedder))
    print(*endings, sep="\n")
    return 1 if any(one.fault for one in endings) else 0


def _go_on(soak: Soak, files: int, embedder: BundledEmbedder) -> int:
    try:
        asyncio.run(soak.run(files, embedder))
    except KeyboardInterrupt:
        print("interrupted; `make soak-hostile` goes on from here", file=sys.stderr)
    print(soak, *soak.faults, sep="\n")
    return 1 if soak.faults else 0


if __name__ == "__main__":
    sys.exit(main())
