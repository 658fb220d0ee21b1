"""``footnote demo``: copies PDFs into the watched folder of a channel, then serves.

Each index and each folder of PDFs has a separate home, so the same command finds everything already read.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import os
import re
import shutil
import sys
from pathlib import Path
from shlex import quote

from bot.server_socket import ServerSocket
from storage.errors import SettingsError
from storage.readers.registry import READERS

SAMPLES = Path(__file__).with_name("samples")
CHANNEL = "demo"


async def demo(options: argparse.Namespace) -> int:
    """Copy new and changed PDFs, then serve.

    Raises:
        SettingsError: the port is in use, or there are no PDFs.
    """
    home = options.home or home_of(options.docs, options.weaviate)
    with ServerSocket(options.host, options.port, home):
        pass  # detect a port in use now, not after seconds of imports
    copy_changed(pdfs_of(options.docs), options.docs, home)
    os.environ["FOOTNOTE_HOME"] = str(home)
    if options.weaviate:
        os.environ["WEAVIATE_URL"] = options.weaviate
    print(f"Home       {home}; for other commands on it:", file=sys.stderr)
    print(f"           export FOOTNOTE_HOME={quote(str(home))}", file=sys.stderr)
    status: int = await importlib.import_module("bot.cli.serve").serve(options)
    return status


def pdfs_of(docs: Path) -> list[Path]:
    """List the PDFs below a folder.

    Raises:
        SettingsError: not a folder, or no PDF in it.
    """
    if not docs.is_dir():
        raise SettingsError(f"{docs} is not a folder")
    pdfs = sorted(path for path in docs.rglob("*") if READERS.type_of(path.name) and path.is_file())
    if not pdfs:
        raise SettingsError(f"{docs} holds no PDF")
    return pdfs


def home_of(docs: Path, weaviate: str) -> Path:
    """Return the demo's home, below the working directory: one per index and folder of PDFs."""
    index = "" if not weaviate else "-weaviate" if weaviate == "embedded" else "-" + _plain(weaviate)
    folder = docs.resolve()
    digest = hashlib.sha256(str(folder).encode()).hexdigest()[:8]  # distinguishes folders of the same name
    own = "" if folder == SAMPLES.resolve() else f"-{_plain(folder.name)}-{digest}"
    return Path(".footnote", f"demo{index}{own}").absolute()


def _plain(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "-", text).strip("-").lower()


def copy_changed(pdfs: list[Path], docs: Path, home: Path) -> int:
    """Copy the PDFs that are missing or different in the watched folder; return how many."""
    inbox = home / "inbox" / CHANNEL
    changed = [(pdf, inbox / pdf.relative_to(docs)) for pdf in pdfs]
    changed = [(pdf, target) for pdf, target in changed if _size_and_mtime(pdf) != _size_and_mtime(target)]
    if changed:
        print(f"Copying {len(changed)} PDFs into the watched folder…", file=sys.stderr)
    for pdf, target in changed:
        target.parent.mkdir(parents=True, exist_ok=True)
        # Renamed into place when complete, with its mtime: the next run sees it unchanged.
        shutil.copy2(pdf, inbox.parent / ".arriving")
        (inbox.parent / ".arriving").replace(target)
    return len(changed)


def _size_and_mtime(path: Path) -> tuple[int, int] | None:
    """Return a file's size and mtime, None if it does not exist."""
    if not path.exists():
        return None
    found = path.stat()
    return found.st_size, found.st_mtime_ns
