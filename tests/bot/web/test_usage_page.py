"""The usage page: people, questions, outcomes, feedback, tokens and cost of a month."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime, timedelta

import pytest
from fakes.web_house import House, Visit

from bot.quality.monthly_usage import Month, TokenPrices
from storage.chat.feedback import FeedbackVerdict
from storage.chat.inbox import Inbox
from storage.clock import utc_now
from storage.models import Channel, ChannelKey, Platform


@pytest.fixture
async def channel(house: House) -> Channel:
    """Return a chat channel in which Ann asked twice and Bob once; a greeting does not count."""
    key = ChannelKey(Platform("slack"), "T1", "C0IT")
    channel = await house.channels.ensure(key, "=it")
    inbox = Inbox(house.database)
    for number, (asker, state) in enumerate(
        [("ann", "grounded"), ("ann", "passages"), ("bob", "not_found"), ("bob", "chat")]
    ):
        name = f"q{number}"
        await inbox.receive(
            channel, event_key=name, message_key=name, thread=name, text="?", address={"asker": asker}
        )
        record = {
            "milliseconds": {"total": 40},
            "tokens": {"prompt": 1000, "completion": 100, "embedding": 7},
            "citations": [],
        }
        await house.stores.records.keep(name, channel.id, utc_now(), state, record)
    await house.stores.feedback.upsert(channel.id, "q0", "p1", FeedbackVerdict.GOOD)
    await house.stores.feedback.upsert(channel.id, "q1", "p1", FeedbackVerdict.WRONG_PAGE)
    return channel


async def test_a_month_is_counted_by_channel(visit: Visit, channel: Channel) -> None:
    """Prices are those of a million tokens; a name that a spreadsheet would compute is quoted."""
    client = await visit(model_prompt_price=10, model_completion_price=100)
    (usage,) = await (await client.get("/console/usage.json")).json()
    assert usage == {
        "month": f"{utc_now():%Y-%m}",
        "channel": "=it",
        "people": 2,
        "questions": 3,
        "answered": 2,
        "not_found": 1,
        "failed": 0,
        "thumbs_up": 1,
        "thumbs_down": 1,
        "prompt_tokens": 3000,
        "completion_tokens": 300,
        "cost": pytest.approx(0.06),
        "is_whole": usage["is_whole"],
    }
    response = await client.get("/console/usage.csv")
    assert f'filename="footnote-usage-{utc_now():%Y-%m}.csv"' in response.headers["Content-Disposition"]
    (row,) = csv.DictReader(io.StringIO(await response.text()))
    assert (row["channel"], row["people"], row["cost"]) == ("'=it", "2", "0.06")
    page = await (await client.get("/console/usage")).text()
    assert '<td class="number">0.06</td>' in page


async def test_another_month_has_its_own_figures(visit: Visit, channel: Channel) -> None:
    """An earlier month is empty; what is no month is refused."""
    client = await visit()
    earlier = Month.of(utc_now()).previous
    assert await (await client.get(f"/console/usage.json?month={earlier}")).json() == []
    assert "no questions on record" in await (await client.get(f"/console/usage?month={earlier}")).text()
    assert (await client.get("/console/usage?month=2026-13")).status == 400


def test_months_follow_each_other_over_a_year() -> None:
    """A month ends where the next one begins; without prices there is no cost."""
    december = Month(datetime(2026, 12, 1, tzinfo=UTC))
    assert december.ends == datetime(2027, 1, 1, tzinfo=UTC)
    assert Month.of(december.ends).previous == december == Month.parse("2026-12")
    assert str(Month(datetime(2026, 1, 1, tzinfo=UTC)).previous) == "2025-12"
    assert Month.of(december.ends - timedelta(seconds=1)) == december
    assert TokenPrices().cost(1, 1) is None
    assert TokenPrices(completion=2).cost(9, 1_000_000) == 2
