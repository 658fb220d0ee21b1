"""Commands in fresh processes: the journeys fork theirs from one with all modules imported."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

FOOTNOTE = Path(sys.executable).with_name("footnote")


@pytest.mark.parametrize(
    ("module", "loaded"),
    [
        ("storage.pdf.child.text_job", []),
        ("storage.pdf.child.ocr_job", []),
        ("storage.pdf.child.layout_job", ["pymupdf.layout", "pymupdf4llm"]),
    ],
)
def test_only_the_layout_program_loads_layout_helpers(module: str, loaded: list[str]) -> None:
    """Shows that other readers start without PyMuPDF's helpers, and that all use the same word quads."""
    helpers = "[name for name in ('pymupdf.layout', 'pymupdf4llm') if sys.modules.get(name)]"
    corrected = "pymupdf.TOOLS.unset_quad_corrections()"
    program = f"import {module}, pymupdf, sys; print({helpers}, {corrected})"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == f"{loaded} True\n"


def test_the_installed_command_runs(tmp_path: Path) -> None:
    """Shows that the entry point is installed, and that a command finds all its imports."""
    environment = {"FOOTNOTE_HOME": str(tmp_path)}
    done = subprocess.run([FOOTNOTE, "channels", "--json"], env=environment, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"footnote serve" in done.stderr
