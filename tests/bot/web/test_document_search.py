"""Search in a document, its outline and page navigation, by a signed link and in the console."""

from __future__ import annotations

import asyncio
import re
from datetime import timedelta
from typing import cast
from urllib.parse import urljoin
from uuid import UUID, uuid4

import pytest
from aiohttp.test_utils import TestClient
from fakes.web_house import House, Shelved, make_pdf
from harness.tables import for_each
from harness.waiting import PATIENCE

from bot.web.viewer.document_search import (
    MAX_LISTED_PAGES,
    MAX_QUERY_CHARS,
    DocumentSearch,
    outline_of,
    search_pages,
)
from storage.models import Channel
from storage.queues.reading_repair import SelfHealingReadings

PAGES = [
    ["Backup policy", "Backups run daily"],
    ["Restore", "<b>bold</b>"],
    ["Tapes of backups", "Backups are kept"],
]
HEADINGS = ("1 Policy", "2 Restore", "3 <Tapes>")


@pytest.fixture
async def channel(house: House) -> Channel:
    """Return a channel."""
    return await house.channel("alpha")


@pytest.fixture
async def shelved(house: House, channel: Channel) -> Shelved:
    """Return a document of three pages, each under its heading."""
    return await house.shelve(channel, "it/Backup.pdf", make_pdf(PAGES), "Backup plan", headings=HEADINGS)


@pytest.fixture
async def link(house: House, channel: Channel, shelved: Shelved) -> str:
    """Return the path of a link to its second page."""
    return house.links.viewer_path(
        house.links.page_url(channel, await house.cite(channel, shelved, 2, "Restore"))
    )


@for_each(
    ("query", "found"),
    [
        ("CAFE of the office", ["Café of the\noffice"]),
        ("cafe\u0301 of", ["Café of"]),
        ("fine große", ["ﬁne  Größe"]),
        ("it-04", ["IT\u201104"]),
        (".*", []),
        ("elephants", []),
        ("\u0301", []),
    ],
)
def test_words_are_matched_however_they_are_typed(query: str, found: list[str]) -> None:
    """Ignores case, accents, ligatures, hyphens and line breaks; a query is never a pattern."""
    text = "In the Café of the\noffice: ﬁne  Größe, SOP-IT\u201104."
    result = search_pages(["", text], query)
    assert [text[start:end] for start, end in result.wording.spans(text)] == found
    assert result.counts == ({2: 1} if found else {})


def test_pages_with_all_words_are_found_without_a_verbatim_match() -> None:
    """The result says so; a page with only some of the words is no match."""
    result = search_pages(["run daily backups", "backups", "a daily Backup"], "backup daily")
    assert (result.is_verbatim, result.counts) == (False, {1: 2, 3: 2})
    assert search_pages(["daily", "backup"], "backup daily").counts == {}
    assert (result.page_before(3), result.page_after(1), result.page_after(3)) == (1, 3, None)


def test_every_page_is_counted_and_the_first_are_listed() -> None:
    """A frequent word yields a bounded page; snippets are cut between words."""
    around = "before " * 20
    result = search_pages([f"{around}word {around}" * 9] * 80, "word")
    assert (result.places, len(result.counts), len(result.listed)) == (720, 80, MAX_LISTED_PAGES)
    (snippet, *_) = result.listed[0].snippets
    assert len(result.listed[0].snippets) == 3
    assert snippet.before.startswith("…before ")
    assert snippet.after.endswith(" before…")


def test_an_outline_lists_each_heading_with_its_page() -> None:
    """A heading is listed once while chunks belong to it, with its level in their paths."""
    sections = [(("A", "x"), 1), (("A", "x"), 2), (("A", "y"), 3), ((), 4), (("B",), 4)]
    outline = [(one.level, one.text, one.page) for one in outline_of(sections)]
    assert outline == [(0, "A", 1), (1, "x", 1), (1, "y", 3), (0, "B", 4)]


@pytest.mark.parametrize("is_linked", [True, False])
async def test_matches_are_listed_by_page_and_highlighted(
    client: TestClient, shelved: Shelved, link: str, *, is_linked: bool
) -> None:
    """Counts, snippets, highlights distinct from the quote's, and a link to the next page with a match."""
    base = link if is_linked else f"/console/pages/{shelved.version}"
    html = await (await client.get(f"{base}/search", params={"q": "backups"})).text()
    assert "3 matches on 2 pages" in html
    assert re.findall(r">Page (\d)</a> <span class=\"count\">(\d) match", html) == [("1", "1"), ("3", "2")]
    assert "<mark>Backups</mark> are kept" in html
    (first,) = re.findall(r'href="([^"]*/3\?q=backups#found-2)"', html)
    page = await (await client.get(urljoin(f"{base}/search", first))).text()
    assert re.findall(r'<rect id="(found-\d)" class="mark searched"', page) == ["found-1", "found-2"]
    assert 'id="hit"' not in page
    assert re.search(
        r'href="[^"]*/1\?q=backups#found-1"[^>]*aria-label="Previous page with a match, 1"', page
    )
    cited = await (await client.get(f"{base}/2", params={"q": "restore"})).text()
    assert ('id="found-1"' in cited, 'id="hit"' in cited) == (True, is_linked)


async def test_queries_are_escaped_and_limited(client: TestClient, link: str) -> None:
    """Tags in query and document are shown as text; long queries are cut; invalid bytes are ignored."""
    html = await (await client.get(f"{link}/search", params={"q": "<b>bold</b>"})).text()
    assert "<mark>&lt;b&gt;bold&lt;/b&gt;</mark>" in html
    assert "<b>bold" not in html
    long = await (await client.get(f"{link}/search", params={"q": "xy " * 2000})).text()
    (kept,) = set(re.findall(r'value="(xy[^"]*)"', long))
    assert len(kept) == MAX_QUERY_CHARS
    assert (await client.get(f"{link}/search?q=%ff%00%ed%a0%80")).status == 200


async def test_the_outline_leads_to_the_page_of_each_heading(client: TestClient, link: str) -> None:
    """An empty query lists the document's headings."""
    html = await (await client.get(f"{link}/search?q=+")).text()
    assert re.findall(r'href="[^"]*/(\d)" rel="nofollow">([^<]*)</a> <span class="count">', html) == [
        ("1", "1 Policy"),
        ("2", "2 Restore"),
        ("3", "3 &lt;Tapes&gt;"),
    ]


@pytest.mark.parametrize(("number", "page"), [("3", 3), ("0", 1), ("999", 3), ("+2+", 2)])
async def test_a_page_number_opens_its_page(client: TestClient, link: str, number: str, page: int) -> None:
    """Beyond the ends it opens the first or the last page; the query is kept."""
    opened = await client.get(f"{link}/go?n={number}&q=backups")
    assert (opened.status, opened.url.path, opened.url.query_string) == (200, f"{link}/{page}", "q=backups")
    assert f"Page <b>{page}</b> of 3" in await opened.text()


@pytest.mark.parametrize("number", ["", "x", "-1", "²", "9" * 30])
async def test_an_invalid_page_number_is_not_found(client: TestClient, link: str, number: str) -> None:
    """A number that is not valid gets the common 404 page."""
    assert (await client.get(f"{link}/go", params={"n": number})).status == 404


async def test_a_link_searches_only_its_own_version(
    client: TestClient, house: House, channel: Channel, shelved: Shelved, link: str
) -> None:
    """Neither newer versions nor other documents are searched; expired and forged links are refused."""
    newer = make_pdf([["Elephants"]])
    await house.shelve(channel, "it/Backup.pdf", newer, "Backup plan", replaces=shelved)
    await house.shelve(channel, "b.pdf", make_pdf([["Elephants too"]]))
    html = await (await client.get(f"{link}/search?q=elephants")).text()
    assert "No matches for" in html
    assert (await client.get(f"{link[:-1]}/go?n=1")).status == 404
    house.now += timedelta(days=7)
    ended = await client.get(f"{link}/go?n=1")
    assert ended.status == 410


async def test_a_document_without_text_is_reported(
    client: TestClient, house: House, shelved: Shelved, link: str
) -> None:
    """Search and outline say so, and the page opens without them."""
    await house.readings.remove(shelved.reading)
    assert "I can’t search this document" in await (await client.get(f"{link}/search?q=a")).text()
    assert "aren’t available right now" in await (await client.get(f"{link}/search")).text()
    assert (await client.get(f"{link}?q=a")).status == 200


class GatedReadings:
    """Returns texts once the gate opens, and records the readings read."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.gate.set()
        self.read: list[UUID] = []

    async def page_texts(self, reading_id: UUID) -> list[str]:
        """Return one page."""
        self.read.append(reading_id)
        await self.gate.wait()
        return ["Backups run daily"]

    async def sections(self, _: UUID) -> list[tuple[tuple[str, ...], int]]:
        """Return one heading."""
        await self.gate.wait()
        return [(("A",), 1)]


async def test_cached_results_are_immediate_and_holders_take_turns() -> None:
    """A hundred searches of one holder delay another's by two; cached results are not delayed."""
    readings = GatedReadings()
    search = DocumentSearch(cast(SelfHealingReadings, readings))
    known, wanted = uuid4(), uuid4()
    await search.find(known, "daily", holder=1)
    await search.outline(known, holder=1)
    readings.gate.clear()
    many = [asyncio.create_task(search.find(uuid4(), "daily", holder=2)) for _ in range(100)]
    await asyncio.sleep(0)
    async with asyncio.timeout(PATIENCE):
        assert (await search.find(known, "daily", holder=1)).places == 1
        assert len(await search.outline(known, holder=1)) == 1
    one = asyncio.create_task(search.find(wanted, "daily", holder=1))
    await asyncio.sleep(0)
    readings.gate.set()
    await asyncio.gather(one, *many)
    assert readings.read.index(wanted) <= 3
