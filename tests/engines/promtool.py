"""promtool: Prometheus' own check of alert rules. Apache-2.0, built from its Go module."""

from __future__ import annotations

from engines import cache
from engines.support.go_modules import install

NAME = "promtool"
REMEDY = ".venv/bin/python tests/fetch.py promtool (needs Go)"
BINDS_EVERYWHERE = False

VERSION = "v0.316.0"
BINARY = cache() / f"promtool-{VERSION}"


def missing() -> str | None:
    """Whether it was built."""
    return None if BINARY.exists() else "promtool was not built"


def fetch() -> None:
    """Build it.

    Raises:
        FetchError: Go is missing, or a module is out of reach.
    """
    install("github.com/prometheus/prometheus/cmd/promtool", VERSION, BINARY)
