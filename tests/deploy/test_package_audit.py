"""``make audit``: fails on incomplete lookups, and reports every known vulnerability."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from engines.support.ports import free_port
from sources import ROOT

pytestmark = pytest.mark.long
LOCK = f"""\
aiosqlite==0.22.1 \\
    --hash=sha256:{"a" * 64}
jinja2==3.1.6 \\
    --hash=sha256:{"b" * 64}
winloop==0.5.0 ; sys_platform == 'win32' \\
    --hash=sha256:{"c" * 64}
"""
HOLE = {"id": "GHSA-xxxx", "aliases": ["CVE-2099-1"], "summary": "a hole", "affected": [
    {"package": {"name": "jinja2", "ecosystem": "PyPI"}, "ranges": [
        {"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "3.1.7"}]}]}]}  # fmt: skip


class VulnerabilityFeed:
    """A fake OSV: vulnerabilities by package; packages in ``broken`` get an error."""

    def __init__(self) -> None:
        self.holes: dict[str, list[object]] = {}
        self.broken: set[str] = set()
        self.asked: list[str] = []

    async def answer(self, request: web.Request) -> web.Response:
        """Answer a query about a package version."""
        name = json.loads(await request.read())["package"]["name"]
        self.asked.append(name)
        if name in self.broken:
            raise web.HTTPServiceUnavailable
        return web.json_response({"vulns": self.holes[name]} if name in self.holes else {})


@pytest.fixture
def feed() -> VulnerabilityFeed:
    """Return a feed without vulnerabilities."""
    return VulnerabilityFeed()


@pytest.fixture
async def url(feed: VulnerabilityFeed) -> AsyncIterator[str]:
    """Yield the URL of the feed."""
    app = web.Application()
    app.router.add_post("/v1/query", feed.answer)
    async with TestServer(app) as server:
        yield str(server.make_url("/v1/query"))


async def audit(folder: Path, url: str, *options: str) -> tuple[int, str]:
    """Return status and output of an audit of a small lock file."""
    lock = folder / "requirements.txt"
    lock.write_text(LOCK)
    command = [ROOT / "deploy" / "audit.py", "--lock", lock, "--parts", lock, "--sbom", folder / "sbom.json"]
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *command,
        "--osv",
        url,
        *options,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await process.communicate()
    assert process.returncode is not None
    return process.returncode, said.decode()


async def test_every_package_is_looked_up_and_the_sbom_written(
    feed: VulnerabilityFeed, url: str, tmp_path: Path
) -> None:
    """Shows that success means a complete lookup, and that the SBOM has all versions and hashes."""
    status, said = await audit(tmp_path, url)
    assert (status, sorted(feed.asked)) == (0, ["aiosqlite", "jinja2"]), said
    assert "2 packages of requirements.txt were looked up: no known holes" in said
    parts = json.loads((tmp_path / "sbom.json").read_text())
    assert parts["bomFormat"] == "CycloneDX"
    assert {(part["name"], part["version"]) for part in parts["components"]} == {
        ("aiosqlite", "0.22.1"), ("jinja2", "3.1.6"), ("winloop", "0.5.0"),
    }  # fmt: skip
    assert "b" * 64 in json.dumps(parts["components"])


async def test_a_known_vulnerability_fails_with_its_fix(
    feed: VulnerabilityFeed, url: str, tmp_path: Path
) -> None:
    """Shows that a vulnerability is reported with the fixed version."""
    feed.holes["jinja2"] = [HOLE]
    status, said = await audit(tmp_path, url)
    assert status == 1, said
    (line,) = (line for line in said.splitlines() if line.startswith("jinja2: "))
    assert "CVE-2099-1" in line
    assert line.endswith("fixed in 3.1.7")


async def test_a_feed_that_fails_for_one_package_is_no_audit(
    feed: VulnerabilityFeed, url: str, tmp_path: Path
) -> None:
    """Shows that a partial result does not pass."""
    feed.broken = {"jinja2"}
    status, said = await audit(tmp_path, url)
    assert status == 2
    assert "CHECKED" in said


async def test_an_unreadable_lock_is_no_network_failure(url: str, tmp_path: Path) -> None:
    """Shows that ``--if-reachable`` tolerates only an unreachable network."""
    status, said = await audit(tmp_path, url, "--if-reachable", "--lock", str(tmp_path / "none.txt"))
    assert status, said


async def test_without_a_network_nothing_was_checked(tmp_path: Path) -> None:
    """Shows that an audit without network access fails, even if pip-audit itself reports success."""
    status, said = await audit(tmp_path, f"http://127.0.0.1:{free_port()}/v1/query")
    assert status == 2
    assert "NOTHING WAS CHECKED: 2 of 2 packages" in said
    (tmp_path / "sbom.json").unlink()
    status, said = await audit(tmp_path, f"http://127.0.0.1:{free_port()}/v1/query", "--if-reachable")
    assert status == 0
    assert "NOTHING WAS CHECKED: 2 of 2 packages" in said
    assert (tmp_path / "sbom.json").exists()
