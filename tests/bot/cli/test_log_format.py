"""Log output at a terminal: suppression of noise, progress lines, rate limits and secrets."""

from __future__ import annotations

import os
import pty
import subprocess
import sys


def test_a_scan_longer_than_its_interval_is_not_logged() -> None:
    """Shows that a slow folder causes no scheduler warnings that an admin cannot act on."""
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


def shown_on_terminal(program: str) -> str:
    """Return a program's stderr output on a terminal."""
    ours, theirs = pty.openpty()
    subprocess.run([sys.executable, "-c", program], stderr=theirs, check=True)
    shown = os.read(ours, 65536).decode()
    os.close(theirs)
    os.close(ours)
    return shown


def test_no_record_interrupts_a_progress_line() -> None:
    """Shows that a warning replaces the progress line, and that file ids are left out at a terminal."""
    shown = shown_on_terminal(
        "import logging, sys\n"
        "from bot.cli.log_format import set_up_logging\n"
        "set_up_logging(verbose=False, for_machines=True)\n"
        "print('quick: 1 of 8 files', end='', file=sys.stderr, flush=True)\n"
        "logging.getLogger('ingestion.reading.quick').warning('reading=6c42 outcome=quarantined')\n"
        "logging.getLogger('storage.stores').warning('the index does not answer')\n"
    )
    before, after = shown.split("\r\x1b[K")
    assert before == "quick: 1 of 8 files"
    assert after.endswith("WARNING the index does not answer\r\n")


def test_log_records_are_rate_limited_by_kind() -> None:
    """Shows a hundred lines of a kind per second, a count of the rest, and other kinds unaffected."""
    program = (
        "import logging\n"
        "from types import SimpleNamespace\n"
        "from bot.cli import log_format\n"
        "now = [5.0]\n"
        "log_format.time = SimpleNamespace(monotonic=lambda: now[0])\n"
        "log_format.set_up_logging(verbose=True, for_machines=True)\n"
        "for number in range(1000):\n"
        "    logging.getLogger('flood').warning('a request %d failed', number)\n"
        "logging.getLogger('other').warning('the index does not answer')\n"
        "now[0] = 6.0\n"
        "logging.getLogger('flood').warning('another one')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    lines = done.stderr.splitlines()
    assert sum('"a request' in line for line in lines) == 100
    assert sum("900 lines more like this one: a request %d failed" in line for line in lines) == 1
    assert sum("the index does not answer" in line for line in lines) == 1


def test_no_record_contains_a_secret() -> None:
    """Covers a library that logs its key, and URLs with password and token, in text and traceback."""
    program = (
        "import logging, os\n"
        "os.environ |= {'OPENAI_API_KEY': 'CANARY-one', 'DATABASE_URL': 'postgresql://a:CANARY-two@h/d'}\n"
        "from bot.cli.log_format import set_up_logging\n"
        "set_up_logging(verbose=True, for_machines=True)\n"
        "log = logging.getLogger('library')\n"
        "log.warning('key %s refused at %s by %s', 'CANARY-one', 'https://a:CANARY-3@h/x', 'xoxb-CANARY-4')\n"
        "try:\n"
        "    raise ValueError('CANARY-two')\n"
        "except ValueError:\n"
        "    log.exception('failed')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "CANARY-" not in done.stderr
    assert "ValueError: " in done.stderr
    assert "refused at https://" in done.stderr
