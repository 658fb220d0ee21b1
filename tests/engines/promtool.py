"""promtool: Prometheus' own check of alert rules. Apache-2.0, built from its Go module."""

from __future__ import annotations

from engines import cache
from engines.support.go_modules import build

NAME = "promtool"
REMEDY = ".venv/bin/python tests/fetch.py promtool (needs Go)"
BINDS_EVERYWHERE = False

VERSION = "v0.316.0"
MODULE = f"github.com/prometheus/prometheus@{VERSION}"
# Hash in go.sum format.
CHECKSUM = "h1:f1GRFerhTMKQma+awCoC9T820ecWeGSdF+xAlMHzZzM="
BINARY = cache() / f"promtool-{VERSION}"


def missing() -> str | None:
    """Return why it cannot run here, or None."""
    return None if BINARY.exists() else "promtool was not built"


def fetch() -> None:
    """Build it from sources with pinned hashes; takes minutes.

    Raises:
        FetchError: Go is missing or too old, or a module is unavailable or has another hash.
    """
    build(MODULE, CHECKSUM, "./cmd/promtool", BINARY)
