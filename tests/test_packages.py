"""Dependencies: docs/packages.md covers each, and installed versions have no known vulnerability."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import version
from itertools import pairwise

import pytest
from harness.tables import for_each
from packaging.requirements import Requirement
from packaging.version import Version
from sources import ROOT

from storage.errors import docs_url

PAGE = (ROOT / "docs" / "packages.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
# Each contains the previous one.
LOCKS = ("requirements.txt", "requirements-shares.txt", "requirements-otel.txt", "requirements-dev.txt")


def needs(lines: list[str]) -> list[Requirement]:
    """Return the packages of a list, without our own extras."""
    return [need for line in lines if (need := Requirement(line)).name != PROJECT["name"]]


DIRECT = needs(PROJECT["dependencies"])
SHARES = needs(PROJECT["optional-dependencies"]["shares"])
TRACES = needs(PROJECT["optional-dependencies"]["otel"])
DEVELOPMENT = needs(PROJECT["optional-dependencies"]["dev"])
ALL = [*DIRECT, *SHARES, *TRACES, *DEVELOPMENT]


def rows(columns: int) -> list[list[str]]:
    """Return the rows of the page's tables with this number of columns, without headers."""
    lines = [line.strip("|").split("|") for line in PAGE.splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line] for line in lines if len(line) == columns]
    return [row for row in cells if row[0] not in ("package", "program")]


def floors() -> list[tuple[str, str]]:
    """Return the table "Watched closely" as (package, minimum version)."""
    return [(name, least) for name, least, _ in rows(3) if re.fullmatch(r"[\d.]+", least)]


def test_the_page_lists_exactly_the_direct_dependencies() -> None:
    """Shows that the table lists exactly the direct dependencies."""
    assert sorted(row[0] for row in rows(4)) == sorted(need.name for need in ALL)


def test_every_row_of_the_page_is_complete() -> None:
    """Shows that no cell is empty."""
    assert not [row for row in rows(4) if not all(row)]


@for_each(("name", "least"), floors())
def test_installed_versions_include_known_security_fixes(name: str, least: str) -> None:
    """Shows that installed versions include the fixes named on the page."""
    assert Version(version(name)) >= Version(least)


def test_the_minimum_versions_are_read_from_the_page() -> None:
    """Shows that the check above covers something."""
    assert len(floors()) >= 7


@for_each("need", ALL)
def test_the_installed_version_is_the_one_that_pyproject_allows(need: Requirement) -> None:
    """Shows that tests run on the versions that users get."""
    assert need.specifier.contains(version(need.name))


def pins(lock: str) -> dict[str, str]:
    """Return the pinned version of each package in a lock file."""
    pinned = re.findall(r"(?m)^([a-z0-9-]+)(?:\[[a-z,]+\])?==([^ ;\\]+)", (ROOT / lock).read_text())
    return dict(pinned)


@pytest.mark.parametrize("lock", LOCKS)
def test_the_lock_pins_every_direct_dependency(lock: str) -> None:
    """Shows that each lock was made from this pyproject.toml."""
    sets = (DIRECT, [*DIRECT, *SHARES], [*DIRECT, *SHARES, *TRACES], ALL)
    wanted = dict(zip(LOCKS, sets, strict=True))[lock]
    pinned = pins(lock)
    assert [need.name for need in wanted if not need.specifier.contains(pinned.get(need.name, "0"))] == []


@pytest.mark.parametrize(("small", "large"), list(pairwise(LOCKS)))
def test_a_larger_lock_contains_the_previous_one(small: str, large: str) -> None:
    """Shows that tests run on the versions of `make install`, with and without shares."""
    assert pins(small).items() <= pins(large).items()


def test_errors_link_to_the_projects_documentation() -> None:
    """Shows that error messages link to the package's documentation URL."""
    assert PROJECT["urls"]["Documentation"] == docs_url("").replace("/blob/", "/tree/").rstrip("/")
