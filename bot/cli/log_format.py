"""Logging: short lines on a terminal, JSON elsewhere; always on stderr, never document text."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime

QUIET = (
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
TOLD_BY_PROGRESS = "ingestion.reading"
"""Logs how each file ended, by ids; on a terminal the progress says it, by the file's name."""
ERASE_LINE = "\r\x1b[K"
"""A progress line may stand where a record is written: the record replaces it, and it is drawn again."""


class JsonLines(logging.Formatter):
    """One JSON object a record; control characters cannot break a line."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=True)


def set_up_logging(*, verbose: bool, for_machines: bool) -> None:
    """Send records to stderr; libraries speak only when something is wrong.

    Args:
        verbose: log what happens, not only what goes wrong.
        for_machines: the same where no person watches, as a service's log should.
    """
    handler = logging.StreamHandler(sys.stderr)
    if is_watched := sys.stderr.isatty():
        line = f"{ERASE_LINE}%(asctime)s %(levelname)-7s %(message)s"
        handler.setFormatter(logging.Formatter(line, "%H:%M:%S"))
    else:
        handler.setFormatter(JsonLines())
    level = logging.INFO if verbose or (for_machines and not is_watched) else logging.WARNING
    logging.basicConfig(level=level, handlers=[handler], force=True)
    is_told = is_watched and not verbose
    logging.getLogger(TOLD_BY_PROGRESS).setLevel(logging.ERROR if is_told else logging.NOTSET)
    for library in map(logging.getLogger, QUIET):
        library.setLevel(max(library.level, logging.WARNING))  # whoever uses it may want it quieter still
