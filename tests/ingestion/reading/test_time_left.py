"""Time left of full readings on recorded page times: right within a factor of two from second ten on."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from harness.tables import for_each

from ingestion.reading.reading_work import (
    CHUNK_SECONDS,
    LAYOUT_SECONDS,
    OCR_SECONDS,
    SENTENCES_SECONDS,
    ReadingWork,
    usual_seconds,
)
from storage.clock import utc_now
from storage.documents.progress import WINDOWS
from storage.documents.time_left import Span, measure_speed, without_start
from storage.models import Rung

# Recorded seconds per page of layout analysis, per page of OCR, and per chunk with its sentences.
LAYOUT = (0.92, 0.55, 1.2, 0.7, 0.95, 0.47, 0.61, 1.05, 1.23, 0.92)
OCR = (6.1, 9.3, 19.3, 8.4, 11.7, 3.7, 5.0)
CHUNK = 0.13
AT_ONCE, BATCH = 4, 10
# One step is reported when it has ended, so an estimate may be wrong by the longest one.
STEP_SECONDS = 20.0
BEGAN = utc_now()

Step = tuple[float, Callable[[], Awaitable[None]]]


@dataclass
class Document:
    """A document that is read in full: layout, OCR of scanned pages, vectors."""

    pages: int
    scanned: int = 0
    share: float = 0.0
    start: float | None = None
    end: float | None = None
    work: float = field(init=False)

    def __post_init__(self) -> None:
        self.chunks = 3 * self.pages
        self.work = usual_seconds(self.pages, self.scanned, self.chunks)

    async def report(self, share: float) -> None:
        """Take the share that is done."""
        self.share = share

    def steps(self, chance: random.Random) -> Iterator[Step]:
        """Yield (seconds, what follows) of the steps of the reading."""
        work = ReadingWork(self.work, self.report)
        for count in portions(self.pages, BATCH):
            seconds = sum(chance.choice(LAYOUT) for _ in range(count))
            yield seconds, lambda count=count: work.advance(LAYOUT_SECONDS * count)
        for _ in range(self.scanned):
            yield chance.choice(OCR), lambda: work.advance(OCR_SECONDS)
        for count in portions(self.chunks, 32):
            yield 0.3 * CHUNK * count, lambda count=count: work.advance(CHUNK_SECONDS * count)
        for count in portions(self.chunks, 32):
            yield 0.7 * CHUNK * count, lambda count=count: work.advance(SENTENCES_SECONDS * count)

    def span(self, now: float) -> Span:
        """Return what is known of it at a moment."""
        share = self.share if self.end is None else 1.0
        end = now if self.end is None else self.end
        return Span(moment(self.start or 0.0), moment(end), int(share * self.pages), share * self.work)


def portions(total: int, most: int) -> Iterator[int]:
    """Yield sizes of portions."""
    for start in range(0, total, most):
        yield min(most, total - start)


def moment(seconds: float) -> datetime:
    """Return a time of the simulation."""
    return BEGAN + timedelta(seconds=seconds)


def estimate(documents: list[Document], now: float) -> float:
    """Return the seconds left, as ``storage.documents.progress`` does from SQL."""
    spans = [one.span(now) for one in documents if one.start is not None]
    spans = [one for one in spans if one.end > moment(now - WINDOWS[Rung.FULL].seconds)]
    left = sum(one.work * (1 - one.share) for one in documents if one.end is None)
    return left / measure_speed(spans, WINDOWS[Rung.FULL], moment(now)).work


async def simulate(
    documents: list[Document], seed: int, *, slowness: float, start: float
) -> tuple[float, list[tuple[float, float]]]:
    """Read all documents, several in turns; return the total time, and (time, estimate) every 5 s."""
    chance, said = random.Random(seed), list[tuple[float, float]]()
    waiting, running = list(documents), list[tuple[Document, Iterator[Step]]]()
    clock, asked = 0.0, 10.0
    while waiting or running:
        while waiting and len(running) < AT_ONCE:
            document = waiting.pop(0)
            document.start = clock
            running.append((document, document.steps(chance)))
        document, steps = running.pop(0)
        if (step := next(steps, None)) is None:
            document.end = clock
            continue
        seconds, follow = step
        clock, start = clock + slowness * seconds + start, 0.0
        while asked < clock:
            said.append((asked, estimate(documents, asked)))
            asked += 5
        await follow()
        running.append((document, steps))
    return clock, said


DROPS: dict[str, Callable[[], list[Document]]] = {
    "second half scanned": lambda: [Document(60, 30)],
    "a short one, half scanned": lambda: [Document(24, 12)],
    "one scan": lambda: [Document(20, 20)],
    "several sizes": lambda: [Document(*one) for one in ((11, 0), (18, 6), (4, 1), (4, 0), (31, 0))],
    "a book, then leaflets": lambda: [Document(300), *(Document(2) for _ in range(20))],
    "leaflets, then a book": lambda: [*(Document(2) for _ in range(20)), Document(300)],
    "texts, then scans": lambda: [*(Document(30) for _ in range(5)), Document(30, 30), Document(30, 30)],
    "scans, then texts": lambda: [Document(30, 30), Document(30, 30), *(Document(30) for _ in range(5))],
    "many leaflets": lambda: [Document(2) for _ in range(100)],
}


async def worst(
    drop: Callable[[], list[Document]], since: float, *, slowness: float = 1.0, start: float = 0.0
) -> float:
    """Return the largest factor by which an estimate is wrong beyond a step, over five runs."""
    factors = [1.0]
    for seed in range(5):
        total, said = await simulate(drop(), seed, slowness=slowness, start=start)
        for now, seconds in said:
            left = total - now
            if now >= since and abs(seconds - left) > slowness * STEP_SECONDS:
                factors.append(max(seconds / left, left / seconds))
    return max(factors)


@for_each("name", list(DROPS))
async def test_time_left_is_right_within_a_factor_of_two(name: str) -> None:
    """From the tenth second on, on the machine whose page times are recorded."""
    assert await worst(DROPS[name], 10, start=2) <= 2


@for_each("name", list(DROPS))
async def test_time_left_is_right_on_other_machines(name: str) -> None:
    """A slow machine is right once it has reported a step, after a long start of its engines."""
    assert await worst(DROPS[name], 10, slowness=0.4) <= 2
    assert await worst(DROPS[name], 110, slowness=5, start=54) <= 2.25


def test_the_start_of_engines_is_no_speed_of_quick_readings() -> None:
    """Recorded: the first two files ended after 14.7 s, the other three within three seconds more."""
    ends = (14.75, 14.8, 15.3)
    starts = (0.0, 1.0, 14.8)
    spans = [Span(moment(start), moment(end), 10, 0.6) for start, end in zip(starts, ends, strict=True)]
    for count in (1, 2, 3):
        speed = measure_speed(without_start(spans[:count]), WINDOWS[Rung.QUICK], moment(ends[count - 1]))
        assert 0.5 <= speed.work <= 2
