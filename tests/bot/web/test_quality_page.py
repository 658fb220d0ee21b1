"""The quality page: weekly figures of a channel from its records, next to a baseline; gaps if purged."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from aiohttp.test_utils import TestClient
from fakes.web_house import House, make_pdf

from bot.quality.quality_metrics import channel_quality
from bot.web.admin.quality_page import HEIGHT, MARGIN, WIDTH, curve
from storage.chat.feedback import FeedbackVerdict
from storage.clock import utc_now
from storage.models import Channel


async def keep(house: House, channel: Channel, key: str, asked_at: datetime, state: str, **more: Any) -> None:
    """Store a record like an answer does, with the fields that are counted."""
    record = {
        "milliseconds": {"total": 40, "first": 20},
        "tokens": {"prompt": 100, "completion": None},
        "citations": [],
        "searches": [{"candidates": [{"file": "a.pdf", "page": 3, "rank": 1}]}],
        **more,
    }
    await house.stores.records.keep(key, channel.id, asked_at, state, record)


@pytest.fixture
async def channel(house: House) -> Channel:
    """Return a channel with four questions and a greeting in the previous week."""
    alpha, asked = await house.channel("alpha"), utc_now() - timedelta(days=7)
    backup = await house.shelve(alpha, "a.pdf", make_pdf([["secret words"]]))
    one, other = await house.cite_answer(alpha, (backup, 1, "secret"), (backup, 1, "words"))
    await house.citations.count_openings({(one.id, asked.date()): 2})
    await house.citations.count_openings({(one.id, asked.date()): 1, (99, asked.date()): 5})
    cited = [{"file": "a.pdf", "page": 3, "quote": "secret words", "id": id_} for id_ in (one.id, other.id)]
    await keep(house, alpha, "q1", asked, "grounded", citations=cited)
    await keep(house, alpha, "q2", asked, "partial", milliseconds={"total": 80})
    await keep(house, alpha, "q3", asked, "passages")
    await keep(house, alpha, "q4", asked, "not_found")
    await keep(house, alpha, "q5", asked, "chat", milliseconds={"total": 9000})
    wrong = FeedbackVerdict.WRONG_PAGE
    await house.stores.feedback.upsert(alpha.id, "q1", "p1", wrong, file="a.pdf", page=3)
    await house.stores.feedback.upsert(alpha.id, "q2", "p1", FeedbackVerdict.GOOD)
    return alpha


async def test_figures_are_computed_from_stored_records(house: House, channel: Channel) -> None:
    """Each rate counts the questions it applies to, not a greeting; an empty week has no value."""
    quality = await channel_quality(house.stores.records, channel.id, weeks=8)
    assert quality.questions == 4
    assert quality.figures == {
        "answered": 0.75,
        "not_found": 0.25,
        "helpful": 0.5,
        "opened": 1,
        "seconds": 0.04,
        "gaps": 2,
        "tokens": 100,
    }
    *before, last, present = quality.weeks
    assert (last.questions, last.figures["answered"], present.questions) == (4, 0.75, 0)
    assert present.figures["answered"] is None
    assert [one.is_kept for one in before[:3]] == [False] * 3


async def test_the_page_shows_weeks_baseline_and_target(
    client: TestClient, house: House, channel: Channel
) -> None:
    """A table with charts, and the same JSON as the command line; never the text of a question."""
    await house.stores.records.keep_baseline(channel.id, {"answered": 0.9})
    page = await (await client.get(f"/console/quality/{channel.id}")).text()
    words = " ".join(page.split())
    assert "<b>75 %</b> <small>before: 90 %</small>" in words
    assert words.count('<p class="meaning">') == 8
    assert "target: ≤ 10.0 s" in words
    assert "not kept" in words
    assert "<circle" in words
    assert "secret" not in page
    value = await (await client.get(f"/console/quality/{channel.id}.json")).json()
    assert value == (await channel_quality(house.stores.records, channel.id)).as_json("alpha") | {
        "kept_since": value["kept_since"]
    }
    assert (value["missed"], value["baseline"]) == ([], {"answered": 0.9})
    await house.channel("beta")
    overview = await (await client.get("/console/quality")).text()
    assert f'console/quality/{channel.id}"' in overview
    assert (await client.get("/console/quality", headers={"Host": "evil.example"})).status == 403


def test_a_curve_has_gaps_for_unknown_weeks() -> None:
    """Two line segments, one point per known week, all inside; the target at its value."""
    drawn = curve([0.0, 1.0, None, 0.5], 2.0)
    assert [len(line) for line in drawn.lines] == [2, 1]
    assert drawn.points == [(4, HEIGHT - MARGIN), (54.7, 20), (WIDTH - MARGIN, 28)]
    assert drawn.target == MARGIN
    assert curve([None], None).points == []
