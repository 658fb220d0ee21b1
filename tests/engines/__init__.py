"""The real engines that tests run on: every module of this package is one.

Every engine's module says what it is called, whether it can run here and how to get it, and holds
the fixtures that start it. ``tests/conftest.py`` reads these answers, ``tests/fetch.py`` fetches.
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
# Fetched by `make test-all` only: no daily test may name one of them, and tests/conftest.py refuses it.
LONG_ONLY = ("actionlint", "firefox", "helm", "images", "promtool", "toxiproxy")


class Engine(Protocol):
    """What a module ``engines.<name>`` offers beside its fixtures."""

    # As in ``@pytest.mark.engine(NAME)``.
    NAME: str

    # The command that makes it run on a machine where it does not.
    REMEDY: str

    # Whether strangers on the network could use it: then it starts behind loopback only.
    BINDS_EVERYWHERE: bool

    def missing(self) -> str | None:
        """Why it cannot run here, in a few words, or None. Only looks; takes no time."""

    def fetch(self) -> None:
        """Get it into ``cache()``, checked against a pinned hash; nothing to do when it is there.

        Raises:
            FetchError: this machine cannot get it; the message says why.
        """


class FetchError(Exception):
    """An engine could not be fetched."""


@dataclass(frozen=True, slots=True)
class Absence:
    """An engine that does not run here: why, and the command that would make it."""

    why: str
    remedy: str


def cache() -> Path:
    """Where engines are kept: outside the repository, shared by all checkouts."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "footnote"


def load(name: str) -> Engine:
    """Return the module of an engine."""
    return cast(Engine, importlib.import_module(f"engines.{name}"))


def apt_install(package: str) -> None:
    """Install a package of Debian's; nobody is asked, and another installation is waited for.

    Raises:
        FetchError: only root can, or it went wrong.
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
        command: the program and its arguments.
        seconds: how long it may take.
        options: as ``subprocess.run`` takes them.

    Raises:
        FetchError: it failed, for what its standard error says at the end.
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
    """True if this process sees no network beyond its own machine, as in a fresh namespace."""
    return {name for _, name in socket.if_nameindex()} <= {"lo"}


def absence(engine: Engine) -> Absence | None:
    """Why the tests of an engine cannot run here, or None when they can."""
    if why := engine.missing():
        return Absence(why, engine.REMEDY)
    if engine.BINDS_EVERYWHERE and not is_loopback_only():
        return Absence("it listens on all interfaces: only in a network namespace", "sudo make test")
    return None


def require_fetched_engines(items: list[pytest.Item]) -> None:
    """Refuse a daily test of an engine that the daily fetch does not bring.

    It would pass wherever somebody has fetched everything, and fail on every fresh machine.
    """
    for item in items:
        names = {marker.args[0] for marker in item.iter_markers("engine")}
        if not item.get_closest_marker("long") and (extra := names.intersection(LONG_ONLY)):
            raise pytest.UsageError(f"{item.nodeid}: {', '.join(sorted(extra))} is not fetched daily")
