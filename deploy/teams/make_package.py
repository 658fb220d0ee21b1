"""Builds the Teams app package: ``make_package.py APP_ID PUBLIC_URL [FILE.zip] [--files]``.

``--files``: people may send files in personal chats, to the library that ``FOOTNOTE_UPLOADS`` names.

Your bot's id and address replace the manifest's placeholders. The two icons are drawn here, so that the
repository contains no binaries.
"""

from __future__ import annotations

import json
import struct
import sys
import zipfile
import zlib
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

Pixel = bytes

FILES = "--files"
MANIFEST = Path(__file__).with_name("manifest.json")
DARK, WHITE, CLEAR = b"\x1f\x29\x37\xff", b"\xff\xff\xff\xff", b"\x00\x00\x00\x00"


def main(arguments: list[str]) -> int:
    """Write the package; return the exit status."""
    named = [one for one in arguments if one != FILES]
    if len(named) not in (2, 3):
        print(__doc__, file=sys.stderr)
        return 2
    app_id, public_url, *target = named
    path = Path(target[0] if target else "footnote-teams.zip")
    write_package(path, UUID(app_id), public_url, takes_files=FILES in arguments)
    print(f"{path}: upload it in Teams under Apps > Manage your apps > Upload an app")
    return 0


def write_package(path: Path, app_id: UUID, public_url: str, *, takes_files: bool = False) -> None:
    """Write a zip with the manifest and its icons."""
    values = manifest(app_id, public_url, takes_files=takes_files)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as package:
        package.writestr("manifest.json", json.dumps(values, indent=2))
        package.writestr("color.png", draw_icon(192, DARK, WHITE))
        package.writestr("outline.png", draw_icon(32, CLEAR, WHITE))


def manifest(app_id: UUID, public_url: str, *, takes_files: bool = False) -> dict[str, object]:
    """Return the manifest of a bot at an address; ``takes_files`` sets ``supportsFiles``."""
    values: dict[str, Any] = json.loads(MANIFEST.read_text(encoding="utf-8"))
    base = public_url.rstrip("/")
    pages = {"websiteUrl": f"{base}/about", "privacyUrl": f"{base}/privacy", "termsOfUseUrl": f"{base}/terms"}
    bot = {"botId": str(app_id)}
    return values | {
        "id": str(app_id),
        "developer": values["developer"] | pages,
        "bots": [one | bot | {"supportsFiles": takes_files} for one in values["bots"]],
        "composeExtensions": [one | bot for one in values["composeExtensions"]],
        "validDomains": [urlsplit(base).netloc],
    }


def draw_icon(size: int, ground: Pixel, ink: Pixel) -> bytes:
    """Return the icon, a page with three lines and a mark, as a PNG of ``size`` x ``size`` pixels."""
    rows = [
        b"".join(ink if _is_ink(x / size, y / size) else ground for x in range(size)) for y in range(size)
    ]
    return _png(size, rows)


def _is_ink(x: float, y: float) -> bool:
    on_edge = 0.22 <= x <= 0.78 and 0.12 <= y <= 0.88 and not (0.28 <= x <= 0.72 and 0.18 <= y <= 0.82)
    on_line = 0.34 <= x <= 0.66 and any(top <= y <= top + 0.06 for top in (0.28, 0.40, 0.52))
    on_mark = 0.34 <= x <= 0.44 and 0.66 <= y <= 0.76
    return on_edge or on_line or on_mark


def _png(size: int, rows: list[bytes]) -> bytes:
    header = struct.pack(">IIBBBBB", size, size, 8, 6, 0, 0, 0)
    pixels = zlib.compress(b"".join(b"\x00" + row for row in rows), 9)
    parts = [(b"IHDR", header), (b"IDAT", pixels), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in parts)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
