"""HTML extraction: text, headings, tables and steps; no menus, banners or hidden text."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from fakes.web_layouts import LAYOUTS, NOISE, TEXTS, whole_page
from harness.html_pages import read_page
from harness.lasting_pool import lasting_side
from harness.tables import for_each

from storage.errors import NoPages
from storage.files.reading_files import ReadingFiles


async def read(
    page: str | bytes, media_type: str = "text/html", charset: str | None = None
) -> dict[str, Any]:
    """Extract a page in a confined child."""
    data = page.encode() if isinstance(page, str) else page
    found: dict[str, Any] = json.loads(await read_page(data, media_type, charset))
    return found


def said(page: dict[str, Any]) -> str:
    """Return all its text, a block per line."""
    return "\n".join(text for _, _, _, text in page["blocks"])


async def test_thirty_pages_are_extracted_without_boilerplate(
    record_property: pytest.RecordProperty,
) -> None:
    """Measures required text, headings with anchors, and noise, over ten layouts."""
    kept, anchors, noise = [], [], []
    for layout in LAYOUTS:
        for text in TEXTS:
            page = await read(whole_page(layout, text))
            whole = said(page)
            kept += [one in whole for one in text.kept]
            anchors += [one in [anchor for _, _, anchor, _ in page["blocks"]] for one in text.anchors]
            noise += [one in whole for one in NOISE]
            assert page["title"] == text.title, layout.__name__
    shares = [sum(found) / len(found) for found in (kept, anchors, noise)]
    record_property("table", "web pages: text {:.3f}, anchors {:.3f}, noise {:.3f}".format(*shares))
    assert shares[0] >= 0.98
    assert shares[1] >= 0.97
    assert shares[2] == 0


async def test_the_modification_date_of_a_page_is_read() -> None:
    """From the page's metadata; none without it."""
    dated = (
        "<html><head><meta property='article:modified_time' content='2025-03-02T08:00:00Z'></head><body><p>a"
    )
    assert (await read(dated))["day"] == "2025-03-02"
    assert (await read("<main><time datetime='2024-12-31'>x</time><p>Some words.</p></main>"))[
        "day"
    ] == "2024-12-31"
    assert (await read("<p>Published on the first of May.</p>"))["day"] == ""
    nowhen = "<meta property='article:modified_time' content='0000-00-00'><p>No calendar has this day.</p>"
    assert (await read(nowhen))["day"] == ""


@for_each(
    ("data", "charset"),
    [
        ("<p>Größe: 5 €</p>".encode(), "iso-8859-1"),
        ("<meta charset=windows-1252><p>Größe: 5 €</p>".encode("cp1252"), None),
        ("<p>Größe: 5 €</p>".encode("cp1252"), "windows-1252"),
        ("<p>Größe: 5 €</p>".encode("utf-16"), None),
        ("<meta charset=nonsense><p>Größe: 5 €</p>".encode(), "also-nonsense"),
    ],
)
async def test_a_wrong_charset_is_corrected(data: bytes, charset: str | None) -> None:
    """UTF-8 is detected whatever the server declares; other charsets are trusted otherwise."""
    assert said(await read(data, charset=charset)) == "Größe: 5 €"


@for_each(
    "style",
    ["line-height:1", "border-width: 1px;", "min-width:0", "margin-left:-100px", "opacity:0.9", "color:#ffe"],
)
async def test_an_ordinary_style_hides_no_text(style: str) -> None:
    """Shows that styles that resemble hiding keep their text, and that a white heading stays."""
    page = f'<main><h1 style="color:white">Deposits</h1><p style="{style}">They are paid back.</p></main>'
    assert said(await read(page)) == "Deposits\nThey are paid back."


async def test_plain_text_is_split_into_paragraphs() -> None:
    """Shows that text/plain is not parsed as HTML, and that NULs are removed."""
    page = await read("First <b>line\nof\0text.\n\nSecond.\x1b", "text/plain")
    assert said(page) == "First <b>line of text.\nSecond."


async def test_steps_and_lists_keep_their_numbers_and_their_order() -> None:
    """Ordered items keep their numbers; a nested list follows its item."""
    page = await read(
        "<main><h1>Steps</h1><p>Do all of this in the order given here.</p><ol><li>First do one thing."
        "<ul><li>With care.</li></ul></li><li>Then do another.</li></ol></main>"
    )
    assert said(page).splitlines()[-3:] == ["1. First do one thing.", "- With care.", "2. Then do another."]


async def test_chunks_do_not_cross_headings(tmp_path: Path) -> None:
    """Each has the anchor that links to it."""
    page = (
        "<main><h1>Title</h1><p>Before all.</p><h2 id=a>One</h2><p>In one.</p><h3>Deep</h3><p>In deep.</p>"
        "<h2>Two</h2><table><tr><th>k</th><th>v</th></tr><tr><td>a</td><td>1</td></tr></table></main>"
    )
    reading, files = uuid4(), ReadingFiles(tmp_path)
    job = {"do": "chunk page", "limit": 400, "window": 512, "tokenizer": None}
    cut = await lasting_side().run(
        {**job, "root": str(tmp_path), "reading": str(reading)}, await read_page(page.encode())
    )
    chunks = await files.wordless_chunks(reading)
    assert [(one.ordinal, one.text, one.heading_path) for one in chunks] == [
        (0, "Before all.", ()),
        (1, "In one.", ("One",)),
        (2, "In deep.", ("One", "Deep")),
        (3, "| k | v |\n| --- | --- |\n| a | 1 |", ("Two",)),
    ]
    assert cut["details"]["anchors"] == ["", "a", "a", ""]


async def test_a_page_over_the_limits_fails_alone() -> None:
    """Shows that a page of a million open elements harms no other."""
    with suppress(NoPages):
        await read("<div><span>" * 160_000 + "text")
    assert said(await read("<p>The next one.</p>")) == "The next one."
