"""Homes of the evaluation: each PDF once in its channel."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tools.evaluation.asking import Home


def test_a_home_that_was_copied_elsewhere_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are known by path, so a copied home would contain each twice and distort the figures."""
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    monkeypatch.chdir(first)
    monkeypatch.setattr(Home, "_run", lambda *_, **__: "")
    Home("embedded", {}).ingest([])
    Home("embedded", {}).ingest([])
    shutil.copytree(first, second)
    monkeypatch.chdir(second)
    with pytest.raises(RuntimeError, match="was made as"):
        Home("embedded", {}).ingest([])
