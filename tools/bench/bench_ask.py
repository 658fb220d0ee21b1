"""``make bench-ask``: latency of a question, compared to a bare query of the same engine in the same run.

Runs without a language model, so that only our code is measured, from the question to quotes with links. Not
part of the tests: a busy machine is slow, which is no fault of the code.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from bot.core.models import Answer, Question
from storage.clock import utc_now
from storage.models import Channel
from tools.bench.corpus import describe
from tools.bench.figures import Figure, table
from tools.bench.rows.bare_search import bare_search
from tools.bench.rows.bench_home import BenchHome, open_home
from tools.bench.rows.many_channels import bench_growth
from tools.bench.rows.page_views import bench_viewer
from tools.bench.rows.stored_pages import bench_stored_pages
from tools.bench.rows.web_pages import bench_web
from tools.bench.timing import alternate, percentiles

CHUNKS = 10_000
QUESTIONS, WARMED_BY = 200, 5
LONGEST, MOST_TIMES = 50.0, 3.0
CHANNELS = 1000
# Pages of the document in the viewer.
PAGES = 2000
CACHE = Path.home() / ".cache" / "footnote"

Row = Callable[[], Coroutine[Any, Any, list[Figure]]]


def rows(scale: int) -> dict[str, Row]:
    """Return the benchmarks by name."""
    return {
        "embedded": partial(bench_channel, "embedded index", None, CHUNKS // scale),
        "weaviate": partial(bench_channel, "Weaviate", "embedded", CHUNKS // scale),
        "growth": partial(
            bench_growth, CACHE / "bench-ask-growth", CHANNELS // (5 * scale if scale > 1 else 1)
        ),
        "web": bench_web_pages,
        "viewer": partial(bench_page_views, PAGES // scale),
        "store": partial(bench_page_store, PAGES // scale),
    }


async def bench_page_views(pages: int) -> list[Figure]:
    """Measure searching and paging through a document."""
    with tempfile.TemporaryDirectory(prefix="footnote-bench-ask-", dir=CACHE) as work:
        return await bench_viewer(Path(work), pages)


async def bench_page_store(pages: int) -> list[Figure]:
    """Measure page views on machines that share an object store."""
    with tempfile.TemporaryDirectory(prefix="footnote-bench-ask-", dir=CACHE) as work:
        return await bench_stored_pages(Path(work), pages)


async def bench_web_pages() -> list[Figure]:
    """Measure questions with a list of approved web pages."""
    with tempfile.TemporaryDirectory(prefix="footnote-bench-ask-", dir=CACHE) as work:
        return await bench_web(Path(work))


async def bench_channel(engine: str, weaviate_url: str | None, chunks: int) -> list[Figure]:
    """Measure questions to one channel with ``chunks`` chunks."""
    with tempfile.TemporaryDirectory(prefix="footnote-bench-ask-", dir=CACHE) as work:
        async with open_home(Path(work), weaviate_url) as home:
            channel = await home.channel("asked")
            await home.fill(channel, chunks)
            return [await _figure(home, channel, engine)]


async def _figure(home: BenchHome, channel: Channel, engine: str) -> Figure:
    asked = await home.questions(WARMED_BY + QUESTIONS)
    bare, answers = bare_search(home, channel), list[Answer]()

    async def ask(number: int) -> None:
        question = Question(str(number), asked[number], channel, utc_now())
        answers.append(await home.answering.answer(question))

    async def search(number: int) -> None:
        await bare.search(asked[number])

    await alternate(ask, search, WARMED_BY)
    asked, answers[:] = asked[WARMED_BY:], []
    turns = await alternate(ask, search, QUESTIONS)
    chunks, middle = await home.chunks(channel), median(turns.ours)
    print(f"    {_told(answers)}", flush=True)
    return Figure(
        f"a question without a model, {engine}, {chunks:,} chunks",
        f"p50 <= {LONGEST:.0f} ms, <= {MOST_TIMES:.0f} x",
        percentiles(turns.ours),
        f"bare hybrid query with its embedding {percentiles(turns.other)}",
        f"{turns.ratio:.2f} x",
        middle <= LONGEST and turns.ratio <= MOST_TIMES,
    )


def _told(answers: list[Answer]) -> str:
    """Return outcomes and median times of the answers, since fast refusals would prove nothing.

    Raises:
        RuntimeError: too few of them were answers.
    """
    states = Counter(answer.state.value for answer in answers)
    if states["passages"] < 0.9 * len(answers):
        raise RuntimeError(f"too few answers: {dict(states)}")
    parts = {
        "retrieving": median(answer.milliseconds.retrieve for answer in answers),
        "answering": median(answer.milliseconds.answer for answer in answers),
    }
    return f"{dict(states)}, " + ", ".join(f"{name} {spent:.0f} ms" for name, spent in parts.items())


async def run(chosen: dict[str, Row]) -> list[Figure]:
    """Run benchmarks; one that raises becomes a failed row, and the others go on."""
    figures: list[Figure] = []
    for name, bench in chosen.items():
        print(f"{name} ...", flush=True)
        try:
            figures += await bench()
        except Exception as error:
            figures.append(Figure(name, "", f"{type(error).__name__}: {error}"[:200], "", "", False))
        print(table(figures[-1:]), flush=True)
    return figures


def main() -> None:
    """Run the chosen benchmarks and print the table; exit with 1 if a bar was missed."""
    asked = read_arguments()
    CACHE.mkdir(parents=True, exist_ok=True)
    chosen = {
        name: bench for name, bench in rows(asked.scale).items() if not asked.rows or name in asked.rows
    }
    print(
        f"machine: {os.cpu_count()} cores, Python {platform.python_version()}, load {os.getloadavg()[0]:.1f}"
    )
    print(f"corpus: {describe()}; vectors by chance", flush=True)
    figures = asyncio.run(run(chosen))
    print(f"\n{table(figures)}")
    sys.exit(any(figure.is_met is False for figure in figures))


def read_arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_const", const=10, default=1, dest="scale", help="a tenth")
    parser.add_argument("--rows", default="", help=f"comma-separated, of {','.join(rows(1))}")
    asked = parser.parse_args()
    asked.rows = {name for name in asked.rows.split(",") if name}
    if strange := asked.rows - rows(1).keys():
        parser.error(f"no such row: {', '.join(sorted(strange))}")
    return asked


if __name__ == "__main__":
    main()
