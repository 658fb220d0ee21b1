"""Share over any other fsspec protocol; relies on fsspec's metadata only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import fsspec
from fsspec.spec import AbstractFileSystem

from ingestion.sources.base import FileStat, Parts
from ingestion.sources.shares.remote_source import (
    ShareEntry,
    ShareError,
    ShareFileMissing,
    Stream,
    plain_share_error,
)

TAGS = ("ETag", "etag", "md5Hash", "content_md5", "generation", "checksum", "version", "id")
TIMES = ("LastModified", "last_modified", "modified", "mtime", "updated", "modifiedTime", "modify")


class FsspecShare:
    """``Share`` over any fsspec file system that lists names, sizes and times."""

    def __init__(self, system: AbstractFileSystem, root: str) -> None:
        """Use the folder ``root``, as the file system spells it."""
        self._system = system
        self._root = root.rstrip("/")

    @classmethod
    def connect(cls, url: str) -> FsspecShare:
        """Return the share at a URL; its fsspec package finds the credentials in its own way."""
        system, root = fsspec.core.url_to_fs(url, skip_instance_cache=True, use_listings_cache=False)
        return cls(system, root)

    def list(self, folder: Parts) -> Iterator[ShareEntry]:
        """Yield the files and folders in a folder."""
        self._system.invalidate_cache()
        path = self._path(folder)
        for info in self._system.ls(path, detail=True):
            name = info["name"].rstrip("/").rpartition("/")[2]
            if info["name"].rstrip("/").lstrip("/") == path.lstrip("/"):
                continue  # some stores list the folder itself
            if info["type"] == "directory":
                yield ShareEntry((*folder, name), None)
            elif info["type"] == "file":
                yield ShareEntry((*folder, name), _file_stat(info))

    def stat(self, file: Parts) -> FileStat:
        """Return the stat of a file."""
        self._system.invalidate_cache()
        info = self._system.info(self._path(file))
        if info["type"] != "file":
            raise ShareFileMissing("There is no such file.")
        return _file_stat(info)

    @contextmanager
    def open(self, file: Parts, file_stat: FileStat, start: int) -> Iterator[Stream]:
        """Yield the file's bytes."""
        with self._system.open(self._path(file), "rb") as stream:
            stream.seek(start)
            yield stream

    def as_share_error(self, error: Exception) -> ShareError:
        """Map Python's built-in errors; others stay unspecific."""
        return plain_share_error(error)

    def close(self) -> None:
        """Do nothing: fsspec closes its connections with their last reference."""

    def _path(self, parts: Parts) -> str:
        return "/".join([self._root, *parts])


def _file_stat(info: dict[str, Any]) -> FileStat:
    tag = next((str(info[key]) for key in TAGS if info.get(key)), "")
    time = next((info[key] for key in TIMES if info.get(key)), 0)
    return FileStat(int(info.get("size") or 0), _nanoseconds(time), 0, 0, tag)


def _nanoseconds(time: object) -> int:
    """Return nanoseconds from a datetime, ISO text or seconds; 0 for anything else."""
    if isinstance(time, str):
        time = datetime.fromisoformat(time)
    if isinstance(time, datetime):
        time = time.timestamp()
    return int(time * 10**9) if isinstance(time, int | float) else 0
