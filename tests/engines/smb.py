"""smb: Debian's Samba on a high loopback port, with a temporary user database."""

from __future__ import annotations

import getpass
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from engines import apt_install
from engines.support.shares import HOST, ServedFolder, ShareServer, new_name

NAME = "smb"
REMEDY = "sudo apt-get install -y samba"
BINDS_EVERYWHERE = False
USER, PASSWORD = "nobody", "cast-iron"
# Samba's own names: unknown ones are ignored, and the machine's folders are used.
OWN_FOLDERS = (
    "private dir",
    "ncalrpc dir",
    "lock directory",
    "state directory",
    "cache directory",
    "pid directory",
)


def program(name: str) -> str | None:
    """Return the path of a Samba program."""
    return shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin")


def missing() -> str | None:
    """Return why it cannot run here, or None."""
    if os.geteuid() != 0:
        return "Samba serves as root only"
    return None if program("smbd") and program("smbpasswd") else "Debian's Samba is not installed"


def fetch() -> None:
    """Install it, as root."""
    if not program("smbd"):
        apt_install("samba")


class RealSmb(ShareServer):
    """A server with one share and one account."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._data = folder / "data"
        for name in (*(setting.split()[0] for setting in OWN_FOLDERS), "data"):
            (folder / name).mkdir(mode=0o755)
        self._configuration = folder / "smb.conf"
        self._configuration.write_text(
            f"[global]\ninterfaces = {HOST}\nbind interfaces only = yes\nsmb ports = {self.port}\n"
            "server role = standalone server\ndisable netbios = yes\nload printers = no\nlog level = 1\n"
            f"passdb backend = tdbsam:{folder}/passdb.tdb\n"
            + "".join(f"{setting} = {folder / setting.split()[0]}\n" for setting in OWN_FOLDERS)
            + f"[files]\npath = {self._data}\nread only = no\nforce user = {getpass.getuser()}\n"
        )
        subprocess.run(
            [str(program("smbpasswd")), "-c", str(self._configuration), "-a", "-s", USER],
            input=f"{PASSWORD}\n{PASSWORD}\n".encode(),
            check=True,
            capture_output=True,
        )

    def command(self) -> Sequence[str]:
        """Return the command of the server in the foreground."""
        configuration = f"--configfile={self._configuration}"
        return [str(program("smbd")), "--foreground", "--no-process-group", "--debug-stdout", configuration]

    def place(self) -> ServedFolder:
        """Return a new folder on it."""
        name = new_name()
        settings = {"smb_user": USER, "smb_password": PASSWORD}
        return ServedFolder(self, self._data / name, f"smb://{HOST}:{self.port}/files/{name}", settings)


@pytest.fixture(scope="session")
def smb_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealSmb]:
    """A server shared by all tests; a test that kills it restarts it."""
    server = RealSmb(tmp_path_factory.mktemp("smb"))
    try:
        server.start()
        yield server
    finally:
        server.kill()
