"""Tests that need a real engine say so by a marker; here it is decided whether they can run.

An engine that is missing never passes in silence: its tests are skipped and listed at the end with
the command that would run them, and under ``--require-engines`` they fail.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import hypothesis
import pytest
from engines import MODULES, Absence, absence, load
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

pytest_plugins = [f"engines.{name}" for name in MODULES]

hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")

NOT_RUN = "not run without"
LONGEST = "soak"
"""The folder of the tests that take longest."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--require-engines``."""
    parser.addoption(
        "--require-engines", action="store_true", help="fail the tests of an engine that cannot run here"
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes longest, so that nothing else waits for it at the end."""
    items.sort(key=lambda item: LONGEST not in item.path.parts)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadFileScheduling:
    """A parallel run hands out whole files, in their order; of the longest each test by itself."""
    config.option.loadscopereorder = False
    return Portions(config, log)


class Portions(LoadFileScheduling):
    """What one process gets at a time: tests of a file share what it prepares, as scans that OCR has read."""

    def _split_scope(self, nodeid: str) -> str:
        return nodeid if LONGEST in Path(nodeid).parts else super()._split_scope(nodeid)


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
        item.user_properties.append((NOT_RUN, name))  # travels with the report to whoever prints the list
        pytest.skip(f"without {name}: {gone.why}")


@pytest.hookimpl(trylast=True)
def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Name a failed test at once: the summary of a long run that is stopped never comes."""
    if report.failed and "PYTEST_XDIST_WORKER" not in os.environ:
        print(f"\nfailed: {report.nodeid}", file=sys.__stderr__, flush=True)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the tables that tests made, and the engines that were missing, loudly."""
    for one in [*terminalreporter.getreports("passed"), *terminalreporter.getreports("failed")]:
        for table in [value for key, value in one.user_properties if key == "table"]:
            terminalreporter.line(str(table))
    _list_missing_engines(terminalreporter)


def _list_missing_engines(terminalreporter: pytest.TerminalReporter) -> None:
    """Each with the command that brings it."""
    skipped = terminalreporter.getreports("skipped")
    not_run = Counter(name for one in skipped for key, name in one.user_properties if key == NOT_RUN)
    if not not_run:
        return
    terminalreporter.section("NOT RUN: real engines are missing", sep="!", red=True, bold=True)
    for name, tests in sorted(not_run.items()):
        if gone := absence_of(name):
            terminalreporter.line(f"{name} (tests not run: {tests}): {gone.why}", yellow=True)
            terminalreporter.line(f"    to run them: {gone.remedy}")
