"""npm packages: downloaded with pinned hashes and without running their scripts."""

from __future__ import annotations

import base64
import hashlib
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from engines import FetchError, cache, run_fetching


@dataclass(frozen=True, slots=True)
class NpmPackage:
    """A package version with its archive's hash as in the registry."""

    name: str
    version: str
    sha512: str

    @property
    def folder(self) -> Path:
        """Folder of its files after `fetch`."""
        return cache() / f"{self.name.rsplit('/', 1)[-1]}-{self.version}" / "package"

    def fetch(self) -> None:
        """Download, verify and unpack; do nothing if it exists.

        Raises:
            FetchError: npm is missing, the registry is unreachable, or the hash differs.
        """
        if self.folder.exists():
            return
        cache().mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache()) as scratch:
            archive = self._pack(Path(scratch))
            if base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode() != self.sha512:
                raise FetchError(f"{self.name}@{self.version} is not the archive that was pinned")
            # Not tarfile: Python 3.11.2 of Debian 12 lacks its safe filter.
            run_fetching(["tar", "-xzf", archive.name], cwd=scratch)
            self.folder.parent.mkdir(exist_ok=True)
            shutil.move(Path(scratch) / "package", self.folder)

    def _pack(self, scratch: Path) -> Path:
        _npm(scratch, "pack", f"{self.name}@{self.version}")
        return next(scratch.glob("*.tgz"))


def install(project: Path) -> None:
    """Install what a ``package-lock.json`` locks, with its hashes.

    Raises:
        FetchError: npm is missing, the registry is unreachable, or a hash differs.
    """
    _npm(project, "ci", "--ignore-scripts", "--no-audit", "--no-fund")


def _npm(folder: Path, command: str, *arguments: str) -> None:
    if shutil.which("npm") is None:
        raise FetchError("npm is not installed")
    # Not --silent, which would hide the cause of a failure.
    run_fetching(["npm", command, *arguments, "--loglevel=error"], cwd=folder)
