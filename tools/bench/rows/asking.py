"""Row ``ask``: latency of questions while many pages are read, compared to the idle service."""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median

from tools.bench.corpus import PAGES, pdfs
from tools.bench.figures import Figure
from tools.bench.service import Service, serving

QUESTIONS = (
    "Who may convey a covered work?",
    "What are the terms of section 3?",
    "How many days does a recipient have after notice?",
    "What is the corresponding source of a program?",
    "When does a license terminate?",
    "Which form names the copyright holder?",
)
KNOWN_FILES, KNOWN_PAGES = 6, 20
ROUNDS = 40


def bench_ask(work: Path, scale: int) -> list[Figure]:
    """Ask in one channel while another one is read; reading pauses in every other round."""
    known, mass = pdfs(KNOWN_FILES, KNOWN_PAGES), pdfs(100 // scale, PAGES)
    with serving(work / "ask") as service:
        service.drop("known", known)
        service.until_live(KNOWN_FILES, seconds=600, condition=" AND reading.rung = 'full'")
        for text in QUESTIONS:
            service.ask("known", text)
        service.drop("mass", mass)
        service.until_live(KNOWN_FILES + 1, seconds=120)
        ratios, busy, idle = _alternate(service, KNOWN_FILES + len(mass))
    ratio = median(ratios)
    return [
        Figure(f"a question while {len(mass) * PAGES:,} pages are read, median of {len(ratios)} rounds",
               "<= 2 x", f"{median(busy) * 1000:.0f} ms", f"reading paused {median(idle) * 1000:.0f} ms",
               f"{ratio:.2f} x", ratio <= 2)
    ]  # fmt: skip


def _alternate(service: Service, files: int) -> tuple[list[float], list[float], list[float]]:
    """Return (busy / idle, busy, idle) of each round, while there is something left to read."""
    busy, idle = [], []
    for number in range(ROUNDS):
        text = QUESTIONS[number % len(QUESTIONS)]
        during = _timed(service, text, number)
        if service.live()[0] >= files:
            break
        with service.paused():
            idle.append(_timed(service, text, -number - 1))
        busy.append(during)
    if not busy:
        raise RuntimeError("everything was read before the first question: nothing was measured")
    return [one / other for one, other in zip(busy, idle, strict=True)], busy, idle


def _timed(service: Service, text: str, number: int) -> float:
    """Return the seconds until the answer; ``number`` makes the question unique, so that it is not cached."""
    started = time.perf_counter()
    answer = service.ask("known", f"{text} ({number})")
    seconds = time.perf_counter() - started
    if answer["state"] == "failed":
        raise RuntimeError(f"a question failed: {service.program.log[-2000:]}")
    return seconds
