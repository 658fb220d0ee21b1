"""Client of the running program: drops, live files, questions, memory, pausing."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import time
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import Popen
from typing import Any
from urllib.error import URLError

from harness.processes import command, descendants
from harness.program import Program

READY_SECONDS = 120
_LIVE = """
    SELECT COUNT(*), COALESCE(SUM(reading.pages), 0) FROM publication
    JOIN reading ON reading.id = publication.reading_id WHERE publication.state = 'live'
"""


@dataclass
class Service:
    """``footnote serve`` on a home of its own."""

    program: Program
    process: Popen[bytes]
    channels: dict[str, int] = field(default_factory=dict)

    def drop(self, channel: str, files: Iterable[Path]) -> None:
        """Link PDFs into a channel's folder, so that they are complete from the start."""
        folder = self.program.home / "inbox" / channel
        folder.mkdir(parents=True, exist_ok=True)
        for file in files:
            os.link(file, folder / file.name)

    def live(self, condition: str = "") -> tuple[int, int]:
        """Return the number of (files, pages) that are live."""
        with closing(sqlite3.connect(f"file:{self.program.home / 'footnote.db'}?mode=ro", uri=True)) as sql:
            files, pages = sql.execute(_LIVE + condition).fetchone()
        return files, pages

    def until_live(self, files: int, *, seconds: float, condition: str = "", every: float = 0.1) -> float:
        """Wait until ``files`` files are live; return the seconds that took."""
        started = shown = time.monotonic()
        while (found := self.live(condition))[0] < files:
            if time.monotonic() - started > seconds or self.process.poll() is not None:
                raise RuntimeError(
                    f"{found[0]} of {files} files after {seconds:g} s: {self.program.log[-2000:]}"
                )
            if time.monotonic() - shown > 10:
                shown = time.monotonic()
                print(f"    {found[0]} of {files} files, {found[1]} pages", flush=True)
            time.sleep(every)
        return time.monotonic() - started

    def ask(self, channel: str, question: str) -> dict[str, Any]:
        """Ask one question through the console API."""
        if channel not in self.channels:
            self.channels = {one["name"]: one["id"] for one in self._get("/console/channels")["channels"]}
        body = {"channel": self.channels[channel], "question": question}
        return self._get("/console/ask", json.dumps(body).encode())

    def _get(self, path: str, body: bytes | None = None) -> dict[str, Any]:
        headers = {"Content-Type": "application/json", "X-Footnote-Console": "1"}
        headers |= self.program.console_headers
        request = urllib.request.Request(self.program.url + path, body, headers)
        with urllib.request.urlopen(request, timeout=120) as response:
            answer: dict[str, Any] = json.load(response)
        return answer

    def anonymous_kib(self) -> dict[str, int]:
        """Return the anonymous memory of the service and of its child processes, in KiB."""
        helpers = _helpers(self.process.pid)
        return {"service": _anonymous_kib(self.process.pid), "helpers": sum(map(_anonymous_kib, helpers))}

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Stop all child processes that read while the block runs."""
        helpers = _helpers(self.process.pid)
        _signal(helpers, signal.SIGSTOP)
        try:
            time.sleep(0.3)  # lets results already handed over be stored
            yield
        finally:
            _signal(helpers, signal.SIGCONT)
            time.sleep(0.3)


@contextmanager
def serving(home: Path, **settings: str) -> Iterator[Service]:
    """Yield a ready service with these settings."""
    weaviate = {name: value for name, value in os.environ.items() if name == "WEAVIATE_URL" and value}
    program = Program(home, {"FOOTNOTE_CONSOLE": "true", **weaviate, **settings})
    process = program.start()
    try:
        _await_ready(program, process)
        yield Service(program, process)
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(60)


def _await_ready(program: Program, process: Popen[bytes]) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        with suppress(URLError, OSError), urllib.request.urlopen(f"{program.url}/readyz", timeout=5):
            if program.has_greeted:
                return
        time.sleep(0.1)
    raise RuntimeError(f"serve did not become ready: {program.log}")


def _helpers(pid: int) -> list[int]:
    """Return the PIDs of PDF children and side processes, without a Weaviate server."""
    return [one for one in descendants(pid) if "weaviate-server" not in " ".join(command(one))]


def _signal(processes: Iterable[int], number: int) -> None:
    for process in processes:
        try:
            os.kill(process, number)
        except ProcessLookupError:
            continue


def _anonymous_kib(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next(int(line.split()[1]) for line in lines if line.startswith("Anonymous:"))
