"""Baseline of the bare library: ``rawdict`` of every page of PDFs, and nothing else.

A separate program, because only the sandboxed child may load PyMuPDF. Prints (pages, seconds).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

NICENESS = 10


def start_pass(files: Sequence[Path]) -> subprocess.Popen[str]:
    """Start a bare pass over PDFs in a side process."""
    # Run with -m: as a file it would import tests/storage as storage.
    program = [sys.executable, "-m", "tools.bench.raw_reading"]
    started = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    if started.stdin is None:
        raise RuntimeError("started without its pipe")
    started.stdin.write("\n".join(map(str, files)))
    started.stdin.close()
    return started


def finish_pass(started: subprocess.Popen[str]) -> tuple[int, float]:
    """Return (pages, seconds) of a pass, without start-up."""
    if started.stdout is None or started.wait() != 0:
        raise RuntimeError("the bare pass failed")
    pages, seconds = json.loads(started.stdout.read())
    started.stdout.close()
    return pages, seconds


def raw_seconds(files: Sequence[Path], processes: int) -> float:
    """Return the wall-clock seconds of a bare pass over PDFs, split among ``processes``."""
    shares = [list(files)[number::processes] for number in range(processes)]
    return max(finish_pass(one)[1] for one in [start_pass(share) for share in shares if share])


def main() -> None:
    """Run a pass, at the priority of our own reading."""
    os.nice(NICENESS)
    from storage.pdf.child.mupdf import pymupdf  # noqa: PLC0415 - as our child, and not where passes are started

    files = sys.stdin.read().splitlines()
    flags = pymupdf.TEXT_PRESERVE_WHITESPACE | pymupdf.TEXT_CLIP
    pages, started = 0, time.perf_counter()
    for file in files:
        with pymupdf.open(file) as document:
            for page in document:
                page.get_text("rawdict", flags=flags)
                pages += 1
    print(json.dumps([pages, time.perf_counter() - started]))


if __name__ == "__main__":
    main()
