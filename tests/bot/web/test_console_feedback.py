"""Feedback on answers in the console, and the explanation of an answer."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from aiohttp.test_utils import TestClient
from fakes.web_house import House, console_of
from playwright.async_api import Page

from storage.chat.feedback import FeedbackStore, FeedbackVerdict
from storage.chat.traces import QuestionRecords
from storage.clock import utc_now
from storage.models import Channel, ChannelKey, Platform

OWN = {"X-Footnote-Console": "1"}


async def keep_record(house: House, channel: Channel, question: str) -> None:
    """Store a record of an answer, as the service does."""
    pages = [("a.pdf", 3), ("b.pdf", 1)]
    candidates = [
        {"file": file, "page": page, "rank": rank, "score": 0.9, "outcome": "read"}
        for rank, (file, page) in enumerate(pages, start=1)
    ]
    search = {"corrections": [], "unknown": [], "verdict": None, "candidates": candidates}
    record = {"searched": "When?", "searches": [search], "drafts": [], "citations": []}
    await QuestionRecords(house.database, 30).keep(question, channel.id, utc_now(), "passages", record)


@pytest.mark.engine("chromium")
async def test_feedback_with_reason_and_right_page_is_stored(
    page: Page, client: TestClient, house: House
) -> None:
    """Shows the way from the button to the stored feedback, and the explanation next to it."""
    channel = await house.channel("alpha")
    await page.goto(console_of(client))
    await page.wait_for_selector("#channel option", state="attached")
    await page.fill("#question", "When?")
    await page.keyboard.press("Enter")
    await page.wait_for_selector(".feedback >> text=Why?")
    await keep_record(house, channel, house.answering.asked[-1].id)
    await page.click(".feedback >> text=Why?")
    await page.wait_for_selector(".why >> text=page 3 of “a.pdf”")
    await page.click(".feedback >> text=Not helpful")
    await page.select_option(".feedback select", label="Page 1 of b.pdf")
    await page.click(".feedback >> text=It’s in the documents")
    await page.wait_for_selector(".feedback >> text=Thank you.")
    (said,) = await FeedbackStore(house.database).all(channel.id)
    assert (said.verdict, said.file, said.page) == (FeedbackVerdict.SHOULD_HAVE_FOUND, "b.pdf", 1)


@pytest.mark.parametrize("path", ["/console/feedback", "/console/why"])
async def test_only_our_own_page_gives_feedback_on_local_answers(
    client: TestClient, house: House, path: str
) -> None:
    """Shows that other sites, chat channels and malformed bodies are refused; expired answers say so."""
    local = await house.channel("alpha")
    chat = await house.channels.ensure(ChannelKey(Platform("slack"), "T1ABC", "C1ABC"))
    said: dict[str, Any] = {"channel": local.id, "question": uuid4().hex, "verdict": "good", "language": "xx"}
    for status, headers, body in (
        (403, {}, said),
        (404, OWN, said | {"channel": chat.id}),
        (404, OWN, said | {"channel": "x"}),
        (400, OWN, said | {"question": "x"}),
        (400, OWN, ["good"]),
        (200, OWN, said),
    ):
        response = await client.post(path, json=body, headers=headers)
        assert response.status == status
    assert "on record any more" in await response.text()
    bad = await client.post("/console/feedback", json=said | {"verdict": "best"}, headers=OWN)
    assert bad.status == 400
    assert await FeedbackStore(house.database).all() == []
