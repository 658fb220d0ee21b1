"""actionlint: a linter of GitHub workflows. MIT, built from its Go module."""

from __future__ import annotations

from engines import cache
from engines.support.go_modules import build

NAME = "actionlint"
REMEDY = ".venv/bin/python tests/fetch.py actionlint (needs Go)"
BINDS_EVERYWHERE = False

VERSION = "v1.7.12"
MODULE = f"github.com/rhysd/actionlint@{VERSION}"
CHECKSUM = "h1:vQ4GeJN86C0QH+gTUQcs8McmK62OLT3kmakPMtEWYnY="
BINARY = cache() / f"actionlint-{VERSION}"


def missing() -> str | None:
    """Return why it cannot run here, or None."""
    return None if BINARY.exists() else "actionlint was not built"


def fetch() -> None:
    """Build it from sources with pinned hashes.

    Raises:
        FetchError: Go is missing or too old, or a module is unavailable or has another hash.
    """
    build(MODULE, CHECKSUM, "./cmd/actionlint", BINARY)
