"""docs/packages.md answers for every dependency, and the installed ones are not known to be unsafe."""

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
# Each contains the one before.
LOCKS = ("requirements.txt", "requirements-shares.txt", "requirements-otel.txt", "requirements-dev.txt")


def needs(lines: list[str]) -> list[Requirement]:
    """Return the packages of a list, our own extras left out."""
    return [need for line in lines if (need := Requirement(line)).name != PROJECT["name"]]


DIRECT = needs(PROJECT["dependencies"])
SHARES = needs(PROJECT["optional-dependencies"]["shares"])
TRACES = needs(PROJECT["optional-dependencies"]["otel"])
DEVELOPMENT = needs(PROJECT["optional-dependencies"]["dev"])
ALL = [*DIRECT, *SHARES, *TRACES, *DEVELOPMENT]


def rows(columns: int) -> list[list[str]]:
    """Return the rows of the page's tables that have so many columns, heads and rules left out."""
    lines = [line.strip("|").split("|") for line in PAGE.splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line] for line in lines if len(line) == columns]
    return [row for row in cells if row[0] not in ("package", "program")]


def floors() -> list[tuple[str, str]]:
    """Return the table "Watched closely" as (package, oldest version allowed)."""
    return [(name, least) for name, least, _ in rows(3) if re.fullmatch(r"[\d.]+", least)]


def test_every_direct_dependency_has_its_row_and_every_row_its_dependency() -> None:
    """Shows that no package came in, or stayed behind, without a reason."""
    assert sorted(row[0] for row in rows(4)) == sorted(need.name for need in ALL)


def test_every_row_says_what_the_package_does_who_keeps_it_and_what_we_would_do_without_it() -> None:
    """Shows that each reason is written out."""
    assert not [row for row in rows(4) if not all(row)]


@for_each(("name", "least"), floors())
def test_no_installed_version_is_older_than_its_last_known_hole(name: str, least: str) -> None:
    """Shows that what runs here has the fixes named on the page."""
    assert Version(version(name)) >= Version(least)


def test_the_floors_are_read_from_the_page() -> None:
    """Shows that the check above looks at something."""
    assert len(floors()) >= 7


@for_each("need", ALL)
def test_the_installed_version_is_the_one_that_pyproject_allows(need: Requirement) -> None:
    """Shows that tests run on what users get."""
    assert need.specifier.contains(version(need.name))


def pins(lock: str) -> dict[str, str]:
    """Package -> version of a lock file."""
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
def test_a_larger_lock_changes_nothing_of_the_one_before(small: str, large: str) -> None:
    """Shows that tests run on the very versions that `make install` brings, with shares and without."""
    assert pins(small).items() <= pins(large).items()


def test_the_errors_lead_to_the_projects_own_documentation() -> None:
    """Shows that sentences which name a page lead to the address that the package gives."""
    assert PROJECT["urls"]["Documentation"] == docs_url("").replace("/blob/", "/tree/").rstrip("/")
