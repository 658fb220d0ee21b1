"""``make release`` in a small repository: tags exactly what was checked and built."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from sources import ROOT

MAKEFILE = (
    "checks:\n\t@touch checked\nwheel:\n\t@mkdir dist && touch dist/it-0.1.0.whl dist/it-0.1.0.tar.gz\n"
)
IGNORED = "checked\ndist/\n"
AUTHOR = {
    f"GIT_{who}_{what}": "it@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a committed work tree with a dated changelog section for its version."""
    files = {
        "Makefile": MAKEFILE,
        ".gitignore": IGNORED,
        "pyproject.toml": 'version = "0.1.0"\n',
        "CHANGELOG.md": "## 0.1.0 - 2026-11-28\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "deploy").mkdir()
    shutil.copy2(ROOT / "deploy" / "release.sh", tmp_path / "deploy")
    git(tmp_path, "init", "--quiet")
    commit(tmp_path)
    return tmp_path


def git(tree: Path, *arguments: str) -> str:
    """Return git's output."""
    command = ["git", "-C", str(tree), *arguments]
    return subprocess.run(command, env=os.environ | AUTHOR, capture_output=True, text=True, check=True).stdout


def commit(tree: Path) -> None:
    """Commit everything."""
    git(tree, "add", "--all")
    git(tree, "commit", "--quiet", "--message", "it")


def release(tree: Path) -> subprocess.CompletedProcess[str]:
    """Run the script like ``make release`` does."""
    variables = os.environ | AUTHOR | {"CHECKS": "checks"}
    return subprocess.run(
        [tree / "deploy" / "release.sh"], env=variables, capture_output=True, text=True, check=False
    )


def test_the_checked_commit_is_built_and_tagged(tree: Path) -> None:
    """Shows the tag on the commit, wheel and sdist, and their checksums."""
    done = release(tree)
    assert done.returncode == 0, done.stderr
    assert (tree / "checked").exists()
    assert git(tree, "rev-parse", "v0.1.0^{commit}") == git(tree, "rev-parse", "HEAD")
    sums = dict(reversed(line.split()) for line in (tree / "dist" / "SHA256SUMS").read_text().splitlines())
    assert sums.keys() == {"it-0.1.0.whl", "it-0.1.0.tar.gz"}
    for name, digest in sums.items():
        assert hashlib.sha256((tree / "dist" / name).read_bytes()).hexdigest() == digest


@pytest.mark.parametrize("fault", ["uncommitted", "tagged", "undated", "failing"])
def test_an_unready_tree_is_not_tagged(tree: Path, fault: str) -> None:
    """Refuses a changed tree, an existing tag, a version without a dated section, and failed checks."""
    if fault == "uncommitted":
        (tree / "new.txt").write_text("")
    elif fault == "tagged":
        git(tree, "tag", "v0.1.0")
    elif fault == "undated":
        (tree / "CHANGELOG.md").write_text("## Unreleased\n")
        commit(tree)
    else:
        (tree / "Makefile").write_text(MAKEFILE.replace("touch checked", "false"))
        commit(tree)
    tags = git(tree, "tag")
    assert release(tree).returncode != 0
    assert git(tree, "tag") == tags
    assert not (tree / "dist").exists()
