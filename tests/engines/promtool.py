"""promtool: Prometheus' own check of alert rules. Apache-2.0, built from its Go module."""

from __future__ import annotations

import subprocess

from sources import ROOT

from engines import FetchError, cache
from engines.support.go_modules import program

NAME = "promtool"
REMEDY = ".venv/bin/python tests/fetch.py promtool (needs Go)"
BINDS_EVERYWHERE = False

VERSION = "v0.316.0"
MODULE = f"github.com/prometheus/prometheus@{VERSION}"
CHECKSUM = "h1:f1GRFerhTMKQma+awCoC9T820ecWeGSdF+xAlMHzZzM="
"""As Go would write it into a go.sum."""
BINARY = cache() / f"promtool-{VERSION}"
BUILD_SECONDS = 1200


def missing() -> str | None:
    """Whether it was built."""
    return None if BINARY.exists() else "promtool was not built"


def fetch() -> None:
    """Build it of files whose hashes are known; takes minutes.

    Raises:
        FetchError: Go is missing or too old, or a module is out of reach or another one.
    """
    command = [
        str(ROOT / "deploy" / "go_program.sh"),
        program(),
        MODULE,
        CHECKSUM,
        "./cmd/promtool",
        str(BINARY),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=BUILD_SECONDS, check=False)
    if done.returncode:
        raise FetchError(f"promtool was not built: {done.stderr.strip()[-300:]}")
