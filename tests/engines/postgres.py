"""postgres: Debian's own server on a temporary cluster that tests may kill and restart.

It listens on a Unix socket only, unless a test requests a port. fsync is off, because tests kill processes,
not machines. Every test gets its own database, usually a copy of a migrated template.
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
    """Return the folder of the newest installed server."""
    found = Path("/usr/lib/postgresql").glob("*/bin/initdb")
    return max((file.parent for file in found), key=lambda folder: float(folder.parent.name), default=None)


def missing() -> str | None:
    """Return why it cannot run here, or None."""
    return None if programs() else "Debian's PostgreSQL is not installed"


def fetch() -> None:
    """Install it, as root."""
    if not programs():
        apt_install("postgresql")


class RealPostgres:
    """A server that can be stopped, killed and restarted on the same data."""

    def __init__(self, folder: Path, port: int | None = None) -> None:
        """Create a cluster in an empty folder owned by ``account()``.

        ``port``: loopback port to listen on as well, or None.
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
        """Return the ``DATABASE_URL`` of one of its databases."""
        port = f"&port={self.port}" if self.port else ""
        return f"postgresql://{USER}:{PASSWORD}@/{database}?host={quote(str(self._folder), safe='')}{port}"

    def url_at(self, port: int, database: str) -> str:
        """Return the URL over TCP: for a server with a port, or a proxy in front of it."""
        return f"postgresql://{USER}:{PASSWORD}@127.0.0.1:{port}/{database}"

    def start(self) -> None:
        """Start it and wait until it accepts connections."""
        command = ["-D", str(self._data), "-k", str(self._folder)]
        command += ["-c", f"listen_addresses={'127.0.0.1' if self.port else ''}", "-c", "fsync=off"]
        command += ["-p", str(self.port)] if self.port else []
        command += [
            "-c",
            "authentication_timeout=30",
        ]  # ends dead connections, not slow ones
        with (self._folder / "log.txt").open("ab") as log:
            self._server = subprocess.Popen(
                [_program("postgres"), *command],
                stdout=log, stderr=log, cwd=self._folder, user=account(), start_new_session=True,
            )  # fmt: skip
        wait_until_ready(self._server, self._is_ready, self._folder / "log.txt")

    def kill(self) -> None:
        """Kill all its processes with SIGKILL, without flushing."""
        main = self._running.pid
        for process in (main, *children(main)):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        self._running.wait(10)

    def pause(self) -> None:
        """Suspend it: connections stay open, but get no reply."""
        main = self._running.pid
        for process in (main, *children(main)):
            halt(process)

    def resume(self) -> None:
        """Resume it."""
        main = self._running.pid
        for process in (main, *children(main)):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGCONT)

    def stop(self) -> None:
        """Stop it with a fast shutdown, which does not wait for clients."""
        if self._server is not None and self._server.poll() is None:
            self._server.send_signal(signal.SIGINT)
            self._server.wait(60)

    def make_database(self) -> str:
        """Create an empty database; return its URL."""
        name = f"home_{uuid4().hex}"
        self.say(f"CREATE DATABASE {name}")
        return self.url(name)

    def make_home(self) -> str:
        """Create a database with current tables; return its URL."""
        if self._home is None:
            made = self.make_database()
            migrate(made)
            self._home = database_of(made)
        name = f"home_{uuid4().hex}"
        self.say(f"CREATE DATABASE {name} TEMPLATE {self._home}")
        return self.url(name)

    def drop(self, url: str) -> None:
        """Drop a database with its connections; it may stay while another client is connecting."""
        with (
            psycopg.connect(self.url(), autocommit=True) as connection,
            suppress(psycopg.errors.QueryCanceled),
        ):
            connection.execute("SET statement_timeout = '2s'")
            connection.execute(f"DROP DATABASE {database_of(url)} WITH (FORCE)")

    def say(self, *statements: str) -> None:
        """Run statements as superuser in a new connection."""
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
    return url.partition("@/")[2].partition("?")[0]


def _program(name: str) -> Path:
    folder = programs()
    assert folder is not None, REMEDY
    return folder / name


def account() -> int | None:
    """Return the uid of its processes: Debian's own user if run by root, which the server refuses."""
    return pwd.getpwnam("postgres").pw_uid if os.geteuid() == 0 else None


def memory() -> Path | None:
    """Return a folder in memory with room for some gigabytes that ends with this run, or None."""
    shared = Path("/dev/shm")  # noqa: S108 - only unguessable names are created in it
    return shared if is_loopback_only() and shutil.disk_usage(shared).free > 4 << 30 else None


@contextmanager
def running_postgres(port: int | None = None) -> Iterator[RealPostgres]:
    """Yield a server on a temporary cluster; see ``RealPostgres`` for ``port``."""
    # Short, because a socket path has at most 107 bytes; in memory, because each test's database is a file
    # copy.
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
    """A server shared by all tests; a test that stops it restarts it."""
    with running_postgres() as server:
        yield server


@pytest.fixture
def postgres_url(request: pytest.FixtureRequest, postgres: RealPostgres) -> Iterator[str]:
    """``DATABASE_URL`` of this test's database: empty, or with tables if the test uses ``database``."""
    url = postgres.make_home() if "database" in request.fixturenames else postgres.make_database()
    yield url
    postgres.drop(url)
