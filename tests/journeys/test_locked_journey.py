"""A locked PDF, from its folder to the page that a link opens."""

from __future__ import annotations

import asyncio
from pathlib import Path

import aiohttp
from harness.program import Program
from samples.locks import lock

PASSWORD = "marmalade-4711"


async def test_a_locked_pdf_answers_and_its_page_is_drawn(
    program: Program, sop: Path, tmp_path: Path
) -> None:
    """Shows that reading and viewing find the password, that the link's file is as locked as it was dropped,
    and that neither the home nor a log holds the password.
    """
    place, data = tmp_path / "it", lock(sop.read_bytes(), PASSWORD)
    place.mkdir()
    (place / sop.name).write_bytes(data)
    program.home.mkdir()
    (program.home / "folders.toml").write_text(
        f'[[folder]]\nlocation = "{place}"\nchannel = "it"\npasswords = ["env:IT_PDF_PASSWORD"]\n'
    )
    program.environment["IT_PDF_PASSWORD"] = PASSWORD
    async with program.serving(), aiohttp.ClientSession() as session:
        await program.until_live("it", 1)
        answer = await asyncio.to_thread(program.ask, "When do backups run?", "it")
        citation = answer["citations"][0]
        assert "2:00 AM" in citation["quote"]
        async with session.get(f"{citation['url']}/p/{citation['page']}@1x") as page:
            assert (page.status, page.content_type) == (200, "image/png")
            assert len(await page.read()) > 10_000
        async with session.get(f"{citation['url']}/file.pdf") as file:
            assert await file.read() == data
    kept = [path for path in program.home.rglob("*") if path.is_file()]
    assert not [path for path in kept if PASSWORD.encode() in path.read_bytes()]
    assert "IT_PDF_PASSWORD" not in program.log
