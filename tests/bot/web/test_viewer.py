"""The viewer: pages opened by a link, refused links, and response headers."""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import uuid4

import pytest
from aiohttp.test_utils import TestClient
from fakes.web_house import House, Shelved, Visit, make_pdf
from harness.tables import for_each
from sqlalchemy import delete, select, update
from sqlmodel import col

from bot.answers.citations.signed_links import KeyRing
from bot.core.ports import LinkPreview
from bot.web.link_verification import preview_link
from bot.web.viewer.page_view import make_chunk_view
from storage.errors import DatabaseUnavailable
from storage.models import Channel, ChannelKey, CitationRecord, CitedPlace, Page, Platform, VersionSource
from storage.sql.tables import CitationRow, DocumentRow

QUOTE = "backups run daily at 2:00 AM"
# Suffixes that are valid after a link.
EVERY_ADDRESS = ["", "/1", "/p/2@1x", "/file.pdf", "/search?q=backups", "/search"]
PAGES = [["Backup policy"], ["Schedule", f"All {QUOTE}", "and are kept a year"], ["Restore", "<b>bold</b>"]]


@dataclass(frozen=True, slots=True)
class Cited:
    """A cited page and its link."""

    channel: Channel
    shelved: Shelved
    citation: CitationRecord
    path: str
    pdf: bytes


@pytest.fixture
async def cited(house: House) -> Cited:
    """Return a citation of page 2 in a document whose printed page numbers are i, ii, iii."""
    channel = await house.channel("alpha")
    pdf = make_pdf(PAGES, labels="/PageLabels<</Nums[0<</S/r>>]>>")
    shelved = await house.shelve(channel, "it/Backup <policy>.pdf", pdf, "Backup & restore")
    citation = await house.cite(channel, shelved, 2, QUOTE)
    return Cited(channel, shelved, citation, path_of(house, channel, citation), pdf)


def path_of(house: House, channel: Channel, citation: CitationRecord) -> str:
    """Return the path of a citation's link."""
    return house.links.viewer_path(house.links.page_url(channel, citation))


async def test_the_page_shows_title_page_number_and_quote(client: TestClient, cited: Cited) -> None:
    """Title, file, physical and printed page number and quote are shown, all escaped."""
    html = await (await client.get(cited.path)).text()
    assert '<h1 id="title">Backup &amp; restore</h1>' in html
    assert "it/Backup &lt;policy&gt;.pdf" in html
    assert re.search(r'Page <b>2</b> of 3 <span class="label">\(printed: ii\)</span>', html)
    assert f'aria-label="Quoted passage">{QUOTE}</blockquote>' in html
    assert f"{cited.path.rpartition('/')[2]}/file.pdf#page=2" in html


async def test_a_quote_is_copied_with_its_reference(client: TestClient, cited: Cited) -> None:
    """Title, file, version and both page numbers; other pages have no reference to copy."""
    html = await (await client.get(cited.path)).text()
    said = "Backup &amp; restore. File it/Backup &lt;policy&gt;.pdf, version 1, page 2 (printed: ii)."
    assert f'<cite id="citation">{said}</cite>' in html
    assert 'id="citation"' not in await (await client.get(f"{cited.path}/1")).text()


async def test_the_text_of_a_page_has_the_same_highlights(
    client: TestClient, house: House, cited: Cited
) -> None:
    """The opened quote, the answer's other quotes and search hits; tags are shown as text."""
    quotes = ((cited.shelved, 2, QUOTE), (cited.shelved, 2, "a year"))
    opened, _ = await house.cite_answer(cited.channel, *quotes)
    html = await (await client.get(f"{path_of(house, cited.channel, opened)}?q=daily+at")).text()
    text = html[html.index('<section class="text"') : html.index("</section>")]
    marks = re.findall(r'<mark class="([^"]*)"(?: data-place="(\d)")?>([^<]*)</mark>', text)
    assert marks == [
        ("hit", "", "backups run "),
        ("hit searched", "1", "daily at"),
        ("hit", "", " 2:00 AM"),
        ("other", "", "a year"),
    ]
    assert "&lt;b&gt;bold&lt;/b&gt;" in await (await client.get(f"{cited.path}/3")).text()


async def test_a_page_that_cannot_be_drawn_is_shown_as_text(client: TestClient, house: House) -> None:
    """Shows the marked text in place of a picture, for a type whose reader draws no pages."""
    channel = await house.channel("alpha")
    shelved = await house.shelve(channel, "notes.txt", make_pdf(PAGES), "Notes")
    citation = await house.cite(channel, shelved, 2, QUOTE)
    html = await (await client.get(path_of(house, channel, citation))).text()
    assert '<input type="radio" name="view" id="as-text" checked>' in html
    assert '<fieldset class="zoom view" hidden>' in html
    assert "/p/2@1x" not in html
    assert '<mark class="hit">' in html


def test_full_lines_are_joined_and_short_ones_kept() -> None:
    """Lines of full length are joined, as phones need it; a list keeps its lines."""
    text = (
        "A sentence goes over the end of\na line and on to the end of the\npage.\n1. Tea\n2. Milk\n\nThe end"
    )
    source = VersionSource(1, 1, uuid4(), "", "a.pdf", "A", 1, None, 1, 1, is_deleted=False)
    view = make_chunk_view(source, 1, 1, Page(1, "", 595, 842, text, ()), ())
    assert ["".join(run.text for run in one) for one in view.paragraphs] == [
        "A sentence goes over the end of a line and on to the end of the page.\n1. Tea\n2. Milk",
        "The end",
    ]


async def test_a_zoomed_page_is_served_in_quarters(client: TestClient, cited: Cited) -> None:
    """Each of four images covers a quarter of the page at 400 dpi."""
    pictures = [await (await client.get(f"{cited.path}/p/2@4x-{part}")).read() for part in (1, 2, 3, 4)]
    sizes = [struct.unpack(">II", one[16:24]) for one in pictures]
    assert all(abs(wide - 1700) <= 1 and abs(tall - 2200) <= 1 for wide, tall in sizes)
    assert len(pictures[0]) > len(pictures[3])  # all lines are in the top left quarter
    assert (await client.get(f"{cited.path}/p/2@4x-5")).status == 404


async def test_only_a_valid_link_can_be_previewed(house: House, cited: Cited) -> None:
    """The preview names the link's channel; a forged, foreign or revoked link has none."""
    url = house.links.page_url(cited.channel, cited.citation)

    async def preview(url: str) -> LinkPreview | None:
        return await preview_link(url, house.links, house.stores)

    shown = LinkPreview(cited.channel.tenant, "p. 2 · Backup & restore", QUOTE)
    assert await preview(url) == shown
    token = url.rpartition("/")[2]
    forged = "A" * len(token)
    for other in (url.replace(token, forged), f"https://elsewhere.example/v/{token}", url[:-1], ""):
        assert await preview(other) is None
    await house.stores.channels.invalidate_links(cited.channel.id)
    assert await preview(url) is None
    renewed = await house.stores.channels.get(cited.channel.id)
    url = house.links.page_url(renewed, cited.citation)
    assert await preview(url) == shown
    async with house.stores.database.transaction() as session:
        await session.execute(delete(CitationRow).where(col(CitationRow.id) == cited.citation.id))
    assert await preview(url) is None


async def test_document_text_never_becomes_markup(client: TestClient, cited: Cited) -> None:
    """Tags in a PDF are shown as text."""
    html = await (await client.get(f"{cited.path}/3")).text()
    assert "&lt;b&gt;bold&lt;/b&gt;" in html
    assert "<b>bold" not in html


async def test_other_pages_have_no_highlight_and_link_back(client: TestClient, cited: Cited) -> None:
    """Only the cited page has the highlight; other pages link back to it."""
    there, elsewhere = [await (await client.get(path)).text() for path in (cited.path, f"{cited.path}/1")]
    assert there.count('class="mark"') == 1
    assert 'class="mark"' not in elsewhere
    assert "Back to the quoted page 2" in elsewhere


async def test_a_link_highlights_its_answers_quotes_on_the_page(
    client: TestClient, house: House, cited: Cited
) -> None:
    """The opened quote is drawn last and strongest, the answer's others with their numbers.

    They are also highlighted on other pages that a reader turns to; quotes of other answers never are.
    """
    quotes = ((cited.shelved, 2, QUOTE), (cited.shelved, 3, "Restore"), (cited.shelved, 2, "kept a year"))
    first, _, third = await house.cite_answer(cited.channel, *quotes)
    for opened, other in ((first, third), (third, first)):
        path = path_of(house, cited.channel, opened)
        html = await (await client.get(path)).text()
        marks = re.findall(r'<rect( id="hit")? class="(mark[^"]*)"', html)
        assert marks == [("", "mark other"), (' id="hit"', "mark")]
        assert re.findall(r'class="mark-number"[^>]*>([\d ]+)<', html) == ["1", "3"]
        assert f'aria-label="Quoted passage">{opened.quote}</blockquote>' in html
        assert f">[{other.number}]</a> {other.quote}</li>" in html
    turned = await (await client.get(f"{path}/3")).text()
    assert re.findall(r'<rect( id="hit")? class="(mark[^"]*)"', turned) == [("", "mark other")]
    assert ">[2]</a> Restore</li>" in turned
    alone = await (await client.get(cited.path)).text()
    assert (alone.count('class="mark"'), alone.count("mark other")) == (1, 0)
    assert "Quotes of this answer" not in alone


async def test_quotes_of_an_answer_are_linked_across_documents(
    client: TestClient, house: House, cited: Cited
) -> None:
    """Shows all quotes of an answer by number, each with its own link, without those of deleted files."""
    other = await house.shelve(
        cited.channel, "b.pdf", make_pdf([["Cover"], ["Tapes are kept in a safe"]]), "Tapes"
    )
    gone = await house.shelve(cited.channel, "c.pdf", make_pdf([["Gone soon"]]))
    records = await house.cite_answer(
        cited.channel,
        (cited.shelved, 2, QUOTE),
        (cited.shelved, 3, "Restore"),
        (gone, 1, "Gone soon"),
        (other, 2, "in a safe"),
    )
    async with house.database.transaction() as session:
        deleted = update(DocumentRow).where(col(DocumentRow.id) == gone.document)
        await session.execute(deleted.values(state="deleted"))
    path, seen = path_of(house, cited.channel, records[0]), []
    while path:
        html = await (await client.get(path)).text()
        place = re.search(r'<h1 id="title">([^<]*)<.*?<b>\[(\d)]</b>.*?, (\d) of (\d)<', html, re.DOTALL)
        assert place
        seen.append(place.groups())
        following = re.search(r'class="next" href="\.\./(v/[\w-]+)"', html)
        path = f"/{following[1]}" if following else ""
    name = "Backup &amp; restore"
    assert seen == [(name, "1", "1", "3"), (name, "2", "2", "3"), ("Tapes", "4", "3", "3")]
    assert 'data-key="p"' in html
    assert "Gone" not in html


async def test_a_quote_without_boxes_is_shown_without_highlight(
    client: TestClient, house: House, cited: Cited
) -> None:
    """A citation without boxes shows its quote above the page and no highlight."""
    bare = await house.keep(cited.channel, CitedPlace(cited.shelved.version, 2, QUOTE))
    html = await (await client.get(path_of(house, cited.channel, bare))).text()
    assert 'class="mark"' not in html
    assert "nothing is marked" in html


async def test_the_image_is_rendered_once_for_all_citations(
    client: TestClient, house: House, cited: Cited
) -> None:
    """Images are cached by content, page and resolution, and shared by all links."""
    first = await client.get(f"{cited.path}/p/2@1x")
    other = await house.cite(cited.channel, cited.shelved, 2, "Schedule")
    second = await client.get(f"{path_of(house, cited.channel, other)}/p/2@1x")
    assert first.content_type in {"image/png", "image/jpeg"}
    assert await first.read() == await second.read()
    assert len(list((house.home / "images").iterdir())) == 1


@for_each("suffix", ["/0", "/4", "/999999", "/p/4@1x", "/p/2@3x", "/p/2@1", "/../2", "/file.txt"])
async def test_missing_pages_are_not_found(client: TestClient, cited: Cited, suffix: str) -> None:
    """A page number or name that the document does not have gets the common 404 page."""
    assert (await client.get(cited.path + suffix)).status == 404


async def test_a_forged_link_is_refused_while_sql_is_down(visit: Visit, house: House, cited: Cited) -> None:
    """The known keys suffice to refuse it; for a malformed token the keys are not even refreshed."""
    asked: list[int] = []

    class UnreachableKeys(KeyRing):
        async def refresh(self) -> None:
            asked.append(1)
            raise DatabaseUnavailable("away")

    house.keys = UnreachableKeys(house.home / "link_keys.json")
    client = await visit()
    for text in ("x", "A" * 111, "A" * 113, "ü" * 112):
        assert (await client.get(f"/v/{text}")).status == 404
    assert not asked
    assert (await client.get(f"/v/{'A' * 112}")).status == 404
    assert (await client.get(cited.path)).status >= 500


@pytest.mark.parametrize("suffix", EVERY_ADDRESS)
async def test_all_forged_links_get_the_same_response(client: TestClient, cited: Cited, suffix: str) -> None:
    """Status, body and headers do not depend on what is wrong with the link."""
    token = cited.path.rpartition("/")[2]
    forged = [token[:-1] + ("A" if token[-1] != "A" else "B"), token[:40], "x", token + "A", "%00", "ü" * 112]
    seen = set()
    for text in forged:
        response = await client.get(f"/v/{text}{suffix}")
        headers = tuple((name, value) for name, value in sorted(response.headers.items()) if name != "Date")
        seen.add((response.status, await response.read(), headers))
    nowhere = await client.get("/no/such/page")
    ((status, body, _),) = seen
    assert (status, body) == (404, await nowhere.read())


@pytest.mark.parametrize("suffix", EVERY_ADDRESS)
async def test_an_expired_link_names_no_document(
    client: TestClient, house: House, cited: Cited, suffix: str
) -> None:
    """After seven days every URL of the link is a 410 page that names no document."""
    house.now += timedelta(days=7)
    await assert_ended(client, cited.path + suffix)


async def test_an_expired_slack_link_leads_to_its_channel(client: TestClient, house: House) -> None:
    """The 410 page names the Slack channel; those of local channels and forged links name none."""
    channel = await house.channels.ensure(ChannelKey(Platform("slack"), "T1ABC", "C1ABC"))
    shelved = await house.shelve(channel, "a.pdf", make_pdf(PAGES))
    path = path_of(house, channel, await house.cite(channel, shelved, 2, QUOTE))
    beta = await house.channel("beta")
    local = path_of(house, beta, await house.cite(beta, shelved, 2, QUOTE))
    house.now += timedelta(days=7)
    ended = await client.get(path)
    assert ended.status == 410
    assert 'href="https://slack.com/app_redirect?channel=C1ABC&amp;team=T1ABC"' in await ended.text()
    assert "slack.com" not in await (await client.get(local)).text()
    forged = await client.get(f"{path[:-2]}AA")
    assert (forged.status, await forged.read()) == (404, await (await client.get("/no/such/page")).read())


async def test_raising_the_channels_epoch_ends_its_links_at_once(
    client: TestClient, house: House, cited: Cited
) -> None:
    """Revocation applies to the next request, including the image and the file."""
    assert (await client.get(cited.path)).status == 200
    await house.channels.invalidate_links(cited.channel.id)
    for suffix in ("", "/p/2@1x", "/file.pdf"):
        await assert_ended(client, cited.path + suffix)


async def test_deleting_the_document_ends_its_links_at_once(
    client: TestClient, house: House, cited: Cited
) -> None:
    """A cached image is not served any more either."""
    assert (await client.get(f"{cited.path}/p/2@1x")).status == 200
    async with house.database.transaction() as session:
        gone = update(DocumentRow).where(col(DocumentRow.id) == cited.shelved.document)
        await session.execute(gone.values(state="deleted"))
    for suffix in ("", "/p/2@1x", "/file.pdf"):
        await assert_ended(client, cited.path + suffix)


async def test_a_link_without_its_citation_or_file_is_gone(
    client: TestClient, house: House, cited: Cited
) -> None:
    """Data missing in SQL or the blob store leads to a 410, not an error."""
    house.blobs.remove(cited.shelved.sha256)
    await assert_ended(client, f"{cited.path}/file.pdf")
    async with house.database.transaction() as session:
        await session.execute(delete(CitationRow))
    await assert_ended(client, cited.path)


async def test_a_link_of_one_channel_never_opens_anothers_document(
    client: TestClient, house: House, cited: Cited
) -> None:
    """A token signed by us is refused if its channel, version and citation disagree."""
    beta = await house.channel("beta")
    canary = await house.shelve(beta, "canary.pdf", make_pdf([["CANARY"]]), "CANARY")
    secret = await house.cite(beta, canary, 1, "CANARY")
    await assert_ended(client, path_of(house, cited.channel, secret))
    mixed = CitationRecord(
        cited.citation.id, cited.channel.id, canary.version, 1, "", (), cited.citation.created_at
    )
    await assert_ended(client, path_of(house, cited.channel, mixed))


async def test_a_link_opens_no_version_of_another_channel(
    client: TestClient, house: House, cited: Cited
) -> None:
    """Shows that a citation of the link's own channel does not open a version of another channel."""
    beta = await house.channel("beta")
    canary = await house.shelve(beta, "canary.pdf", make_pdf([["CANARY"]]), "CANARY")
    lent = await house.keep(cited.channel, CitedPlace(canary.version, 1, "CANARY"))
    await assert_ended(client, path_of(house, cited.channel, lent))


async def test_a_link_opens_no_citation_of_another_channel(
    client: TestClient, house: House, cited: Cited
) -> None:
    """Shows that quotes of another channel are not highlighted for this one."""
    beta = await house.channel("beta")
    foreign = await house.keep(beta, CitedPlace(cited.shelved.version, 2, QUOTE))
    await assert_ended(client, path_of(house, cited.channel, foreign))


async def assert_ended(client: TestClient, path: str) -> None:
    """Require a 410 that names no document."""
    response = await client.get(path)
    body = await response.text()
    assert response.status == 410
    assert "Ask your question again in the channel" in body
    for secret in ("Backup", "backups", "policy", "alpha", "CANARY", "canary"):
        assert secret not in body


async def test_an_older_version_opens_with_a_banner(client: TestClient, house: House, cited: Cited) -> None:
    """The quoted page is shown unchanged, with a note that a newer version is in use."""
    newer = make_pdf([["Backup policy"], ["Schedule", "All backups run weekly"]])
    await house.shelve(cited.channel, "it/Backup.pdf", newer, "Backup & restore", replaces=cited.shelved)
    html = await (await client.get(cited.path)).text()
    assert "A newer version of this document is in use." in html
    assert QUOTE in html
    assert "weekly" not in html


NEWER = [
    ("text", [["Cover"], ["Backup policy"], [f"All {QUOTE}"]], ("Cover", "Policy", "Plan"), 3),
    ("section", [["Cover"], ["All backups run weekly"]], ("Cover", "Schedule"), 2),
    ("nothing", [["Cover"], ["Something else"]], ("Cover", "Other"), 1),
]
SAID = {
    "text": "It says the same on page 3.",
    "section": "The passage has changed; its section is on page 2.",
    "nothing": "I couldn’t find the passage or its section in it.",
}


@pytest.mark.parametrize("newer_version", NEWER, ids=[one[0] for one in NEWER])
async def test_the_newer_version_bar_leads_to_the_same_passage(
    client: TestClient, house: House, newer_version: tuple[str, list[list[str]], Sequence[str], int]
) -> None:
    """The passage is found by its words, else its section, else page 1, and the bar says which.

    The new link expires with the old one; a GET writes nothing, and two clicks create one citation.
    """
    found, pages, headings, number = newer_version
    channel = await house.channel("beta")
    old = await house.shelve(channel, "a.pdf", make_pdf(PAGES), headings=("Backup policy", "1 Schedule", "x"))
    (citation, _) = await house.cite_answer(channel, (old, 2, QUOTE), (old, 2, "kept a year"))
    path = path_of(house, channel, citation)
    assert (await client.post(f"{path}/newer")).status == 404
    newer = await house.shelve(channel, "a.pdf", make_pdf(pages), replaces=old, headings=headings)
    html = await (await client.get(path)).text()
    bar = html[html.index('<nav class="bar"') :].partition("</nav>")[0]
    assert SAID[found] in bar
    assert f'action="../v{path[2:]}/newer"' in bar
    assert await count_citations(house) == 2
    opened = await client.post(f"{path}/newer")
    assert (opened.status, await count_citations(house)) == (200, 4)
    text = await opened.text()
    assert f"Page <b>{number}</b> of {len(pages)}" in text
    assert (QUOTE in text, 'id="hit"' in text) == (found == "text", found == "text")
    assert 'class="newer"' not in text
    assert (await client.post(f"{path}/newer")).url == opened.url
    assert await count_citations(house) == 4
    claims = house.links.read(opened.url.name)
    assert (claims.version_id, claims.page) == (newer.version, number)
    assert claims.expires == house.links.read(path.rpartition("/")[2]).expires


async def test_an_open_page_renews_its_links_while_valid(client: TestClient, house: House) -> None:
    """Renews its own link and those of the answer's other quotes, by POST only.

    Revoked, expired and forged links are not renewed.
    """
    channel = await house.channel("beta")
    old = await house.shelve(channel, "a.pdf", make_pdf(PAGES))
    first, _ = await house.cite_answer(channel, (old, 2, QUOTE), (old, 2, "kept a year"))
    path = path_of(house, channel, first)
    assert 'data-seconds="604800"' in await (await client.get(path)).text()
    house.now += timedelta(days=3)
    renewed = await (await client.post(f"{path}/renewal")).json()
    assert (len(renewed["tokens"]), renewed["seconds"]) == (2, 604800)
    html = await (await client.get(path)).text()
    assert all(token in html for token in renewed["tokens"])
    newer = renewed["tokens"][path.rpartition("/")[2]]
    assert (await client.get(f"{path}/renewal")).status in (404, 405)
    assert (await client.post(f"/v/{newer[:-1]}A/renewal")).status == 404
    house.now += timedelta(days=5)
    assert (await client.post(f"{path}/renewal")).status == 410
    for token in renewed["tokens"].values():
        assert (await client.get(f"/v/{token}")).status == 200
    await house.channels.invalidate_links(channel.id)
    assert (await client.post(f"/v/{newer}/renewal")).status == 410


async def test_a_forged_or_expired_link_opens_no_newer_version(
    client: TestClient, house: House, cited: Cited
) -> None:
    """The button's URL is refused like any other URL of the link, and writes nothing."""
    await house.shelve(cited.channel, "b.pdf", make_pdf([["New"]]), replaces=cited.shelved)
    assert (await client.post(f"{cited.path[:-1]}/newer")).status == 404
    house.now += timedelta(days=7)
    assert (await client.post(f"{cited.path}/newer")).status == 410
    assert await count_citations(house) == 1


async def count_citations(house: House) -> int:
    """Return the number of stored citations."""
    async with house.database.snapshot() as session:
        return len((await session.scalars(select(CitationRow))).all())


async def test_the_pdf_is_served_inline_under_its_own_name(client: TestClient, cited: Cited) -> None:
    """The same bytes as application/pdf, inline and sandboxed."""
    response = await client.get(f"{cited.path}/file.pdf")
    assert await response.read() == cited.pdf
    assert response.headers["Content-Type"] == "application/pdf"
    assert response.headers["Content-Disposition"] == (
        "inline; filename=\"Backup <policy>.pdf\"; filename*=UTF-8''Backup%20%3Cpolicy%3E.pdf"
    )
    assert "sandbox" in response.headers["Content-Security-Policy"]


async def test_range_requests_are_supported(client: TestClient, cited: Cited) -> None:
    """Ranges, suffix ranges, unsatisfiable ranges and conditional requests follow RFC 9110."""
    url = f"{cited.path}/file.pdf"
    middle = await client.get(url, headers={"Range": "bytes=10-29"})
    tail = await client.get(url, headers={"Range": "bytes=-5"})
    beyond = await client.get(url, headers={"Range": f"bytes={len(cited.pdf)}-"})
    assert (middle.status, await middle.read()) == (206, cited.pdf[10:30])
    assert middle.headers["Content-Range"] == f"bytes 10-29/{len(cited.pdf)}"
    assert (tail.status, await tail.read()) == (206, cited.pdf[-5:])
    assert beyond.status == 416
    unchanged = await client.get(url, headers={"If-None-Match": middle.headers["ETag"]})
    assert (unchanged.status, await unchanged.read()) == (304, b"")


@for_each("suffix", EVERY_ADDRESS)
async def test_head_responds_like_get_without_a_body(client: TestClient, cited: Cited, suffix: str) -> None:
    """HEAD requests of link previews and scanners get the same headers."""
    get, head = await client.get(cited.path + suffix), await client.head(cited.path + suffix)
    assert head.status == get.status == 200
    assert await head.read() == b""
    for name in ("Content-Type", "Content-Security-Policy", "Cache-Control"):
        assert head.headers[name] == get.headers[name]


async def test_no_response_leaks_the_link(client: TestClient, cited: Cited) -> None:
    """No referrer, indexing, sniffing or cookie; pages are not cached."""
    for suffix in ("", "/p/2@1x", "/file.pdf", "/search", "/999"):
        headers = (await client.get(cited.path + suffix)).headers
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["X-Robots-Tag"].startswith("noindex")
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert "Set-Cookie" not in headers
        assert headers["Cache-Control"].startswith("private")
        assert "default-src 'none'" in headers["Content-Security-Policy"]
    page = (await client.get(cited.path)).headers
    assert page["Cache-Control"] == "private, no-store"
    assert "frame-ancestors 'self'" in page["Content-Security-Policy"]
    assert "unsafe" not in page["Content-Security-Policy"]


async def test_a_public_https_url_sends_hsts(visit: Visit, house: House) -> None:
    """Strict-Transport-Security is sent only if links are https."""
    assert "Strict-Transport-Security" not in (await (await visit()).get("/v/x")).headers
    house.public_url = "https://docs.example.org"
    assert "Strict-Transport-Security" in (await (await visit()).get("/v/x")).headers


async def test_a_page_without_its_reading_still_has_highlights(
    client: TestClient, house: House, cited: Cited
) -> None:
    """Image, quote and highlights come from the citation and the file; only the text layer is missing."""
    await house.readings.remove(cited.shelved.reading)
    html = await (await client.get(cited.path)).text()
    assert html.count('class="mark"') == 1
    assert QUOTE in html
    assert "<tspan" not in html


@pytest.mark.parametrize("path", ["p/2@1x", "file.pdf"])
async def test_pages_and_pdfs_are_not_cached(client: TestClient, cited: Cited, path: str) -> None:
    """Shows that browsers cache no part of a document, which may be deleted or whose link may expire."""
    response = await client.get(f"{cited.path}/{path}")
    assert response.status == 200
    assert response.headers["Cache-Control"] == "private, no-store"


async def test_the_html_head_names_no_document(client: TestClient, cited: Cited) -> None:
    """The head of the page, which link previews show, names no document."""
    head = (await (await client.get(cited.path)).text()).partition("</head>")[0]
    assert "Backup" not in head
    assert "og:" not in head


async def test_a_page_that_cannot_be_rendered_still_shows_its_text(
    client: TestClient, house: House, cited: Cited
) -> None:
    """The image of a failed rendering returns 503, and the page's text is still shown."""
    house.blobs.remove(cited.shelved.sha256)
    picture, page = await client.get(f"{cited.path}/p/2@1x"), await client.get(cited.path)
    assert picture.status == 503
    assert QUOTE in await page.text()


async def test_cached_images_stay_within_their_limit(visit: Visit, house: House) -> None:
    """Least recently used images are evicted."""
    channel = await house.channel("alpha")
    pages = [[f"{page} {line} lorem ipsum " * 3 for line in range(34)] for page in range(30)]
    shelved = await house.shelve(channel, "long.pdf", make_pdf(pages))
    path = path_of(house, channel, await house.keep(channel, CitedPlace(shelved.version, 1)))
    client = await visit(page_images_mb=1)
    drawn = [len(await (await client.get(f"{path}/p/{page}@2x")).read()) for page in range(1, 31)]
    kept = sum(file.stat().st_size for file in (house.home / "images").iterdir())
    assert sum(drawn) > 1024 * 1024
    assert 0 < kept <= 1024 * 1024
