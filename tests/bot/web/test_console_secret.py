"""The console secret: access, sign-in of browsers and programs, and requests without it."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from aiohttp.test_utils import TestClient
from fakes.web_house import CONSOLE_SECRET, SIGNED_IN, House, Visit, console_of
from playwright.async_api import Page

from bot.console_secret import console_address, read_console_secret
from storage.errors import SettingsError

PATHS = (
    "/",
    "/console/channels",
    "/console/search",
    "/console/quality.json",
    "/console/documents",
    "/console/conversations",
    "/console/settings",
    "/console/usage.csv",
)
BROWSER = {"Accept": "text/html,application/xhtml+xml"}


@pytest.fixture
async def stranger(visit: Visit) -> TestClient:
    """Return a client on this machine that does not know the secret, like another user's."""
    return await visit(is_signed_in=False)


@pytest.mark.parametrize("path", PATHS)
async def test_without_the_secret_the_page_says_where_to_find_it(stranger: TestClient, path: str) -> None:
    """Another local user, and a proxy that rewrites Host, get no page; a wrong secret counts as none."""
    for headers in ({}, {"Authorization": "Bearer x"}, {"Cookie": f"footnote_console_{stranger.port}=\xfc"}):
        refused = await stranger.get(path, headers=headers)
        assert (refused.status, refused.headers["WWW-Authenticate"]) == (401, "Bearer")
        assert "printed when it started" in await refused.text()
        assert CONSOLE_SECRET not in await refused.text()
    wrong = await stranger.get(path, params={"secret": "wrong"}, headers=BROWSER)
    assert (wrong.status, "Set-Cookie" in wrong.headers) == (401, False)


async def test_no_question_is_asked_without_it(stranger: TestClient, house: House) -> None:
    """Shows that the headers of our script are not enough."""
    body = {"channel": (await house.channel("alpha")).id, "question": "Who?"}
    own = {"X-Footnote-Console": "1"}
    assert (await stranger.post("/console/ask", json=body, headers=own)).status == 401
    assert house.answering.asked == []
    assert (await stranger.post("/console/ask", json=body, headers=own | SIGNED_IN)).status == 200


@pytest.mark.parametrize("path", PATHS)
async def test_the_printed_url_signs_a_browser_in(stranger: TestClient, path: str) -> None:
    """The cookie is SameSite=Strict and HttpOnly; the redirect target does not contain the secret."""
    query = {"secret": CONSOLE_SECRET, "format": "html"}
    opened = await stranger.get(path, params=query, headers=BROWSER)
    assert opened.status == 200
    assert f'content="0; url={path}?format=html"' in await opened.text()
    cookie = opened.headers["Set-Cookie"]
    assert cookie.startswith(f"footnote_console_{stranger.port}={CONSOLE_SECRET}; HttpOnly; ")
    assert "SameSite=Strict" in cookie
    assert CONSOLE_SECRET not in await opened.text()
    assert (await stranger.get(path)).status == 200  # the client sends the cookie


async def test_a_program_sends_it_in_a_header_or_the_query(stranger: TestClient) -> None:
    """Shows that a script gets its response at once, and no cookie."""
    for how in ({"headers": SIGNED_IN}, {"params": {"secret": CONSOLE_SECRET}}):
        listed = await stranger.get("/console/channels", **how)
        assert (listed.status, await listed.json()) == (200, {"channels": []})
        assert "Set-Cookie" not in listed.headers


async def test_the_secret_does_not_open_foreign_requests(stranger: TestClient) -> None:
    """Shows that the secret does not replace the other checks, and that they set no cookie."""
    for headers in ({"Host": "evil.example"}, {"X-Forwarded-For": "203.0.113.7"}):
        asked = {"params": {"secret": CONSOLE_SECRET}, "headers": BROWSER | headers}
        refused = await stranger.get("/", **asked)
        assert (refused.status, "Set-Cookie" in refused.headers) == (403, False)


async def test_links_and_health_need_no_secret(stranger: TestClient) -> None:
    """Shows that only the console requires a secret, and that no other page accepts one."""
    for path in ("/healthz", "/readyz", "/about"):
        answered = await stranger.get(path, params={"secret": CONSOLE_SECRET}, headers=BROWSER)
        assert (answered.status, "Set-Cookie" in answered.headers) == (200, False)


@pytest.mark.engine("chromium")
async def test_a_click_on_another_page_opens_the_console(
    page: Page, stranger: TestClient, house: House
) -> None:
    """Following a link of another site takes one click, too, although cookies are SameSite=Strict."""
    elsewhere = stranger.make_url("/about").with_host("localhost")
    await page.goto(str(elsewhere))
    await page.evaluate(
        "url => { const a = document.createElement('a'); a.href = url; a.click(); }", console_of(stranger)
    )
    await page.wait_for_selector("#hole code")
    assert page.url == str(stranger.make_url("/"))
    await page.goto("about:blank")  # else it asks for progress once more, without cookies
    refused = await page.context.new_page()
    await page.context.clear_cookies()
    await refused.goto(str(stranger.make_url("/")))
    assert "footnote console" in await refused.inner_text("main")


def test_the_secret_file_is_private_and_persistent(tmp_path: Path) -> None:
    """Shows a file with mode 0600, one secret per home for all processes, and none that is empty."""
    secret = read_console_secret(tmp_path / "home")
    file = tmp_path / "home" / "console_secret"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert read_console_secret(tmp_path / "home") == secret != read_console_secret(tmp_path / "other")
    assert [entry.name for entry in file.parent.iterdir()] == ["console_secret"]
    assert console_address("http://[::1]:1", secret) == f"http://[::1]:1/?secret={secret}"
    for damaged in ("", "short", "x" * 40 + "\n" + "y" * 40):
        file.write_text(damaged)
        with pytest.raises(SettingsError, match="delete it"):
            read_console_secret(tmp_path / "home")
