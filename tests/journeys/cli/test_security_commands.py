"""``footnote audit`` and ``footnote links`` next to a running service, on a home with an answer."""

from __future__ import annotations

import json
import re

import aiohttp
from harness.program import Program
from harness.waiting import until


def link_of(program: Program, question: str) -> str:
    """Return the link of an answer's first source."""
    return str(program.ask(question, "it")["citations"][0]["url"])


async def status(url: str) -> int:
    """Return the HTTP status of a URL."""
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        return response.status


async def has_ended(url: str) -> bool:
    """True if the link's signature is no longer valid."""
    return await status(url) == 404


async def test_revoking_links_is_audited(with_samples: Program) -> None:
    """Revokes one answer's links, a channel's, and by rotating the key twice all; the hash chain is valid.

    Three links were opened: a second opening within a minute is no separate entry.
    """
    program = with_samples
    async with program.serving():
        printed = program.run("console")
        assert (printed.returncode, printed.stdout.strip()) == (0, program.console_url)
        first, second = (link_of(program, "When do backups run?") for _ in range(2))
        assert [await status(one) for one in (first, second)] == [200, 200]
        ended = program.run("links", "revoke", "--link", first, "--yes")
        assert ended.returncode == 0, ended.stderr
        assert [await status(one) for one in (first, second)] == [410, 200]
        assert program.run("links", "revoke", "--channel", "it", "--yes").returncode == 0
        assert await status(second) == 410
        third = link_of(program, "When do backups run?")
        assert program.run("links", "rotate", "--yes").returncode == 0
        assert await status(third) == 200
        assert program.run("links", "rotate", "--yes").returncode == 0
        await until(
            lambda: has_ended(third)
        )  # keys that were read a tenth of a second ago are not read again
        refused = program.run("links", "revoke", "--link", third, "--yes")
        assert (refused.returncode, "not signed" in refused.stderr) == (2, True)
        nobody = program.run("links", "revoke", "--person", "slack:T0ACME001:U0ANNA001", "--yes")
        assert (nobody.returncode, "no stored answers" in nobody.stderr) == (2, True)
    copy = program.home / "copy.json"
    assert program.run("links", "rotate", "--file", str(copy), "--yes").returncode == 0
    stopped = program.run("console")
    assert (stopped.returncode, "no `footnote serve` runs" in stopped.stderr) == (2, True)
    listed = [json.loads(line) for line in program.run("audit", "--json").stdout.splitlines()]
    assert [one["action"] for one in listed] == ["revoke links"] * 2 + ["rotate key"] * 3
    assert re.fullmatch(r"citation \d+", listed[0]["subject"])
    exported = [json.loads(line) for line in program.run("audit", "export").stdout.splitlines()]
    assert [one["action"] for one in exported].count("open link") == 3
    verified = program.run("audit", "verify", exported[1]["digest"])
    assert (verified.returncode, exported[-1]["digest"] in verified.stdout) == (0, True)
    assert program.run("audit", "verify", "f" * 64).returncode == 1
