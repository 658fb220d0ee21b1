"""The program on a home of its own, with either index."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness.program import SAMPLES, Program


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """The program with its embedded default."""
    return Program(tmp_path / "home")


@pytest.fixture(params=["embedded index", pytest.param("weaviate", marks=pytest.mark.engine("weaviate"))])
def any_program(request: pytest.FixtureRequest, tmp_path: Path) -> Program:
    """The program with its embedded default, and once more with Weaviate as its child."""
    environment = {"WEAVIATE_URL": "embedded"} if request.param == "weaviate" else {}
    return Program(tmp_path / "home", environment)


@pytest.fixture
def sop() -> Path:
    """The golden case: SOP-IT-04, two pages, "Backups run daily at 2:00 AM"."""
    return next(SAMPLES.glob("SOP-IT-04*.pdf"))
