"""Terminal behaviour: interrupts and narrow windows."""

from __future__ import annotations

import fcntl
import struct
import termios
from pathlib import Path

import pytest
from harness.program import Program
from harness.terminal import on_terminal
from samples.paper import pdf

# Pages per file, so that reading takes a while.
PAGES = 40


def test_folders_says_that_the_map_is_invalid(program: Program) -> None:
    """Admins see the mistakes, scripts the exit status."""
    program.home.mkdir()
    (program.home / "folders.toml").write_text('[[folder]]\nlocation = "/srv/hr"\nchanel = "hr"\n')
    listed = program.run("folders")
    assert (listed.returncode, "the previous mapping stays active" in listed.stderr) == (2, True), listed
    assert program.run("reconcile").returncode == 0  # creates the database
    assert program.run("folders").returncode == 1


@pytest.fixture
def many(tmp_path: Path) -> Path:
    """A folder that takes a while to read."""
    folder = tmp_path / "many"
    folder.mkdir()
    for number in range(8):
        pages = [f"Rule {number}.{page} holds.\n" + "It holds always.\n" * 40 for page in range(PAGES)]
        (folder / f"{number}.pdf").write_bytes(pdf(*pages))
    return folder


@pytest.mark.long
def test_an_interrupted_ingestion_can_be_resumed(program: Program, many: Path) -> None:
    """Ctrl-C reaches the whole process group, and only a hint on how to resume is printed.

    On 40 columns progress lines are truncated, because a wrapped line could not be rewritten.
    """
    with on_terminal(program, "ingest", str(many), "--channel", "rules") as terminal:
        terminal.until("quick: [1-7] of 8 files")
        terminal.interrupt()
        assert terminal.end() == 130, terminal.shown
        assert "run the same command again to continue" in terminal.shown
        assert "WARNING" not in terminal.shown
    with on_terminal(program, "ingest", str(many), "--channel", "rules") as terminal:
        fcntl.ioctl(terminal.handle, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 40, 0, 0))
        assert terminal.end() == 0, terminal.shown
        assert "quick: 0 of 8 files" not in terminal.shown
        assert "8 of 8 files are searchable" in terminal.shown
    *states, last = terminal.shown.split("\r\n", 1)[0].split("\r\x1b[K")
    assert any(state.endswith("…") for state in states)
    assert max(map(len, states)) < 40
    assert last == f"quick: 8 of 8 files, {8 * PAGES} of {8 * PAGES} pages"
