"""promtool: Prometheus' own check of alert rules. Apache-2.0, built from its Go module."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

from engines import FetchError, cache
from engines.support.go_modules import program

NAME = "promtool"
REMEDY = ".venv/bin/python tests/fetch.py promtool (needs Go)"
BINDS_EVERYWHERE = False

VERSION = "v0.316.0"
BINARY = cache() / f"promtool-{VERSION}"
BUILD_SECONDS = 1200


def missing() -> str | None:
    """Whether it was built."""
    return None if BINARY.exists() else "promtool was not built"


def fetch() -> None:
    """Build it; Go checks every module against its checksum database.

    Raises:
        FetchError: Go is missing, or a module is out of reach.
    """
    with tempfile.TemporaryDirectory(dir=cache()) as scratch:
        environment = {**os.environ, "CGO_ENABLED": "0", "GOBIN": scratch, "GOFLAGS": "-trimpath"}
        command = [program(), "install", f"github.com/prometheus/prometheus/cmd/promtool@{VERSION}"]
        done = subprocess.run(
            command,
            cwd="/",
            env=environment,
            capture_output=True,
            text=True,
            timeout=BUILD_SECONDS,
            check=False,
        )
        if done.returncode:
            raise FetchError(f"promtool was not built: {done.stderr.strip()[-300:]}")
        (Path(scratch) / "promtool").rename(BINARY)
