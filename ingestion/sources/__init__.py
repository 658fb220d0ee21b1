"""Watched places: a local folder, a mounted share, or any URL that fsspec reaches."""

from __future__ import annotations

from ingestion.sources.local import LocalSource
from ingestion.sources.port import Look, Scan, SeenFile, Source
from storage.errors import SettingsError

__all__ = ["Look", "Scan", "SeenFile", "Source", "open_source"]


def open_source(location: str) -> Source:
    """The source at a location; nothing is reached for before its first scan.

    Raises:
        SettingsError: the location is malformed, its protocol is unknown or needs a package that is
            not installed; the message says what to do and repeats no password.
    """
    if "://" in location:
        raise SettingsError("folders behind a URL are not reached yet")
    return LocalSource(location)
