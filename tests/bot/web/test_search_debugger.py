"""The search debugger shows the same record as the command line, and opens the candidates."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

import pytest
from aiohttp.test_utils import TestClient
from fakes.web_house import House, Shelved, make_pdf
from sqlalchemy import update

from storage.clock import utc_now
from storage.models import ChannelKey, Platform
from storage.sql.tables import ReadingRow

PLACES = {"bm25": 2, "vector": 1, "mix": 3, "relevance": 1, "ranked": 1, "reranked": 1}
MARKED = "--- Page 2 ---\nBackups run at night."


def record_of(shelved: Shelved, channel_id: int) -> dict[str, Any]:
    """Return the record of a question that a model answered."""
    found = {
        **{"file": "backup.pdf", "page": 2, "last_page": 2, "ordinal": 1, "version": shelved.version},
        **{"reading": shelved.reading.hex, "heading": ["4 Backups"], "preview": "Backups run at <night>."},
        **{"day": "2026-01-02", "bm25": 7.1, "vector": 0.81, "rank": 1, "outcome": "read", "score": 0.7},
        "places": PLACES,
        "parts": {"mix": 0.6, "relevance": 0.75, "ranked": 0.72, "reranked": 1.0, "freshness": 0.9},
    }
    lost = {**found, "rank": None, "outcome": "rank too low", "places": {}, "parts": {}, "bm25": None}
    prompt = {"system": "Rules", "user": MARKED, "with_schema": True}
    tokens = {"system": 1, "user": 11, "markers": 6}
    return {
        **{"question_id": "q7", "channel_id": channel_id, "asked_at": "2026-03-01T12:00:00+00:00"},
        **{"question": "When?", "searched": "When?", "state": "grounded", "answer": "At night. [1]"},
        **{"citations": [], "is_cut": False, "tokens": {"prompt": 11}},
        "milliseconds": {"total": 30, "first": 30},
        "auxiliary_calls": [],
        "drafts": [
            {"author": "model", "prompts": [prompt | {"tokens": tokens}], "error": None, "claims": []},
        ],
        "searches": [
            {
                **{"question": "When?", "is_wide": False, "terms": ["when"], "wordings": [], "filter": None},
                **{"corrections": [], "unknown": [], "web": [], "neighbours": []},
                **{"not_live": 2, "candidates": [lost, found]},
                "verdict": {
                    **{"outcome": "passages", "probability": 0.8, "passages_from": 0.5},
                    **{"signals": {"rank": 0.7}, "weights": {"bias": -2.1, "rank": 3.6}},
                },
            }
        ],
    }  # fmt: skip


@pytest.fixture
async def shelved(house: House) -> Shelved:
    """Return a document of two chunks in a chat channel."""
    channel = await house.channels.ensure(ChannelKey(Platform("slack"), "T1ABC", "C1ABC"), "kitchen")
    pdf = make_pdf([["Cover"], ["Backups run at night."]])
    kept = await house.shelve(channel, "backup.pdf", pdf, headings=("1 Cover", "4 Backups"))
    await house.stores.records.keep("q7", channel.id, utc_now(), "grounded", record_of(kept, channel.id))
    return kept


async def test_a_stored_record_is_shown_and_is_the_same_json(
    client: TestClient, house: House, shelved: Shelved
) -> None:
    """Shows scores, ranks, rank changes, filter rules, the judge's sum, the prompt and its marker tokens."""
    (channel,) = await house.channels.all()
    listed = await (await client.get(f"/console/search/{channel.id}")).text()
    assert f'href="../../console/search/{channel.id}/q7"' in listed
    page = await (await client.get(f"/console/search/{channel.id}/q7")).text()
    words = " ".join(page.split())
    for said in (
        "4 Backups", "Backups run at &lt;night&gt;.", "rank too low", "2 hits in documents that weren’t live",
        '0.750 <small>#1 <span class="up" title="moved up by 2">▲2</span></small>',
        '<th scope="row">rank</th><td class="number">0.700</td><td class="number">3.60</td>'
        '<td class="number">2.52</td>',
        f'console/pages/{shelved.version}/{shelved.reading.hex}-1/2#hit',
        "12 tokens (system 1, user 11); page markers 6, 50.0 %", MARKED.replace("\n", " "),
    ):  # fmt: skip
        assert said in words
    kept = record_of(shelved, channel.id)
    for path in (f"/console/search/{channel.id}/q7.json", f"/console/search/{channel.id}/q7?format=json"):
        assert json.loads(await (await client.get(path)).text()) == kept


async def test_a_candidate_opens_with_its_boxes(client: TestClient, house: House, shelved: Shelved) -> None:
    """Shows the chunk's page with boxes, other pages without, and the image; refused through a proxy."""
    base = f"/console/pages/{shelved.version}/{shelved.reading.hex}-1"
    page = await (await client.get(f"/console/pages/{shelved.version}/{shelved.reading.hex}-0")).text()
    assert '<rect id="hit"' in page
    assert "Page <b>1</b> of 2" in page
    other = await (await client.get(f"{base}/2")).text()
    assert "Page <b>2</b> of 2" in other
    assert "only opens on this computer" in other
    picture = await client.get(f"{base}/p/2@1x")
    assert picture.content_type.startswith("image/")
    gone = "I can’t mark the passage"
    assert gone not in page + other
    plain = await client.get(f"/console/pages/{shelved.version}/{uuid4().hex}-1/2")
    words = await plain.text()
    assert (plain.status, "<rect" in words, gone in words) == (200, False, True)
    assert "Page <b>2</b> of 2" in words
    async with house.database.transaction() as session:
        await session.execute(update(ReadingRow).values(state="waiting"))
    unread = await client.get(f"{base}/2")
    assert (unread.status, "Page <b>2</b>" in await unread.text()) == (200, True)
    async with house.database.transaction() as session:
        await session.execute(update(ReadingRow).values(state="done"))
    for path, headers, status in (
        (f"{base}/9", {}, 404), ("/console/pages/999", {}, 404), (base, {"X-Forwarded-For": "10.0.0.1"}, 403),
    ):  # fmt: skip
        assert (await client.get(path, headers=headers)).status == status


async def test_a_question_is_run_for_our_own_form_alone(
    client: TestClient, house: House, shelved: Shelved
) -> None:
    """The question has no user and is not recorded; direct chats are not available here."""
    channel = (await house.channels.all())[0]
    asked = {"data": {"question": "Where?"}}
    path = f"/console/search/{channel.id}"
    for headers in ({}, {"Sec-Fetch-Site": "cross-site"}, {"X-Footnote-Console": "1", "Origin": "null"}):
        assert (await client.post(path, headers=headers, **asked)).status == 403
    assert house.answering.asked == []
    shown = await client.post(path, headers={"Sec-Fetch-Site": "same-origin", "Origin": "null"}, **asked)
    assert "not recorded" in await shown.text()
    program = await client.post(
        path, headers={"X-Footnote-Console": "1", "Accept": "application/json"}, **asked
    )
    assert (await program.json())["question"] == "Where?"
    assert [one.asker for one in house.answering.asked] == ["", ""]
    assert len(await house.stores.records.latest(channel.id)) == 1
    direct = await house.channels.ensure(ChannelKey(Platform("slack"), "T1ABC", "D1ABC"), is_direct=True)
    assert (await client.get(f"/console/search/{direct.id}")).status == 404
