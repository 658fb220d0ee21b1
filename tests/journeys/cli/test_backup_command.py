"""``footnote backup`` with a running service, and ``restore`` to the other engines and back, over S3."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from engines.s3 import RealS3
from harness.program import SAMPLES, Program

pytestmark = pytest.mark.long

QUESTIONS = ("How often are backups tested?", "Who approves remote work?", "How long are backups kept?")


def answers(program: Program) -> list[tuple[Any, ...]]:
    """Return state and citations of all answers."""
    found = []
    for question in QUESTIONS:
        answer = program.ask(question, "it")
        cited = [(one["file"], one["page"], one["quote"], one["boxes"]) for one in answer["citations"]]
        found.append((answer["state"], cited))
    return found


async def opened(program: Program, link: str) -> tuple[int, str]:
    """Return status and page of a link, requested from this home's own service."""
    url = program.url + link[link.index("/v/") :]
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        return response.status, await response.text()


@pytest.mark.engine("postgres")
@pytest.mark.engine("weaviate")
async def test_a_home_moves_to_the_other_engines_and_back(
    program: Program, tmp_path: Path, postgres_url: str, s3_server: RealS3
) -> None:
    """Shows equal answers, quotes and boxes three times, and that the first home's link opens in each."""
    place = s3_server.place()
    account = {name.upper(): value for name, value in s3_server.settings.items()}
    for sample in sorted(SAMPLES.glob("*.pdf")):
        program.drop("it", sample)
    async with program.serving():
        await program.until_live("it", 2, "full")
        first = answers(program)
        link = program.ask(QUESTIONS[0], "it")["citations"][0]["url"]
        asking = [asyncio.create_task(program.ask_console("it", QUESTIONS[0])) for _ in range(5)]
        backed_up = await asyncio.to_thread(program.run, "backup", str(tmp_path / "1"), "--json")
        assert backed_up.returncode == 0, backed_up.stderr
        assert all("recovery server" in said for said in await asyncio.gather(*asking))
        assert (await opened(program, link))[0] == 200
    digest = json.loads(backed_up.stdout)["digest"]
    moved = Program(tmp_path / "moved", {"DATABASE_URL": postgres_url, "WEAVIATE_URL": "embedded", **account})
    restored = await asyncio.to_thread(
        moved.run, "restore", str(tmp_path / "1"), "--json", "--digest", digest
    )
    assert restored.returncode == 0, restored.stderr
    assert json.loads(restored.stdout)["files"] == json.loads(backed_up.stdout)["files"]
    assert answers(moved) == first
    async with moved.serving():
        assert (await opened(moved, link))[0] == 200
        stored = await asyncio.to_thread(moved.run, "backup", place.location)
        assert stored.returncode == 0, stored.stderr
        again = json.loads((await asyncio.to_thread(moved.run, "backup", place.location, "--json")).stdout)
        assert again["copied"] <= 6, again
    back = Program(tmp_path / "back", account)
    restored = await asyncio.to_thread(back.run, "restore", place.location, "--digest", again["digest"])
    assert restored.returncode == 0, restored.stderr
    assert answers(back) == first
    async with back.serving():
        status, page = await opened(back, link)
    assert (status, "recovery server" in page) == (200, True)
    refused = back.run("restore", place.location)
    assert (refused.returncode, "is not empty" in refused.stderr) == (2, True)
    fresh = Program(tmp_path / "fresh", account)
    unknown = fresh.run("restore", place.location, "--digest", digest)
    assert (unknown.returncode, again["digest"] in unknown.stderr) == (2, True)
    unasked = fresh.run("restore", place.location)
    assert (unasked.returncode, "add --digest" in unasked.stderr) == (1, True)
