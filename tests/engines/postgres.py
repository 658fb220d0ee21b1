"""postgres: Debian's own server on a cluster of this run, which tests may kill and start again.

It listens on a socket in its own folder only, unless a test starts one with a port. It leaves syncing to
the kernel: tests end processes, not machines. Every test gets a database of its own; most get a copy of one
that was migrated once.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote
from uuid import uuid4

import psycopg
import pytest
from harness.empty_homes import migrate
from harness.processes import children

from engines import apt_install, is_loopback_only
from engines.support.starting import halt, wait_until_ready

NAME = "postgres"
REMEDY = "sudo apt-get install -y postgresql"
BINDS_EVERYWHERE = False
USER, PASSWORD = "footnote", "cast-iron"
DEFAULT_PORT = 5432


def programs() -> Path | None:
    """Return the folder of the newest server that is installed."""
    found = Path("/usr/lib/postgresql").glob("*/bin/initdb")
    return max((file.parent for file in found), key=lambda folder: float(folder.parent.name), default=None)


def missing() -> str | None:
    """True if it is installed."""
    return None if programs() else "Debian's PostgreSQL is not installed"


def fetch() -> None:
    """Install it, which needs root."""
    if not programs():
        apt_install("postgresql")


class RealPostgres:
    """A server that can be stopped, killed and started again on the same data."""

    def __init__(self, folder: Path, port: int | None = None) -> None:
        """Make a cluster in an empty folder that belongs to ``account()``.

        ``port``: where it listens on loopback as well; None: nowhere.
        """
        self._folder = folder
        self.port = port
        self._server: subprocess.Popen[bytes] | None = None
        self._home: str | None = None
        secret = folder / "password"
        secret.write_text(PASSWORD)
        self._run("initdb", "-D", str(self._data), "-U", USER, "-A", "scram-sha-256", "-E", "UTF8",
                  "--locale=C.UTF-8", "--no-sync", f"--pwfile={secret}")  # fmt: skip

    @property
    def _data(self) -> Path:
        return self._folder / "data"

    def url(self, database: str = "postgres") -> str:
        """``DATABASE_URL`` of one of its databases."""
        port = f"&port={self.port}" if self.port else ""
        return f"postgresql://{USER}:{PASSWORD}@/{database}?host={quote(str(self._folder), safe='')}{port}"

    def url_at(self, port: int, database: str) -> str:
        """Return the same, by TCP: for a server with a port, or what stands in front of it."""
        return f"postgresql://{USER}:{PASSWORD}@127.0.0.1:{port}/{database}"

    def start(self) -> None:
        """Start it and wait until it takes connections."""
        command = ["-D", str(self._data), "-k", str(self._folder)]
        command += ["-c", f"listen_addresses={'127.0.0.1' if self.port else ''}", "-c", "fsync=off"]
        command += ["-p", str(self.port)] if self.port else []
        command += [
            "-c",
            "authentication_timeout=30",
        ]  # a connection that was given up goes; a slow one stays
        with (self._folder / "log.txt").open("ab") as log:
            self._server = subprocess.Popen(
                [_program("postgres"), *command],
                stdout=log, stderr=log, cwd=self._folder, user=account(), start_new_session=True,
            )  # fmt: skip
        wait_until_ready(self._server, self._is_ready, self._folder / "log.txt")

    def kill(self) -> None:
        """``kill -9`` of every process of it: nothing is flushed or said goodbye to."""
        main = self._running.pid
        for process in (main, *children(main)):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        self._running.wait(10)

    def pause(self) -> None:
        """Stop it where it is: connections stay open, nothing answers."""
        main = self._running.pid
        for process in (main, *children(main)):
            halt(process)

    def resume(self) -> None:
        """Let it go on."""
        main = self._running.pid
        for process in (main, *children(main)):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGCONT)

    def stop(self) -> None:
        """End it as an administrator who does not wait for its clients."""
        if self._server is not None and self._server.poll() is None:
            self._server.send_signal(signal.SIGINT)
            self._server.wait(60)

    def make_database(self) -> str:
        """URL of a fresh database."""
        name = f"home_{uuid4().hex}"
        self.say(f"CREATE DATABASE {name}")
        return self.url(name)

    def make_home(self) -> str:
        """URL of a fresh database with today's tables."""
        if self._home is None:
            made = self.make_database()
            migrate(made)
            self._home = database_of(made)
        name = f"home_{uuid4().hex}"
        self.say(f"CREATE DATABASE {name} TEMPLATE {self._home}")
        return self.url(name)

    def drop(self, url: str) -> None:
        """Remove a database, whoever is connected to it; it may stay where somebody is still connecting."""
        with (
            psycopg.connect(self.url(), autocommit=True) as connection,
            suppress(psycopg.errors.QueryCanceled),
        ):
            connection.execute("SET statement_timeout = '2s'")
            connection.execute(f"DROP DATABASE {database_of(url)} WITH (FORCE)")

    def say(self, *statements: str) -> None:
        """Run statements as its administrator, in a connection of its own."""
        with psycopg.connect(self.url(), autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement)

    def _is_ready(self) -> bool:
        command = [_program("pg_isready"), "-q", "-h", self._folder, "-p", str(self.port or DEFAULT_PORT)]
        return not subprocess.run(command, check=False).returncode

    @property
    def _running(self) -> subprocess.Popen[bytes]:
        assert self._server is not None, "not started"
        return self._server

    def _run(self, name: str, *arguments: str) -> str:
        done = subprocess.run(
            [_program(name), *arguments], capture_output=True, text=True, check=False,
            cwd=self._folder, env={**os.environ, "LC_ALL": "C.UTF-8"}, user=account(),
        )  # fmt: skip
        assert not done.returncode, done.stderr
        return done.stdout.strip()


def database_of(url: str) -> str:
    """Return the name of the database in a URL."""
    return url.partition("@/")[2].partition("?")[0]


def _program(name: str) -> Path:
    folder = programs()
    assert folder is not None, REMEDY
    return folder / name


def account() -> int | None:
    """Whom its processes run as: it refuses to run as root, which then gives way to Debian's own user."""
    return pwd.getpwnam("postgres").pw_uid if os.geteuid() == 0 else None


def memory() -> Path | None:
    """Folder in memory with room for some gigabytes, if this run has one that ends with it; else None."""
    shared = Path("/dev/shm")  # noqa: S108 - only names that nobody can guess are made in it
    return shared if is_loopback_only() and shutil.disk_usage(shared).free > 4 << 30 else None


@contextmanager
def running_postgres(port: int | None = None) -> Iterator[RealPostgres]:
    """Yield a server on a fresh cluster, which is gone afterwards; ``port`` as ``RealPostgres`` has it."""
    # Short, as a socket's path has at most 107 bytes; in memory, as each test's database is a copy of files.
    folder = Path(tempfile.mkdtemp(prefix="footnote-pg-", dir=memory()))
    if (owner := account()) is not None:
        os.chown(folder, owner, -1)
    server = RealPostgres(folder, port)
    try:
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder)


@pytest.fixture(scope="session")
def postgres() -> Iterator[RealPostgres]:
    """One server for all tests; a test that stops it starts it again."""
    with running_postgres() as server:
        yield server


@pytest.fixture
def postgres_url(request: pytest.FixtureRequest, postgres: RealPostgres) -> Iterator[str]:
    """``DATABASE_URL`` of an empty database of this test's own; with tables where ``database`` opens it."""
    url = postgres.make_home() if "database" in request.fixturenames else postgres.make_database()
    yield url
    postgres.drop(url)
