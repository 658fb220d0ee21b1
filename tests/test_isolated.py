"""Isolation of test runs: no server and no old folder is left, however a run ends."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from harness.processes import command, descendants, is_running
from harness.waiting import PATIENCE, until
from sources import ROOT

ISOLATED = (sys.executable, str(ROOT / "tests" / "isolated.py"))
PYTEST = (sys.executable, "-m", "pytest", "-s", "-c", os.devnull, "-p", "no:cacheprovider")
# A server in its own session, like engines.
SERVING = ("sh", "-c", "setsid sleep 600 & wait")
# A user namespace whose limit refuses what a strict container refuses.
STRICT = (
    *("unshare", "--user", "--map-root-user", "sh", "-c"),
    *('echo 0 >/proc/sys/user/max_net_namespaces && exec "$@"', "sh"),
)
WITH_AND_WITHOUT_NAMESPACES = pytest.mark.parametrize(
    "strict", [(), pytest.param(STRICT, marks=pytest.mark.engine("root"))], ids=["namespaces", "none"]
)
ENGINES_TEST = """
import time

def test_engines(postgres, weaviate):
    time.sleep(600)
"""
SERVER_TEST = """
import subprocess, time

def test_server():
    subprocess.Popen(["sleep", "600"], start_new_session=True)
    time.sleep(600)
"""


@contextmanager
def running(words: Sequence[str], folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command in its own session, like a terminal; its output goes to ``folder/output``."""
    changes = {
        "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}",
        "TMPDIR": str(folder),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen(
            ["env", "--default-signal=INT", *words],
            env=os.environ | changes,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


async def until_running(process: subprocess.Popen[bytes], *patterns: str) -> list[int]:
    """Wait until each pattern matches a command line below a process; return the process ids."""

    async def look() -> list[int] | None:
        assert process.poll() is None, "it has ended"
        lines = {pid: " ".join(command(pid)) for pid in descendants(process.pid)}
        found = [[pid for pid, line in lines.items() if re.match(pattern, line)] for pattern in patterns]
        return [pids[0] for pids in found] if all(found) else None

    return await until(look)


async def until_gone(pids: Sequence[int]) -> None:
    """Wait until none of the processes runs."""

    async def look() -> bool:
        return not any(map(is_running, pids))

    await until(look)


@pytest.mark.engine("postgres")
@pytest.mark.engine("weaviate")
async def test_engines_end_with_pytest_that_is_killed(tmp_path: Path) -> None:
    """Killing pytest with SIGKILL leaves neither PostgreSQL nor Weaviate."""
    (tmp_path / "test_engines_hang.py").write_text(ENGINES_TEST)
    tests = (*PYTEST, "-p", "engines.postgres", "-p", "engines.weaviate", str(tmp_path))
    with running((*ISOLATED, *tests), tmp_path) as process:
        servers = await until_running(process, r"\S+/postgres -D", r"\S+/weaviate-server")
        (pytests,) = await until_running(process, r"\S+ -m pytest")
        os.kill(pytests, signal.SIGKILL)
        assert process.wait(PATIENCE) == 128 + signal.SIGKILL
    await until_gone(servers)


async def test_interrupted_pytest_prints_its_summary(tmp_path: Path) -> None:
    """Ctrl-C is handled by pytest only, and its server ends with it."""
    (tmp_path / "test_server_hangs.py").write_text(SERVER_TEST)
    with running((*ISOLATED, *PYTEST, str(tmp_path)), tmp_path) as process:
        servers = await until_running(process, "sleep 600")
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(PATIENCE) == pytest.ExitCode.INTERRUPTED
    await until_gone(servers)
    assert "no tests ran in" in (tmp_path / "output").read_text()


@WITH_AND_WITHOUT_NAMESPACES
async def test_servers_end_with_a_killed_command(tmp_path: Path, strict: Sequence[str]) -> None:
    """SIGKILL of the command, with and without namespaces."""
    with running((*strict, *ISOLATED, *SERVING), tmp_path) as process:
        servers = await until_running(process, "sleep 600")
        (shell,) = await until_running(process, "sh -c setsid")
        os.kill(shell, signal.SIGKILL)
        assert process.wait(PATIENCE) == 128 + signal.SIGKILL
    await until_gone(servers)


@WITH_AND_WITHOUT_NAMESPACES
async def test_servers_end_with_a_killed_parent(tmp_path: Path, strict: Sequence[str]) -> None:
    """SIGKILL of the parent that started the run, such as ``make``."""
    parent = ("sh", "-c", '"$@"; exit', "sh")
    with running((*parent, *strict, *ISOLATED, *SERVING), tmp_path) as process:
        servers = await until_running(process, "sleep 600")
        process.kill()
    await until_gone(servers)


@pytest.mark.engine("root")
async def test_the_next_run_removes_leftovers(tmp_path: Path) -> None:
    """Folders and processes of a killed run are removed by the next; those of a running one stay."""
    with running((*STRICT, *ISOLATED, *SERVING), tmp_path) as killed:
        servers = await until_running(killed, "sleep 600")
        killed.kill()  # without namespaces no other process can end its server
        killed.wait()
        assert all(map(is_running, servers))
    (left,) = tmp_path.glob("footnote-tests-*/")
    with running((*ISOLATED, *SERVING), tmp_path) as going_on:
        kept = await until_running(going_on, "sleep 600")
        await until_gone(servers)
        (folder,) = tmp_path.glob("footnote-tests-*/")
        assert folder != left
        with running((*ISOLATED, "true"), tmp_path) as other:
            assert other.wait(PATIENCE) == 0
        assert folder.exists()
        assert all(map(is_running, kept))
