"""``footnote erase`` with and without a running service: no byte of a document or channel is left."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable

import pytest
from fakes.web_house import make_pdf
from harness.program import Program
from harness.waiting import BY_COMMAND, until

pytestmark = pytest.mark.long

CANARY, NEIGHBOUR = "quaggazephyr", "heronmosaic"
SECONDS = 60


def drop(program: Program, word: str) -> None:
    """Drop a PDF with a word in its text and name."""
    pages = [[f"The {word} sleeps in the northern hangar.", "It is fed at nine in the morning."]]
    program.drop("it", make_pdf(pages), f"{word}.pdf")


def places(program: Program, word: str) -> list[str]:
    """Return every file of the home with a word in its content or name."""
    return sorted(
        str(file.relative_to(program.home))
        for file in program.home.rglob("*")
        if file.is_file() and (word in file.name or word.encode() in file.read_bytes())
    )


async def test_erasing_a_document_and_its_channel_leaves_no_byte(
    any_program: Program, record_property: Callable[[str, object], None]
) -> None:
    """Refused while the file exists; 0 bytes within a minute afterwards, and no word in the audit log."""
    program, took = any_program, dict[str, float]()
    drop(program, CANARY)
    drop(program, NEIGHBOUR)
    async with program.serving():
        await program.until_live("it", 2, "full")
        answered = await program.ask_console("it", f"Where does the {CANARY} sleep?")
        assert "hangar" in answered
        await program.ask_console("it", f"Where does the {NEIGHBOUR} sleep?")
        wanted = ("erase", "--document", f"{CANARY}.pdf", "--channel", "it", "--yes", "--json")
        refused = program.run(*wanted)
        assert refused.returncode == 1
        assert "is still in the watched folder" in refused.stderr
        assert any(place.startswith(("index/", "weaviate/")) for place in places(program, CANARY))
        (program.home / "inbox" / "it" / f"{CANARY}.pdf").unlink()
        started = time.monotonic()
        preview = json.loads(program.run(*wanted, "--dry-run").stdout)
        done = program.run(*wanted)
        assert done.returncode == 0, done.stderr
        report = json.loads(done.stdout)
        took["document"] = time.monotonic() - started
        assert (preview["rows"], report["is_done"], report["blobs"]) == (report["rows"], True, 1)
        assert (
            preview["reindexed"] == report["reindexed"] == (1 if "WEAVIATE_URL" in program.environment else 0)
        )
        assert places(program, CANARY) == []

        async def is_indexed_again() -> bool:
            asked = ("ask", f"Where does the {NEIGHBOUR} sleep?", "--channel", "it")
            answer = await asyncio.to_thread(program.run, *asked)
            assert answer.returncode or "hangar" in answer.stdout, "half an index answered"
            return not answer.returncode

        await until(is_indexed_again, every=BY_COMMAND, log=lambda: program.log)
        took["indexed again"] = time.monotonic() - started
        assert CANARY not in json.dumps(program.ask("Where does the heron sleep in the hangar?", "it"))
        assert "hangar" in await program.ask_console("it", f"Where does the {NEIGHBOUR} sleep?")
        audit = json.loads(program.run("audit", "--json").stdout)
        assert (audit["action"], CANARY in json.dumps(audit)) == ("erase", False)

        async def has_nothing_more_to_mend() -> bool:
            mended = await asyncio.to_thread(program.run, "reconcile")
            return mended.stdout == "No differences.\n"

        await until(has_nothing_more_to_mend, every=BY_COMMAND, log=lambda: program.log)
        assert places(program, CANARY) == []
        whole = ("erase", "--channel", "it", "--yes")
        assert "take the folder out of the inbox" in program.run(*whole).stderr
        (program.home / "inbox" / "it" / f"{NEIGHBOUR}.pdf").unlink()
        (program.home / "inbox" / "it").rmdir()
        started = time.monotonic()
        gone = program.run(*whole)
        took["channel"] = time.monotonic() - started
        assert gone.returncode == 0, gone.stderr
        assert places(program, CANARY) + places(program, NEIGHBOUR) == []
        # A new channel of the same name knows nothing of the old one.
        drop(program, "ibexlantern")
        await program.until_live("it", 1, "full")
        assert NEIGHBOUR not in program.ask("Where does the ibexlantern sleep?", "it")["text"]
    assert "Traceback" not in program.log
    record_property("table", "erased beside a service, seconds: " + json.dumps(took))
    assert max(took["document"], took["channel"]) < SECONDS
