"""Row ``viewer``: a cited page from link to picture, compared to PyMuPDF alone; a search;
questions while pages are viewed, compared to the same questions without.
"""

from __future__ import annotations

import asyncio
import random
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from bot.public_links import open_links
from storage.models import Channel, CitedPlace
from storage.text.word_boxes import bounding_boxes
from tools.bench.corpus import pdfs
from tools.bench.figures import Figure
from tools.bench.rows.bare_drawing import BareDrawing
from tools.bench.rows.bench_home import BenchHome, open_home
from tools.bench.service import Service, serving
from tools.bench.timing import PairedTimings, alternate, percentiles

VIEWS, SEARCHES, QUESTIONS, WARMED_BY = 40, 20, 40, 5
# Limits: milliseconds per page, and the slowdown of a question while pages are viewed.
LONGEST, MOST_DELAY = 500.0, 2.0
# Resolution of the first picture of a page.
DPI = 132
# Length of a quote in characters.
QUOTED = 60


async def bench_viewer(work: Path, pages: int) -> list[Figure]:
    """Return all figures for one document with ``pages`` pages, measured on ``serve``."""
    async with open_home(work / "home", None) as home:
        channel = await home.channel("asked")
        await home.fill(channel, 1, pages)
        links = await _cite(home, channel, WARMED_BY + VIEWS)
        asked = await home.questions(WARMED_BY + QUESTIONS + SEARCHES)
    settings = {"FOOTNOTE_OCR": "false", "FOOTNOTE_ANSWER_PROBABILITY": "0"}
    with serving(work / "home", **settings) as service:
        (file,) = pdfs(1, pages)
        return [
            await _first_pages(service, links, file, pages),
            await _searches(service, links[0][1], asked[-SEARCHES:], pages),
            await asyncio.to_thread(_questions, service, links[0][1], asked[:-SEARCHES], pages),
        ]


async def _cite(home: BenchHome, channel: Channel, count: int) -> list[tuple[int, str]]:
    """Return (page, path) of links to random pages, each with a quote and its boxes."""
    (document,) = await home.stores.catalog.documents(channel.id)
    publication = await home.stores.catalog.live_document(channel.id, document.document)
    if publication is None:
        raise RuntimeError("the document does not answer")
    links, cited = await open_links(home.settings, home.stores.database), []
    for number in random.Random(1).sample(range(1, publication.pages + 1), count):
        page = await home.stores.files.page(publication.reading_id, number)
        start = len(page.text) // 2
        boxes = bounding_boxes(page.words, start, start + QUOTED)[number]
        shown = CitedPlace(publication.version_id, number, page.text[start : start + QUOTED], tuple(boxes))
        (record,) = await home.stores.citations.add(channel.id, [shown])
        cited.append((number, links.viewer_path(links.page_url(channel, record))))
    return cited


async def _first_pages(service: Service, links: list[tuple[int, str]], file: Path, pages: int) -> Figure:
    """Measure the first view of pages, when no picture is cached."""
    bare = BareDrawing(file, DPI)

    async def view(number: int) -> None:
        page, path = links[number]
        html = await asyncio.to_thread(_get, service, path)
        if b'id="hit"' not in html:
            raise RuntimeError("a page without its mark")
        await asyncio.to_thread(_get, service, f"{path}/p/{page}@1x")

    async def draw(number: int) -> None:
        await asyncio.to_thread(bare.draw, links[number][0])

    try:
        await alternate(view, draw, WARMED_BY)
        links = links[WARMED_BY:]
        turns = await alternate(view, draw, VIEWS)
    finally:
        bare.close()
    slow = sorted(turns.ours)[int(0.95 * (VIEWS - 1))]
    return Figure(
        f"the cited page with its marks, of {pages:,}",
        f"p95 < {LONGEST:.0f} ms",
        percentiles(turns.ours),
        f"PyMuPDF alone opens it and draws the page {percentiles(turns.other)}",
        f"{turns.ratio:.2f} x",
        slow < LONGEST,
    )


async def _searches(service: Service, path: str, asked: list[str], pages: int) -> Figure:
    """Measure searches, each for other words, so that none is cached."""
    spent = []
    for text in asked:
        started = time.perf_counter()
        await asyncio.to_thread(_get, service, f"{path}/search?q={quote(' '.join(text.split()[3:5]))}")
        spent.append(1000 * (time.perf_counter() - started))
    return Figure(f"two words searched in {pages:,} pages", "", percentiles(spent), "", "", None)


def _questions(service: Service, path: str, asked: list[str], pages: int) -> Figure:
    """Measure questions while pages are viewed and drawn without a pause, and without that."""
    turned = iter(random.Random(2).sample(range(1, pages + 1), pages))
    spent: tuple[list[float], list[float]] = ([], [])
    for number, text in enumerate(asked):
        for which in (0, 1) if number % 2 else (1, 0):
            with _turning(service, path, turned) if which == 0 else _nobody():
                started = time.perf_counter()
                service.ask("asked", text)
                spent[which].append(1000 * (time.perf_counter() - started))
    turns = PairedTimings(spent[0][WARMED_BY:], spent[1][WARMED_BY:])
    return Figure(
        "a question while somebody turns pages",
        f"<= {MOST_DELAY:.0f} x",
        percentiles(turns.ours),
        f"while nobody does {percentiles(turns.other)}",
        f"{turns.ratio:.2f} x",
        turns.ratio <= MOST_DELAY,
    )


@contextmanager
def _turning(service: Service, path: str, pages: Iterator[int]) -> Iterator[None]:
    """View pages in large resolution without a pause while the block runs."""
    is_over, has_begun = threading.Event(), threading.Event()

    def turn() -> None:
        while not is_over.is_set():
            page = next(pages)
            has_begun.set()
            _get(service, f"{path}/{page}")
            _get(service, f"{path}/p/{page}@2x")

    reader = threading.Thread(target=turn)
    reader.start()
    try:
        has_begun.wait()
        time.sleep(0.02)  # the first page is being drawn
        yield
    finally:
        is_over.set()
        reader.join()


@contextmanager
def _nobody() -> Iterator[None]:
    yield


def _get(service: Service, path: str) -> bytes:
    with urllib.request.urlopen(service.program.url + path, timeout=60) as response:
        data: bytes = response.read()
    return data
