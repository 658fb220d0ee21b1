"""Downloads by pip, checked against a hash written in this repository."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from engines import cache, run_fetching


def wheel(name: str, version: str, sha256: str) -> Path:
    """Download a wheel as a file, without dependencies and without installing it; return its path."""
    folder = cache() / f"wheel-{name}-{version}"
    if not folder.exists():
        cache().mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache()) as scratch:
            lock = Path(scratch) / "lock.txt"
            lock.write_text(f"{name}=={version} --hash=sha256:{sha256}\n")
            pip = (sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:")
            command = [*pip, "--require-hashes", "-r", str(lock), "-d", str(Path(scratch) / "wheel")]
            run_fetching(command)
            (Path(scratch) / "wheel").rename(folder)
    return next(folder.glob("*.whl"))
