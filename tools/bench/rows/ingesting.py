"""Rows ``drop``, ``mass`` and ``memory``: the running service, from a drop until it is searchable."""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median

from tools.bench.corpus import PAGES, pdfs
from tools.bench.figures import Figure
from tools.bench.raw_reading import raw_seconds
from tools.bench.service import Service, serving

SAMPLES = Path(__file__).parents[3] / "bot" / "cli" / "setup" / "samples"
LONGEST = 3600.0
DROPS = 5


def bench_drop(work: Path) -> list[Figure]:
    """Measure single drops next to the sample documents."""
    seconds = []
    files = pdfs(DROPS, 10)
    with serving(work / "drop") as service:
        service.drop("demo", sorted(SAMPLES.glob("*.pdf")))
        service.until_live(2, seconds=60, condition=" AND reading.rung = 'full'")
        for number, file in enumerate(files, start=3):
            service.drop("demo", [file])
            seconds.append(service.until_live(number, seconds=60, every=0.02))
        _require_found(service, "demo", files[-1])
    raw = raw_seconds(files, 1) / DROPS
    worst = max(seconds)
    return [
        Figure("drop to findable by words, 10 pages, worst of 5", "<= 5 s", f"{worst:.1f} s",
               f"bare rawdict {raw:.2f} s", f"median {median(seconds):.1f} s", worst <= 5)
    ]  # fmt: skip


def bench_mass(work: Path, scale: int) -> list[Figure]:
    """Measure 10,000 pages as 100 files, as 1 and as 10,000; ``scale`` divides these numbers."""
    figures = []
    for name, files, pages in _shapes(scale):
        print(f"  {name}", flush=True)
        made = pdfs(files, pages)
        seconds = _ingest(work / name.replace(" ", ""), made)
        raw, total = raw_seconds(made, 2), files * pages
        is_met = seconds <= 120 / scale and total / seconds >= 100 if pages == PAGES else None
        bar = f"<= {120 // scale} s, >= 100 pages/s" if pages == PAGES else ""
        figures.append(
            Figure(f"findable by words: {name} pages", bar, f"{seconds:.0f} s, {total / seconds:.0f} pages/s",
                   f"bare rawdict, two at a time {raw:.0f} s", f"{raw / seconds:.2f} x", is_met)
        )  # fmt: skip
    return figures


def _shapes(scale: int) -> list[tuple[str, int, int]]:
    """Return (name, files, pages per file)."""
    counts = [(100 // scale, PAGES), (1, 10_000 // scale), (10_000 // scale, 1)]
    return [(f"{files:,} x {pages:,}", files, pages) for files, pages in counts]


def _ingest(home: Path, files: list[Path]) -> float:
    settings = {"FOOTNOTE_MAX_PAGES": "10000", "FOOTNOTE_READ_SECONDS": "600"}
    with serving(home, **settings) as service:
        started = time.monotonic()
        service.drop("mass", files)
        service.until_live(len(files), seconds=LONGEST)
        seconds = time.monotonic() - started
        _require_found(service, "mass", files[-1])
    return seconds


def _require_found(service: Service, channel: str, file: Path) -> None:
    """Raise if a question about the last document fails."""
    answer = service.ask(channel, f"What does SOP {int(file.name.split('-')[1]):05d} say about the program?")
    if answer["state"] == "failed":
        raise RuntimeError(f"a question failed: {service.program.log[-2000:]}")


def bench_memory(work: Path, scale: int) -> list[Figure]:
    """Compare the anonymous memory of the service with 10 and 10,000 documents, with quick readings only."""
    few, many = 10, 10_000 // scale
    files = pdfs(many, 1)
    with serving(work / "memory", FOOTNOTE_STOP_AT="quick") as service:
        service.drop("mass", files[:few])
        service.until_live(few, seconds=60)
        before = _rested(service)
        service.drop("mass", files[few:])
        service.until_live(many, seconds=LONGEST, every=1.0)
        after = _rested(service)
    growth = (sum(after.values()) / sum(before.values())) - 1
    return [
        Figure(f"anonymous memory, {few} to {many:,} documents", "< 10 % more",
               " + ".join(f"{kib / 1024:.0f} MiB {who}" for who, kib in after.items()),
               " + ".join(f"{kib / 1024:.0f} MiB {who}" for who, kib in before.items()),
               f"{growth:+.1%}", growth < 0.10)
    ]  # fmt: skip


def _rested(service: Service) -> dict[str, int]:
    time.sleep(10)
    return service.anonymous_kib()
