"""Build context of the image: tracked files of the checkout only."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from docker.utils.build import exclude_paths
from sources import ROOT

CONTAINERFILE = Path("deploy", "container", "Containerfile")
IGNORED = CONTAINERFILE.with_name("Containerfile.dockerignore")
PACKAGES = ("bot", "ingestion", "storage")
BUILD = (
    "pyproject.toml",
    "requirements-otel.txt",
    "deploy/install.sh",
    "deploy/fetch_data.py",
    "deploy/data.txt",
)
CANARIES = (
    ".env",
    ".env.local",
    ".footnote/console-secret",
    ".git/config",
    "backup.tar",
    "footnote.db",
    "footnote.toml",
    "folders.toml",
    "id_ed25519",
    "inbox/salaries.pdf",
    "notes.md",
    "token.txt",
)


def tracked() -> set[str]:
    """Return the tracked files of this checkout."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    return {name for name in listed.decode().split("\0") if name}


def given(root: Path) -> set[str]:
    """Return the files that docker sends to the builder."""
    patterns = [
        line for line in (ROOT / IGNORED).read_text().splitlines() if line and not line.startswith("#")
    ]
    names = exclude_paths(str(root), patterns, dockerfile=str(CONTAINERFILE))
    return {name for name in names if (root / name).is_file()} - {str(CONTAINERFILE), ".dockerignore"}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a checkout with empty files, and a canary of each kind in every folder."""
    files = {Path(name) for name in tracked()}
    folders = {Path(), *(folder for file in files for folder in file.parents)}
    for path in [*files, *(folder / name for folder in folders for name in CANARIES)]:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    return tmp_path


def test_an_image_is_built_from_tracked_files_only(checkout: Path) -> None:
    """No canary is included, and no file of the three packages is missing."""
    names, ours = given(checkout), tracked()
    assert names <= ours
    assert {name for name in ours if name.split("/")[0] in PACKAGES} <= names
    assert names >= set(BUILD)
