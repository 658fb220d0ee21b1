"""What a person at a terminal is told, and what is not worth telling."""

from __future__ import annotations

import subprocess
import sys


def test_a_look_that_takes_longer_than_its_rhythm_is_no_news() -> None:
    """Shows that a slow folder does not fill the terminal with warnings that no admin can act on."""
    program = (
        "import logging, ingestion.jobs.scheduler\n"
        "from bot.cli.log_format import set_up_logging\n"
        "set_up_logging(verbose=True, for_machines=True)\n"
        "logging.getLogger('apscheduler.scheduler').warning('skipped: maximum number of running instances')\n"
        "logging.getLogger('httpx').warning('this one is news')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "this one is news" in done.stderr
    assert "skipped" not in done.stderr
