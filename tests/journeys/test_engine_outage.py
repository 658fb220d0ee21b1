"""An engine outage yields "failed, try again", never "not in your documents"."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from engines.weaviate import RealWeaviate
from harness.program import Program
from harness.waiting import until

pytestmark = pytest.mark.engine("weaviate")

QUESTION = "When do backups run?"


async def ready_status(program: Program) -> int:
    """Return the status of ``/readyz``."""
    async with aiohttp.ClientSession() as session, session.get(f"{program.url}/readyz") as response:
        return response.status


async def until_ready(program: Program, status: int) -> None:
    """Wait until ``/readyz`` has this status."""

    async def is_so() -> bool:
        return await ready_status(program) == status

    await until(is_so, log=lambda: program.log)


async def ask(program: Program) -> dict[str, Any]:
    """Return an answer, whatever the exit status."""
    ended = await asyncio.to_thread(program.run, "ask", QUESTION, "--channel", "it", "--json")
    answer: dict[str, Any] = json.loads(ended.stdout)
    return answer


@pytest.mark.long
async def test_a_paused_server_is_reported_as_an_outage(
    program: Program, weaviate: RealWeaviate, sop: Path
) -> None:
    """While it is paused the service is not ready and fails in bounded time; afterwards it answers again."""
    program.environment = {**weaviate.settings, "FOOTNOTE_INDEX_TIMEOUT": "2"}
    async with program.serving():
        program.drop("it", sop)
        await program.until_live("it", 1, "full")
        assert (await ask(program))["state"] == "passages"
        weaviate.pause()
        try:
            await until_ready(program, 503)
            assert (await ask(program))["state"] == "failed"
        finally:
            weaviate.resume()
        await until_ready(program, 200)
        assert (await ask(program))["state"] == "passages"


@pytest.mark.long
async def test_our_own_server_is_restarted_when_it_dies(program: Program, sop: Path) -> None:
    """After ``kill -9`` of the child the log says so, and vectors work again."""
    program.environment = {"WEAVIATE_URL": "embedded"}
    async with program.serving():
        program.drop("it", sop)
        await program.until_live("it", 1, "full")
        child = json.loads((program.home / "weaviate" / "server.json").read_text())["pid"]
        os.kill(child, signal.SIGKILL)
        await until_ready(program, 503)
        await until_ready(program, 200)
        answer = await ask(program)
        assert answer["state"] == "passages"
        assert any(passage["vector"] is not None for passage in answer["passages"])
    assert f"Weaviate (pid {child}) exited unexpectedly" in program.log


def test_a_missing_server_is_named_in_the_error(with_samples: Program) -> None:
    """Also in JSON; no other index is used instead."""
    with_samples.environment = {"WEAVIATE_URL": "http://127.0.0.1:9", "FOOTNOTE_INDEX_TIMEOUT": "2"}
    answered = with_samples.run("ask", QUESTION, "--channel", "it", "--json")
    assert (answered.returncode, json.loads(answered.stdout)["state"]) == (1, "failed")
    ended = with_samples.run("ask", QUESTION, "--channel", "it")
    assert ended.returncode == 1
    assert "http://127.0.0.1:9" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.long
def test_a_home_refuses_another_index(with_samples: Program) -> None:
    """An index without these documents must not answer."""
    with_samples.environment = {"WEAVIATE_URL": "embedded"}
    for _ in range(5):  # on a busy machine our server may exceed a command's start timeout
        ended = with_samples.run("ask", QUESTION, "--channel", "it")
        assert ended.returncode == 1, ended.stdout
        if "set WEAVIATE_URL back" in ended.stderr:
            break
    assert ended.stdout == ""
    assert "set WEAVIATE_URL back" in ended.stderr
