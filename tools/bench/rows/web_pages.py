"""Row ``web``: a question with a list of approved web pages, compared to the same without one."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median

from fakes.web_shelf import WebShelf

from bot.bootstrap import build_answering
from bot.core.models import Question
from bot.public_links import open_links
from storage.clock import utc_now
from storage.web_pages.web_sources import SOURCES_NAME, WebSourcesFile
from tools.bench.figures import Figure
from tools.bench.rows.bench_home import BenchHome, open_home
from tools.bench.timing import alternate, percentiles

CHUNKS, TURNS, WARMED_BY = 500, 100, 5
# In addition to the domain that is searched.
DOMAINS, KEYWORDS = 30, 15
PAGE_CHUNKS, WORDS = 8, 60
# Maximum extra milliseconds, compared to no list.
MOST_CLOSED, MOST_OPEN = 2.0, 60.0
OPENING = "What deposit must a landlord protect?"


async def bench_web(work: Path) -> list[Figure]:
    """Measure a question that matches none of 31 domains, and one that searches a domain of 5 or 50 pages."""
    async with open_home(work, None) as home:
        channel = await home.channel("asked")
        await home.fill(channel, CHUNKS)
        asked = await home.questions(TURNS + WARMED_BY)
        return [
            await _figure(home, 5, asked, "closed, 31 domains", MOST_CLOSED),
            await _figure(home, 5, [OPENING], "open, 5 pages of 8 chunks", MOST_OPEN),
            await _figure(home, 50, [OPENING], "open, 50 pages of 8 chunks", MOST_OPEN),
        ]


async def _figure(home: BenchHome, pages: int, asked: Sequence[str], name: str, most: float) -> Figure:
    await _approve(home, pages)
    channel = await home.channel("asked")
    bare = replace(home.stores, web_sources=WebSourcesFile(home.path / "nowhere"))
    links = await open_links(home.settings, home.stores.database)
    async with build_answering(home.settings, bare, home.embedder, home.index, links) as without:

        async def ask(number: int) -> None:
            text = asked[number % len(asked)]
            await home.answering.answer(Question(str(number), text, channel, utc_now()))

        async def ask_without(number: int) -> None:
            text = asked[number % len(asked)]
            await without.answer(Question(str(number), text, channel, utc_now()))

        await alternate(ask, ask_without, WARMED_BY)
        turns = await alternate(ask, ask_without, TURNS)
    more = median(turns.ours) - median(turns.other)
    return Figure(
        f"a question without a model, web {name}",
        f"<= {most:.0f} ms more",
        percentiles(turns.ours),
        f"without a list {percentiles(turns.other)}",
        f"{more:+.1f} ms",
        more <= most,
    )


async def _approve(home: BenchHome, pages: int) -> None:
    """Write the list, and store its pages as if they had been fetched."""
    chance, words = random.Random(1), [f"word{number}" for number in range(2000)]
    urls = [f"https://example.org/{number}" for number in range(pages)]
    domains = [("tenancy", ["deposit", "landlord", "rent"], urls)]
    domains += [(f"d{number}", chance.sample(words, KEYWORDS), urls[:1]) for number in range(DOMAINS)]
    (home.path / SOURCES_NAME).write_text(
        "".join(
            f'[[domain]]\nname = "{name}"\nkeywords = {json.dumps(keywords)}\nurls = {json.dumps(listed)}\n'
            for name, keywords, listed in domains
        )
    )
    shelf = WebShelf(home.stores.database, home.path)
    await shelf.store.approve(urls)
    for url in urls:
        texts = [
            f"A landlord must protect a deposit, says {url}. "
            + " ".join(chance.choices(words, k=WORDS))
            + "."
            for _ in range(PAGE_CHUNKS)
        ]
        await shelf.publish(url, *texts, title=url, embedder=home.embedder)
    await shelf.aclose()
