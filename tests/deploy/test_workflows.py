"""GitHub workflows: they pass a linter, and run the commands of the README."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from engines.actionlint import BINARY
from sources import ROOT

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.mark.long
@pytest.mark.engine("actionlint")
@pytest.mark.parametrize("fault", [None, "steps.nothing.outputs.x"])
def test_the_linter_finds_nothing_in_any_workflow(tmp_path: Path, fault: str | None) -> None:
    """Shows that the linter passes, and that it would find an unknown step."""
    copies = [tmp_path / path.name for path in WORKFLOWS]
    for path, copy in zip(WORKFLOWS, copies, strict=True):
        text = path.read_text(encoding="utf-8")
        copy.write_text(re.sub(r"\$\{\{ github\.\w+ \}\}", f"${{{{ {fault} }}}}", text) if fault else text)
    done = subprocess.run([BINARY, *copies], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode == 0) is (fault is None), done.stdout


def test_every_action_is_pinned_by_its_commit() -> None:
    """Shows that moving a tag cannot change the code that a workflow runs."""
    used = [
        line for path in WORKFLOWS for line in re.findall(r"uses: (.+)", path.read_text(encoding="utf-8"))
    ]
    assert len(used) >= 3
    assert [one for one in used if not re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v[\d.]+", one)] == []


def test_a_fresh_machine_runs_the_readme_commands() -> None:
    """Shows that both README commands are run, and that a release is built from its tag only."""
    test, release = (
        (ROOT / ".github" / "workflows" / name).read_text() for name in ("test.yml", "release.yml")
    )
    assert "make demo" in test
    assert ".ci/run" in test
    assert 'tags: ["v*"]' in release
