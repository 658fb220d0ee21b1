"""Tests that need a real engine say so by a marker; here it is decided whether they can run.

An engine that is missing never passes in silence: its tests are skipped and listed at the end with
the command that would run them, and under ``--require-engines`` they fail.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Sequence
from functools import cache

import hypothesis
import pytest
from engines import MODULES, Absence, absence, load

pytest_plugins = [f"engines.{name}" for name in MODULES]

hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")

NOT_RUN = "not run without"
SLOW_TO_START = ("weaviate", "llm")
"""Engines that one process of a parallel run starts for all of their tests."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--require-engines``."""
    parser.addoption(
        "--require-engines", action="store_true", help="fail the tests of an engine that cannot run here"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    """Keep together, in a parallel run, what shares an engine that is slow to start, or else a file."""
    for item in items:
        needed = {name for marker in item.iter_markers("engine") for name in marker.args}
        shared = next((name for name in SLOW_TO_START if name in needed), str(item.path))
        item.add_marker(pytest.mark.xdist_group(shared))


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
