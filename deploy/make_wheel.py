"""Builds wheel and sdist, including model and vocabularies: ``python deploy/make_wheel.py [FOLDER]``.

Run by ``make wheel`` after ``fetch_data.py``. Builds in a copy of the tree, because setuptools adds leftovers
of earlier builds in ``build/`` to the wheel. Needs no network: setuptools is locked with the rest.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("bot", "ingestion", "storage")
BESIDE = ("pyproject.toml", "README.md", "LICENSE")


def main(target: Path) -> None:
    """Build into ``target`` and print both paths; exit with a message if an archive misses a file."""
    with tempfile.TemporaryDirectory() as folder:
        tree, built = Path(folder) / "tree", Path(folder) / "built"
        built.mkdir()
        wanted = copy_tree(tree)
        # The sdist first: building the wheel leaves files in the tree.
        for build in ("build_sdist", "build_wheel"):
            code = f"import sys; from setuptools import build_meta; build_meta.{build}(sys.argv[1])"
            subprocess.run(
                [sys.executable, "-c", code, built], cwd=tree, check=True, stdout=subprocess.DEVNULL
            )
        (sdist,), (wheel,) = built.glob("*.tar.gz"), built.glob("*.whl")
        missing = wanted - contents_of(sdist) | wanted - contents_of(wheel)
        if missing:
            sys.exit(f"not in wheel and sdist: {', '.join(sorted(missing))}")
        target.mkdir(parents=True, exist_ok=True)
        for made in (sdist, wheel):
            print(shutil.move(made, target / made.name))


def contents_of(archive: Path) -> set[str]:
    """Return the file names in an archive, relative to the tree."""
    if archive.suffix == ".whl":
        return set(zipfile.ZipFile(archive).namelist())
    with tarfile.open(archive) as packed:
        return {name.partition("/")[2] for name in packed.getnames()}


def copy_tree(tree: Path) -> set[str]:
    """Copy the sources into ``tree``; return the names of the packages' files."""
    for name in PACKAGES:
        shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in BESIDE:
        shutil.copy2(ROOT / name, tree / name)
    files = (path for name in PACKAGES for path in (tree / name).rglob("*") if path.is_file())
    return {path.relative_to(tree).as_posix() for path in files}


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "dist")
