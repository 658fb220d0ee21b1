"""Builds the wheel with the model and the vocabularies in it: ``python deploy/make_wheel.py [FOLDER]``.

``make wheel`` runs it after ``fetch_data.py``. It builds in a copy of the tree, because setuptools puts what
an earlier build left in ``build/`` into the wheel. Nothing is fetched: setuptools is locked with the rest.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("bot", "ingestion", "storage")
BESIDE = ("pyproject.toml", "README.md", "LICENSE")


def main(target: Path) -> None:
    """Build into ``target`` and print where the wheel is; exit with a sentence when a file is not in it."""
    with tempfile.TemporaryDirectory() as folder:
        tree, built = Path(folder) / "tree", Path(folder) / "built"
        wanted = copy_tree(tree)
        command = [sys.executable, "-m", "pip", "wheel", "-q", "--disable-pip-version-check", "--no-deps"]
        subprocess.run([*command, "--no-build-isolation", "-w", str(built), str(tree)], check=True)
        (wheel,) = built.glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            missing = wanted - set(archive.namelist())
        if missing:
            sys.exit(f"not in the wheel: {', '.join(sorted(missing))}")
        target.mkdir(parents=True, exist_ok=True)
        print(shutil.move(wheel, target / wheel.name))


def copy_tree(tree: Path) -> set[str]:
    """Copy what a wheel is made of; returns the names of the packages' files."""
    for name in PACKAGES:
        shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in BESIDE:
        shutil.copy2(ROOT / name, tree / name)
    files = (path for name in PACKAGES for path in (tree / name).rglob("*") if path.is_file())
    return {path.relative_to(tree).as_posix() for path in files}


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "dist")
