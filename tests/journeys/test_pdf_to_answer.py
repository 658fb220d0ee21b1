"""From a dropped PDF to a signed page link, without fakes."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import time
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from harness.forks import Fork
from harness.processes import descendants, is_running
from harness.program import SAMPLES, Program
from harness.waiting import BY_COMMAND, until
from samples.illustrated import illustrated_pdf
from samples.locks import lock
from samples.paper import pdf

CONSOLE_NAMES = {"id", "question", "channel", "state", "text", "citations", "figures"} | {
    "passages",
    "nearest",
    "unread",
    "milliseconds",
}
PASSWORD = "marmalade-4711"
# Question about a report -> page and caption of each expected figure.
FIGURES = {
    "Show me the emissions chart": [(1, "Figure 1. Emissions of carbon dioxide by year")],
    "show me figure 2": [(2, "Figure 2. Water use by month")],
    "show the chart with Oslo and Bergen": [(3, "Figure 3. Rubbish by site")],
    "Show me the pie chart of emissions": [],
    "How many days do employees have to report an incident?": [],
    "Who collects the glass?": [],
}


@pytest.mark.timeout(900)
async def test_a_dropped_pdf_is_answered_from_and_ctrl_c_is_clean(
    any_program: Program, sop: Path, tmp_path: Path
) -> None:
    """Drop, wait, ask, follow the link; first by words, then with vectors, layout, figures and a password.

    An unanswerable question gets no guess and no citation, only a link to the closest page. Ctrl-C during a
    further reading ends all children, Weaviate and the PDF process among them.
    """
    program = any_program
    program.environment |= {"FOOTNOTE_LAYOUT": "true", "IT_PDF_PASSWORD": PASSWORD}
    locked = drop_locked(program, sop, tmp_path / "vault")
    async with program.serving() as process:
        program.drop("it", sop)
        program.drop("green", illustrated_pdf(tmp_path))
        for rung in ("quick", "full"):
            await program.until_live("it", 1, rung)
            answer = await asyncio.to_thread(program.ask, "When do backups run?", "it")
            check_answer(answer, sop.name)
            await check_link(answer["citations"][0]["url"], sop.read_bytes())
        assert any(passage["vector"] is not None for passage in answer["passages"])
        answer = await asyncio.to_thread(program.ask, "Who won the chess world championship?", "it")
        assert (answer["state"], answer["citations"]) == ("not_found", [])
        assert answer["nearest"] is None
        answer = await asyncio.to_thread(program.ask, "What does a backup tape cost?", "it")
        assert (answer["state"], answer["nearest"]["file"]) == ("not_found", sop.name)
        await check_locked(program, locked)
        await check_figures(program, tmp_path / "questions.jsonl")
        program.drop("it", sop.read_bytes() + b"\n", "another.pdf")
        await program.until_live("it", 2)
        family = list(descendants(process.pid))
        assert family
    assert not [one for one in family if is_running(one)]
    kept = [path for path in program.home.rglob("*") if path.is_file()]
    assert not [path for path in kept if PASSWORD.encode() in path.read_bytes()]
    assert "IT_PDF_PASSWORD" not in program.log


def drop_locked(program: Program, sop: Path, folder: Path) -> bytes:
    """Encrypt the PDF, and map a folder with it to a channel; return its bytes."""
    data = lock(sop.read_bytes(), PASSWORD)
    folder.mkdir()
    (folder / sop.name).write_bytes(data)
    program.home.mkdir()
    (program.home / "folders.toml").write_text(
        f'[[folder]]\nlocation = "{folder}"\nchannel = "vault"\npasswords = ["env:IT_PDF_PASSWORD"]\n'
    )
    return data


async def check_locked(program: Program, data: bytes) -> None:
    """Check that reading and viewing find the password; the downloaded file is still locked."""
    await program.until_live("vault", 1)
    answer = await asyncio.to_thread(program.ask, "When do backups run?", "vault")
    citation = answer["citations"][0]
    assert "2:00 AM" in citation["quote"]
    async with aiohttp.ClientSession() as session:
        async with session.get(f"{citation['url']}/p/{citation['page']}@1x") as page:
            assert (page.status, page.content_type) == (200, "image/png")
            assert len(await page.read()) > 10_000
        async with session.get(f"{citation['url']}/file.pdf") as file:
            assert await file.read() == data


async def check_figures(program: Program, file: Path) -> None:
    """Check that captions, numbers and pixels find only their own figure, and prose finds none."""
    await program.until_live("green", 1, "full")
    file.write_text("".join(json.dumps({"question": one, "channel": "green"}) + "\n" for one in FIGURES))
    asked = await asyncio.to_thread(program.run, "ask", "--questions", str(file), "--json")
    found = {one["question"]: one for one in map(json.loads, asked.stdout.splitlines())}
    captions = {
        question: [(one["page"], one["caption"]) for one in answer["figures"]]
        for question, answer in found.items()
    }
    assert captions == FIGURES
    states = [found[question]["state"] for question in FIGURES]
    assert states == ["passages", "passages", "passages", "not_found", "passages", "passages"]
    emissions, *_, incident, _ = (found[question] for question in FIGURES)
    assert [one["quote"] for one in emissions["citations"]] == [emissions["figures"][0]["caption"]]
    assert not any("Emissions of carbon" in one["quote"] for one in incident["citations"])
    async with aiohttp.ClientSession() as session, session.get(emissions["figures"][0]["url"]) as page:
        assert (await page.text()).count('class="mark"') == 1


def check_answer(answer: dict[str, Any], file: str) -> None:
    """Check the golden answer and the exact JSON keys."""
    assert set(answer) == CONSOLE_NAMES
    assert answer["state"] == "passages"
    citation = answer["citations"][0]
    assert set(citation) == {"number", "kind", "title", "file", "page", "section", "quote", "boxes", "url"}
    assert (citation["number"], citation["page"], citation["file"]) == (1, 1, file)
    assert "2:00 AM" in citation["quote"]
    assert "[1]" in answer["text"]
    assert all(0 <= edge <= 1 for box in citation["boxes"] for edge in box)
    assert citation["boxes"]


async def check_link(url: str, original: bytes) -> None:
    """Check the viewer with the marked quote, the page image, and the original PDF."""
    async with aiohttp.ClientSession() as session:
        async with session.get(url) as page:
            text = await page.text()
            assert page.status == 200
            assert "2:00 AM" in text
        async with session.get(f"{url}/file.pdf") as file:
            assert (file.status, file.content_type) == (200, "application/pdf")
            assert await file.read() == original
        async with session.get(url[:-1] + ("A" if url[-1] != "A" else "B")) as forged:
            assert forged.status == 404


@pytest.mark.long
async def test_a_home_survives_a_kill_a_new_version_and_a_deletion(program: Program, sop: Path) -> None:
    """The process group is killed while reading; the next start completes it.

    A new version replaces the document, and the old link still opens the old page. The words of a deleted
    file are gone, and its link answers 410. A further start reads no file again.
    """
    program.rung = "quick"
    program.environment["FOOTNOTE_LEASE_SECONDS"] = "5"
    other = next(SAMPLES.glob("SOP-HR-02*.pdf"))
    place = program.drop("it", sop)
    quota = program.drop("it", pdf("The quota is 12 crates a day."), "quota.pdf")
    program.drop("it", pdf("The depot closes at noon."), "depot.pdf")
    process = program.start()
    await asyncio.to_thread(kill_once_it_reads, program, process)
    async with program.serving(), aiohttp.ClientSession() as session:
        await program.until_live("it", 3)
        old = await asyncio.to_thread(program.ask, "When do backups run?", "it")
        assert old["state"] == "passages"
        counted = await asyncio.to_thread(program.ask, "What is the quota?", "it")
        assert counted["citations"][0]["file"] == quota.name
        before = document(program, sop.name)
        place.write_bytes(other.read_bytes())
        quota.unlink()
        after = await until_changed(program, before)
        assert (after["document"], after["state"]) == (before["document"], "live")
        answer = await asyncio.to_thread(program.ask, "When do backups run?", "it")
        assert all("2:00 AM" not in citation["quote"] for citation in answer["citations"])
        async with session.get(old["citations"][0]["url"]) as page:
            assert page.status == 200
            assert "2:00 AM" in await page.text()
        gone = counted["citations"][0]["url"]
        await until(lambda: has_status(session, gone, 410), log=lambda: program.log)
        again = await asyncio.to_thread(program.ask, "What is the quota?", "it")
        assert not any(passage["file"] == quota.name for passage in again["passages"])
    first, published = program.documents("it"), program.log.count("outcome=live")
    readings = set((program.home / "readings").rglob("*"))
    async with program.serving():
        program.drop("news", sop)
        await program.until_live("news", 1)  # each folder was scanned by then
        assert program.documents("it") == first
    assert program.log.count("outcome=live") == published + 1
    assert readings <= set((program.home / "readings").rglob("*"))


def document(program: Program, file: str) -> dict[str, Any]:
    """Return the channel's entry of a file."""
    (found,) = [one for one in program.documents("it") if one["file"] == file]
    return found


async def has_status(session: aiohttp.ClientSession, url: str, status: int) -> bool:
    """True if a link answers with this status."""
    async with session.get(url) as page:
        return page.status == status


async def until_changed(program: Program, before: dict[str, Any]) -> dict[str, Any]:
    """Return the document once another version of it is live."""

    async def changed() -> dict[str, Any] | None:
        now = await asyncio.to_thread(document, program, before["file"])
        return now if now["version"] != before["version"] and now["state"] == "live" else None

    return await until(changed, every=BY_COMMAND, log=lambda: program.log)


def kill_once_it_reads(program: Program, process: Fork) -> None:
    """Kill ``serve`` and its children once it has seen the files."""
    while "quick:" not in program.log:
        assert process.poll() is None, program.log
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def test_a_busy_port_is_reported(program: Program) -> None:
    """The message says what is wrong and what to do, without a traceback."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", program.port))
        taken.listen()
        ended = program.run("serve", "--port", str(program.port))
    assert ended.returncode == 2
    assert f"\nfootnote: port {program.port} is already in use" in ended.stderr
    assert "Traceback" not in ended.stderr
