"""Crash points: each is passed by an ordinary ingestion, and crashing there is a real kill -9."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import pytest
from harness.crash_points import VARIABLE, arm, passed
from harness.ingestion_home import Home
from samples.paper import pdf

from storage.crash_points import ANSWER_POINTS, POINTS
from storage.index.base import IndexedChunk
from storage.models import Rung
from storage.settings import StorageSettings, unknown_settings
from storage.sql.tables import PublicationRow

RELIABILITY = Path(__file__).parents[2] / "docs" / "reliability.md"
ARMED = (
    "from harness.crash_points import arm_from_environment\n"
    "from storage.crash_points import reach\n"
    "arm_from_environment()\n"
)


def environment(where: str) -> dict[str, str]:
    """Return the environment of a program that crashes at a point and can import the test modules."""
    return {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1]), VARIABLE: where}


async def test_every_point_is_passed_by_an_ordinary_ingestion(home: Home) -> None:
    """Covers adding, replacing, renaming and deleting a file."""
    passed.clear()
    serving = await home.serve(delete_grace_seconds=0, ask_before_deleting_share=1, layout=True)
    place = home.drop("hr/leave.pdf", pdf("Leave\nEmployees get twenty five days of marzipan leave."))
    home.drop("hr/travel.pdf", pdf("Travel\nEmployees go by lantern train."))
    await home.until_found("hr", "marzipan", "leave.pdf")
    place.write_bytes(pdf("Leave\nEmployees get thirty days of saffron leave."))
    await home.until_found("hr", "saffron", "leave.pdf")
    place = place.rename(place.with_name("days.pdf"))
    await home.until_found("hr", "saffron", "days.pdf")
    await home.until_found("hr", "lantern", "travel.pdf", Rung.FULL)
    place.unlink()

    async def is_gone() -> bool:
        await serving.purge()
        states = {row.state for row in await home.rows(PublicationRow)}
        return passed["after-purge"] > 0 and "retired" not in states and not await home.find("hr", "saffron")

    await home.until(is_gone, seconds=60)
    ghost = IndexedChunk(uuid4(), 0, "marzipan", "marzipan", 1, 1, (), ())
    await home.index.write((await home.channel("hr")).tenant, [ghost])
    await serving.reconcile()
    assert set(POINTS) - passed.keys() == set()


@pytest.mark.parametrize("where", ["after-seal", "after-seal:1", "after-seal:3"])
def test_a_process_is_killed_at_its_crash_point(where: str) -> None:
    """Shows that no handler and no ``finally`` runs, and that the n-th pass can be chosen."""
    program = (
        f"{ARMED}try:\n    for number in range(1, 5):\n"
        "        print(number, flush=True)\n        reach('after-seal')\n"
        "finally:\n    print('cleaned up', flush=True)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment(where),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    assert done.stdout.split() == [str(number) for number in range(1, int(where.partition(":")[2] or 1) + 1)]


def test_a_process_can_be_suspended_at_a_crash_point() -> None:
    """Shows that a hung machine can be simulated as well as a crashed one."""
    program = f"{ARMED}reach('after-seal')\nprint('awake')"
    halted = subprocess.Popen(
        [sys.executable, "-c", program],
        env=environment("~after-seal"),
        stdout=subprocess.PIPE,
        text=True,
    )
    _, status = os.waitpid(halted.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status)
    halted.send_signal(signal.SIGCONT)
    assert halted.communicate(timeout=30) == ("awake\n", None)


@pytest.mark.parametrize("where", ["after-lunch", "~after-lunch", "after-seal:soon", "after-seal:-1"])
def test_an_unknown_crash_point_is_refused(where: str) -> None:
    """Shows that a misspelt name is an error, not a run without a crash."""
    with pytest.raises(ValueError, match="after-adopt"):
        arm(where)


def test_the_product_ignores_the_crash_point_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    program = "from storage.crash_points import reach\nreach('after-seal')\nprint('alive')"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment("after-seal"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "alive\n")
    monkeypatch.setenv(VARIABLE, "after-seal")
    (said,) = unknown_settings([StorageSettings])
    assert VARIABLE in said


def test_every_crash_point_is_documented() -> None:
    """Shows that the page on reliability names every point."""
    page = RELIABILITY.read_text()
    assert [point for point in POINTS + ANSWER_POINTS if f"`{point}`" not in page] == []
