"""Admin-edited config files: parsing, error messages and reloading, for any schema."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pydantic import BaseModel, ConfigDict, Field

from storage.config_file import AdminFile, InvalidFile, read_file


class Sites(BaseModel):
    """Schema of a sample config file."""

    model_config = ConfigDict(extra="forbid", strict=True)
    urls: list[str] = Field(min_length=1)
    every: float = 60


def read_sites(data: bytes) -> list[str]:
    """Return the addresses in a file; none if it is missing."""
    return read_file("sites.toml", data, Sites)[0].urls if data else []


def follower(path: Path, equal_scans: int = 1) -> AdminFile[list[str]]:
    """Return a follower of the sample file."""
    return AdminFile(path, read_sites, what="it", check_command="footnote sites", equal_scans=equal_scans)


def test_mistakes_are_reported_for_any_schema() -> None:
    """All mistakes at once, each with file, line and key."""
    with pytest.raises(InvalidFile) as caught:
        read_sites(b'\nevery = "often"\nurl = []\n')
    told = [str(one) for one in caught.value.mistakes]
    assert [one.split(" ")[0] for one in told] == ["sites.toml:1:", "sites.toml:2:", "sites.toml:3:"]
    assert told[2] == "sites.toml:3: url is not a known key; check the spelling"


def test_a_file_being_saved_is_read_once_it_is_stable(tmp_path: Path) -> None:
    """Shows that a file that must be equal at two scans is returned at the second, and only once."""
    path = tmp_path / "sites.toml"
    file = follower(path, equal_scans=2)
    path.write_text('urls = ["a"]\n')
    assert [file.reload_if_changed() for _ in range(3)] == [None, ["a"], None]
    path.write_text('urls = ["a", "b"]\n')
    assert file.reload_if_changed() is None
    assert file.current == ["a"]
    assert file.reload_if_changed() == ["a", "b"]


def test_a_change_that_could_not_be_applied_is_returned_again(tmp_path: Path) -> None:
    """Shows that a change during a database outage is not lost."""
    path = tmp_path / "sites.toml"
    file = follower(path)
    path.write_text('urls = ["a"]\n')
    assert file.reload_if_changed() == ["a"]
    file.invalidate()
    assert [file.reload_if_changed(), file.reload_if_changed()] == [["a"], None]


def test_saving_the_same_text_again_counts_as_a_change(tmp_path: Path) -> None:
    """Shows that an edit and its revert between two scans are noticed."""
    path = tmp_path / "sites.toml"
    file = follower(path)
    path.write_text('urls = ["a"]\n')
    assert file.reload_if_changed() == ["a"]
    (tmp_path / "new").write_text('urls = ["a"]\n')
    os.replace(tmp_path / "new", path)
    assert file.reload_if_changed() == ["a"]
