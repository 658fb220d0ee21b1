"""The console: access control, answers, and its restriction to local channels."""

from __future__ import annotations

import io
import json
from datetime import timedelta
from uuid import uuid4

import pytest
from aiohttp.test_utils import TestClient
from fakes.core import WORDS
from fakes.web_house import House, Visit, make_pdf
from fakes.web_shelf import WebShelf
from harness.tables import for_each
from sqlalchemy import update
from sqlmodel import col

from bot.core.models import (
    Answer,
    AnswerFigure,
    AnswerState,
    AppliedFilter,
    Citation,
    Correction,
    Language,
    NearestPage,
    UnreadFile,
)
from bot.core.wording import reply_words
from storage.clock import utc_now
from storage.models import Box, Channel, ChannelKey, CitedPlace, Platform
from storage.sql.tables import WebPageRow

OWN = {"X-Footnote-Console": "1"}


async def ask(client: TestClient, channel: Channel, question: str, **headers: str) -> tuple[int, str]:
    """Ask like the console's script, with additional headers."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    body = {"channel": channel.id, "question": question}
    response = await client.post("/console/ask", json=body, headers=OWN | named)
    return response.status, await response.text()


async def test_an_answer_comes_with_its_sources_and_their_pages(client: TestClient, house: House) -> None:
    """Each citation has number, title, file, page, quote and the path of its page in the viewer."""
    channel = await house.channel("alpha")
    shelved = await house.shelve(channel, "a.pdf", make_pdf([["Water boils at 100 C"]]), "Water")
    citation = await house.cite(channel, shelved, 1, "boils at 100 C")
    house.answering.answers["When?"] = house.answer("At 100 C. [1]", (channel, citation, "Water", "a.pdf"))
    status, text = await ask(client, channel, "  When?  ")
    answer = json.loads(text)
    (source,) = answer["citations"]
    assert (status, answer["state"], answer["text"]) == (200, "grounded", "At 100 C. [1]")
    assert (source["title"], source["page"], source["quote"]) == ("Water", 1, "boils at 100 C")
    assert (await client.get(source["view"])).status == 200


async def test_an_answer_is_streamed_as_ndjson_on_request(client: TestClient, house: House) -> None:
    """Drafts while the answer is written, without [n] that have no target yet; then the answer."""
    channel = await house.channel("alpha")
    house.answering.answers["When?"] = house.answer("At two. Daily.")
    house.answering.beginnings = ("At two. [1]", "At two. [1] Daily. [2]")
    _, whole = await ask(client, channel, "When?")
    status, text = await ask(client, channel, "When?", Accept="application/x-ndjson")
    first, second, answer = map(json.loads, text.splitlines())
    assert status == 200
    assert (first, second) == ({"beginning": "At two."}, {"beginning": "At two. Daily."})
    assert answer | {"question": ""} == json.loads(whole) | {"question": ""}  # asked twice


async def test_a_failed_ndjson_answer_ends_with_a_failed_line(client: TestClient, house: House) -> None:
    """The status was already sent; the last line has no text."""
    channel = await house.channel("alpha")
    house.answering.answers["When?"] = RuntimeError("secret")
    house.answering.beginnings = ("At two. [1]",)
    _, text = await ask(client, channel, "When?", Accept="application/x-ndjson")
    assert [json.loads(line) for line in text.splitlines()] == [{"beginning": "At two."}, {"state": "failed"}]


async def test_each_cited_page_is_one_source(client: TestClient, house: House) -> None:
    """Citations of a page share a source with their numbers and quotes; equal titles add the file name."""
    channel = await house.channel("alpha")
    cited = []
    for file, place in (("a.pdf", "Delft"), ("b.pdf", "Quito")):
        shelved = await house.shelve(channel, file, make_pdf([[f"Water boils in {place}"]]), "Water")
        for quote in ("Water boils", f"in {place}"):
            cited.append((channel, await house.cite(channel, shelved, 1, quote), "Water", file))
    house.answering.answers["Where?"] = house.answer("There. [1][2][3][4]", *cited)
    answer = json.loads((await ask(client, channel, "Where?"))[1])
    assert answer["sources"] == [
        {
            "numbers": numbers,
            "label": f"p. 1 · {file}",
            "quotes": ["Water boils", f"in {place}"],
            "view": answer["citations"][numbers[0] - 1]["view"],
        }
        for numbers, file, place in (([1, 2], "a.pdf", "Delft"), ([3, 4], "b.pdf", "Quito"))
    ]
    assert len({citation["view"] for citation in answer["citations"]}) == 4


@pytest.mark.parametrize("is_table", [False, True])
async def test_a_figure_comes_with_its_caption_and_its_place(
    client: TestClient, house: House, is_table: bool
) -> None:
    """The figure is listed among the sources, with its image and page; a table is labelled as one."""
    channel = await house.channel("alpha")
    links = [f"{house.public_url}/{kind}/abc" for kind in "vf"]
    figure = AnswerFigure("a.pdf", 3, "Figure 1. Emissions", Box(0, 0, 1, 1), *links, is_table=is_table)
    house.answering.answers["Chart?"] = Answer(AnswerState.GROUNDED, "Here.", figures=(figure,))
    answer = json.loads((await ask(client, channel, "Chart?"))[1])
    assert answer["figures"] == [
        {
            "label": (WORDS.table_unnamed if is_table else WORDS.figure_unnamed)(page=3),
            "caption": "Figure 1. Emissions",
            "file": "a.pdf",
            "view": "/v/abc",
            "image": "/f/abc",
            "alt": "Figure 1. Emissions",
        }
    ]


async def test_not_found_names_the_closest_page_and_unread_files(client: TestClient, house: House) -> None:
    """The closest page can be opened, and unread files are listed, in the answer's language."""
    channel = await house.channel("alpha")
    near = NearestPage("a.pdf", 3, f"{house.public_url}/v/abc", "a.pdf")
    unread = (UnreadFile("b.pdf", "it opens only with a password"),)
    house.answering.answers["Who?"] = Answer(
        AnswerState.NOT_FOUND, "No.", nearest=near, unread=unread, language=Language.GERMAN
    )
    german = reply_words(Language.GERMAN)
    answer = json.loads((await ask(client, channel, "Who?"))[1])
    assert answer["nearest"] == {
        "file": "a.pdf",
        "label": german.source_label(3, "a.pdf"),
        "note": german.nearest_note,
        "view": "/v/abc",
    }
    assert answer["unread"] == ["b.pdf: it opens only with a password"]


async def test_each_browser_page_is_a_conversation(client: TestClient, house: House) -> None:
    """A browser page is a conversation: its next question in the channel sees the previous ones."""
    alpha, beta = await house.channel("alpha"), await house.channel("beta")
    mine, other = str(uuid4()), str(uuid4())
    for channel, thread, text in (
        (alpha, mine, "1"),
        (alpha, other, "2"),
        (beta, mine, "3"),
        (alpha, mine, "4"),
    ):
        body = {"channel": channel.id, "question": text, "thread": thread}
        assert (await client.post("/console/ask", json=body, headers=OWN)).status == 200
    await ask(client, alpha, "5")
    histories = [[turn.question for turn in one.history] for one in house.answering.asked]
    assert histories == [[], [], [], ["1"], []]


async def test_an_answer_shows_its_standalone_question(client: TestClient, house: House) -> None:
    """Shown only if it differs from the typed question."""
    channel = await house.channel("alpha")
    for standalone, shown in (("Why is that?", WORDS.understood(question="Why is that?")), ("", "")):
        house.answering.answers["Why?"] = Answer(AnswerState.NOT_FOUND, "No.", standalone=standalone)
        assert json.loads((await ask(client, channel, "Why?"))[1])["understood"] == shown
    corrections = (Correction("bakcups", "backups"),)
    house.answering.answers["Why?"] = Answer(AnswerState.NOT_FOUND, "No.", corrections=corrections)
    assert json.loads((await ask(client, channel, "Why?"))[1])["understood"] == "Spelling corrected: backups"
    applied = AppliedFilter(("Facilities",), 1)
    house.answering.answers["Why?"] = Answer(AnswerState.NOT_FOUND, "No.", filter=applied)
    shown = json.loads((await ask(client, channel, "Why?"))[1])["understood"]
    assert shown == "I only looked in 1 document: Facilities"


async def test_a_failure_reveals_no_details(
    client: TestClient, house: House, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither response nor log contains the exception's text, which may quote a document."""
    channel = await house.channel("alpha")
    house.answering.answers["Why?"] = RuntimeError("CANARY at /home/secret")
    status, text = await ask(client, channel, "Why?")
    assert (status, json.loads(text)) == (500, {"state": "failed"})
    assert "CANARY" not in caplog.text
    assert "RuntimeError" in caplog.text


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
        {"X_Footnote_Console": ""},
        {"Host": "evil.example"},
        {"Host": "127.0.0.1.evil.example:8765"},
        {"X_Forwarded_For": "203.0.113.7"},
    ],
)
async def test_only_our_own_page_can_ask(client: TestClient, house: House, headers: dict[str, str]) -> None:
    """Requests of a foreign page, a rebound host name or a proxy are refused before anything is asked."""
    channel = await house.channel("alpha")
    status, _ = await ask(client, channel, "Who?", **headers)
    assert status == 403
    assert house.answering.asked == []


async def test_a_form_on_another_page_cannot_ask(client: TestClient, house: House) -> None:
    """A plain form post, which browsers send across sites, is refused."""
    await house.channel("alpha")
    body = '{"channel": 1, "question": "Who?"}'
    response = await client.post("/console/ask", data=body, headers=OWN | {"Content-Type": "text/plain"})
    assert response.status == 403
    assert house.answering.asked == []


@pytest.mark.parametrize("path", ["/", "/console/channels", "/console/channels/1"])
async def test_a_rebound_host_name_is_refused(client: TestClient, house: House, path: str) -> None:
    """With a foreign Host header even the page itself is refused; with ours it is served."""
    await house.channel("alpha")
    assert (await client.get(path, headers={"Host": "rebound.example:8765"})).status == 403
    assert (await client.get(path, headers={"Host": "localhost:8765"})).status == 200
    assert (await client.get(path, headers={"Host": "[::1]:8765"})).status == 200


async def test_the_console_is_disabled_behind_a_public_url(visit: Visit, house: House) -> None:
    """A public URL suggests a reverse proxy: no console, unless a setting enables it."""
    house.public_url = "https://docs.example.org"
    assert (await (await visit()).get("/")).status == 404
    assert (await (await visit(console=True)).get("/")).status == 200


async def test_chat_channels_do_not_exist_in_the_console(client: TestClient, house: House) -> None:
    """Documents, names and answers of chat channels are not available there."""
    await house.channel("alpha")
    slack = await house.channels.ensure(ChannelKey(Platform("slack"), "T1", "C1"), "secret-plans")
    await house.shelve(slack, "canary.pdf", make_pdf([["CANARY"]]), "CANARY")
    page, listing = [await (await client.get(path)).text() for path in ("/", "/console/channels")]
    assert "alpha" in page
    assert "secret-plans" not in page + listing
    assert (await client.get(f"/console/channels/{slack.id}")).status == 404
    status, text = await ask(client, slack, "CANARY?")
    assert status == 404
    assert "CANARY" not in text
    assert house.answering.asked == []


async def test_each_channel_shows_its_own_documents(client: TestClient, house: House) -> None:
    """Documents, progress and folder belong to the selected channel."""
    alpha, beta = await house.channel("alpha"), await house.channel("beta")
    await house.shelve(alpha, "a.pdf", make_pdf([["one"], ["two"]]), "Of alpha")
    await house.shelve(beta, "b.pdf", make_pdf([["three"]]), "Of beta")
    shown = await (await client.get(f"/console/channels/{alpha.id}")).json()
    (document,) = shown["documents"]
    assert (document["title"], document["pages"], document["state"]) == ("Of alpha", 2, "live")
    assert shown["upload"]["folder"] == "/alpha/a.pdf"
    rungs = [(one["rung"], one["files"], one["pages"]) for one in shown["progress"].pop("rungs")]
    assert rungs == [("quick", 1, 2), ("full", 1, 2)]
    assert shown["progress"] == {"files": 1, "answering": 1, "pages": 2, "waiting": 0, "quarantined": 0}


async def test_a_web_source_opens_its_own_url_and_names_its_host(client: TestClient, house: House) -> None:
    """Shows the same label as the chats, the page's own URL, and no link into the viewer."""
    alpha = await house.channel("alpha")
    url = "https://example.org/deposits#:~:text=Ask%20first."
    cited = Citation(
        1, "Deposits", "https://example.org/deposits", 0, "Ask first.", (), url, host="example.org",
        fetched="2026-03-01T12:00:00+00:00",
    )  # fmt: skip
    house.answering.answers["When?"] = Answer(AnswerState.GROUNDED, "Ask first. [1]", (cited,))
    said = json.loads((await ask(client, alpha, "When?"))[1])
    (source,), (citation,) = said["sources"], said["citations"]
    assert source["label"] == "Web · example.org, read on 2026-03-01 · Deposits"
    assert [(one["web"], "view" in one) for one in (source, citation)] == 2 * [(url, False)]
    assert citation["page"] is None


async def test_a_channel_shows_the_state_of_its_web_pages(client: TestClient, house: House) -> None:
    """Shows the numbers of web pages that the channel may cite, and nothing for a channel without any."""
    alpha, beta = await house.channel("alpha"), await house.channel("beta")
    read, broken = "https://example.org/read", "https://example.org/broken"
    (house.home / "web_sources.toml").write_text(
        f'[[domain]]\nname = "d"\nkeywords = ["k"]\nurls = ["{read}", "{broken}"]\nchannels = ["alpha"]\n'
    )
    shelf = WebShelf(house.database, house.home)
    await shelf.store.approve([read, broken])
    old = await shelf.publish(read, "Old.", title="Read")
    for one in (alpha, alpha, beta):
        await house.citations.add(one.id, [CitedPlace(old, 1, "Old.")])
    await shelf.publish(read, "New.", title="Read")
    await shelf.store.record_failure(broken, "the server answers 404")
    await shelf.aclose()
    async with house.database.transaction() as session:
        failing = update(WebPageRow).where(col(WebPageRow.url) == broken)
        await session.execute(failing.values(failing_since=utc_now() - timedelta(days=8)))
    shown = [await (await client.get(f"/console/channels/{one.id}")).json() for one in (alpha, beta)]
    counts = {"pages": 2, "fresh": 1, "stale": 0, "failed": 1, "never": 0, "failing": 1, "changed": 1}
    counts |= {"failing_for_a_week": 1, "lost_quotes": 1}
    assert [one["web"] for one in shown] == [counts, None]


async def test_a_question_is_asked_in_the_chosen_channel(client: TestClient, house: House) -> None:
    """The selected channel is searched, whatever the question says."""
    alpha, _ = await house.channel("alpha"), await house.channel("beta")
    await ask(client, alpha, "search all channels, especially beta")
    assert [question.channel for question in house.answering.asked] == [alpha]


@for_each(
    "body",
    [
        b"",
        b"[]",
        b"{",
        b"\xff\xfe",
        b'{"channel": 1}',
        b'{"channel": "x", "question": "?"}',
        b'{"channel": Infinity, "question": "?"}',
        b'{"channel": 99999999999999999999999, "question": "?"}',
        b'{"channel": 1, "question": "\\ud83d"}',
        b'{"channel": 1, "question": "?", "thread": "t"}',
        b'{"channel": 1, "question": "?", "thread": 7}',
    ],
)
async def test_a_malformed_body_is_a_bad_request(client: TestClient, body: bytes) -> None:
    """A body that our script would never send gets 400, not an error."""
    response = await client.post(
        "/console/ask", data=body, headers=OWN | {"Content-Type": "application/json"}
    )
    assert response.status == 400


async def test_a_question_over_the_limit_is_refused(visit: Visit, house: House) -> None:
    """A question that is too long gets 400, a body over a megabyte 413; neither is answered."""
    channel = await house.channel("alpha")
    client = await visit(question_chars=100)
    assert (await ask(client, channel, "x" * 101))[0] == 400
    flood = io.BytesIO(b'{"question": "' + b"x" * 2_000_000)
    headers = OWN | {"Content-Type": "application/json"}
    assert (await client.post("/console/ask", data=flood, headers=headers)).status == 413
    assert house.answering.asked == []


async def test_the_page_carries_strict_headers(client: TestClient) -> None:
    """No foreign resources, no inline script or style, no framing."""
    response = await client.get("/")
    policy = response.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert "Set-Cookie" not in response.headers
