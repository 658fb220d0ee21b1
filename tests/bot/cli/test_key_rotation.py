"""``footnote keys``: new keys, in SQL or in a file, and nothing secret on the screen."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path

import pytest
from harness.empty_homes import make_sqlite

from bot.cli.keys.rotation import end_links, rotate_keys, show_keys
from bot.core.citations.signed_links import KeyRing
from storage.errors import SettingsError


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own, with tables."""
    make_sqlite(tmp_path / "home")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FOOTNOTE_HOME", str(tmp_path / "home"))
    return tmp_path


def rotation(file: Path | None = None) -> Namespace:
    """Arguments of ``footnote keys --rotate``."""
    return Namespace(file=file)


async def test_keys_in_sql_are_rotated(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Shows one rotation, and what ends every link."""
    assert await show_keys(Namespace(json=True)) == 0
    assert json.loads(capsys.readouterr().out) == {"where": "sql", "signs": 1, "verify": [1]}
    assert await rotate_keys(rotation()) == 0
    assert "still open" in capsys.readouterr().out
    await show_keys(Namespace(json=True))
    assert json.loads(capsys.readouterr().out)["verify"] == [1, 2]
    assert await end_links(rotation()) == 0
    assert "has ended" in capsys.readouterr().out
    await show_keys(Namespace(json=False))
    assert capsys.readouterr().out == "sql: key 3 signs, 2 verify\n"


async def test_a_file_to_be_mounted_is_made_and_rotated(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Shows a file of 0600, that a mounted one is left alone, and that no key is printed."""
    file = home / "keys.json"
    await rotate_keys(rotation(file))
    assert file.stat().st_mode & 0o777 == 0o600
    (first,) = KeyRing(file).keys()
    await rotate_keys(rotation(file))
    assert first in KeyRing(file).keys()
    monkeypatch.setenv("FOOTNOTE_LINK_KEYS", str(file))
    await show_keys(Namespace(json=False))
    said = capsys.readouterr().out
    assert f"{file}: key 2 signs, 2 verify" in said
    assert not any(json.dumps(one["secret"]) in said for one in json.loads(file.read_bytes())["keys"])
    with pytest.raises(SettingsError, match="--file"):
        await rotate_keys(rotation())
    file.write_text("{}")
    with pytest.raises(SettingsError, match="damaged"):
        await show_keys(Namespace(json=False))
    with pytest.raises(SettingsError, match="left as it is"):
        await rotate_keys(rotation(file))
    file.unlink()
    with pytest.raises(SettingsError, match="cannot be read"):
        await show_keys(Namespace(json=False))
