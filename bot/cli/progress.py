"""Progress on stderr: one line rewritten on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from types import TracebackType

from ingestion.app import IngestProgress

SECONDS_BETWEEN_LINES = 5.0


class ProgressLine:
    """Shows how far an ingestion has come; leaves the terminal clean behind it."""

    def __init__(self) -> None:
        self._rewrites = sys.stderr.isatty()
        self._shown_at = 0.0
        self._shown = ""

    def __enter__(self) -> ProgressLine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._rewrites and self._shown:
            print(file=sys.stderr)

    def show(self, progress: IngestProgress) -> None:
        """Show this state, unless it is too soon or nothing changed."""
        text = describe(progress)
        now = time.monotonic()
        pause = 0.1 if self._rewrites else SECONDS_BETWEEN_LINES
        if text == self._shown or (now - self._shown_at < pause and progress.files_done < progress.files):
            return
        self._shown, self._shown_at = text, now
        print(
            f"\r\x1b[K{text}" if self._rewrites else text, end="" if self._rewrites else "\n", file=sys.stderr
        )
        sys.stderr.flush()


def describe(progress: IngestProgress) -> str:
    """``quick: 4 of 6 files, 180 pages, 95 pages/s, 1 s left``."""
    parts = [
        f"{progress.rung.value}: {progress.files_done} of {progress.files} files",
        f"{progress.pages_done} pages",
    ]
    if progress.pages_per_second:
        parts.append(f"{progress.pages_per_second:.0f} pages/s")
    if progress.seconds_left is not None:
        parts.append(f"{progress.seconds_left:.0f} s left")
    if progress.quarantined:
        parts.append(f"{progress.quarantined} could not be read")
    return ", ".join(parts)
