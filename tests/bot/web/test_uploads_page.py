"""Uploads in the console: accepted and refused files, confirmation of overwriting, and cleanup."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from datetime import timedelta
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from aiohttp import FormData
from aiohttp.test_utils import TestClient
from fakes.web_house import SIGNED_IN, House, Visit, make_pdf
from harness.clocks import advance_clocks
from harness.full_disk import full_disk
from harness.waiting import PATIENCE

from bot.uploads.file_checks import MEGABYTE
from bot.uploads.folder_uploads import DECISION_TIMEOUT_SECONDS
from storage.models import Channel, ChannelKey, Platform
from storage.sql.audit import AuditLog

OWN = {"Sec-Fetch-Site": "same-origin", "Accept": "application/json"}
PDF, OTHER = make_pdf([["Nightly backups run at two."]]), make_pdf([["Cold"]])


@pytest.fixture
async def folder(house: House) -> Path:
    """Return the folder of a local channel in the inbox."""
    channel = await house.channel("alpha")
    place = house.home / "inbox" / "alpha"
    place.mkdir(parents=True)
    await house.folders.ensure(channel.id, str(place), watched=True, origin="inbox")
    return place


async def place_of(house: House, location: object) -> str:
    """Return the id of a watched folder, as forms send it."""
    return str(next(one.id for one in await house.folders.watched() if one.location == str(location)))


async def upload(client: TestClient, place: str, *files: tuple[str, bytes], **headers: str) -> Any:
    """Upload files; return the JSON results, or the response if it is not JSON."""
    form = FormData({"place": place}, quote_fields=False)
    for name, data in files:
        form.add_field("file", BytesIO(data), filename=name)
    response = await client.post("/console/uploads", data=form, headers=OWN | headers)
    return await response.json() if response.content_type == "application/json" else response


async def decide(client: TestClient, token: str, decision: str) -> dict[str, str]:
    """Decide about a held file and return the result."""
    path = f"/console/uploads/held/{token}"
    (answer,) = await (await client.post(path, data={"decision": decision}, headers=OWN)).json()
    said: dict[str, str] = answer
    return said


def files(folder: Path) -> dict[str, bytes]:
    """Return the name and content of all files in a folder, including hidden ones."""
    return {one.name: one.read_bytes() for one in folder.iterdir()}


async def test_pdfs_are_accepted_and_other_files_refused_by_name(
    client: TestClient, house: House, folder: Path
) -> None:
    """Several at once, under sanitized names; the content must be a PDF.

    The audit log lists accepted files.
    """
    answers = await upload(
        client,
        await place_of(house, folder),
        ("plan.pdf", PDF),
        ("notes.docx", PDF),
        ("page.pdf", b"<html>"),
        ("empty.pdf", b""),
        ("../../evil\u202e.pdf", OTHER),
    )
    assert [one["state"] for one in answers] == ["kept", "refused", "refused", "refused", "kept"]
    assert "I didn’t add notes.docx: I can only read PDFs." in answers[1]["text"]
    assert "I didn’t add page.pdf: I can only read PDFs." in answers[2]["text"]
    assert files(folder) == {"plan.pdf": PDF, "evil.pdf": OTHER}
    taken = [one.subject for one in await AuditLog(house.database).latest() if one.action == "upload"]
    assert set(taken) == {hashlib.sha256(one).hexdigest() for one in (PDF, OTHER)}


@pytest.mark.parametrize(
    ("decision", "left"),
    [
        ("replace", {"Plan.PDF": OTHER}),
        ("both", {"Plan.PDF": PDF, "plan (2).pdf": OTHER}),
        ("cancel", {"Plan.PDF": PDF}),
    ],
)
async def test_no_file_is_overwritten_without_confirmation(
    client: TestClient, house: House, folder: Path, decision: str, left: dict[str, bytes]
) -> None:
    """Names are compared without case; each decision is valid once."""
    (folder / "Plan.PDF").write_bytes(PDF)
    (held,) = await upload(client, await place_of(house, folder), ("plan.pdf", OTHER))
    assert held["state"] == "held"
    assert files(folder)["Plan.PDF"] == PDF
    said = await decide(client, held["token"], decision)
    assert said["state"] == ("refused" if decision == "cancel" else "kept")
    assert files(folder) == left
    assert (await decide(client, held["token"], "replace"))["state"] == "refused"
    assert files(folder) == left


async def test_without_javascript_a_page_asks(client: TestClient, house: House, folder: Path) -> None:
    """The page names the file and has a button per decision, with the token of the held file."""
    (folder / "plan.pdf").write_bytes(PDF)
    response = await upload(
        client, await place_of(house, folder), ("plan.pdf", OTHER), ("notes.txt", b"x"), Accept="text/html"
    )
    text = await response.text()
    assert "already has a file called “plan.pdf”" in text
    assert "I didn’t add notes.txt: I can only read PDFs." in text
    assert "notes.txt.pdf" not in text
    for decision in ("replace", "both", "cancel"):
        assert f'name="decision" value="{decision}"' in text
    assert f'action="../console/uploads/held/{text.partition("/held/")[2][:32]}"' in text


async def test_held_files_are_deleted_on_timeout_and_shutdown(
    visit: Visit, house: House, folder: Path
) -> None:
    """The next upload deletes the leftovers of earlier ones, and so does shutdown."""
    client = await visit()
    (folder / "plan.pdf").write_bytes(PDF)
    place = await place_of(house, folder)
    await upload(client, place, ("plan.pdf", OTHER))
    with advance_clocks(timedelta(seconds=DECISION_TIMEOUT_SECONDS + 1)):
        await upload(client, place, ("plan.pdf", OTHER))
    assert len(files(folder)) == 2
    await client.close()
    assert files(folder) == {"plan.pdf": PDF}


async def test_a_full_disk_is_reported_and_leaves_no_file(
    client: TestClient, house: House, folder: Path
) -> None:
    """The disk is full while receiving, or on the final flush."""
    for size in (1_000_000, len(PDF)):
        with full_disk():
            (said,) = await upload(client, await place_of(house, folder), ("plan.pdf", PDF.ljust(size)))
        assert said["state"] == "refused"
        assert "The disk is full, so I kept nothing of it" in said["text"]
        assert files(folder) == {}


async def test_an_aborted_upload_leaves_no_file(client: TestClient, house: House, folder: Path) -> None:
    """The browser was closed while sending: the temporary file is deleted. A malformed form gets 400."""
    head = (
        b'--x\r\nContent-Disposition: form-data; name="place"\r\n\r\n%b\r\n'
        % (await place_of(house, folder)).encode()
    )
    file = b'--x\r\nContent-Disposition: form-data; name="file"; filename="plan.pdf"\r\n\r\n'
    reader, writer = await asyncio.open_connection(client.host, client.port)
    lines = (
        "POST /console/uploads HTTP/1.1",
        f"Host: 127.0.0.1:{client.port}",
        *(f"{name}: {value}" for name, value in SIGNED_IN.items()),
        "Sec-Fetch-Site: same-origin",
        "Content-Type: multipart/form-data; boundary=x",
        "Content-Length: 9000000",
    )
    writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + head + file + PDF + b" " * 1_000_000)
    await wait_for(lambda: files(folder))
    writer.close()
    await wait_for(lambda: not files(folder))
    form = {"Content-Type": "multipart/form-data; boundary=x"}
    for body in (b"", b"--y\r\n", b"--x\r\n\r\nno end"):
        response = await client.post("/console/uploads", data=body, headers=OWN | form)
        assert response.status in {200, 400}
    assert reader


async def wait_for(is_so: Callable[[], object]) -> None:
    """Wait until a condition holds, with a timeout."""
    async with asyncio.timeout(PATIENCE):
        while not is_so():
            await asyncio.sleep(0.01)


async def test_a_file_may_be_as_large_as_ingestion_reads(visit: Visit, house: House, folder: Path) -> None:
    """A larger file is refused by name while it is received; the form's next file is still accepted."""
    client, large = await visit(max_file_mb=1), PDF.ljust(MEGABYTE + 1)
    answers = await upload(client, await place_of(house, folder), ("large.pdf", large), ("plan.pdf", PDF))
    assert [one["state"] for one in answers] == ["refused", "kept"]
    assert "I didn’t add large.pdf: it’s larger than 1 MB" in answers[0]["text"]
    assert list(files(folder)) == ["plan.pdf"]


async def test_only_local_folders_accept_uploads(client: TestClient, house: House, folder: Path) -> None:
    """Shares, symlinks and missing folders: the page states the reason, and an upload is refused with it."""
    channel = await house.channel("alpha")
    link = house.home / "link"
    link.symlink_to(folder)
    for location in ("s3://bucket/hr", str(link), str(house.home / "away")):
        await house.folders.ensure(channel.id, location, watched=True, origin="map")
        (said,) = await upload(client, await place_of(house, location), ("plan.pdf", PDF))
        assert (said["state"], location in said["text"]) == ("refused", True)
    text = await (await client.get("/console/documents")).text()
    assert "3 folders without uploads" in text
    for why in ("only reads there", "It is a symbolic link", "It is missing"):
        assert why in text
    assert files(folder) == {}


async def test_a_channel_without_a_folder_gets_one(client: TestClient, house: House) -> None:
    """Covers the first channel; a chat channel's folder has its tenant's name. Direct chats get none."""
    (house.home / "inbox").mkdir()
    await upload(client, "first", ("plan.pdf", PDF))
    assert files(house.home / "inbox" / "documents") == {"plan.pdf": PDF}
    chat: Channel = await house.channels.ensure(ChannelKey(Platform("slack"), "T1ABC", "C1ABC"), "kitchen")
    await upload(client, f"c{chat.id}", ("plan.pdf", PDF))
    assert files(house.home / "inbox" / "sl_T1ABC_C1ABC") == {"plan.pdf": PDF}
    direct = await house.channels.ensure(ChannelKey(Platform("slack"), "T1ABC", "D1ABC"), is_direct=True)
    for place in ("first", f"c{direct.id}", "99"):
        assert (await upload(client, place, ("plan.pdf", PDF))).status == 400


async def test_a_form_sent_before_the_folder_existed_still_uploads(
    client: TestClient, house: House, folder: Path
) -> None:
    """The page was sent before the channel had a folder: the upload is not lost."""
    channel = await house.channel("alpha")
    (kept,) = await upload(client, f"c{channel.id}", ("plan.pdf", PDF))
    assert (kept["state"], files(folder)) == ("kept", {"plan.pdf": PDF})


async def test_only_our_own_pages_upload(client: TestClient, house: House, folder: Path) -> None:
    """Requests of a foreign page, under another host name, or without files change nothing."""
    place = await place_of(house, folder)
    for headers in (
        {"Sec-Fetch-Site": "cross-site"},
        {"Host": "evil.example"},
        {"X-Forwarded-For": "1.2.3.4"},
    ):
        assert (await upload(client, place, ("plan.pdf", PDF), **headers)).status == 403
    assert (await client.post("/console/uploads", data={"place": place}, headers=OWN)).status == 400
    assert (await client.post(f"/console/uploads/held/{'0' * 32}", headers=OWN)).status == 400
    assert files(folder) == {}


async def test_progress_is_tracked_by_content(client: TestClient, house: House) -> None:
    """A file is waiting until a scan finds it; a document with older bytes under its name is not live."""
    local = await house.channel("alpha")
    path = "/console/uploads/{}?file=plan.pdf"
    old, new = (hashlib.sha256(one).hexdigest() for one in (PDF, OTHER))
    assert (await (await client.get(path.format(old))).json())["state"] == "waiting"
    first = await house.shelve(local, "plan.pdf", PDF)
    shown = await (await client.get(path.format(old))).json()
    assert (shown["state"], shown["rung"], shown["is_last"]) == ("live", "full", True)
    assert (await (await client.get(path.format(new))).json())["state"] == "waiting"
    await house.shelve(local, "plan.pdf", OTHER, replaces=first)
    assert (await (await client.get(path.format(new))).json())["state"] == "live"
