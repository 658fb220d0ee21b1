"""The console in a real browser, with a service that reads and answers with a model."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import pytest
from engines.axe import violations
from fakes.model_server import byte_server, completion, response
from harness.program import Program
from playwright.async_api import Browser, Page
from samples.paper import pdf

QUESTION = "When do the nightly backups run?"
LOOKS: dict[str, dict[str, Any]] = {
    "light": {"viewport": {"width": 1400, "height": 900}},
    "dark": {"viewport": {"width": 1400, "height": 900}, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 390, "height": 844}},
}
FIRST_LINE = re.compile(r"--- Page \d+ ---\n(.+?)[.\n]")


async def answer(request: bytes, writer: asyncio.StreamWriter) -> None:
    """Answer with the first line of the first passage, and quote it."""
    line = FIRST_LINE.search(json.loads(request)["messages"][-1]["content"])
    said = line[1] if line else ""
    claim = {"text": f"{said}.", "quotes": [{"passage": 1, "quote": said}]}
    writer.write(response(completion(json.dumps({"sufficient": True, "claims": [claim]}))))
    await writer.drain()


@asynccontextmanager
async def looking(
    browser: Browser, look: str, program: Program, *, scripts: bool = True
) -> AsyncIterator[Page]:
    """Yield a page with these settings on the console, opened by the printed URL.

    The browser's console must stay empty, policy violations included.
    """
    context = await browser.new_context(java_script_enabled=scripts, **LOOKS[look])
    complaints: list[str] = []
    page = await context.new_page()
    page.on("console", lambda message: complaints.append(message.text))
    await page.goto(program.console_url)
    await page.wait_for_url(f"{program.url}/")
    yield page
    await context.close()
    assert complaints == []


async def require_sound(page: Page, picture: Path) -> None:
    """Check accessibility and horizontal overflow, and save a screenshot."""
    await page.screenshot(path=picture, full_page=True)
    assert await violations(page) == []
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.long
@pytest.mark.engine("chromium")
@pytest.mark.engine("axe")
async def test_every_page_is_accessible_in_every_look(
    browser: Browser, with_samples: Program, tmp_path: Path
) -> None:
    """Ask in the console, visit every page, open a candidate with its boxes; repeated without scripts.

    Accessible: no axe violations, no messages in the browser's console, no horizontal overflow.
    """
    async with byte_server(answer) as url:
        with_samples.environment = {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "k"}
        async with with_samples.serving():
            home = with_samples.url
            async with looking(browser, "light", with_samples) as page:
                await ask_and_reload(page, home, tmp_path / "console.png")
            async with looking(browser, "light", with_samples, scripts=False) as page:
                await run_again(page, home)
                await upload_without_script(page, home, with_samples.home / "inbox" / "it")
            async with looking(browser, "light", with_samples) as page:
                await upload(page, home, tmp_path / "uploads.png")
            await visit_upload(browser, with_samples, tmp_path / "uploaded.png")
            source = await source_of(with_samples)
            for look in LOOKS:
                async with looking(browser, look, with_samples) as page:
                    await visit_all(page, home, tmp_path / look)
                    await visit_source(page, source, tmp_path / look)
            assert with_samples.run("links", "revoke", "--channel", "it", "--yes").returncode == 0
            for look, window in LOOKS.items():
                context = await browser.new_context(**window)
                await visit_refusals(await context.new_page(), source, tmp_path / look)
                await context.close()


async def visit_refusals(page: Page, source: str, pictures: Path) -> None:
    """Visit a revoked link, a forged one, and the legal pages."""
    for name, path, status in (
        ("ended", source, 410),
        ("forged", f"{source[:-9]}AAAAAAAAA", 404),
        *((one, urljoin(source, f"/{one}"), 200) for one in ("about", "privacy", "terms")),
    ):
        response = await page.goto(path)
        assert response
        assert response.status == status, name
        await require_sound(page, pictures / f"{name}.png")


async def source_of(program: Program) -> str:
    answered = json.loads(await program.ask_console("it", QUESTION))
    return f"{program.url}{answered['citations'][0]['view']}"


async def visit_source(page: Page, source: str, pictures: Path) -> None:
    """Visit the cited page with its mark, a search in its document, a hit, and the table of contents."""
    await page.goto(source)
    await page.wait_for_selector("#hit", state="attached")
    await require_sound(page, pictures / "source.png")
    await unfold(page)
    await page.fill("#find", "backup")
    await page.keyboard.press("Enter")
    await page.wait_for_selector(".hits mark")
    await require_sound(page, pictures / "hits.png")
    await page.click(".hits li li a >> nth=1")
    await page.wait_for_selector("#found-2", state="attached")
    await page.wait_for_function("() => document.querySelector('.paper img').complete")
    await require_sound(page, pictures / "found.png")
    await unfold(page)
    await page.click("text=Contents")
    await page.wait_for_selector(".outline li")
    await require_sound(page, pictures / "contents.png")


async def unfold(page: Page) -> None:
    """Show the tools that a phone folds away."""
    more = page.locator("label[for=more]")
    if await more.is_visible():
        await more.click()


async def ask_and_reload(page: Page, home: str, picture: Path) -> None:
    """Check that the thread survives a reload, can be copied, and is gone once cleared."""
    await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await page.goto(home)
    for question in (QUESTION, QUESTION, "Who keeps elephants?"):
        await page.fill("#question", question)
        await page.keyboard.press("Enter")
        await page.wait_for_selector(".ask button:enabled")
    answers = await page.locator(".turn .answer").all_inner_texts()
    await page.reload()
    assert await page.locator(".turn .answer").all_inner_texts() == answers
    await require_sound(page, picture)
    await page.click("#copy-thread")
    copied = await page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith(f"{QUESTION}\n\n")
    assert "[1] " in copied
    await page.click("#clear")
    await page.wait_for_selector("#tools", state="hidden")
    await page.reload()
    assert await page.locator(".turn").count() == 0


async def run_again(page: Page, home: str) -> None:
    """Without scripts: submit the form, check the table of candidates, and open the first one marked."""
    await page.goto(f"{home}/console/search")
    await page.fill("#question", QUESTION)
    await page.get_by_role("button", name="Run").click()
    assert "not recorded" in await page.inner_text(".facts >> nth=0")
    assert "page markers" in await page.inner_text("main")
    await page.click(".candidates tbody tr >> nth=0 >> a")
    box = await page.locator("#hit").bounding_box()
    assert box
    assert box["width"] > 10


async def upload_without_script(page: Page, home: str, folder: Path) -> None:
    """Without scripts: upload two files, check the result page and the question before replacing."""
    old, new = pdf("Bicycles stand in the old shed."), pdf("Bicycles stand in the new shed.")
    for data in (old, new):
        await page.goto(f"{home}/console/documents")
        bicycles = {"name": "bicycles.pdf", "mimeType": "application/pdf", "buffer": data}
        other = {"name": "notes.docx", "mimeType": "", "buffer": b"notes"}
        await page.click("summary >> text=Add PDFs")
        await page.set_input_files("#file", [bicycles, other])
        await page.get_by_role("button", name="Upload").click()
        assert "I didn’t add notes.docx: I can only read PDFs." in await page.inner_text("main")
    assert (folder / "bicycles.pdf").read_bytes() == old
    await page.get_by_role("button", name="Replace it").click()
    assert f"Added “bicycles.pdf” to {folder}" in await page.inner_text("main")
    assert (folder / "bicycles.pdf").read_bytes() == new


async def upload(page: Page, home: str, picture: Path) -> None:
    """Drop PDFs and follow them until they are live: here, in the list and next to the questions."""
    await page.goto(f"{home}/console/documents")
    await drop(page, {"bicycles.pdf": pdf("Scooters stand beside the gate."), "notes.docx": b"notes"})
    await page.wait_for_selector("#uploads .refused >> text=I didn’t add notes.docx")
    await page.get_by_role("button", name="Keep both").click()
    await page.wait_for_selector("#uploads .kept >> text=/^(Searchable|Ready)/")
    await page.wait_for_selector("#found tr:has-text('bicycles (2).pdf') >> text=ready")
    await require_sound(page, picture)
    await page.goto(home)
    await page.wait_for_selector("#upload[data-place]:not([data-place=''])")
    await drop(page, {"ferry.pdf": pdf("The ferry leaves at nine in the evening.")})
    await page.wait_for_selector("#uploads .kept >> text=/^(Searchable|Ready)/")
    await page.fill("#question", "When does the ferry leave?")
    await page.keyboard.press("Enter")
    await page.wait_for_selector(".turn .source >> text=ferry")


async def visit_upload(browser: Browser, program: Program, picture: Path) -> None:
    """Visit the result page of the form with our scripts blocked: axe needs a browser with scripts."""
    context = await browser.new_context()
    page = await context.new_page()
    await page.route("**/*.js", lambda route: route.abort())
    await page.goto(program.console_url)
    await page.wait_for_url(f"{program.url}/")  # the secret is exchanged for a cookie first
    await page.goto(f"{program.url}/console/documents")
    notes = {"name": "notes.docx", "mimeType": "", "buffer": b"notes"}
    await page.click("summary >> text=Add PDFs")
    await page.set_input_files("#file", [notes])
    await page.get_by_role("button", name="Upload").click()
    await page.wait_for_selector("text=I didn’t add notes.docx")
    await require_sound(page, picture)
    await context.close()


async def drop(page: Page, files: dict[str, bytes]) -> None:
    """Drop files on the page."""
    carried = await page.evaluate_handle("() => new DataTransfer()")
    for name, data in files.items():
        add = "([carried, name, data]) => carried.items.add(new File([Uint8Array.from(data)], name))"
        await page.evaluate(add, [carried, name, list(data)])
    for event in ("dragover", "drop"):
        await page.dispatch_event("main", event, {"dataTransfer": carried})


async def visit_all(page: Page, home: str, pictures: Path) -> None:
    """Visit every page of the console, and the trace of the first question."""
    pictures.mkdir()
    for name in ("search", "quality", "documents", "usage", "settings", "conversations"):
        await page.goto(f"{home}/console/{name}")
        await require_sound(page, pictures / f"{name}.png")
    await page.wait_for_selector("article")
    await require_sound(page, pictures / "conversation.png")
    await page.goto(page.url.replace("conversations", "search"))
    await page.wait_for_selector("#question")
    await require_sound(page, pictures / "asked.png")
    await page.go_back()
    await page.click(f"article >> text={QUESTION} >> nth=0")
    await page.wait_for_selector(".candidates")
    await require_sound(page, pictures / "record.png")
    await page.click(".candidates tbody tr >> nth=0 >> a")
    await page.wait_for_selector("#hit", state="attached")
    await require_sound(page, pictures / "page.png")
    await page.goto(f"{home}/console/documents")
    await page.click(".edit >> nth=0")
    await page.wait_for_selector("h1 + *")
    await require_sound(page, pictures / "correction.png")
    await page.goto(f"{home}/console/quality")
    await page.wait_for_selector(".curve circle")
    await page.click("summary >> text=By week")
    await require_sound(page, pictures / "weeks.png")
