"""The documents page: all channels, filters and order, links to versions, and re-reading of documents."""

from __future__ import annotations

from typing import Any

import pytest
from aiohttp.test_utils import TestClient
from fakes.web_house import House, Shelved, make_pdf
from sqlalchemy import select, update
from sqlmodel import col

from bot.web.admin.documents_page import PAGE_SIZE
from storage.models import Channel, ChannelKey, Platform
from storage.sql.audit import AuditLog
from storage.sql.tables import DocumentRow, PublicationRow, ReadingRow, VersionRow


@pytest.fixture
async def shelf(house: House) -> tuple[Channel, Shelved, Shelved]:
    """Return two versions of a document in a chat channel, and a cited one in a local channel."""
    chat = await house.channels.ensure(ChannelKey(Platform("slack"), "T1ABC", "C1ABC"), "kitchen")
    first = await house.shelve(chat, "oven.pdf", make_pdf([["Hot"]]), "Oven manual")
    await house.shelve(chat, "oven.pdf", make_pdf([["Cold"], ["Off"]]), "Oven manual", replaces=first)
    local = await house.channel("alpha")
    backup = await house.shelve(local, "backup.pdf", make_pdf([["Nightly backups"]]), "Backups")
    await house.cite(local, backup, 1, "backups")
    return chat, first, backup


async def listed(client: TestClient, **query: str) -> list[dict[str, Any]]:
    """Return the documents that match a query."""
    response = await client.get("/console/documents.json", params=query)
    found: list[dict[str, Any]] = await response.json()
    return found


async def test_documents_are_found_and_ordered(
    client: TestClient, shelf: tuple[Channel, Shelved, Shelved]
) -> None:
    """Filters by channel, state and words; shows pages, versions and latest answer, as table and as JSON."""
    chat, first, _ = shelf
    files = [one["file"] for one in await listed(client)]
    assert files == ["backup.pdf", "oven.pdf"]
    assert [one["file"] for one in await listed(client, order="pages")] == ["oven.pdf", "backup.pdf"]
    assert [one["file"] for one in await listed(client, q="OVEN man")] == ["oven.pdf"]
    assert await listed(client, state="quarantined") == []
    (oven,) = await listed(client, channel=str(chat.id))
    assert (oven["channel"], oven["state"], oven["pages"], oven["answered_at"]) == (
        "kitchen",
        "live",
        2,
        None,
    )
    assert [(one["number"], one["is_live"]) for one in oven["versions"]] == [(2, True), (1, False)]
    assert (await listed(client, order="answered"))[0]["answered_at"]
    page = await (await client.get("/console/documents")).text()
    assert f'console/pages/{first.version}"' in page
    old = await client.get(f"/console/pages/{first.version}")
    assert "Page <b>1</b> of 1" in await old.text()
    assert (await client.get("/console/documents", headers={"Host": "evil.example"})).status == 403


async def test_an_unreadable_document_is_read_again(
    client: TestClient, house: House, shelf: tuple[Channel, Shelved, Shelved]
) -> None:
    """Requires our own form; the page shows the failure, then "pending", and the audit log has it."""
    backup = shelf[2]
    async with house.database.transaction() as session:
        failed = {"state": "failed", "reason": "It is <locked>."}
        await session.execute(update(ReadingRow).where(col(ReadingRow.id) == backup.reading).values(**failed))
        gone = update(PublicationRow).where(col(PublicationRow.version_id) == backup.version)
        await session.execute(gone.values(state="retired"))
    (row,) = await listed(client, state="quarantined")
    assert row["reason"] == "It is <locked>."
    page = await (await client.get("/console/documents")).text()
    assert "It is &lt;locked&gt;." in page
    path = f"/console/documents/{row['channel_id']}/{backup.document}/again"
    assert f'action="../{path.removeprefix("/")}"' in page
    assert (await client.post(path)).status == 403
    headers = {"Sec-Fetch-Site": "same-origin"}
    elsewhere = path.replace(f"/{row['channel_id']}/", f"/{shelf[0].id}/")
    assert (await client.post(elsewhere, headers=headers)).status == 404
    shown = await client.post(path, headers=headers)
    assert (shown.status, shown.url.query["channel"]) == (200, str(row["channel_id"]))
    assert [one["state"] for one in await listed(client, q="backup")] == ["waiting"]
    (entry,) = await AuditLog(house.database).latest()
    assert (entry.action, entry.subject) == ("retry", str(backup.document))


async def test_a_failed_newer_version_can_be_read_again(
    client: TestClient, house: House, shelf: tuple[Channel, Shelved, Shelved]
) -> None:
    """A live document with a failed newer version has the same button."""
    async with house.database.transaction() as session:
        versions = select(VersionRow).where(col(VersionRow.document_id) == shelf[1].document)
        first, second = await session.scalars(versions.order_by(col(VersionRow.number)))
        failed = update(ReadingRow).where(col(ReadingRow.sha256) == second.sha256)
        await session.execute(failed.values(state="failed", reason="It is damaged."))
        for version, state in ((second, "removed"), (first, "live")):
            of_version = update(PublicationRow).where(col(PublicationRow.version_id) == version.id)
            await session.execute(of_version.values(state=state))
    (row,) = await listed(client, q="oven")
    assert (row["state"], row["can_retry"]) == ("live", True)
    assert row["reason"] == "a newer version could not be read: It is damaged."
    path = f"/console/documents/{row['channel_id']}/{row['document']}/again"
    assert f'action="../{path.removeprefix("/")}"' in await (await client.get("/console/documents")).text()
    await client.post(path, headers={"Sec-Fetch-Site": "same-origin"})
    (row,) = await listed(client, q="oven")
    assert (row["state"], row["can_retry"]) == ("live", False)
    assert row["reason"] == "a newer version is being processed"


async def test_a_long_list_is_paginated(
    client: TestClient, house: House, shelf: tuple[Channel, Shelved, Shelved]
) -> None:
    """Pages link to the next and previous ones and keep the filter; JSON contains all."""
    channel, oven, _ = shelf
    async with house.database.transaction() as session:
        folder = await session.scalar(select(col(DocumentRow.folder_id)).limit(1))
        added = [
            DocumentRow(channel_id=channel.id, folder_id=folder, file=f"page-{number:03}.pdf")
            for number in range(PAGE_SIZE + 1)
        ]
        session.add_all(added)
        await session.flush()
        session.add_all(VersionRow(document_id=one.id, number=1, sha256=oven.sha256) for one in added)
    query = {"q": "page-"}
    first = await (await client.get("/console/documents", params=query)).text()
    assert "101 documents, 1 to 100 shown" in first
    assert 'href="?q=page-&amp;from=100" rel="next"' in first
    assert 'rel="prev"' not in first
    last = await (await client.get("/console/documents", params=query | {"from": "100"})).text()
    assert ("<small>page-100.pdf<" in last, "<small>page-099.pdf<" in last) == (True, False)
    assert 'href="?q=page-&amp;from=0" rel="prev"' in last
    for wrong in ("700", "-1", "x", "²"):
        assert (
            "1 to 100 shown" in await (await client.get("/console/documents", params={"from": wrong})).text()
        )
    assert len(await listed(client, **query)) == 101


async def test_metadata_are_corrected_and_reset(
    client: TestClient, house: House, shelf: tuple[Channel, Shelved, Shelved]
) -> None:
    """Unchanged fields keep the printed values; documents of another channel are not found."""
    backup = shelf[2]
    printed = {"sop_id": ["SOP-1", 1, [], None], "department": ["IT", 1, [], None]}
    async with house.database.transaction() as session:
        details = {"metadata": printed, "tables": 3}
        found = update(ReadingRow).where(col(ReadingRow.id) == backup.reading)
        await session.execute(found.values(details=details, figures=2))
    (row,) = await listed(client, q="backup")
    assert (row["figures"], row["tables"], row["says"]) == (2, 3, "SOP-1, IT")
    path = f"/console/documents/{row['channel_id']}/{row['document']}"
    assert f'href="../{path.removeprefix("/")}"' in await (await client.get("/console/documents")).text()
    assert 'value="SOP-1" maxlength="120"' in await (await client.get(path)).text()
    form = {"sop_id": "SOP-1", "department": "Night shift", "effective": "2024-03-01"}
    assert (await client.post(path, data=form)).status == 403
    headers = {"Sec-Fetch-Site": "same-origin"}
    elsewhere = path.replace(f"/{row['channel_id']}/", f"/{shelf[0].id}/")
    assert (await client.post(elsewhere, data=form, headers=headers)).status == 404
    shown = await client.post(path, data=form, headers=headers)
    assert (shown.status, shown.url.path) == (200, path)
    assert (await listed(client, q="backup"))[0]["says"] == "SOP-1, Night shift, effective 2024-03-01"
    async with house.database.snapshot() as session:
        version = await session.get_one(VersionRow, backup.version)
        assert version.corrected == {"department": "Night shift", "effective": "2024-03-01"}
    await client.post(path, data={"department printed": "1", "effective": ""}, headers=headers)
    assert (await listed(client, q="backup"))[0]["says"] == "SOP-1, IT"
    refused = await client.post(path, data={"author": "x" * 121}, headers=headers)
    assert "a value may have at most 120 characters" in await refused.text()
    actions = [one.action for one in await AuditLog(house.database).latest()]
    assert actions == ["correct", "correct"]
