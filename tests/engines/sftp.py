"""sftp: Debian's OpenSSH server on loopback, with temporary host and account keys."""

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

NAME = "sftp"
REMEDY = "sudo apt-get install -y openssh-server"
BINDS_EVERYWHERE = False


def program() -> str | None:
    """Return the path of the server."""
    return shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin")


def missing() -> str | None:
    """Return why it cannot run here, or None."""
    return None if program() else "Debian's OpenSSH server is not installed"


def fetch() -> None:
    """Install it, as root."""
    if not program():
        apt_install("openssh-server")


class RealSftp(ShareServer):
    """A server that accepts one key."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        for name in ("host", "account", "stranger"):
            subprocess.run(
                ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True
            )
        host_key = " ".join((folder / "host.pub").read_text().split()[:2])
        (folder / "known_hosts").write_text(f"[{HOST}]:{self.port} {host_key}\n")
        (folder / "sshd_config").write_text(
            f"ListenAddress {HOST}\nPort {self.port}\nHostKey {folder}/host\nPidFile none\nUsePAM no\n"
            f"AuthorizedKeysFile {folder}/account.pub\nStrictModes no\nPasswordAuthentication no\n"
            "PermitRootLogin prohibit-password\nSubsystem sftp internal-sftp\n"
        )
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(exist_ok=True)

    def command(self) -> Sequence[str]:
        """Return the command of the server in the foreground."""
        return [str(program()), "-D", "-e", "-f", str(self.folder / "sshd_config")]

    def place(self) -> ServedFolder:
        """Return a new folder on it."""
        folder = self.folder / new_name()
        settings = {"sftp_key": self.folder / "account", "sftp_known_hosts": self.folder / "known_hosts"}
        return ServedFolder(self, folder, f"sftp://{getpass.getuser()}@{HOST}:{self.port}{folder}", settings)


@pytest.fixture(scope="session")
def sftp_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealSftp]:
    """A server shared by all tests; a test that kills it restarts it."""
    server = RealSftp(tmp_path_factory.mktemp("sftp"))
    try:
        server.start()
        yield server
    finally:
        server.kill()
