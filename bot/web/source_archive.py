"""Source archive of the running program, as the AGPL (section 13) requires."""

from __future__ import annotations

import asyncio
import io
import subprocess
import tarfile
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path, PurePath

from aiohttp import web

_ROOT = Path(__file__).parents[2]
_PACKAGES = ("bot", "ingestion", "storage")
# Files that build or install a wheel.
_BESIDE = (
    "pyproject.toml",
    "requirements.txt",
    "requirements-shares.txt",
    "requirements-otel.txt",
    "README.md",
    "LICENSE",
    "Makefile",
    "deploy/install.sh",
    "deploy/fetch_data.py",
    "deploy/data.txt",
    "deploy/make_wheel.py",
    "deploy/Apache-2.0.txt",
)
# Package data as in pyproject.toml, without the models: their source is not ours.
_PACKAGE_DATA = {".py", ".html", ".css", ".js", ".svg", ".md", ".mako", ".toml", ".typed", ".pdf"}
GIT_SECONDS = 20


def pack_source(root: Path = _ROOT) -> bytes:
    """Return this program's files as a .tar.gz, without unrelated files beside them."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as tar:
        for path in sorted(_tracked(root) or _installed(root) or _packaged(root)):
            if path.is_file() and not path.is_symlink():
                tar.add(path, f"footnote/{path.relative_to(root)}", filter=_without_owner)
    return archive.getvalue()


def _tracked(root: Path) -> list[Path]:
    """Return the files of a checkout that git tracks."""
    if not (root / ".git").exists():
        return []
    # The checkout may belong to another user: run no program that its configuration names.
    command = ["git", "-c", f"safe.directory={root}", "-c", "core.fsmonitor=false", "ls-files", "-z"]
    try:
        listed = subprocess.run(command, cwd=root, capture_output=True, check=True, timeout=GIT_SECONDS)
    except (OSError, subprocess.SubprocessError):
        return []
    return [root / name for name in listed.stdout.decode(errors="surrogateescape").split("\0") if name]


def _installed(root: Path) -> list[Path]:
    """Return the files of an installed wheel: package files, licence and METADATA.

    A wheel does not contain its build scripts; METADATA names the project's URL.
    """
    try:
        recorded = files("footnote-bot") or ()
    except PackageNotFoundError:
        return []
    found = [Path(str(one.locate())) for one in recorded if _is_source(one)]
    return [path for path in found if path.is_relative_to(root)]


def _is_source(path: PurePath) -> bool:
    if path.parts[0] in _PACKAGES:
        return path.suffix in _PACKAGE_DATA
    return path.name in ("METADATA", "LICENSE")


def _packaged(root: Path) -> list[Path]:
    """Return the files of an unpacked archive: the contents of a wheel, and what builds it."""
    inside = [path for room in _PACKAGES for path in (root / room).rglob("*") if path.suffix in _PACKAGE_DATA]
    return [*inside, *(root / name for name in _BESIDE)]


def _without_owner(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


class SourceArchive:
    """Route handler of the archive, which is packed at the first request."""

    def __init__(self) -> None:
        self._packing: asyncio.Task[bytes] | None = None

    async def serve(self, request: web.Request) -> web.Response:
        """Return the archive."""
        self._packing = self._packing or asyncio.create_task(asyncio.to_thread(pack_source))
        body = await asyncio.shield(self._packing)
        disposition = {"Content-Disposition": 'attachment; filename="footnote-source.tar.gz"'}
        return web.Response(body=body, content_type="application/gzip", headers=disposition)
