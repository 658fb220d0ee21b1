"""Sources of files: a local folder, a mounted share, or any URL that fsspec supports."""

from __future__ import annotations

from ingestion.sources.base import FileStat, Scan, ScannedFile, Source
from ingestion.sources.local import LocalSource
from ingestion.sources.shares.registry import open_share
from ingestion.sources.shares.settings import ShareSettings
from storage.settings import load

__all__ = ["FileStat", "Scan", "ScannedFile", "Source", "open_source", "scan_location"]


def open_source(location: str, *, follows_link: bool = True) -> Source:
    """Return the source at a location; a URL is not contacted before its first scan.

    Args:
        location: an absolute path, or a URL without credentials.
        follows_link: whether a local folder may itself be a symlink.

    Raises:
        SettingsError: the location is malformed, or its protocol is unknown or needs a missing package; the
            message says what to do and contains no password.
    """
    settings = load(ShareSettings)
    if "://" not in location:
        return LocalSource(location, settings.share_timeout, follows_link=follows_link)
    return open_share(location, settings)


def scan_location(location: str, only: str | None = None) -> Scan:
    """Scan a location, or one file in it; blocks, and raises like ``open_source``."""
    source = open_source(location)
    try:
        return source.scan() if only is None else source.scan_file(only)
    finally:
        source.close()
