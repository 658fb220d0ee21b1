"""Logging to stderr: short lines on a terminal, JSON elsewhere; never document text or secrets."""

from __future__ import annotations

import importlib
import json
import logging
import sys
import time
from collections import Counter
from copy import copy
from datetime import UTC, datetime
from typing import TextIO

from bot.terminal import ERASE_LINE, control

QUIET_LIBRARIES = (
    "aiosqlite",
    "alembic",
    "apscheduler",
    "asyncio",
    "httpx",
    "httpx2",
    "openai",
    "slack_bolt",
    "slack_sdk",
)
# Logs each file's outcome by id; on a terminal the progress shows it by name.
PROGRESS_LOGGER = "ingestion.reading"

# Rate limit per kind of record, so that a flood of requests does not flood the log.
LINES_PER_SECOND = 100


class RateLimitedHandler(logging.StreamHandler[TextIO]):
    """Log handler with a rate limit per kind of record; records beyond it are only counted."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._is_watched = stream.isatty()
        self._second = 0
        self._seen: Counter[tuple[str, int, str]] = Counter()

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record, or only count it beyond the limit."""
        if (now := int(time.monotonic())) != self._second:
            self._second = now
            self._write_left_out()
        kind = record.name, record.levelno, str(record.msg)
        self._seen[kind] += 1
        if self._seen[kind] <= LINES_PER_SECOND:
            if self._is_watched:
                control(ERASE_LINE)  # a progress line may be here; it is redrawn
            super().emit(_without_secrets(record))

    def _write_left_out(self) -> None:
        for (name, level, text), number in self._seen.items():
            if (more := number - LINES_PER_SECOND) > 0:
                line = f"{more} lines more like this one: {text}"
                super().emit(logging.LogRecord(name, level, "", 0, line, None, None))
        self._seen.clear()

    def close(self) -> None:
        """Write the counts of records left out, then close."""
        self._write_left_out()
        super().close()


def _without_secrets(record: logging.LogRecord) -> logging.LogRecord:
    """Return a redacted copy of a record: libraries may quote the URL or key that they were given."""
    # Lazy import: it loads all settings.
    clean = importlib.import_module("bot.operations.doctor.redaction").known_redactor().clean
    said = copy(record)
    said.msg, said.args = clean(record.getMessage()), None
    if record.exc_info:
        said.exc_text = clean(logging.Formatter().formatException(record.exc_info))
    return said


class JsonLines(logging.Formatter):
    """Log formatter: one JSON object per record; control characters cannot break a line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line of JSON."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["exception"] = record.exc_text or self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=True)


def set_up_logging(*, verbose: bool, for_machines: bool) -> None:
    """Log to stderr; libraries log warnings and errors only.

    Args:
        verbose: log at INFO instead of WARNING.
        for_machines: log at INFO if stderr is not a terminal, as a service should.
    """
    handler = RateLimitedHandler(sys.stderr)
    if is_watched := sys.stderr.isatty():
        line = "%(asctime)s %(levelname)-7s %(message)s"
        handler.setFormatter(logging.Formatter(line, "%H:%M:%S"))
    else:
        handler.setFormatter(JsonLines())
    level = logging.INFO if verbose or (for_machines and not is_watched) else logging.WARNING
    logging.basicConfig(level=level, handlers=[handler], force=True)
    is_told = is_watched and not verbose
    logging.getLogger(PROGRESS_LOGGER).setLevel(logging.ERROR if is_told else logging.NOTSET)
    for library in map(logging.getLogger, QUIET_LIBRARIES):
        library.setLevel(max(library.level, logging.WARNING))  # keep a stricter level set elsewhere
