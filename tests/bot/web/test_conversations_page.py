"""The conversations page: questions of a channel with their answers, full-text filter and gaps."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

from aiohttp.test_utils import TestClient
from fakes.web_house import House, Visit

from storage.chat.traces import MAX_LISTED
from storage.chat_models import NewTurn
from storage.clock import utc_now
from storage.models import Channel, ChannelKey, Platform
from storage.sql.audit import AuditLog

OWN = {"X-Footnote-Console": "1"}
NOW = utc_now()


async def keep(house: House, channel: Channel, key: str, minutes: int, said: tuple[str, str, str]) -> None:
    """Store a record like an answer does, with ``said`` = (question, answer, state)."""
    asked, answer, state = said
    cited = [{"number": 1, "file": "a.pdf", "page": 3, "quote": "every <night>"}]
    figures = [{"file": "a.pdf", "page": 4}]
    record = {"question": asked, "searched": asked, "answer": answer, "citations": cited, "figures": figures}
    at = NOW - timedelta(minutes=minutes)
    await house.stores.records.keep(key, channel.id, at, state, record)


async def test_conversations_are_found_by_their_words(client: TestClient, house: House) -> None:
    """Matches all words; a per cent sign is literal; older conversations are on the next page."""
    channel = await house.channels.ensure(ChannelKey(Platform("slack"), "T1ABC", "C1ABC"), "kitchen")
    for number in range(MAX_LISTED):
        cleaning = (f"How do I clean oven {number}?", "Cold. [1]", "grounded")
        await keep(house, channel, f"o{number}", number + 3, cleaning)
    backups = ("When do backups run?", "At 50% load.\nEvery night. [1]", "passages")
    await keep(house, channel, "b1", 1, backups)
    await keep(house, channel, "b2", 2, backups)
    await keep(house, await house.channel("other"), "x", 0, ("Other backups?", "No.", "passages"))
    path = f"/console/conversations/{channel.id}"
    page = " ".join((await (await client.get(path)).text()).split())
    for said in (
        "At 50% load. Every night. [1]", "a.pdf p. 3: <q>every &lt;night&gt;</q>", "<b>2×</b>",
        "With a picture of a.pdf p. 4", "2 passages", "before=",
    ):  # fmt: skip
        assert said in page
    assert page.count("<article") == MAX_LISTED
    for words, found in (("BACKUPS", ["b1", "b2"]), ("50%", ["b1", "b2"]), ("5%", []), ("oven 7", ["o7"])):
        response = await client.get(f"{path}.json", params={"q": words})
        assert [one["id"] for one in await response.json()] == found
    before = (NOW - timedelta(minutes=MAX_LISTED)).isoformat()
    older = await (await client.get(f"{path}.json", params={"before": before})).json()
    assert [one["id"] for one in older] == [f"o{number}" for number in range(MAX_LISTED - 2, MAX_LISTED)]
    assert (await client.get(path, params={"before": "yesterday"})).status == 400
    assert (await client.get(path, headers={"Via": "1.1 proxy"})).status == 403


async def test_direct_chats_and_expired_records_are_not_shown(
    client: TestClient, visit: Visit, house: House
) -> None:
    """Expired records are hidden even before they are purged; without the console there is no page."""
    channel = await house.channels.ensure(ChannelKey(Platform("slack"), "T1ABC", "C1ABC"), "kitchen")
    direct = await house.channels.ensure(ChannelKey(Platform("slack"), "T1ABC", "D1ABC"), is_direct=True)
    said = ("Is it <secret>?", "Yes.", "grounded")
    await keep(house, channel, "old", 60 * 24 * 400, said)
    await keep(house, direct, "mine", 1, said)
    without = await visit(console=False)
    for name in ("search", "conversations", "quality"):
        assert (await without.get(f"/console/{name}")).status == 404
        assert (await client.get(f"/console/{name}/{direct.id}")).status == 404
        for path in (f"/console/{name}", f"/console/{name}/{channel.id}"):
            shown = await client.get(path)
            assert (shown.status, "secret" in await shown.text()) == (200, False)
            assert (await client.get(path, headers={"Host": "evil.example"})).status == 403
    for key, place in (("old", channel), ("mine", direct)):
        assert (await client.get(f"/console/search/{place.id}/{key}.json")).status == 404


async def test_a_console_conversation_is_deleted_on_request(client: TestClient, house: House) -> None:
    """Deletes and audits its turns; other sites, chat channels and invalid threads are refused."""
    channel, thread = await house.channel("alpha"), uuid4()
    turn = NewTurn("q1", channel.id, f"console {thread}", "When?", "When?", "At night.", (), utc_now())
    await house.memory.store(turn)
    body = {"channel": channel.id, "thread": str(thread)}
    for status, headers, said in (
        (403, {}, body),
        (400, OWN, body | {"thread": "t"}),
        (404, OWN, body | {"channel": 99}),
        (200, OWN, body),
    ):
        assert (await client.post("/console/forget", json=said, headers=headers)).status == status
    assert await house.memory.recall(channel.id, f"console {thread}", utc_now()) == ()
    (entry,) = await AuditLog(house.database).latest()
    assert (entry.actor, entry.action) == ("local", "forget")
