"""Folders in the console: visibility, an admin's approval of deletions, and suggested questions."""

from __future__ import annotations

from collections.abc import Collection
from uuid import uuid4

import pytest
from aiohttp.test_utils import TestClient
from fakes.web_house import House, Shelved, console_of, make_pdf
from playwright.async_api import Page
from sqlalchemy import select, update
from sqlmodel import col

from storage.models import Channel, ChannelKey, Platform
from storage.sql.tables import BlobRow, DocumentRow, FolderRow, NoticeRow, ReadingRow, VersionRow

OWN = {"X-Footnote-Console": "1"}
VANISHED = "2 of 3 files vanished from the folder at once, so nothing was deleted."


async def ask_about(house: House, channel: Channel, documents: Collection[Shelved]) -> int:
    """Let the first document's folder ask about these documents; return the folder's id."""
    async with house.database.transaction() as session:
        folders = [(await session.get_one(DocumentRow, one.document)).folder_id for one in documents]
        folder = await session.get_one(FolderRow, folders[0])
        for one in documents:
            (await session.get_one(DocumentRow, one.document)).folder_id = folder.id
        folder.problem, folder.asked = VANISHED, [str(one.document) for one in documents]
        return folder.id


async def shelve_three(house: House, name: str = "alpha") -> tuple[Channel, list[Shelved]]:
    """Return a channel with three documents."""
    channel = await house.channel(name)
    return channel, [
        await house.shelve(channel, f"{one}.pdf", make_pdf([[f"Page of {one}"]]), f"About {one}")
        for one in ("apples", "pears", "plums")
    ]


async def asked_and_approved(house: House, folder: int) -> tuple[object, object]:
    """Return the deletions that await approval, and those approved."""
    async with house.database.snapshot() as session:
        row = await session.get_one(FolderRow, folder)
        return row.asked, row.approved


async def test_approval_covers_exactly_the_deletions_that_were_shown(
    client: TestClient, house: House
) -> None:
    """Deletions that appear after the page was shown still await approval."""
    channel, (apples, pears, plums) = await shelve_three(house)
    folder = await ask_about(house, channel, [apples, pears])
    (shown,) = [one for one in await folders_of(client) if one["problem"]]
    assert (shown["id"], shown["problem"], shown["vanished"]) == (
        folder,
        VANISHED,
        ["apples.pdf", "pears.pdf"],
    )
    await ask_about(house, channel, [apples, pears, plums])
    response = await client.post(
        f"/console/folders/{folder}/approve", json={"documents": shown["asked"]}, headers=OWN
    )
    assert (response.status, await response.json()) == (200, {"allowed": 2})
    asked, approved = await asked_and_approved(house, folder)
    assert asked == [str(plums.document)]
    assert approved == sorted(str(one.document) for one in (apples, pears))


async def folders_of(client: TestClient) -> list[dict[str, object]]:
    """Return the folders that the page gets."""
    told: list[dict[str, object]] = (await (await client.get("/console/folders")).json())["folders"]
    return told


async def test_a_chat_channels_folder_is_anonymous_and_not_approvable(
    client: TestClient, house: House
) -> None:
    """Neither name, files nor location are shown, and no deletion can be approved."""
    slack = await house.channels.ensure(ChannelKey(Platform("slack"), "T1", "C1"), "secret-plans")
    canary = await house.shelve(slack, "canary.pdf", make_pdf([["CANARY"]]), "CANARY")
    folder = await ask_about(house, slack, [canary])
    assert await folders_of(client) == [{"id": folder, "channel": None, "problem": True, "asks": True}]
    response = await client.post(
        f"/console/folders/{folder}/approve", json={"documents": [str(canary.document)]}, headers=OWN
    )
    assert response.status == 404
    assert (await asked_and_approved(house, folder))[1] is None


@pytest.mark.parametrize(
    "headers", [{}, OWN | {"Origin": "http://evil.example"}, OWN | {"Host": "evil.example"}]
)
async def test_only_our_own_page_approves_deletions(
    client: TestClient, house: House, headers: dict[str, str]
) -> None:
    """Requests of a foreign page or rebound host name delete nothing."""
    channel, (apples, *_) = await shelve_three(house)
    folder = await ask_about(house, channel, [apples])
    body = {"documents": [str(apples.document)]}
    response = await client.post(f"/console/folders/{folder}/approve", json=body, headers=headers)
    assert response.status == 403
    assert (await asked_and_approved(house, folder))[1] is None


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{}", b'{"documents": 3}', b'{"documents": ["x"]}', b'{"documents": [3]}']
)
async def test_a_malformed_approval_is_refused(client: TestClient, house: House, body: bytes) -> None:
    """A body that our script would never send gets 400, not an error."""
    headers = OWN | {"Content-Type": "application/json"}
    assert (await client.post("/console/folders/1/approve", data=body, headers=headers)).status == 400


async def test_suggestions_are_shown_and_failed_files_come_first(client: TestClient, house: House) -> None:
    """Questions of the newest receipts are suggested; unreadable files come first in the list."""
    channel, shelved = await shelve_three(house)
    await on_claim(house, channel, shelved[0], ["How red is it?", "How round is it?"])
    await fail(house, channel, "broken.pdf", "It is protected by a password.")
    shown = await (await client.get(f"/console/channels/{channel.id}")).json()
    assert [one["question"] for one in shown["suggestions"]] == ["How red is it?", "How round is it?"]
    first = shown["documents"][0]
    assert (first["file"], first["state"]) == ("broken.pdf", "quarantined")
    assert first["reason"] == "It is protected by a password."
    assert (shown["progress"]["files"], shown["progress"]["quarantined"]) == (4, 1)


async def on_claim(house: House, channel: Channel, shelved: Shelved, questions: list[str]) -> None:
    """Add a receipt with its suggested questions."""
    notice = NoticeRow(
        kind="live", channel_id=channel.id, document_id=shelved.document, version_id=shelved.version
    )
    notice.state, notice.questions = "posted", questions
    async with house.database.transaction() as session:
        session.add(notice)


async def fail(house: House, channel: Channel, file: str, reason: str) -> None:
    """Add an unreadable document."""
    sha256 = uuid4().hex * 2
    async with house.database.transaction() as session:
        folder = (
            await session.scalars(select(FolderRow).where(col(FolderRow.channel_id) == channel.id))
        ).first()
        assert folder is not None
        document = DocumentRow(channel_id=channel.id, folder_id=folder.id, file=file)
        session.add_all([document, BlobRow(sha256=sha256, size=1)])
        await session.flush()
        session.add(VersionRow(document_id=document.id, number=1, sha256=sha256))
        session.add(ReadingRow(sha256=sha256, generation="test", rung="quick", state="failed", reason=reason))


async def wait_in_line(house: House, channel: Channel, count: int) -> None:
    """Add unread documents, next to some that were read seconds ago."""
    for number in range(count):
        sha256 = uuid4().hex * 2
        async with house.database.transaction() as session:
            folder = (
                await session.scalars(select(FolderRow).where(col(FolderRow.channel_id) == channel.id))
            ).first()
            assert folder is not None
            document = DocumentRow(channel_id=channel.id, folder_id=folder.id, file=f"line/{number:03}.pdf")
            session.add_all([document, BlobRow(sha256=sha256, size=5000)])
            await session.flush()
            session.add(VersionRow(document_id=document.id, number=1, sha256=sha256))
            session.add(ReadingRow(sha256=sha256, generation="test", rung="quick"))


@pytest.mark.engine("chromium")
async def test_an_admin_approves_deletions_in_the_browser(
    page: Page, client: TestClient, house: House
) -> None:
    """The folder's problem is described in plain words; one click approves the shown deletions."""
    channel, (apples, pears, _) = await shelve_three(house)
    folder = await ask_about(house, channel, [apples, pears])
    await page.goto(console_of(client))
    alarm = page.locator(".alarm")
    await alarm.get_by_text(VANISHED).wait_for()
    await alarm.locator("summary").click()
    assert await alarm.locator("li").all_inner_texts() == ["apples.pdf", "pears.pdf"]
    async with house.database.transaction() as session:
        await session.execute(update(FolderRow).values(problem=None))  # as the next scan would do
    await alarm.get_by_role("button", name="Delete these 2 here too").click()
    await alarm.wait_for(state="detached")
    assert (await asked_and_approved(house, folder))[1] == sorted(
        str(one.document) for one in (apples, pears)
    )


@pytest.mark.engine("chromium")
async def test_the_bars_show_the_numbers_of_the_catalog(page: Page, client: TestClient, house: House) -> None:
    """A bar per stage with files and pages while work goes on; a suggested question is one click away."""
    channel, shelved = await shelve_three(house)
    await on_claim(house, channel, shelved[0], ["How red is <b>it</b>?"])
    citation = await house.cite(channel, shelved[0], 1, "Page of apples")
    cited = (channel, citation, "About apples", "apples.pdf")
    house.answering.answers["How red is <b>it</b>?"] = house.answer("Very. [1]", cited)
    await wait_in_line(house, channel, 2)
    await page.goto(console_of(client))
    await page.wait_for_selector(".rung")
    progress = await house.catalog.progress(channel.id)
    words, meaning = await page.locator(".rung-numbers").all_inner_texts()
    assert words.startswith(f"{progress.quick.files_done} of {progress.files} files · 3 of 3+ pages")
    assert meaning.startswith("3 of 5 files")
    bar = page.locator(".rung progress").first
    assert float(await bar.get_attribute("value") or 0) == pytest.approx(3 / 5)
    await page.get_by_role("button", name="How red is <b>it</b>?").click()
    await page.wait_for_selector(".answer >> text=Very.")


@pytest.mark.long
@pytest.mark.engine("chromium")
async def test_an_unreachable_service_is_reported(page: Page, client: TestClient, house: House) -> None:
    """With a proxy's error page in its place no state is invented, and the page recovers."""
    await shelve_three(house)
    await page.route("**/console/channels", lambda route: route.fulfill(body="<html>Bad gateway</html>"))
    await page.goto(console_of(client))
    await page.get_by_text("Footnote isn’t responding").wait_for()
    assert await page.locator("#headline").is_hidden()
    await page.unroute("**/console/channels")
    await page.get_by_text("Answers come from the 3 documents").wait_for()
    assert await page.get_by_text("Footnote isn’t responding").count() == 0
