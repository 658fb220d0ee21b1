"""Tests that need a real engine say so by a marker; here it is decided whether they can run.

An engine that is missing never passes in silence: its tests are skipped and listed at the end with
the command that would run them, and under ``--require-engines`` they fail.
"""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest
from engines import MODULES, Absence, absence, load

pytest_plugins = [f"engines.{name}" for name in MODULES]

NOT_RUN = pytest.StashKey[Counter[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--require-engines``."""
    parser.addoption(
        "--require-engines", action="store_true", help="fail the tests of an engine that cannot run here"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Start the count of tests that were not run."""
    config.stash[NOT_RUN] = Counter()


@cache
def absence_of(name: str) -> Absence | None:
    """Why an engine cannot run here; asked once."""
    return absence(load(name))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip, or fail, a test whose engine cannot run here."""
    for marker in item.iter_markers("engine"):
        (name,) = marker.args
        if (gone := absence_of(name)) is None:
            continue
        if item.config.getoption("--require-engines"):
            pytest.fail(f"{name} is required: {gone.why}; {gone.remedy}", pytrace=False)
        item.config.stash[NOT_RUN][name] += 1
        pytest.skip(f"without {name}: {gone.why}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """List the engines that were missing, loudly, with the commands that bring them."""
    not_run = config.stash[NOT_RUN]
    if not not_run:
        return
    terminalreporter.section("NOT RUN: real engines are missing", sep="!", red=True, bold=True)
    for name, tests in sorted(not_run.items()):
        if gone := absence_of(name):
            terminalreporter.line(f"{name} (tests not run: {tests}): {gone.why}", yellow=True)
            terminalreporter.line(f"    to run them: {gone.remedy}")
