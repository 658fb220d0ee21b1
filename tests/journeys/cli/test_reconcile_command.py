"""``footnote reconcile`` with a running service, and on a home with losses."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path

import aiohttp
import pytest
from harness.program import SAMPLES, Program
from harness.waiting import BY_COMMAND, until


@pytest.mark.long
async def test_reconcile_reports_its_repairs(program: Program) -> None:
    """A consistent home has no differences; a lost blob is copied from its folder, and its page opens.

    Works with and without a running service. A lost index is rebuilt, and until then questions fail rather
    than find no answer; a PDF without a file is reported.
    """
    program.rung = "quick"
    sample = next(SAMPLES.glob("*.pdf"))
    dropped = program.drop("it", sample)
    question = ("ask", "What is the effective date?", "--channel", "it", "--json")
    async with program.serving(), aiohttp.ClientSession() as session:
        await program.until_live("it", 1)
        assert program.run("reconcile").stdout == "No differences.\n"
        answer = await asyncio.to_thread(program.ask, "What is the effective date?", "it")
        page = (answer["citations"] or [answer["nearest"]])[0]
        (blob,) = blobs_of(program)
        blob.unlink()
        mended = await asyncio.to_thread(program.run, "reconcile", "--json")
        assert (mended.returncode, blob.exists()) == (0, True), mended.stderr
        told = json.loads(mended.stdout)
        assert (told["copied"], told["still_lost"], "1 of 1" in mended.stderr) == (1, 0, True)
        async with session.get(f"{page['url']}/p/{page['page']}@1x") as drawn:
            assert (drawn.status, drawn.content_type) == (200, "image/png")
        async with session.get(f"{page['url']}/file.pdf") as file:
            assert await file.read() == sample.read_bytes()
    blob.unlink()
    mended = program.run("reconcile")
    assert (mended.returncode, blob.exists()) == (0, True), mended.stderr
    assert mended.stdout.startswith("1 lost PDFs were copied again")
    shutil.rmtree(program.home / "index")
    mended = program.run("reconcile")
    assert (mended.returncode, mended.stdout[:14]) == (0, "1 publications")
    assert program.run(*question).returncode == 1, "it must not say that it is not in the documents"

    async def is_found() -> bool:
        answer = await asyncio.to_thread(program.run, *question)
        return answer.returncode == 0 and bool(json.loads(answer.stdout)["passages"])

    async with program.serving():
        await until(is_found, every=BY_COMMAND, log=lambda: program.log)
        assert program.run("reconcile").stdout == "No differences.\n"
    blob.unlink()
    dropped.unlink()
    for _ in range(2):
        mended = program.run("reconcile")
        assert (mended.returncode, blob.exists()) == (1, False)
        assert mended.stdout.startswith("1 lost PDFs are not in their folder either")


def blobs_of(program: Program) -> list[Path]:
    return [path for path in (program.home / "blobs").glob("??/*") if path.is_file()]
