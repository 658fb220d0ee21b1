"""Folders of files that appear whole and durable, or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4


def keep_folder(final: Path, fill: Callable[[Path], None]) -> None:
    """Have ``fill`` write a folder's files, each of them synchronised, and put it in its place.

    One that is there already is replaced; when ``fill`` fails, nothing has changed.
    """
    temporary = final.with_name(f".{final.name}.{uuid4().hex}")
    temporary.mkdir(parents=True)
    try:
        fill(temporary)
        _sync_folder(temporary)
        _put_in_place(temporary, final)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def share_file(file: Path, target: Path) -> None:
    """One file under two names: neither is ever changed, and each may be removed. Else a copy."""
    try:
        os.link(file, target)
    except OSError:  # this file system knows one name per file
        shutil.copyfile(file, target)
        with target.open("rb") as copy:
            os.fsync(copy.fileno())


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _put_in_place(temporary: Path, final: Path) -> None:
    """One rename; an older folder of that name steps aside first, which only a repeated step meets."""
    if final.exists():
        aside = final.with_name(f"{temporary.name}.old")
        final.rename(aside)
        temporary.rename(final)
        shutil.rmtree(aside, ignore_errors=True)
    else:
        temporary.rename(final)
    _sync_folder(final.parent)
    _sync_folder(final.parent.parent)
