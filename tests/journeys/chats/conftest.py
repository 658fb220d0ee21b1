"""The program for chat tests: it stops at the quick rung, which halves the CPU time."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness.program import Program


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """The program with the embedded index; tests of figures or vectors set ``rung``."""
    return Program(tmp_path / "home", rung="quick")
