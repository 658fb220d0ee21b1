"""Console sign-in and sign-out in a real browser, as a reader and as an admin."""

from __future__ import annotations

from pathlib import Path

import pytest
from engines.axe import violations
from engines.support.ports import free_port
from fakes.openid_provider import CLIENT_ID, CLIENT_SECRET, serving_provider
from fakes.web_house import House, Visit, make_pdf
from playwright.async_api import Browser
from pydantic import SecretStr

from bot.sign_in_settings import SignInSettings
from storage.sql.audit import AuditLog

pytestmark = [pytest.mark.engine("chromium"), pytest.mark.engine("axe")]

POST = """async (path) => {
    const body = new URLSearchParams({ title: "Mine" });
    return (await fetch(path, { method: "POST", body })).status;
}"""


async def test_sign_in_reading_correcting_and_sign_out_in_a_browser(
    browser: Browser, visit: Visit, house: House, tmp_path: Path
) -> None:
    """Strict cookies are sent after the provider's redirect; forms work under the pages' CSP."""
    port = free_port()
    house.public_url = public = f"http://localhost:{port}"
    channel = await house.channel("alpha")
    shelved = await house.shelve(channel, "plan.pdf", make_pdf([["Plan"]]), "Plan")
    document = f"/console/documents/{channel.id}/{shelved.document}"
    async with serving_provider() as provider:
        sign_in = SignInSettings(
            oidc_issuer=provider.issuer,
            oidc_client_id=CLIENT_ID,
            oidc_client_secret=SecretStr(CLIENT_SECRET),
            oidc_admins="ada@example.com",
            oidc_readers="bob@example.com",
        )
        await visit(is_signed_in=False, sign_in=sign_in, console=False, port=port)
        context = await browser.new_context(viewport={"width": 1200, "height": 800})
        page = await context.new_page()
        provider.person = {"sub": "2", "email": "bob@example.com", "email_verified": True}
        await page.goto(f"{public}/console/documents?q=plan")
        await page.wait_for_selector("table.documents")
        assert page.url == f"{public}/console/documents?q=plan"
        assert await page.locator("input[type=file], form[method=post], a.edit").count() == 0
        assert await page.evaluate(POST, document) == 403
        await page.goto(f"{public}/")
        await page.wait_for_selector("text=bob@example.com")
        await page.screenshot(path=tmp_path / "reader.png")
        await page.goto(f"{public}/console/sign-out")
        assert await violations(page) == []
        await page.get_by_role("button", name="Sign out").click()
        await page.wait_for_selector("text=You’re signed out")
        assert await violations(page) == []
        provider.person = {"sub": "3", "email": "eve@example.com", "email_verified": True}
        await page.get_by_role("link", name="Sign in again").click()
        await page.wait_for_selector("text=you don’t have a role")
        assert await violations(page) == []
        provider.person = {"sub": "1", "email": "ada@example.com", "email_verified": True}
        await page.goto(f"{public}/")
        await page.wait_for_selector("text=ada@example.com")
        await page.goto(f"{public}{document}")
        await page.get_by_label("department").first.fill("Facilities")
        await page.get_by_role("button", name="Save").click()
        await page.wait_for_selector("text=corrected")
        await page.screenshot(path=tmp_path / "admin.png")
        await context.close()
    entries = await AuditLog(house.database).latest()
    said = [(one.action, one.actor.rpartition(":")[2]) for one in entries]
    assert said == [
        ("sign in", "bob@example.com"),
        ("sign out", "bob@example.com"),
        ("sign in", "eve@example.com"),
        ("sign in", "ada@example.com"),
        ("correct", "ada@example.com"),
    ]
