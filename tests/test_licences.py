"""docs/licences.md lists every installed package's licence; each is compatible with AGPL-3.0."""

from __future__ import annotations

import runpy
from importlib.metadata import PathDistribution
from pathlib import Path

import pytest
from sources import ROOT

LICENCES = runpy.run_path(str(ROOT / "deploy" / "make_licences.py"))
PAGE = LICENCES["PAGE"].read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line[:2] == "| "
]
PYTHON = {row[0]: (row[1], row[2]) for row in ROWS if len(row) == 3 and row[0] != "package"}
NPM = [tuple(row) for row in ROWS if len(row) == 2 and row[0] != "package"]


@pytest.fixture(scope="module")
def installed() -> dict[str, tuple[str, str]]:
    """Return the licences declared by the installed packages."""
    found: dict[str, tuple[str, str]] = LICENCES["installed"]()
    return found


def test_every_installed_package_is_on_the_page_with_its_licence(
    installed: dict[str, tuple[str, str]],
) -> None:
    """Shows that no package or licence change is unlisted; rows may be for other machines."""
    assert len(installed) > 150
    assert {name: said for name, said in installed.items() if PYTHON.get(name) != said} == {}
    assert PYTHON.keys() <= {name for lock in LICENCES["LOCKS"] for name in LICENCES["locked"](lock)}


def test_every_package_of_npm_is_on_the_page_with_its_licence() -> None:
    """Shows the same for packages unpacked by tests."""
    assert LICENCES["npm_licences"]() == NPM


def test_every_licence_may_be_part_of_an_agpl_program(installed: dict[str, tuple[str, str]]) -> None:
    """Shows that the whole can be distributed under our licence; exceptions are explained on the page."""
    said = [*((name, licence) for name, (licence, _) in (PYTHON | installed).items()), *NPM]
    refused = {name for name, licence in said if not LICENCES["is_compatible"](licence)}
    assert refused == set(LICENCES["EXPLAINED"])
    assert all(f"* **{name}**: {why}" in PAGE for name, why in LICENCES["EXPLAINED"].items())


def package(folder: Path, *lines: str) -> PathDistribution:
    """Return an installed package with this metadata."""
    (folder / "METADATA").write_text("\n".join(["Metadata-Version: 2.4", "Name: Some.Thing", *lines]))
    return PathDistribution(folder)


@pytest.mark.parametrize(
    ("line", "licence", "compatible"),
    [
        ("License-Expression: GPL-2.0-only", "GPL-2.0-only", False),
        ("License-Expression: MIT AND GPL-2.0-only", "MIT AND GPL-2.0-only", False),
        ("License-Expression: MIT AND (GPL-2.0-only OR MIT)", "MIT AND (GPL-2.0-only OR MIT)", False),
        ("License-Expression: GPL-2.0-only OR MIT", "GPL-2.0-only OR MIT", True),
        ("License: Apache 2.0", "Apache-2.0", True),
        ("Classifier: License :: OSI Approved :: ISC License (ISCL)", "ISC", True),
    ],
)
def test_licence_metadata_is_parsed(tmp_path: Path, line: str, licence: str, compatible: bool) -> None:
    """Shows how metadata is parsed, and that the check above can fail; unclear expressions are refused."""
    said = LICENCES["licence"](package(tmp_path, line))
    assert (said, LICENCES["is_compatible"](said)) == (licence, compatible)


@pytest.mark.parametrize("line", ["License: ask us", "License: UNKNOWN", "Summary: no licence"])
def test_an_unclear_licence_needs_a_manual_check(tmp_path: Path, line: str) -> None:
    """Shows that an unclear licence is neither skipped nor guessed."""
    with pytest.raises(SystemExit, match=r"some-thing says .* read it"):
        LICENCES["licence"](package(tmp_path, line))
