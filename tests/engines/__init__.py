"""Registry of the real engines that tests run on, a module each.

Each module has the engine's name, whether it can run here, how to fetch it, and the fixtures that start it.
``tests/conftest.py`` checks availability, ``tests/fetch.py`` fetches.
"""

from __future__ import annotations

import importlib
import os
import socket
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, cast

import pytest

MODULES = sorted(path.stem for path in Path(__file__).parent.glob("[!_]*.py"))
# Fetched by `make test-all` only: tests/conftest.py refuses a daily test that names one of them.
LONG_ONLY = ("actionlint", "firefox", "helm", "images", "promtool", "toxiproxy")


class Engine(Protocol):
    """Interface of a module ``engines.<name>``, besides its fixtures."""

    # Argument of ``@pytest.mark.engine(NAME)``.
    NAME: str

    # Command that makes it available on a machine where it is not.
    REMEDY: str

    # True if it would listen on public interfaces: then it is started behind loopback only.
    BINDS_EVERYWHERE: bool

    def missing(self) -> str | None:
        """Return why it cannot run here, in a few words, or None. Must be fast."""

    def fetch(self) -> None:
        """Download it into ``cache()``, checked against a pinned hash; do nothing if it is there.

        Raises:
            FetchError: it cannot be fetched on this machine; the message says why.
        """


class FetchError(Exception):
    """An engine could not be fetched."""


@dataclass(frozen=True, slots=True)
class Absence:
    """An engine that cannot run here: the reason, and the command that fixes it."""

    why: str
    remedy: str


def cache() -> Path:
    """Return the folder of fetched engines, outside the repository and shared by all checkouts."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "footnote"


def load(name: str) -> Engine:
    """Return the module of an engine."""
    return cast(Engine, importlib.import_module(f"engines.{name}"))


def apt_install(package: str) -> None:
    """Install a Debian package without prompts, waiting for the lock of another installation.

    Raises:
        FetchError: not run as root, or apt failed.
    """
    if os.geteuid() != 0:
        raise FetchError(f"only root can install {package}: sudo apt-get install -y {package}")
    patient = ["apt-get", "-q", "-o", "DPkg::Lock::Timeout=300"]
    quiet = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for command in ([*patient, "update"], [*patient, "install", "-y", package]):
        run_fetching(command, env=quiet)


def run_fetching(command: Sequence[str], *, seconds: float = 900, **options: Any) -> str:
    """Run a command that fetches or builds something; return its standard output.

    Args:
        command: program and arguments.
        seconds: timeout.
        options: passed to ``subprocess.run``.
    Raises:
        FetchError: it failed or timed out; the message ends with its standard error.
    """
    name = " ".join(command[:3])
    try:
        done: subprocess.CompletedProcess[str] = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=seconds, **options
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise FetchError(f"{name}: {error}") from None
    if done.returncode:
        why = done.stderr.strip()[-500:] or done.stdout.strip()[-500:] or f"exit status {done.returncode}"
        raise FetchError(f"{name} failed: {why}")
    return done.stdout.strip()


def is_loopback_only() -> bool:
    """True if this process has no network interface but loopback, as in a new network namespace."""
    return {name for _, name in socket.if_nameindex()} <= {"lo"}


def absence(engine: Engine) -> Absence | None:
    """Return why the tests of an engine cannot run here, or None."""
    if why := engine.missing():
        return Absence(why, engine.REMEDY)
    if engine.BINDS_EVERYWHERE and not is_loopback_only():
        return Absence("it listens on all interfaces: only in a network namespace", "sudo make test")
    return None


def require_fetched_engines(items: list[pytest.Item]) -> None:
    """Refuse a daily test that needs an engine of LONG_ONLY.

    It would pass wherever everything was fetched, and fail on every new machine.
    """
    for item in items:
        names = {marker.args[0] for marker in item.iter_markers("engine")}
        if not item.get_closest_marker("long") and (extra := names.intersection(LONG_ONLY)):
            raise pytest.UsageError(f"{item.nodeid}: {', '.join(sorted(extra))} is not fetched daily")
