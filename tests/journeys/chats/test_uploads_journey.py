"""Uploads in a channel of a real Slack server and in Teams: receipt, answer, refusals, removal."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from engines.playground import BOT_ID, PERSONAL, TENANT, Playground, StartPlayground
from engines.slack import ALICE, BOT, HR, IT, TEAM, SlackDouble, StartSlack, slack_settings
from fakes.core import WORDS
from harness.program import Program
from harness.waiting import until
from playwright.async_api import Browser
from samples.paper import pdf

CHANNEL = f"sl_{TEAM}_{IT}"
NAME = "Leave policy.pdf"
POLICY = pdf("Contractors get 12 days of paid leave each year.")
QUESTION = "How many days of paid leave do contractors get?"
SEARCHED = "12 days of paid leave"


async def serve_slack(program: Program, start_slack: StartSlack, **others: str) -> SlackDouble:
    """Start a Slack server and configure the program for it, with uploads in one channel."""
    slack = await start_slack("events", f"{program.url}/slack/events")
    program.environment = slack_settings(
        slack.api_url, "events", **{"FOOTNOTE_UPLOADS": CHANNEL, "FOOTNOTE_UPLOAD_FILES": "2", **others}
    )
    return slack


@pytest.mark.long
@pytest.mark.engine("slack")
@pytest.mark.engine("chromium")
async def test_an_uploaded_pdf_is_live_until_its_uploader_removes_it(
    program: Program, start_slack: StartSlack, browser: Browser, tmp_path: Path
) -> None:
    """Covers file, receipt, answer, and another user's attempt to remove it."""
    slack = await serve_slack(program, start_slack)
    folder = program.home / "inbox" / CHANNEL / "uploads"
    async with program.serving():
        await slack.upload(IT, NAME, POLICY, "the new one")
        (taken,) = await until(lambda: slack.posted(IT, "I’m reading"), log=lambda: program.log)
        assert WORDS.upload_taken(file=NAME) in taken["text"]
        (receipt,) = await until(lambda: slack.posted(IT, "1 page"), log=lambda: program.log)
        (posted,) = [one for one in await slack.messages(IT) if one.get("files")]
        assert (taken["thread_ts"], receipt["thread_ts"]) == (posted["ts"], posted["ts"])
        assert NAME in json.dumps(receipt)
        assert [one.name for one in folder.iterdir()] == [NAME]
        assert (folder / NAME).read_bytes() == POLICY
        await slack.say(IT, f"<@{BOT}> {QUESTION}")
        (answer,) = await until(lambda: slack.posted(IT, SEARCHED), log=lambda: program.log)
        assert NAME.removesuffix(".pdf") in json.dumps(answer)
        page = await browser.new_page(viewport={"width": 1280, "height": 1000})
        await page.goto(slack.url)
        await page.get_by_text("it-ops").first.click()
        await page.get_by_text("2 replies").click()
        await page.get_by_text("I’m reading").first.wait_for()
        await page.screenshot(path=tmp_path / "uploaded.png")
        said = await slack.post(
            "/_control/message", channel=IT, user="U0BOB0001", text=f"<@{BOT}> remove upload {NAME}"
        )
        assert said
        refused = WORDS.upload_not_yours(file=NAME)
        await until(lambda: slack.posted(IT, refused), log=lambda: program.log)
        await slack.say(IT, f"<@{BOT}> remove upload {NAME}")
        removed = WORDS.upload_removed(file=NAME)
        await until(lambda: slack.posted(IT, removed), log=lambda: program.log)
        assert list(folder.iterdir()) == []
        await slack.say(IT, f"<@{BOT}> {QUESTION} Really?")
        empty = WORDS.empty_named_channel(channel="#it-ops")
        await until(lambda: slack.posted(IT, empty), log=lambda: program.log)
        assert len(await slack.posted(IT, SEARCHED) or ()) == 1
        await slack.upload(IT, NAME, POLICY, f"<@{BOT}> {QUESTION}")  # the same bytes again get a receipt
        await until(lambda: _are(slack, "1 page", 2), log=lambda: program.log)
        await until(lambda: _are(slack, SEARCHED, 2), log=lambda: program.log)
    audit = program.run("audit")
    assert f"slack:{TEAM}:{ALICE}" in audit.stdout, audit
    assert "remove_upload" in audit.stdout


@pytest.mark.long
@pytest.mark.engine("slack")
async def test_a_refused_upload_is_reported_once(program: Program, start_slack: StartSlack) -> None:
    """Covers an empty file, no PDF, one over the quota, a duplicate; silence in channels without uploads."""
    slack = await serve_slack(program, start_slack)
    async with program.serving():
        await slack.upload(HR, "secret.pdf", POLICY)
        await slack.upload(IT, "page.pdf", b"<html>")
        await until(lambda: slack.posted(IT, WORDS.upload_no_pdf(file="page.pdf")), log=lambda: program.log)
        await slack.upload(IT, "a.pdf", pdf("One."))
        await until(lambda: slack.posted(IT, WORDS.upload_taken(file="a.pdf")), log=lambda: program.log)
        await slack.upload(IT, "b.pdf", pdf("One."))
        known = WORDS.upload_known(file="b.pdf", known="a.pdf")
        await until(lambda: slack.posted(IT, known), log=lambda: program.log)
        await slack.upload(IT, "a.pdf", pdf("Two."))
        await until(lambda: slack.posted(IT, WORDS.upload_taken(file="a (2).pdf")), log=lambda: program.log)
        await slack.upload(IT, "c.pdf", pdf("Three."))
        full = WORDS.upload_too_many(2, file="c.pdf")
        await until(lambda: slack.posted(IT, full), log=lambda: program.log)
        await slack.upload(HR, "secret.pdf", POLICY, f"<@{BOT}>")
        await until(lambda: slack.posted(HR, WORDS.uploads_off), log=lambda: program.log)
        direct = await slack.open_dm()
        await slack.upload(direct, "a.pdf", pdf("Four."))
        await until(lambda: slack.posted(direct, WORDS.upload_direct), log=lambda: program.log)
        await asyncio.sleep(1)
        assert len(await slack.posted(HR, "") or ()) == 1
        assert [one.name for one in (program.home / "inbox").iterdir()] == [CHANNEL]


async def _are(slack: SlackDouble, words: str, count: int) -> bool:
    return len(await slack.posted(IT, words) or ()) == count


@pytest.fixture
async def file_host() -> AsyncIterator[str]:
    """A fake of SharePoint: URL of the policy under any name."""

    async def give(request: web.Request) -> web.Response:
        return web.Response(body=POLICY)

    app = web.Application()
    app.router.add_get("/download.aspx", give)
    async with TestServer(app) as server:
        yield f"{server.make_url('/download.aspx')}?tempauth=a%2Bb"


def sent(playground: Playground, name: str, url: str, text: str = "", person: str = "20") -> dict[str, Any]:
    """Return the activity of a file sent in a personal chat; without a name, of text only."""
    content = {"downloadUrl": url, "uniqueId": f"id-{name}", "fileType": name.rpartition(".")[2]}
    kind = "application/vnd.microsoft.teams.file.download.info"
    file = {"contentType": kind, "name": name, "content": content}
    return {
        "type": "message",
        "id": f"file-{name}-{len(text)}-{person}",
        "channelId": "msteams",
        "from": {"id": f"user-id-{person}", "aadObjectId": f"00000000-0000-0000-0000-0000000000{person}"},
        "recipient": {"id": BOT_ID},
        "conversation": {"id": PERSONAL, "conversationType": "personal", "tenantId": TENANT},
        "channelData": {"tenant": {"id": TENANT}},
        "serviceUrl": f"{playground.url}/_connector",
        "text": text,
        "attachments": [file] if name else [],
    }


@pytest.mark.long
@pytest.mark.engine("playground")
@pytest.mark.engine("chromium")
async def test_a_pdf_sent_in_a_teams_chat_joins_the_library(
    program: Program,
    start_playground: StartPlayground,
    file_host: str,
    sop: Path,
    browser: Browser,
) -> None:
    """Covers receipt, answer, refusal, another user's attempt to remove it, and a question with a file."""
    playground = await start_playground(f"{program.url}/api/messages")
    program.environment = {"FOOTNOTE_TEAMS_DEVELOPMENT": "true", "FOOTNOTE_UPLOADS": "library"}
    place = program.home / "policies"
    place.mkdir(parents=True)
    (place / sop.name).write_bytes(sop.read_bytes())
    library = f'[library.policies]\n[[library.policies.folder]]\nlocation = "{place}"\n'
    (program.home / "folders.toml").write_text(f'{library}[direct_chats]\nlibrary = "policies"\n')
    async with program.serving():
        await program.until_live("library/policies", 1)
        page = await playground.open(browser, height=1000)
        await page.get_by_text("I’m Footnote").first.wait_for()
        await playground.send(sent(playground, "notes.docx", file_host))
        refused = WORDS.upload_no_pdf(file="notes.docx")
        await until(lambda: playground.said(refused), log=lambda: program.log)
        await playground.send(sent(playground, NAME, file_host))
        (*_, taken) = await until(lambda: playground.said("I’m reading"), log=lambda: program.log)
        assert WORDS.upload_for_all in taken
        (receipt,) = await until(lambda: playground.said("1 page"), log=lambda: program.log)
        assert NAME in receipt
        (folder,) = (program.home / "inbox").iterdir()
        assert (folder / "uploads" / NAME).read_bytes() == POLICY
        await playground.say(PERSONAL, QUESTION)
        await until(lambda: playground.said(SEARCHED), log=lambda: program.log)
        await page.get_by_text(SEARCHED).first.wait_for()
        await page.screenshot(path=program.home.parent / "receipt.png")
        await playground.send(sent(playground, "", "", f"remove upload {NAME}", person="21"))
        await until(lambda: playground.said(WORDS.upload_not_yours(file=NAME)), log=lambda: program.log)
        await playground.say(PERSONAL, f"remove upload {NAME}")
        await until(lambda: playground.said(WORDS.upload_removed(file=NAME)), log=lambda: program.log)
        assert list((folder / "uploads").iterdir()) == []
        before = len(await playground.said(SEARCHED) or ())
        await playground.send(sent(playground, f"New {NAME}", file_host, QUESTION))
        await until(lambda: _more(playground, before), log=lambda: program.log)
    assert file_host.partition("?")[2] not in program.log


async def _more(playground: Playground, count: int) -> bool:
    return len(await playground.said(SEARCHED) or ()) > count
