"""Engines that the daily tests may use, and the program that fetches them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from engines import LONG_ONLY, MODULES, FetchError, require_fetched_engines, run_fetching
from sources import ROOT


@pytest.mark.parametrize("name", LONG_ONLY)
def test_a_daily_test_may_not_need_an_engine_of_the_long_run(
    request: pytest.FixtureRequest, name: str
) -> None:
    """Collection of a daily run fails on every machine."""
    request.node.add_marker(pytest.mark.engine(name))
    with pytest.raises(pytest.UsageError, match=f"{name} is not fetched daily"):
        require_fetched_engines([request.node])
    request.node.add_marker(pytest.mark.long)
    require_fetched_engines([request.node])


def test_fetch_names_every_engine_in_its_help() -> None:
    """Unknown names are refused with the list of existing ones."""
    fetch = [sys.executable, ROOT / "tests" / "fetch.py"]
    shown = subprocess.run([*fetch, "--help"], capture_output=True, text=True, check=True, timeout=60).stdout
    assert [name for name in MODULES if name not in shown] == []
    refused = subprocess.run([*fetch, "nothing"], capture_output=True, text=True, check=False, timeout=60)
    assert refused.returncode == 2
    assert "unknown engine: nothing" in refused.stderr


def test_an_engine_that_cannot_be_fetched_is_reported(tmp_path: Path) -> None:
    """With an empty cache and no npm each engine is reported; required ones fail at once."""
    nowhere = {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path), "PATH": str(tmp_path)}
    fetch = [sys.executable, ROOT / "tests" / "fetch.py", "axe", "slack"]
    for more, status in (((), 0), (("--require",), 1)):
        done = subprocess.run(
            [*fetch, *more], env=nowhere, capture_output=True, text=True, check=False, timeout=300
        )
        assert done.returncode == status
        for name in ("axe", "slack"):
            assert f"{name} could not be fetched: npm is not installed" in done.stderr
    assert "required and not here: axe, slack" in done.stderr


def test_a_failed_command_is_reported_with_its_error() -> None:
    """The error contains its standard error, or the reason why it did not start or end."""
    script = "import sys; sys.exit('the registry is out of reach')"
    with pytest.raises(FetchError, match="the registry is out of reach"):
        run_fetching([sys.executable, "-c", script])
    with pytest.raises(FetchError, match="No such file"):
        run_fetching([f"{ROOT}/nowhere"])
    with pytest.raises(FetchError, match="timed out after"):
        run_fetching(["sleep", "600"], seconds=0.1)
