"""PyMuPDF alone, opening a PDF and drawing one page of it, in a separate program.

In benchmarks as in the service, only the sandboxed child loads PyMuPDF.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path


class BareDrawing:
    """Client of the running program; draws one page at a time."""

    def __init__(self, file: Path, dpi: int) -> None:
        program = [sys.executable, __file__, str(file), str(dpi)]
        self._program = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def draw(self, page: int) -> int:
        """Return the size in bytes of the picture of a page (1-based)."""
        if self._program.stdin is None or self._program.stdout is None:
            raise RuntimeError("started without its pipes")
        self._program.stdin.write(f"{page}\n")
        self._program.stdin.flush()
        length: int = json.loads(self._program.stdout.readline())
        return length

    def close(self) -> None:
        """End the program."""
        if self._program.stdin and self._program.stdout:
            self._program.stdin.close()
            self._program.stdout.close()
        self._program.wait(10)


def main() -> None:
    """Draw the requested pages, one per line of stdin."""
    from storage.pdf.child.mupdf import pymupdf  # noqa: PLC0415 - as our child, and not where it is started

    file, dpi = sys.argv[1], int(sys.argv[2])
    for line in sys.stdin:
        with pymupdf.open(file) as document:
            print(len(document[int(line) - 1].get_pixmap(dpi=dpi).tobytes("png")), flush=True)


if __name__ == "__main__":
    main()
