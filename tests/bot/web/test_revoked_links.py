"""Revocation of links before they expire, and audit entries for opened links."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, make_mocked_request
from fakes.web_house import House, make_pdf
from harness.clocks import advance_clocks

from bot.core.errors import LinkForged
from bot.web.link_verification import QUEUE_SIZE, LinkAudit, verify_link
from storage.models import Channel, CitationRecord
from storage.sql.audit import OPEN_LINK, AuditedAction, AuditLog

REVOKE = AuditedAction("local", "revoke links", "", "citation 7")


@pytest.fixture
async def cited(house: House) -> tuple[Channel, list[CitationRecord]]:
    """Return an answer with two quotes, and a third quote of another answer."""
    channel = await house.channel("alpha")
    shelved = await house.shelve(channel, "a.pdf", make_pdf([["Water boils at 100 C"], ["Ice melts at 0 C"]]))
    both = await house.cite_answer(channel, (shelved, 1, "at 100 C"), (shelved, 2, "at 0 C"))
    return channel, [*both, await house.cite(channel, shelved, 1, "Water boils")]


def paths(house: House, channel: Channel, records: list[CitationRecord]) -> list[str]:
    """Return the viewer path of each citation."""
    return [house.links.viewer_path(house.links.page_url(channel, one)) for one in records]


async def statuses(client: TestClient, opened: list[str]) -> list[int]:
    """Return the status of each path in a browser."""
    return [(await client.get(path)).status for path in opened]


async def test_the_links_of_one_answer_end_and_no_others(
    client: TestClient, house: House, cited: tuple[Channel, list[CitationRecord]]
) -> None:
    """Page, image, PDF and renewal of a revoked link are gone, and so are new links to its citation."""
    channel, records = cited
    opened = paths(house, channel, records)
    assert await statuses(client, opened) == [200, 200, 200]
    assert await house.citations.revoke([one.id for one in records[:2]], REVOKE) == 2
    assert await house.citations.revoke([one.id for one in records[:2]], REVOKE) == 0
    assert await statuses(client, opened) == [410, 410, 200]
    for piece in ("/file.pdf", "/p/1@1x", "/2"):
        assert (await client.get(opened[0] + piece)).status == 410
    assert (await client.post(f"{opened[0]}/renewal")).status == 410
    assert await statuses(client, paths(house, channel, records)) == [410, 410, 200]
    assert [one.is_done for one in await AuditLog(house.database).latest()] == [True, False]


async def test_links_derived_from_a_revoked_link_end_with_it(client: TestClient, house: House) -> None:
    """Ends links derived from it to newer versions; no more can be derived later."""
    channel = await house.channel("alpha")
    first = await house.shelve(channel, "a.pdf", make_pdf([["Water boils at 100 C"]]))
    (cited,) = await house.cite_answer(channel, (first, 1, "at 100 C"))
    (path,) = paths(house, channel, [cited])
    opened, shelved = [path], first
    for word in ("surely", "always"):
        page = make_pdf([[f"Water {word} boils at 100 C"]])
        shelved = await house.shelve(channel, "a.pdf", page, replaces=shelved)
        opened.append((await client.post(f"{opened[-1]}/newer")).url.path)
    assert len(set(opened)) == 3
    assert await statuses(client, opened) == [200, 200, 200]
    assert await house.citations.revoke([cited.id], REVOKE) == 3
    assert await statuses(client, opened) == [410, 410, 410]
    (late,) = await house.citations.add(channel.id, [replace(cited.shown, version_id=cited.version_id)])
    assert late.revoked_at is not None
    assert await statuses(client, paths(house, channel, [late])) == [410]


async def test_the_links_of_a_channel_end(
    client: TestClient, house: House, cited: tuple[Channel, list[CitationRecord]]
) -> None:
    """All links made before end; the audit log names the person who asked for it."""
    channel, records = cited
    old = paths(house, channel, records)
    await house.channels.invalidate_links(channel.id, AuditedAction("local", "revoke links", channel.tenant))
    assert await statuses(client, old) == [410, 410, 410]
    renewed = await house.channels.get(channel.id)
    assert await statuses(client, paths(house, renewed, records)) == [200, 200, 200]
    (entry,) = await AuditLog(house.database).latest()
    assert (entry.action, entry.channel) == ("revoke links", channel.tenant)


async def test_the_audit_has_each_opening_once_and_no_text(
    client: TestClient, house: House, cited: tuple[Channel, list[CitationRecord]]
) -> None:
    """Opening the page or the file counts once a minute; HEAD, ranges and failed requests never count."""
    channel, records = cited
    path = paths(house, channel, records)[0]
    for asked, headers in ((path, {}), (f"{path}/file.pdf", {}), (f"{path}/file.pdf", {"Range": "bytes=9-"})):
        assert (await client.get(asked, headers=headers)).ok
    assert (await client.head(path)).status == 200
    assert (await client.get(path[:-1] + ("A" if path[-1] != "A" else "B"))).status == 404
    with advance_clocks(timedelta(minutes=2)):
        assert (await client.get(path)).ok
    await client.close()
    kept = await AuditLog(house.database).latest(with_links=True)
    said = {(one.actor, one.action, one.channel, one.subject) for one in kept}
    assert (len(kept), said) == (2, {("link", OPEN_LINK, channel.tenant, f"citation {records[0].id}")})


class SlowAudit(AuditLog):
    """Records actions slowly, and the maximum at once."""

    def __init__(self) -> None:
        self.kept: list[str] = []
        self.busy = self.busiest = 0

    async def record(self, action: AuditedAction) -> None:
        """Record an action in memory."""
        self.busy += 1
        self.busiest = max(self.busiest, self.busy)
        await asyncio.sleep(0)
        self.kept.append(action.subject)
        self.busy -= 1


async def test_a_flood_of_openings_is_serialized_and_bounded(
    house: House, cited: tuple[Channel, list[CitationRecord]], caplog: pytest.LogCaptureFixture
) -> None:
    """Entries over the bound are dropped with a log line; all others are written."""
    channel, records = cited
    token = paths(house, channel, records)[0].rpartition("/")[2]
    link, log = await verify_link(token, house.links, house.stores), SlowAudit()
    audit = LinkAudit(log)
    serving = audit.cleanup_context(web.Application())
    await anext(serving)
    for number in range(QUEUE_SIZE + 5):
        for _ in range(2):
            one = replace(link, claims=replace(link.claims, citation_id=number))
            audit.enqueue(make_mocked_request("GET", "/v/x"), one)
    assert await anext(serving, None) is None
    assert log.kept == [f"citation {number}" for number in range(QUEUE_SIZE)]
    assert (log.busiest, len(caplog.records)) == (1, 10)


async def test_expired_and_figure_tokens_are_still_recognized(
    house: House, cited: tuple[Channel, list[CitationRecord]]
) -> None:
    """Expired links and figure links can be revoked; one that we never signed cannot."""
    channel, records = cited
    token = house.links.figure_url(channel, records[0]).rpartition("/")[2]
    house.now = house.now.replace(year=house.now.year + 1)
    assert house.links.decode_any(token).citation_id == records[0].id
    with pytest.raises(LinkForged):
        house.links.decode_any("A" * 112)
