"""An app in two workspaces: the whole program, from installation to removal."""

from __future__ import annotations

import aiohttp
import pytest
from fakes.oauth_slack import CLIENT_ID, CLIENT_SECRET, OAuthSlack, oauth_slack
from harness.oauth_house import CHANNEL, SECRET, Outside
from harness.program import Program
from harness.waiting import until
from samples.paper import pdf

ACME, BETA = "T0ACME001", "T0BETA001"
CODES = {ACME: "Aardvarkium", BETA: "Zanzibarium"}

pytestmark = pytest.mark.long


async def answers(slack: OAuthSlack, team: str, count: int) -> list[str] | None:
    """Return the texts of placeholder updates with a workspace's token, once there are `count`."""
    found = [str(body.get("text")) for body in slack.called("chat.update", team)]
    return found if len(found) >= count else None


async def test_two_workspaces_have_the_app_until_one_removes_it(program: Program) -> None:
    """Each is answered from its own documents with its own token; no token is in any file or log."""
    async with (
        oauth_slack() as slack,
        aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as session,
    ):
        slack.lifetime = 60  # so that each use renews it
        program.environment = {
            "SLACK_CLIENT_ID": CLIENT_ID,
            "SLACK_CLIENT_SECRET": CLIENT_SECRET,
            "SLACK_SIGNING_SECRET": SECRET,
            "SLACK_API_URL": slack.api_url,
            "FOOTNOTE_PUBLIC_URL": program.url,
            "FOOTNOTE_RECEIPTS": "off",
        }
        outside = Outside(program.url, slack, session)
        async with program.serving():
            for team, code in CODES.items():
                assert team in await outside.install(team)
                program.drop(f"sl_{team}_{CHANNEL}", pdf(f"The secret project is called {code}."))
            for team in CODES:
                await program.until_live(f"sl_{team}_{CHANNEL}", 1)
                await outside.ask(team, "1700000001.000100", text="what is the secret project called?")
            for team, other in ((ACME, BETA), (BETA, ACME)):
                found = await until(lambda team=team: answers(slack, team, 1), log=lambda: program.log)
                assert CODES[team] in found[-1]
                assert CODES[other] not in str(slack.calls_of(team))
            listed = program.run("folders").stderr
            assert all(f"Slack: Workspace {team} ({team}) since " in listed for team in CODES)
            assert await outside.send({"type": "app_uninstalled"}, ACME) == 200
            before = len(slack.calls_of(ACME))
            for team in CODES:
                await outside.ask(team, "1700000002.000100", text="what is the secret project called?")
            await until(lambda: answers(slack, BETA, 2), log=lambda: program.log)
            assert len(slack.calls_of(ACME)) == before
            assert f"({ACME})" not in program.run("folders").stderr
        assert any(given.startswith("xoxe-") for given in slack.exchanges)
    assert "CANARY" not in program.log
    files = [path for path in program.home.rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if b"CANARY" in path.read_bytes()]
