"""Row ``scan``: a scan of 50,000 unchanged files, and the number of files that it opens."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from statistics import median

from ingestion.sources import open_source
from tools.bench.figures import Figure

FILES, FOLDERS, ROUNDS = 50_000, 100, 5
_opened: list[str] = []


def bench_scan(work: Path) -> list[Figure]:
    """Scan unchanged files repeatedly, compared to a bare walk that stats every file."""
    root = work / "scan"
    _fill(root)
    sys.addaudithook(_note)
    source = open_source(str(root))
    first = source.scan()
    ours, bare = [], []
    for _ in range(ROUNDS):
        _opened.clear()
        started = time.perf_counter()
        again = source.scan()
        is_same = again.files == first.files
        ours.append(time.perf_counter() - started)
        started = time.perf_counter()
        _walk(root)
        bare.append(time.perf_counter() - started)
        if not is_same or len(again.files) != FILES:
            raise RuntimeError("the scan did not see what lies there")
    opened = sum(one.endswith(".pdf") for one in _opened)
    seconds, raw = median(ours), median(bare)
    return [
        Figure("scan of 50,000 unchanged files", "<= 2 s", f"{seconds:.2f} s", f"os.walk + stat {raw:.2f} s",
               f"{seconds / raw:.1f} x", seconds <= 2),
        Figure("files that the scan opened", "0", str(opened), f"{len(_opened)} folders", "", opened == 0),
    ]  # fmt: skip


def _fill(root: Path) -> None:
    for number in range(FOLDERS):
        folder = root / f"{number:03}"
        folder.mkdir(parents=True, exist_ok=True)
        for file in range(FILES // FOLDERS):
            (folder / f"SOP-{number:03}-{file:04}.pdf").touch()


def _note(event: str, arguments: tuple[object, ...]) -> None:
    if event == "open":
        _opened.append(str(arguments[0]))


def _walk(root: Path) -> int:
    return sum(
        os.stat(os.path.join(folder, file)).st_size for folder, _, files in os.walk(root) for file in files
    )
