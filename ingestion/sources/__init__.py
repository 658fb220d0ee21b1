"""Watched places: a local folder, a mounted share, or any URL that fsspec reaches."""

from __future__ import annotations

from ingestion.sources.local import LocalSource
from ingestion.sources.port import Look, Scan, SeenFile, Source
from ingestion.sources.protocols import open_share
from ingestion.sources.settings import ShareSettings
from storage.settings import load

__all__ = ["Look", "Scan", "SeenFile", "Source", "open_source"]


def open_source(location: str) -> Source:
    """The source at a location; a URL is not reached for before its first scan.

    Raises:
        SettingsError: the location is malformed, its protocol is unknown or needs a package that is
            not installed; the message says what to do and repeats no password.
    """
    settings = load(ShareSettings)
    if "://" not in location:
        return LocalSource(location, settings.share_timeout)
    return open_share(location, settings)
