"""The console and the source viewer in Firefox."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from engines.axe import violations
from engines.firefox import FirefoxPage, OpenFirefox
from harness.program import Program

QUESTION = "When do the nightly backups run?"
# Name -> width and height of the window, and dark mode.
LOOKS = {"light": (1400, 900, False), "phone": (390, 844, False), "dark": (1400, 900, True)}
ENTER = "\ue007"


@pytest.mark.long
@pytest.mark.engine("firefox")
@pytest.mark.engine("axe")
async def test_firefox_shows_every_page(firefox: OpenFirefox, with_samples: Program, tmp_path: Path) -> None:
    """Visited by links and forms; no axe violations and no console messages, in every look."""
    async with with_samples.serving():
        answered = json.loads(await with_samples.ask_console("it", QUESTION))
        source = f"{with_samples.url}{answered['citations'][0]['view']}"
        for look, (width, height, is_dark) in LOOKS.items():
            (tmp_path / look).mkdir()
            async with firefox(is_dark=is_dark) as page:
                await page.resize(width, height)
                await page.goto(with_samples.console_url)
                await page.wait_for("#documents > *")
                page.complaints.clear()  # a favicon request of the page that takes the secret
                await visit_console(page, with_samples.url, tmp_path / look)
                await visit_source(page, source, tmp_path / look)
                assert page.complaints == []


async def visit_console(page: FirefoxPage, home: str, pictures: Path) -> None:
    """Visit every page of the console; a trace leads from a passage to its page with boxes."""
    await require_sound(page, pictures / "ask.png")
    for name in ("quality", "documents", "usage", "settings", "search", "conversations"):
        await page.goto(f"{home}/console/{name}")
        await require_sound(page, pictures / f"{name}.png")
    await page.wait_for("article a")
    await require_sound(page, pictures / "conversation.png")
    await page.click("article a")
    await page.wait_for(".candidates")
    await require_sound(page, pictures / "record.png")
    await page.click(".candidates tbody a")
    await page.wait_for("#hit")
    await require_sound(page, pictures / "page.png")


async def visit_source(page: FirefoxPage, source: str, pictures: Path) -> None:
    """Copy the quote, search a word and open the hit, open the table of contents."""
    await page.goto(source)
    await page.wait_for("#hit")
    assert await page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches") == (
        pictures.name == "dark"
    )
    await require_sound(page, pictures / "source.png")
    await page.click("#copy")
    await page.wait_for("#copied:not(:empty)")
    assert await page.evaluate("document.querySelector('#copied').textContent") == "Copied"
    if pictures.name == "phone":
        await page.click("label[for=more]")
    await page.click("#find")
    await page.type(f"backup{ENTER}")
    await page.wait_for(".hits mark")
    await require_sound(page, pictures / "hits.png")
    await page.click(".hits li li a")
    await page.wait_for("#found-1")
    marked = ".text mark.searched" if pictures.name == "phone" else "#found-1"
    top = await page.evaluate(f"document.querySelector({marked!r}).getBoundingClientRect().top")
    assert 0 < top < 900
    await require_sound(page, pictures / "found.png")
    if pictures.name == "phone":
        await page.click("label[for=more]")
    await page.click(".contents")
    await page.wait_for(".outline li")
    await require_sound(page, pictures / "contents.png")


async def require_sound(page: FirefoxPage, picture: Path) -> None:
    """Check accessibility and horizontal overflow, and save a screenshot."""
    await page.screenshot(path=picture, full_page=True)
    assert await violations(page) == []
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
