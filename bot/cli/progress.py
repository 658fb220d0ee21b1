"""Progress on stderr: a rewritten line on a terminal, periodic lines elsewhere."""

from __future__ import annotations

import logging
import shutil
import sys
import time
from collections.abc import Iterable
from types import TracebackType

from bot.core.plaintext import shorten
from bot.terminal import ERASE_LINE, control
from storage.documents.progress import Progress, RungProgress
from storage.models import DocumentStatus, Rung

LOG_INTERVAL_SECONDS = 5.0
# Unreadable files named per report; the others are counted.
MAX_FILES_NAMED = 10

_log = logging.getLogger(__name__)


class ProgressLine:
    """Progress line of an ingestion; ends the line on exit."""

    def __init__(self, rung: Rung) -> None:
        """Show the rungs up to ``rung``."""
        self._rung = rung
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

    def show(self, progress: Progress) -> None:
        """Show this state, unless nothing changed or the last update is too recent."""
        text = describe(progress, self._rung)
        now = time.monotonic()
        pause = 0.1 if self._rewrites else LOG_INTERVAL_SECONDS
        has_ended = progress.has_reached(self._rung)
        is_early = now - self._shown_at < pause and not has_ended
        if text == self._shown or is_early:
            return
        self._shown, self._shown_at = text, now
        if self._rewrites:
            # A wrapped line could not be rewritten, so only the last one may wrap.
            width = len(text) if has_ended else shutil.get_terminal_size().columns - 1
            control(ERASE_LINE)
            print(shorten(text, width), end="", file=sys.stderr, flush=True)
        else:
            print(text, file=sys.stderr, flush=True)


class ProgressLog:
    """Progress in the log of ``serve``: while reading continues, and when it ends."""

    def __init__(self) -> None:
        self._said: str | None = None
        self._named: set[tuple[str, str]] = set()
        self.is_watched = sys.stderr.isatty()

    def report(self, progress: Progress) -> None:
        """Log this state if it changed."""
        text = describe(progress)
        if text == self._said or not progress.files:
            return
        self._said = text
        if self.is_watched:
            print(text, file=sys.stderr)
        else:
            _log.info(text)

    def name_unreadable(self, documents: Iterable[DocumentStatus]) -> None:
        """Print once per quarantined document why it cannot be read."""
        new = {(one.channel, one.file): one.reason for one in documents if one.state == "quarantined"}
        new = {place: reason for place, reason in new.items() if place not in self._named}
        self._named |= new.keys()
        for (channel, file), reason in list(new.items())[:MAX_FILES_NAMED]:
            print(f"could not read {channel}/{file}: {reason}", file=sys.stderr)
        if len(new) > MAX_FILES_NAMED:
            print(f"and {len(new) - MAX_FILES_NAMED} more; see footnote documents", file=sys.stderr)


def describe(progress: Progress, up_to: Rung = Rung.FULL) -> str:
    """Return progress by rung, then failures.

    As in ``quick: 4 of 6 files, 180 of 260+ pages, 95 pages/s, 1 s left``; ``+``: the page counts of waiting
    files are unknown until they are read.
    """
    rungs = progress.rungs if up_to is Rung.FULL else progress.rungs[:1]
    parts = [_describe_rung(one, progress) for one in rungs]
    if progress.waiting:
        parts.append(f"{progress.waiting} waiting")
    if progress.quarantined:
        parts.append(f"{progress.quarantined} could not be read")
    return "; ".join(parts)


def _describe_rung(one: RungProgress, progress: Progress) -> str:
    parts = [f"{one.rung.value}: {one.files_done} of {progress.files} files"]
    if progress.pages:
        parts.append(f"{one.pages_done} of {progress.pages}{'+' if progress.waiting else ''} pages")
    if one.pages_per_second is not None:
        parts.append(f"{one.pages_per_second:.{0 if one.pages_per_second >= 10 else 1}f} pages/s")
    if one.seconds_left:
        parts.append(f"{describe_seconds(one.seconds_left)} left")
    return ", ".join(parts)


def describe_seconds(seconds: float) -> str:
    """Format an estimated duration: ``40 s``, ``12 min`` or ``3.5 h``."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 90 * 60 else f"{seconds / 3600:.1f} h"


class CountLine:
    """Counter line on stderr: rewritten on a terminal, written once at the end elsewhere."""

    def show(self, what: str, done: int, total: int) -> None:
        """Show the current count."""
        if sys.stderr.isatty():
            end = "\n" if done == total else ""
            control(ERASE_LINE)
            print(f"{done} of {total} {what}", end=end, file=sys.stderr, flush=True)
        elif done == total:
            print(f"{total} {what}", file=sys.stderr, flush=True)
