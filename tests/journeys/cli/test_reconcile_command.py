"""``footnote reconcile``, beside a running service and on a home that lost something."""

from __future__ import annotations

import asyncio
import json
import shutil

from harness.program import SAMPLES, Program
from harness.waiting import BY_COMMAND, until


async def test_an_admin_sees_what_was_mended(program: Program) -> None:
    """Shows that a sound home has no difference, and that a lost index comes back by itself,
    and until then is never taken for documents without an answer."""
    sample = next(SAMPLES.glob("*.pdf"))
    program.drop("it", sample)
    async with program.serving():
        await program.until_live("it", 1, "full")
        assert program.run("reconcile").stdout == "Nothing differs.\n"
    shutil.rmtree(program.home / "index")
    mended = program.run("reconcile")
    assert (mended.returncode, mended.stdout[:14]) == (0, "1 publications")
    question = ("ask", "How long is a password?", "--channel", "it", "--json")
    assert program.run(*question).returncode == 1, "it must not say that it is not in the documents"

    async def is_found() -> bool:
        answer = await asyncio.to_thread(program.run, *question)
        return answer.returncode == 0 and bool(json.loads(answer.stdout)["passages"])

    async with program.serving():
        await until(is_found, every=BY_COMMAND, log=lambda: program.log)
        assert program.run("reconcile").stdout == "Nothing differs.\n"
