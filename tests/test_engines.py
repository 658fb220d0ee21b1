"""Tests of which engines the daily run may need, and of the program that fetches them."""

from __future__ import annotations

import subprocess
import sys

import pytest
from engines import LONG_ONLY, MODULES, require_fetched_engines
from sources import ROOT


@pytest.mark.parametrize("name", LONG_ONLY)
def test_a_daily_test_may_not_need_an_engine_of_the_long_run(
    request: pytest.FixtureRequest, name: str
) -> None:
    """The collection of a daily run is refused, on every machine."""
    request.node.add_marker(pytest.mark.engine(name))
    with pytest.raises(pytest.UsageError, match=f"{name} is not fetched daily"):
        require_fetched_engines([request.node])
    request.node.add_marker(pytest.mark.long)
    require_fetched_engines([request.node])


def test_fetch_names_every_engine_in_its_help() -> None:
    """Unknown names are refused with the names that exist."""
    fetch = [sys.executable, ROOT / "tests" / "fetch.py"]
    shown = subprocess.run([*fetch, "--help"], capture_output=True, text=True, check=True, timeout=60).stdout
    assert [name for name in MODULES if name not in shown] == []
    refused = subprocess.run([*fetch, "nothing"], capture_output=True, text=True, check=False, timeout=60)
    assert refused.returncode == 2
    assert "unknown engine: nothing" in refused.stderr
