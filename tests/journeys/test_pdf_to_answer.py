"""From a dropped PDF to a signed page, with nothing replaced."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import time
from pathlib import Path
from typing import Any

import aiohttp
from harness.forks import Fork
from harness.processes import descendants, is_running
from harness.program import SAMPLES, Program
from harness.waiting import BY_COMMAND, until

CONSOLE_NAMES = {"id", "question", "channel", "state", "text", "citations", "figures"} | {
    "passages",
    "nearest",
    "unread",
    "milliseconds",
}


async def test_a_dropped_pdf_answers_its_link_opens_the_page_and_ctrl_c_leaves_no_process(
    any_program: Program, sop: Path
) -> None:
    """Drop, wait for words, ask, follow the link; then the same with vectors and, on one index, layout.

    What no document says is not found: no guess, no citation, and the nearest page is named as such.
    Ctrl-C comes when another file has just been read by words: our children, Weaviate and the PDF
    process among them, end with us.
    """
    any_program.environment.setdefault("FOOTNOTE_LAYOUT", str("WEAVIATE_URL" not in any_program.environment))
    async with any_program.serving() as process:
        any_program.drop("it", sop)
        for rung in ("quick", "full"):
            await any_program.until_live("it", 1, rung)
            answer = await asyncio.to_thread(any_program.ask, "When do backups run?", "it")
            check_answer(answer, sop.name)
            await check_link(answer["citations"][0]["url"], sop.read_bytes())
        assert any(passage["vector"] is not None for passage in answer["passages"])
        answer = await asyncio.to_thread(any_program.ask, "Who won the chess world championship?", "it")
        assert (answer["state"], answer["citations"]) == ("not_found", [])
        assert answer["nearest"]["file"] == sop.name
        any_program.drop("it", sop.read_bytes() + b"\n", "another.pdf")
        await any_program.until_live("it", 2)
        family = list(descendants(process.pid))
        assert family
    assert not [one for one in family if is_running(one)]


def check_answer(answer: dict[str, Any], file: str) -> None:
    """The golden case, in the exact shape that other programs read."""
    assert set(answer) == CONSOLE_NAMES
    assert answer["state"] == "grounded"
    citation = answer["citations"][0]
    assert set(citation) == {"number", "kind", "title", "file", "page", "quote", "boxes", "url"}
    assert (citation["number"], citation["page"], citation["file"]) == (1, 1, file)
    assert "2:00 AM" in citation["quote"]
    assert "[1]" in answer["text"]
    assert all(0 <= edge <= 1 for box in citation["boxes"] for edge in box)
    assert citation["boxes"]


async def check_link(url: str, original: bytes) -> None:
    """Our viewer with the quote marked, the page as a picture, and the very PDF that was dropped."""
    async with aiohttp.ClientSession() as session:
        async with session.get(url) as page:
            text = await page.text()
            assert page.status == 200
            assert "2:00 AM" in text
        async with session.get(f"{url}/file.pdf") as pdf:
            assert (pdf.status, pdf.content_type) == (200, "application/pdf")
            assert await pdf.read() == original
        async with session.get(url[:-1] + ("A" if url[-1] != "A" else "B")) as forged:
            assert forged.status == 404


async def test_a_second_start_reads_nothing_again(program: Program) -> None:
    """Everything is live at once, as the same documents."""
    for file in SAMPLES.glob("*.pdf"):
        program.drop("it", file)
    async with program.serving():
        await program.until_live("it", 2, "full")
    first = program.documents("it")
    readings = sorted((program.home / "readings").rglob("*"))
    async with program.serving():
        await asyncio.sleep(3)
        assert program.documents("it") == first
    assert sorted((program.home / "readings").rglob("*")) == readings


async def test_a_replaced_file_answers_with_its_new_words(program: Program, sop: Path) -> None:
    """A new version takes over under the same document; the old link still opens the old page."""
    program.rung = "quick"
    other = next(SAMPLES.glob("SOP-HR-02*.pdf"))
    async with program.serving():
        place = program.drop("it", sop)
        await program.until_live("it", 1)
        old = await asyncio.to_thread(program.ask, "When do backups run?", "it")
        (before,) = program.documents("it")
        place.write_bytes(other.read_bytes())
        after = await until_changed(program, before)
        assert (after["document"], after["state"]) == (before["document"], "live")
        answer = await asyncio.to_thread(program.ask, "When do backups run?", "it")
        assert all("2:00 AM" not in citation["quote"] for citation in answer["citations"])
        async with aiohttp.ClientSession() as session, session.get(old["citations"][0]["url"]) as page:
            assert page.status == 200
            assert "2:00 AM" in await page.text()


async def until_changed(program: Program, before: dict[str, Any]) -> dict[str, Any]:
    """The document once another version of it answers."""

    async def changed() -> dict[str, Any] | None:
        (now,) = await asyncio.to_thread(program.documents, "it")
        return now if now["version"] != before["version"] and now["state"] == "live" else None

    return await until(changed, every=BY_COMMAND, log=lambda: program.log)


async def test_a_deleted_file_is_gone_from_answers_and_its_link_says_so(program: Program) -> None:
    """One of several files is deleted: its words are gone, and its link ends in 410."""
    program.rung = "quick"
    async with program.serving():
        places = [program.drop("it", file) for file in SAMPLES.glob("*.pdf")]
        places.append(program.drop("it", next(SAMPLES.glob("SOP-HR*.pdf")), "copy.pdf"))
        await program.until_live("it", 3)
        answer = await asyncio.to_thread(program.ask, "When do backups run?", "it")
        next(place for place in places if place.name.startswith("SOP-IT")).unlink()
        async with aiohttp.ClientSession() as session:

            async def is_gone() -> bool:
                async with session.get(answer["citations"][0]["url"]) as page:
                    return page.status == 410

            await until(is_gone, log=lambda: program.log)
        again = await asyncio.to_thread(program.ask, "When do backups run?", "it")
    assert not any(passage["file"].startswith("SOP-IT") for passage in again["passages"])


async def test_kill_9_in_the_middle_of_reading_loses_nothing(program: Program) -> None:
    """The whole process group dies while files are being read; the next start finishes them."""
    program.environment["FOOTNOTE_LEASE_SECONDS"] = "5"
    for number in range(3):
        program.drop("it", next(SAMPLES.glob("SOP-IT*.pdf")).read_bytes() + b"\n" * number, f"{number}.pdf")
    process = program.start()
    await asyncio.to_thread(kill_once_it_reads, program, process)
    async with program.serving():
        await program.until_live("it", 3, "full")
        answer = await asyncio.to_thread(program.ask, "When do backups run?", "it")
    assert answer["state"] == "grounded"


def kill_once_it_reads(program: Program, process: Fork) -> None:
    """Kill ``serve`` and its children as soon as it has seen the files."""
    while "quick:" not in program.log:
        assert process.poll() is None, program.log
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def test_a_busy_port_is_a_sentence(program: Program) -> None:
    """No traceback: what is wrong and what to do."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", program.port))
        taken.listen()
        ended = program.run("serve", "--port", str(program.port))
    assert ended.returncode == 2
    assert f"\nfootnote: port {program.port} is in use already" in ended.stderr
    assert "Traceback" not in ended.stderr
