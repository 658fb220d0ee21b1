"""Sandbox of the PDF process: it has no access, and no process outlives its owner."""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest
from harness.processes import children, is_running, status

from storage.errors import EngineStartError
from storage.pdf import landlock
from storage.pdf.fork_client import ForkServerClient, ForkServerEnded
from storage.pdf.pdf_process import PdfProcess
from storage.settings import StorageSettings

HERE = Path(__file__).parent
PER_LINUX32 = 8
T = TypeVar("T")


@pytest.fixture
def port() -> Iterator[int]:
    """A loopback port with a listener."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def probe(port: int) -> Iterator[Callable[[str], dict[str, Any]]]:
    """A function that runs the isolation probe; any user may access its file."""
    with tempfile.TemporaryDirectory() as folder:
        secret = Path(folder) / "secret"
        secret.write_text("token")
        Path(folder).chmod(0o777)

        def run(how: str) -> dict[str, Any]:
            command = [sys.executable, str(HERE / "probe_isolation.py"), str(port), str(secret), how]
            told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            return dict(json.loads(told))

        yield run


@pytest.mark.parametrize("how", ["as it is", "user", "no namespaces"])
def test_a_confined_job_regains_no_access(how: str, probe: Callable[[str], dict[str, Any]]) -> None:
    """For any user and without namespaces: each attempt works before confinement and fails after it."""
    told = probe(how)
    assert set(told["before"].values()) == {"done"}
    assert set(told["after"].values()) == {"PermissionError"}
    assert told["state"]["calls"] == "listed"
    assert not told["root"]
    assert told["x32"] in (-signal.SIGSYS, 0)
    if how == "no namespaces":
        assert told["state"] == {"network": "filter", "files": _by_landlock_or("filter"), "calls": "listed"}


def test_landlock_alone_refuses_files_ports_signals_and_tracing(
    probe: Callable[[str], dict[str, Any]],
) -> None:
    """Shows that either layer alone is sufficient."""
    told = probe("landlock")
    if told["state"] == {"landlock": "False"}:
        pytest.skip("this kernel has no Landlock")
    refused = {name for name, what in told["after"].items() if what == "PermissionError"}
    newer = [(4, "connect"), (6, "signal the owner")]
    always = {"read a file", "write a file", "list a folder", "trace the owner"}
    assert refused == always | {name for since, name in newer if landlock.version() >= since}


def test_the_seccomp_allowlist_alone_refuses_everything(probe: Callable[[str], dict[str, Any]]) -> None:
    """Shows that a kernel without Landlock and namespaces is covered."""
    told = probe("calls")
    assert set(told["after"].values()) == {"PermissionError"}


def _by_landlock_or(other: str) -> str:
    return "landlock" if landlock.version() else other


@contextmanager
def other_architecture() -> Iterator[None]:
    """Make new processes see a 32-bit machine, for which there is no list of system calls."""
    libc = ctypes.CDLL(None)
    before = libc.personality(PER_LINUX32)
    try:
        yield
    finally:
        libc.personality(before)


async def test_insufficient_confinement_is_warned_of_or_refused(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Warns about the access that is left; refuses to start where confinement is required."""
    process = PdfProcess(StorageSettings())
    required = PdfProcess(StorageSettings(confinement="required"))
    with other_architecture():
        await process.start()
        said = process.confinement_gaps()
        with pytest.raises(EngineStartError, match=f"FOOTNOTE_CONFINEMENT=required, and {said}"):
            await required.start()
    assert required.pid is None
    await process.aclose()
    await required.aclose()
    assert said.startswith("the PDF sandbox is incomplete: it still has ")
    assert said.endswith("every system call")
    assert said in caplog.text


@pytest.mark.parametrize("kind", ["text", "html"])
async def test_the_running_program_has_no_network_and_no_privileges(kind: str) -> None:
    """Shows that the program that is given PDFs or web pages is confined before its first job."""
    program = await ForkServerClient.start(kind)
    try:
        told, own = program.isolation, Path(f"/proc/{program.pid}")
        ours, theirs = status("self"), status(program.pid)
        if told["network"] == "namespace":
            assert (own / "ns/net").stat().st_ino != Path("/proc/self/ns/net").stat().st_ino
        assert told["calls"] == "listed"
        assert int(theirs["Seccomp_filters"]) > int(ours["Seccomp_filters"])
        if told["files"] == "none":
            assert os.listdir(own / "root") == []
        assert theirs["NoNewPrivs"] == "1"
        assert int(theirs["CapEff"], 16) == 0
        assert "0" not in theirs["Uid"].split()
    finally:
        await program.aclose()


async def test_one_program_without_our_secrets_is_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """None of our environment reaches the program that opens untrusted files.

    It is started once, however often requested, has one thread, and ends on closing.
    """
    monkeypatch.setenv("SLACK_BOT_TOKEN", "xoxb-canary")
    process = PdfProcess(StorageSettings())
    await asyncio.gather(process.start(), process.start())
    pid = process.pid
    try:
        await process.start()
        assert process.pid == pid
        own = Path(f"/proc/{process.pid}")
        assert "Threads:\t1\n" in (own / "status").read_text()
        if os.access(own / "environ", os.R_OK) and os.geteuid() == 0:
            environment = (own / "environ").read_bytes()
            assert b"xoxb-canary" not in environment
            assert {name.split(b"=")[0] for name in environment.split(b"\0") if name} == {
                b"PATH", b"LANG", b"OPENBLAS_NUM_THREADS", b"OMP_NUM_THREADS", b"ORT_DISABLE_TELEMETRY",
            }  # fmt: skip
    finally:
        await process.aclose()
    await _gone(pid)


async def test_a_child_dies_with_its_parent_and_the_file_is_retried(
    pdfs: Path,
) -> None:
    """A parent killed in the middle of a file is restarted and the file retried.

    See ``test_hostile_pdfs`` for how such a reading ends.
    """
    process = PdfProcess(StorageSettings())
    await process.start()
    reading = asyncio.create_task(process.read(pdfs / "forms.pdf"))
    first = process.pid
    child = await _child_of(first)
    os.kill(first, signal.SIGKILL)
    await _gone(child)
    await _until(lambda: process.pid not in (None, first))
    await _child_of(process.pid)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert (await process.read(pdfs / "plain.pdf")).pages
    await process.aclose()


async def test_a_cancelled_reading_is_stopped(process: PdfProcess, pdfs: Path) -> None:
    """Cancelling ends the child at once, not at its time limit; it has an additional seccomp filter."""
    await _until(lambda: not children(process.pid))  # left by other tests
    reading = asyncio.create_task(process.read(pdfs / "forms.pdf"))
    child = await _child_of(process.pid)
    filters = int(status(process.pid)["Seccomp_filters"])
    await _until(lambda: int(status(child)["Seccomp_filters"]) == filters + 1)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    await _gone(child)


async def test_no_process_outlives_a_killed_owner(pdfs: Path) -> None:
    """``kill -9`` of the service ends the parent program and its children."""
    command = [sys.executable, str(HERE / "own_and_hang.py"), str(pdfs / "forms.pdf")]
    owner = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
    parent = int(await owner.stdout.readline())
    child = await _child_of(parent)
    owner.kill()
    await owner.communicate()
    await _gone(parent)
    await _gone(child)


async def test_a_job_for_an_exited_program_leaks_no_descriptor(pdfs: Path) -> None:
    """Neither end of the result pipe stays open when the job cannot be sent."""
    parent = await ForkServerClient.start("text")
    with (pdfs / "plain.pdf").open("rb") as source:
        os.kill(parent.pid, signal.SIGKILL)
        while is_running(parent.pid):  # without yielding to the loop, which would notice
            time.sleep(0.01)  # noqa: ASYNC251
        before = os.listdir("/proc/self/fd")
        with pytest.raises(ForkServerEnded):
            await parent.run({"do": "read", "seconds": 5}, source.fileno())
        after = os.listdir("/proc/self/fd")
    await parent.aclose()
    assert len(after) <= len(before)


async def test_a_page_is_rendered_while_files_are_read(process: PdfProcess, pdfs: Path) -> None:
    """The viewer does not queue behind readings that occupy every reader."""
    readings = [asyncio.create_task(process.read(pdfs / "forms.pdf")) for _ in range(2)]
    await _child_of(process.pid)
    await process.render(pdfs / "plain.pdf", 1, 72)
    assert not all(reading.done() for reading in readings)
    for reading in readings:
        reading.cancel()
    await asyncio.gather(*readings, return_exceptions=True)


async def _child_of(parent: int | None) -> int:
    """Return the first child of a program, once there is one."""
    return (await _until(lambda: children(parent)))[0]


async def _gone(pid: int | None) -> None:
    """Wait until a process has ended or is a zombie."""
    await _until(lambda: not is_running(pid))


async def _until(look: Callable[[], T]) -> T:
    """Poll until `look` returns something true; the kernel sends no notification for these."""
    for _ in range(1000):
        if seen := look():
            return seen
        await asyncio.sleep(0.02)
    raise TimeoutError("it did not happen")
