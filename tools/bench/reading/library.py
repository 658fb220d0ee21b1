"""Baselines: the bare libraries, each in a separate program."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tools.bench.reading.findings import Area, Findings, Readout
from tools.bench.reading.measures.sentences import PrintedWord, Words

PROGRAM = Path(__file__).parents[1] / "library_program.py"
# File, as in the labels -> (path, pages to read).
Files = Mapping[str, tuple[Path, Sequence[int]]]


def read_with(library: str, files: Files) -> Readout:
    """Return what ``pymupdf`` or ``pymupdf4llm`` finds on these pages."""
    said = _run(library, files)
    seen = {name: Findings.of(plain) for name, plain in said["files"].items()}
    return Readout(seen, sum(len(pages) for _, pages in files.values()), said["seconds"])


def printed_words(files: Files) -> Words:
    """Return every word of these pages, with its box in the bare library."""
    return {
        name: {
            int(page): [PrintedWord(Area(*box), text, (block, line)) for box, text, block, line in words]
            for page, words in pages.items()
        }
        for name, pages in _run("words", files)["files"].items()
    }


def _run(reader: str, files: Files) -> dict[str, Any]:
    """Run the program; its answer comes in a file, because the libraries print to stdout."""
    job = {name: [str(path), list(pages)] for name, (path, pages) in files.items()}
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder) / "answer.json"
        subprocess.run(
            [sys.executable, str(PROGRAM), reader, str(answer)],
            input=json.dumps(job), text=True, check=True, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        said: dict[str, Any] = json.loads(answer.read_text(encoding="utf-8"))
        return said
