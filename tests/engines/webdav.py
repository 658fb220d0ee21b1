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
    """It comes with the development packages."""
    return None


def fetch() -> None:
    """Nothing to do."""


class RealWebdav(ShareServer):
    """A server of one folder."""

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
        """In the foreground."""
        return [python(), "-m", "wsgidav.server.server_cli", "--config", str(self._configuration)]

    def place(self) -> ServedFolder:
        """Return a fresh folder on it."""
        name = new_name()
        settings = {"webdav_user": USER, "webdav_password": PASSWORD}
        return ServedFolder(self, self._data / name, f"webdav://{HOST}:{self.port}/dav/{name}", settings)


@pytest.fixture(scope="session")
def webdav_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealWebdav]:
    """One server for all tests; a test that kills it starts it again."""
    server = RealWebdav(tmp_path_factory.mktemp("webdav"))
    try:
        server.start()
        yield server
    finally:
        server.kill()
