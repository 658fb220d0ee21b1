"""``make demo`` as it is typed: the samples through the watched folder, twice."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

from engines.support.ports import free_port
from harness.waiting import PATIENCE

ROOT = Path(__file__).parents[3]


def test_make_demo_answers_says_three_things_and_ends_by_ctrl_c(tmp_path: Path) -> None:
    """The first run copies and reads, the second finds everything read; both end cleanly."""
    docs = tmp_path / "docs"
    docs.mkdir()
    for sample in (ROOT / "deploy" / "samples").glob("*.pdf"):
        (docs / sample.name).write_bytes(sample.read_bytes())
    first, second = run_demo(docs, tmp_path / "first"), run_demo(docs, tmp_path / "second")
    assert "Copying 2 PDFs" in first
    assert "Copying" not in second
    for said in (first, second):
        assert [word for word in ("Ask ", "Drop PDFs ", "Engines ") if f"\n{word}" not in f"\n{said}"] == []
        assert f"export FOOTNOTE_HOME={home_in(said)}\n" in said
    assert "outcome=new" in first
    assert "outcome=new" not in second
    assert "Traceback" not in first + second
    shutil.rmtree(home_in(first))


def run_demo(docs: Path, log: Path) -> str:
    """Start it, wait until everything answers with vectors, press Ctrl-C, and give what it wrote."""
    command = ["make", "--no-print-directory", "demo", f"DOCS={docs}", f"PORT={free_port()}"]
    with log.open("wb") as output:
        demo = subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=output, start_new_session=True)
    try:
        wait_for(log, "full: 2 of 2 files", demo)
        signal_all(demo, signal.SIGINT)
        # make itself ends by the signal, once what it started has ended.
        assert demo.wait(60) in (0, -signal.SIGINT), log.read_text()
    finally:
        if demo.poll() is None:
            signal_all(demo, signal.SIGKILL)
    return log.read_text()


def home_in(said: str) -> Path:
    """The home of a demo, from the line that says where to drop PDFs."""
    (inbox,) = re.findall(r"(?m)^Drop PDFs  (.*)/inbox/demo/$", said)
    return Path(inbox)


def wait_for(log: Path, words: str, demo: subprocess.Popen[bytes]) -> None:
    """Wait until the words were written."""
    end = time.monotonic() + PATIENCE
    while words not in log.read_text():
        assert demo.poll() is None, log.read_text()
        assert time.monotonic() < end, log.read_text()
        time.sleep(0.1)


def signal_all(demo: subprocess.Popen[bytes], sent: signal.Signals) -> None:
    """What a terminal does: the signal goes to make and to all that it started."""
    subprocess.run(["kill", f"-{sent.value}", "--", f"-{demo.pid}"], check=True)
