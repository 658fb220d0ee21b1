"""webdav: WsgiDAV behind Cheroot on loopback, with one account."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from engines.support.shares import HOST, ServedFolder, ShareServer, new_name, python

NAME = "webdav"
REMEDY = "make test"
BINDS_EVERYWHERE = False
USER, PASSWORD = "reader", "cast-iron"


def missing() -> str | None:
    """Return None: it is in the development packages."""
    return None


def fetch() -> None:
    """Do nothing."""


class RealWebdav(ShareServer):
    """A server with one folder."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._data = folder / "data"
        self._data.mkdir()
        self._configuration = folder / "wsgidav.json"
        self._configuration.write_text(
            json.dumps(
                {
                    "host": HOST,
                    "port": self.port,
                    "provider_mapping": {"/dav": str(self._data)},
                    "simple_dc": {"user_mapping": {"*": {USER: {"password": PASSWORD}}}},
                    "http_authenticator": {
                        "accept_basic": True,
                        "accept_digest": False,
                        "default_to_digest": False,
                    },
                }
            )
        )

    def command(self) -> Sequence[str]:
        """Return the command of the server in the foreground."""
        return [python(), "-m", "wsgidav.server.server_cli", "--config", str(self._configuration)]

    def place(self) -> ServedFolder:
        """Return a new folder on it."""
        name = new_name()
        settings = {"webdav_user": USER, "webdav_password": PASSWORD}
        return ServedFolder(self, self._data / name, f"webdav://{HOST}:{self.port}/dav/{name}", settings)


@pytest.fixture(scope="session")
def webdav_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealWebdav]:
    """A server shared by all tests; a test that kills it restarts it."""
    server = RealWebdav(tmp_path_factory.mktemp("webdav"))
    try:
        server.start()
        yield server
    finally:
        server.kill()
