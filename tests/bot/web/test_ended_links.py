"""An expired link leads to the message of its answer, where one click renews it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from aiohttp.test_utils import TestClient
from fakes.web_house import House, Shelved, make_pdf

from bot.answers.citations.citations import CitationService
from bot.chat.commands.link_renewal import LinkRenewal
from bot.chat.conversation.answer_json import answer_to_json
from bot.core.models import Answer, AnswerState, Citation, Language
from bot.core.wording import reply_words
from storage.chat.traces import QuestionRecords
from storage.models import Channel, ChannelKey, CitationRecord, Platform
from storage.sql.tables import AnswerSourceRow, InboxRow, OutboxRow

SLACK = ChannelKey(Platform("slack"), "T1ABC", "C1ABC")
QUESTION = "T1ABC:C1ABC:1699999999.000001"
TEAMS = ChannelKey(Platform("teams"), "tenant-1", "19:ops@thread.tacv2")
WORDS = reply_words(Language.ENGLISH)


async def posted(
    house: House, key: ChannelKey, address: dict[str, Any], message: dict[str, Any]
) -> tuple[Channel, CitationRecord]:
    """Store an answer with two quotes as its messenger and record leave it; return its first citation."""
    channel = await house.channels.ensure(key, "it")
    shelved: Shelved = await house.shelve(channel, "backup.pdf", make_pdf([["Nightly backups"]]))
    records = await house.cite_answer(channel, (shelved, 1, "Nightly"), (shelved, 1, "backups"))
    citations = tuple(
        Citation(
            one.number or 0,
            "Backups",
            "backup.pdf",
            1,
            one.quote,
            one.boxes,
            "u",
            one.version_id,
            citation_id=one.id,
        )
        for one in records
    )
    answer = answer_to_json(Answer(AnswerState.GROUNDED, "At night. [1]", citations))
    async with house.database.transaction() as session:
        asked = InboxRow(
            platform=key.platform, event_key="e", message_key="m", channel_id=channel.id, address=address,
            thread="", text="When?",
        )  # fmt: skip
        session.add(asked)
        await session.flush()
        session.add(OutboxRow(inbox_id=asked.id, state="delivered", message=message, answer=answer))
        session.add(AnswerSourceRow(inbox_id=asked.id, version_id=shelved.version))
        question = str(asked.id)
    shown = [
        {"number": one.number, "kind": "pdf", "file": one.file, "page": 1, "quote": one.quote, "id": id_.id}
        for one, id_ in zip(citations, records, strict=True)
    ]
    await house.stores.records.keep(
        question,
        channel.id,
        records[0].created_at,
        "grounded",
        {"question": "When?", "answered_from": {"channel_id": channel.id}, "citations": shown},
    )
    return channel, records[1]


@pytest.mark.parametrize(
    ("key", "place", "url"),
    [
        (
            SLACK,
            (
                {"channel": "C1ABC", "key": QUESTION, "thread": None},
                {"channel": "C1ABC", "ts": "1700000000.000100"},
            ),
            "https://slack.com/archives/C1ABC/p1700000000000100",
        ),
        (
            SLACK,
            (
                {"channel": "C1ABC", "key": QUESTION, "thread": "1699999999.000001"},
                {"channel": "C1ABC", "ts": "1700000000.000100"},
            ),
            "https://slack.com/archives/C1ABC/p1700000000000100?thread_ts=1699999999.000001&amp;cid=C1ABC",
        ),
        (
            SLACK,
            ({"channel": "C1ABC", "key": QUESTION, "thread": None}, {"is_private": True}),
            "https://slack.com/app_redirect?channel=C1ABC&amp;team=T1ABC",
        ),
        (
            TEAMS,
            (
                {"service_url": "https://smba.example/", "conversation": "19:ops@thread.tacv2;messageid=17"},
                {"id": "1700000000001"},
            ),
            "https://teams.microsoft.com/l/message/19%3Aops%40thread.tacv2/1700000000001?parentMessageId=17",
        ),
    ],
    ids=["post", "thread", "private", "teams"],
)
async def test_an_expired_link_leads_to_its_answer(
    client: TestClient,
    house: House,
    key: ChannelKey,
    place: tuple[dict[str, Any], dict[str, Any]],
    url: str,
) -> None:
    """Links to the platform's permalink; a private answer has none, so its channel is named.

    Forged links get 404.
    """
    channel, record = await posted(house, key, *place)
    path = house.links.viewer_path(house.links.page_url(channel, record))
    assert (await client.get(path)).status == 200
    house.now += timedelta(days=8)
    ended = await client.get(path)
    text = await ended.text()
    assert ended.status == 410
    assert f'href="{url}"' in text
    assert "backup" not in text.casefold()
    assert ("Ask for a new link" in text) is ("app_redirect" not in url)
    assert (await client.get(f"{path}x")).status == 404


async def test_an_expired_newer_version_link_leads_to_the_answer_too(
    client: TestClient, house: House
) -> None:
    """The button of the newer-version bar cites a version that the answer does not."""
    channel, record = await posted(
        house, SLACK, {"channel": "C1ABC", "key": QUESTION}, {"ts": "1700000000.000100"}
    )
    source = await house.catalog.version_source(record.version_id)
    assert source
    old = Shelved(source.document_id, record.version_id, uuid4(), source.sha256, ())
    await house.shelve(channel, "backup.pdf", make_pdf([["Rewritten"]]), replaces=old, headings=["x"])
    path = house.links.viewer_path(house.links.page_url(channel, record))
    opened = (await client.post(f"{path}/newer")).url.path
    assert opened != path
    assert (await client.get(opened)).status == 200
    house.now += timedelta(days=8)
    ended = await client.get(opened)
    assert ended.status == 410
    assert 'href="https://slack.com/archives/C1ABC/p1700000000000100"' in await ended.text()


async def test_renewed_links_open_the_answers_quotes(client: TestClient, house: House) -> None:
    """All its quotes get links with a new expiry; none after the record or channel is deleted."""
    channel, _ = await posted(house, SLACK, {"channel": "C1ABC", "key": QUESTION}, {"ts": "1.2"})
    house.now += timedelta(days=8)
    service = CitationService(house.citations, house.links, house.catalog)
    renewal = LinkRenewal(house.stores.records, house.channels, service)
    answer = await renewal.renew(channel.id, "1", Language.ENGLISH)
    assert answer.text == f"{WORDS.links_renewed(question='When?')}\n[1] “Nightly”\n[2] “backups”"
    for one in answer.citations:
        assert (await client.get(house.links.viewer_path(one.url))).status == 200
    other = await house.channel("other")
    for channel_id, question in ((channel.id, "99"), (other.id, "1")):
        assert (await renewal.renew(channel_id, question, Language.ENGLISH)).text == WORDS.no_sources
    forgetful = LinkRenewal(QuestionRecords(house.database, 0), house.channels, service)
    assert (await forgetful.renew(channel.id, "1", Language.ENGLISH)).citations == ()
