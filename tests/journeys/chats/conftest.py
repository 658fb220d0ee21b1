"""The program as its chats are shown: it reads by words alone, which costs half the computing."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness.program import Program


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """The program with its embedded default; a test that shows figures or vectors sets ``rung``."""
    return Program(tmp_path / "home", rung="quick")
