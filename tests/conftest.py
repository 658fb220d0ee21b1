"""Selection of tests: ``long`` ones only with ``--all``, and engine tests only if the engine can run.

A missing engine is never silent: its tests are skipped and listed at the end with the command that would
fetch it, and fail under ``--require-engines``.
"""

from __future__ import annotations

import gc
import os
import sys
from collections import Counter
from collections.abc import Generator
from functools import cache
from pathlib import Path

import hypothesis
import pytest
from engines import MODULES, Absence, absence, load, require_fetched_engines
from harness.compiled_statements import CompiledStatements
from sqlalchemy import Connection, Engine, event
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

import storage.pdf.child.mupdf  # noqa: F401 (before anything imports PyMuPDF with its models: a second, 90 MB)

pytest_plugins = [f"engines.{name}" for name in MODULES]

gc.disable()  # nothing loaded during collection is garbage; enabled again afterwards

hypothesis.settings.register_profile("same", deadline=None, derandomize=True, max_examples=50)
hypothesis.settings.register_profile("many", deadline=None, database=None, max_examples=300, print_blob=True)

NOT_RUN = "not run without"
COMPILED = CompiledStatements()
# Folders whose files take longest, in starting order.
LONGEST = ("soak", "machine", "child", "deploy", "journeys")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of ``make test`` and ``make test-all``."""
    parser.addoption(
        "--require-engines", action="store_true", help="fail the tests of an engine that cannot run here"
    )
    parser.addoption("--all", action="store_true", help="also the long tests, and many examples by chance")
    parser.addoption("--seed", type=int, default=1, help="decides all that happens by chance under --all")


def pytest_configure(config: pytest.Config) -> None:
    """Load the same examples in every run, or many that the seed chooses."""
    hypothesis.settings.load_profile("many" if config.option.all else "same")
    if config.option.all:
        config.option.hypothesis_seed = str(config.option.seed)


@pytest.fixture(scope="session")
def seed(pytestconfig: pytest.Config) -> int:
    """Return the run's seed."""
    return int(pytestconfig.option.seed)


@event.listens_for(Engine, "engine_connect")
def share_compiled_statements(connection: Connection) -> None:
    """Compile each statement once per test process instead of once per test, which has a new engine."""
    connection.execution_options(compiled_cache=COMPILED)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Sort the longest tests first, so that they do not delay the end of the run."""
    require_fetched_engines(items)
    places = {folder: place for place, folder in enumerate(LONGEST)}
    items.sort(key=lambda item: min(places.get(part, len(LONGEST)) for part in item.path.parts))
    if not config.option.all and (long := [item for item in items if item.get_closest_marker("long")]):
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if item not in long]


def pytest_collection_finish() -> None:
    """Exclude all collected objects from garbage collection: a sixth of a test process's CPU time."""
    gc.freeze()
    # SQLAlchemy leaves many small cycles: collecting them took a tenth of the CPU time.
    gc.set_threshold(50_000, 20, 20)
    gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadFileScheduling:
    """Distribute whole files in parallel runs, in order, and soak tests one by one."""
    config.option.loadscopereorder = False
    return Portions(config, log)


class Portions(LoadFileScheduling):
    """Scheduling unit of a process: tests of a file share fixtures, such as scans read by OCR."""

    def _split_scope(self, nodeid: str) -> str:
        return nodeid if LONGEST[0] in Path(nodeid).parts else super()._split_scope(nodeid)


@cache
def absence_of(name: str) -> Absence | None:
    """Return why an engine cannot run here; cached."""
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
        item.user_properties.append((NOT_RUN, name))  # sent with the report to the printing process
        pytest.skip(f"without {name}: {gone.why}")


@pytest.hookimpl(trylast=True)
def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Print a failed test at once: an aborted long run prints no summary."""
    if report.failed and "PYTEST_XDIST_WORKER" not in os.environ:
        print(f"\nfailed: {report.nodeid}", file=sys.__stderr__, flush=True)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None]:
    """Report the CPU time of the run."""
    yield
    # What is garbage is collected once: pytest does so five times, in seconds each, to report leaks.
    gc.collect()
    gc.freeze()
    if "PYTEST_XDIST_WORKER" in os.environ:
        return
    print(f"CPU time: {sum(os.times()[:4]) / 60:.1f} minutes, seed {session.config.option.seed}", flush=True)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the tables made by tests, and the missing engines."""
    for one in [*terminalreporter.getreports("passed"), *terminalreporter.getreports("failed")]:
        for table in [value for key, value in one.user_properties if key == "table"]:
            terminalreporter.line(str(table))
    _list_missing_engines(terminalreporter)


def _list_missing_engines(terminalreporter: pytest.TerminalReporter) -> None:
    """List the missing engines with the commands that fetch them."""
    skipped = terminalreporter.getreports("skipped")
    not_run = Counter(name for one in skipped for key, name in one.user_properties if key == NOT_RUN)
    if not not_run:
        return
    terminalreporter.section("NOT RUN: real engines are missing", sep="!", red=True, bold=True)
    for name, tests in sorted(not_run.items()):
        if gone := absence_of(name):
            terminalreporter.line(f"{name} (tests not run: {tests}): {gone.why}", yellow=True)
            terminalreporter.line(f"    to run them: {gone.remedy}")
