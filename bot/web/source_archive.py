"""Offers the running program's own source, as its licence (AGPL, section 13) asks."""

from __future__ import annotations

import asyncio
import io
import tarfile
from pathlib import Path

from aiohttp import web

_ROOT = Path(__file__).parents[2]
_PACKAGES = ("bot", "ingestion", "storage")
_CHECKOUT = ("deploy", "docs", "tests")
_BESIDE = ("pyproject.toml", "requirements*.txt", "README.md", "LICENSE", "CHANGELOG.md", "Makefile")
_KINDS = {".py", ".html", ".css", ".js", ".svg", ".md", ".mako", ".toml", ".txt", ".sh"}


def pack_source() -> bytes:
    """The files of this installation, as a compressed tar archive."""
    # In a checkout nothing foreign lies beside the three packages: what builds and tests them is packed, too.
    is_checkout = (_ROOT / "pyproject.toml").exists()
    rooms = (*_PACKAGES, *_CHECKOUT) if is_checkout else _PACKAGES
    inside = [path for room in rooms for path in (_ROOT / room).rglob("*") if path.suffix in _KINDS]
    beside = [path for pattern in _BESIDE for path in _ROOT.glob(pattern)] if is_checkout else []
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as tar:
        for path in sorted((*inside, *beside)):
            if path.is_file() and not path.is_symlink():
                tar.add(path, f"footnote/{path.relative_to(_ROOT)}", filter=_without_owner)
    return archive.getvalue()


def _without_owner(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


class SourceArchive:
    """Serves the archive, packed at the first request."""

    def __init__(self) -> None:
        self._packing: asyncio.Task[bytes] | None = None

    async def serve(self, request: web.Request) -> web.Response:
        """The archive."""
        self._packing = self._packing or asyncio.create_task(asyncio.to_thread(pack_source))
        body = await asyncio.shield(self._packing)
        disposition = {"Content-Disposition": 'attachment; filename="footnote-source.tar.gz"'}
        return web.Response(body=body, content_type="application/gzip", headers=disposition)
