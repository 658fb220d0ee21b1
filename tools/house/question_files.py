"""Counts the files of the product that a Slack question executes, from its signed event to its answer.

``PYTHONPATH=tests python -m tools.house.question_files`` asks the sample documents one question, in this
process and without ingestion beside it. Files that also run while nothing is asked do not count.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from aiohttp import web
from fakes.counting_slack import CountingSlack
from harness.program import SAMPLES, SLIM, Program

from bot.app import open_service
from bot.settings import load_settings
from tools.bench.bench_events import SETTINGS, send_all, served, until_answered
from tools.bench.event_endpoints import slack_endpoint

ROOT = Path(__file__).parents[2]
PRODUCT = ("bot", "ingestion", "storage")
CHANNEL = ("C01HOUSE1", "U01ASKER1")
TENANT = "sl_T0FOOTNOT_C01HOUSE1"
IDLE_SECONDS = 5.0


class ExecutedFiles:
    """Records the product's files of which a function is called."""

    def __init__(self) -> None:
        """Record nothing until ``recording``."""
        self._seen: set[str] | None = None

    @contextmanager
    def recording(self) -> Iterator[set[str]]:
        """Yield the paths, relative to the repository, of the files executed until the context ends."""
        self._seen = found = set()
        try:
            yield found
        finally:
            self._seen = None

    def trace(self, frame: FrameType, event: str, argument: Any) -> None:
        """Take the file of a called function; a profile function of ``sys`` and ``threading``."""
        if self._seen is None or event != "call":
            return
        path = Path(frame.f_code.co_filename)
        if path.is_relative_to(ROOT) and path.relative_to(ROOT).parts[0] in PRODUCT:
            self._seen.add(path.relative_to(ROOT).as_posix())


def summary(asked: Iterable[str], idle: Iterable[str]) -> str:
    """Return the files of a question by folder, without those that run at rest, and how many there are."""
    found = sorted(set(asked) - set(idle))
    rooms = Counter(path.rpartition("/")[0] for path in found)
    return "\n".join(
        [
            *found,
            "",
            *(f"{count:3} {room}" for room, count in rooms.most_common()),
            f"{len(found)} files, {len(set(asked) & set(idle))} others that also run at rest",
        ]
    )


async def run(home: Path) -> str:
    """Return the summary of one question; an earlier one has loaded what stays loaded."""
    files, slack = ExecutedFiles(), CountingSlack()
    threading.setprofile(files.trace)
    sys.setprofile(files.trace)
    async with served([web.post("/api/{method}", slack.handle)]) as api:
        program = Program(home, SLIM | SETTINGS | {"SLACK_API_URL": f"{api}/api/"})
        for sample in SAMPLES.glob("*.pdf"):
            program.drop(TENANT, sample)
        async with program.serving():
            await program.until_live(TENANT, len(list(SAMPLES.glob("*.pdf"))), "full")
        os.environ.update(program.variables, FOOTNOTE_ROLE="bot")
        async with open_service(load_settings(port=program.port)):
            endpoint = slack_endpoint(program.url, slack)
            for number in range(2):
                await asyncio.sleep(IDLE_SECONDS)
                with files.recording() as idle:
                    await asyncio.sleep(IDLE_SECONDS)
                with files.recording() as asked:
                    sent = await send_all(endpoint, 1, range(number, number + 1), lambda _: CHANNEL)
                    await until_answered(slack, sent.sent_at)
    return summary(asked, idle)


def main() -> None:
    """Print the files and their number."""
    with tempfile.TemporaryDirectory(prefix="footnote-question-files-") as home:
        print(asyncio.run(run(Path(home))))


if __name__ == "__main__":
    main()
