"""A program uses a running service with a token made by the command line."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from harness.program import Program
from harness.waiting import until
from samples.paper import pdf

QUESTION = "When do backups run?"
SCHEMATHESIS = Path(sys.executable).with_name("schemathesis")


def client_of(program: Program, token: str) -> aiohttp.ClientSession:
    """Return a client of the API with a token."""
    return aiohttp.ClientSession(f"{program.url}/api/v1/", headers={"Authorization": f"Bearer {token}"})


async def test_a_program_asks_uploads_and_judges(with_samples: Program) -> None:
    """Follow the link, stream, upload a PDF and find it, give feedback; the record counts like others."""
    program = with_samples
    async with program.serving():
        token = program.new_token("--channel", "it")
        async with client_of(program, token) as client:
            answer = await asked(client, QUESTION)
            (source, *_) = answer["citations"]
            assert (answer["state"], source["page"], "2:00 AM" in source["quote"]) == ("passages", 1, True)
            async with client.get(source["url"]) as page:
                assert (page.status, 'class="mark"' in await page.text()) == (200, True)
            async with client.get(f"citations/{source['id']}/picture") as picture:
                assert (picture.status, picture.content_type) == (200, "image/png")
            await check_stream(client)
            async with client.post("search", json={"query": "backups", "limit": 3}) as found:
                passages = (await found.json())["passages"]
            assert {one["page"] for one in passages} <= {1, 2}
            assert all(one["quote"] and "/v/" in one["url"] for one in passages)
            await check_upload(program, client)
            await until(lambda: is_judged(client, answer["id"]))
            await check_revocation(program, client)
        records = program.run("records", answer["id"], "--channel", "it", "--json")
        assert json.loads(records.stdout)["question"] == QUESTION
        quality = json.loads(program.run("quality", "--channel", "it", "--json").stdout)
        assert quality["questions"] >= 1
        audit = [json.loads(line) for line in program.run("audit", "--json").stdout.splitlines()]
        assert [(one["actor"], one["action"]) for one in audit] == [
            ("local", "create token"),
            ("api:token:1", "upload"),
            ("api:token:1", "remove upload"),
            ("local", "revoke token"),
            ("local", "revoke token"),
        ]
        assert token not in program.log


async def asked(client: aiohttp.ClientSession, question: str) -> dict[str, Any]:
    """Ask, and return the answer."""
    async with client.post("ask", json={"question": question}) as response:
        assert response.status == 200, await response.text()
        answer: dict[str, Any] = await response.json()
        return answer


async def check_stream(client: aiohttp.ClientSession) -> None:
    """Check that a stream's last event is the whole answer."""
    headers = {"Accept": "text/event-stream"}
    async with client.post("ask", json={"question": QUESTION}, headers=headers) as response:
        assert response.content_type == "text/event-stream"
        event, data = (await response.text()).strip().split("\n\n")[-1].split("\n")
    assert event == "event: answer"
    assert json.loads(data.removeprefix("data: "))["state"] == "passages"


async def check_upload(program: Program, client: aiohttp.ClientSession) -> None:
    """Upload a PDF, wait until it is live, ask for it, and delete it."""
    form = aiohttp.FormData()
    form.add_field("file", pdf("The marmalade budget is 4711 euros per year."), filename="budget.pdf")
    async with client.post("documents", data=form) as response:
        assert (response.status, (await response.json())["file"]) == (202, "uploads/budget.pdf")

    async def uploaded() -> dict[str, Any] | None:
        async with client.get("documents") as listed:
            documents = (await listed.json())["documents"]
        return next((one for one in documents if one["file"] == "uploads/budget.pdf"), None)

    async def is_live() -> bool:
        return ((await uploaded()) or {}).get("state") == "live"

    await until(is_live)
    answer = await asked(client, "How high is the marmalade budget?")
    assert [one["file"] for one in answer["citations"]] == ["uploads/budget.pdf"]
    document = await uploaded()
    assert document is not None
    async with client.delete(f"documents/{document['id']}") as response:
        assert response.status == 204
    assert await uploaded() is None
    assert not (program.home / "inbox" / "it" / "uploads" / "budget.pdf").exists()


async def check_revocation(program: Program, client: aiohttp.ClientSession) -> None:
    """Revoke the only token by the command: from then on, the API is off."""
    listed = [json.loads(line) for line in program.run("tokens", "list", "--json").stdout.splitlines()]
    assert [(one["id"], one["name"], one["channel"]) for one in listed] == [(1, "test", "it")]
    assert [program.run("tokens", "revoke", "1").returncode for _ in range(2)] == [0, 1]
    async with client.get("documents") as response:
        assert (response.status, response.content_type) == (404, "application/problem+json")


async def is_judged(client: aiohttp.ClientSession, question: str) -> bool:
    """Give feedback; True once the record of the question is stored."""
    said = {"question": question, "verdict": "wrong_page", "comment": "page 2"}
    async with client.post("feedback", json=said) as response:
        return response.status == 204


@pytest.mark.long
@pytest.mark.timeout(900)
async def test_schemathesis_finds_no_fault(with_samples: Program, tmp_path: Path) -> None:
    """Generated requests, valid and not, get only responses that the OpenAPI document describes."""
    program = with_samples
    program.environment |= {"FOOTNOTE_PERSON_QUESTIONS": "0", "FOOTNOTE_CHANNEL_QUESTIONS": "0"}
    async with program.serving():
        token = program.new_token("--channel", "it")
        arguments = [
            f"{program.url}/api/v1/openapi.json",
            f"--header=Authorization: Bearer {token}",
            "--max-examples=20",
            "--seed=1",
            "--no-color",
            # A body may be right by its schema and still be refused: no PDF, a channel that is not there.
            "--exclude-checks=positive_data_acceptance",
        ]
        run = await asyncio.to_thread(
            subprocess.run,
            [SCHEMATHESIS, "run", *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert run.returncode == 0, run.stdout[-8000:] + run.stderr[-2000:]
