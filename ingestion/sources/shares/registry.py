"""Registry of share protocols; each protocol's package is imported at the first connection."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from ipaddress import ip_address

from fsspec.registry import get_filesystem_class, known_implementations

from ingestion.sources.shares.address import ShareAddress, read_address
from ingestion.sources.shares.fsspec_share import FsspecShare
from ingestion.sources.shares.remote_source import RemoteSource, Share
from ingestion.sources.shares.settings import ShareSettings
from storage.errors import SettingsError

# Protocol -> (required package, our module, imported at the first connection).
OWN = {
    "s3": ("s3fs", "ingestion.sources.shares.s3"),
    "sftp": ("paramiko", "ingestion.sources.shares.sftp"),
    "smb": ("smbclient", "ingestion.sources.shares.smb"),
    "webdav": ("webdav4", "ingestion.sources.shares.webdav"),
    "webdavs": ("webdav4", "ingestion.sources.shares.webdav"),
}
LOCAL = frozenset({"file", "local", "asynclocal"})
# fsspec protocols that are no shared folders: archives, caches, web pages.
NOT_SHARES = frozenset(
    "async_wrapper blockcache cached data dir filecache generic jlab jupyter libarchive memory reference "
    "simplecache tar zip http https git github".split()
)


def open_share(url: str, settings: ShareSettings) -> RemoteSource:
    """Return the source at a URL.

    Raises:
        SettingsError: as in ``open_source``.
    """
    address = read_address(url)
    if address.protocol in LOCAL:
        raise SettingsError("A folder of this machine is written as its path, not as a URL.")
    connect = _own(address, settings) if address.protocol in OWN else _generic(address)
    return RemoteSource(str(address), connect, settings.share_timeout)


def _own(address: ShareAddress, settings: ShareSettings) -> Callable[[], Share]:
    """Return the connect function of a protocol with its own module."""
    package, module = OWN[address.protocol]
    if find_spec(package) is None:
        raise SettingsError(
            f"Folders behind {address.protocol}:// need more packages: pip install 'footnote-bot[shares]'"
        )
    if address.protocol == "smb" and not address.parts:
        raise SettingsError("The URL of an SMB folder names no share: write smb://server/share/path.")
    if address.protocol == "webdav":
        _check_openness(address, settings)

    def connect() -> Share:
        share: Share = import_module(module).connect(address, settings)
        return share

    return connect


def _check_openness(address: ShareAddress, settings: ShareSettings) -> None:
    """Refuse to send a password over an unencrypted network connection."""
    account = settings.account(address)
    if (account.password or account.token) and not _is_here(address.host):
        raise SettingsError("webdav:// would send the password unencrypted: use webdavs:// (HTTPS).")


def _is_here(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _generic(address: ShareAddress) -> Callable[[], Share]:
    """Return the connect function of another protocol whose fsspec package is installed."""
    if address.protocol not in known_implementations or address.protocol in NOT_SHARES:
        raise SettingsError(
            "The URL of a folder begins with an unknown protocol: s3, sftp, smb, webdavs and "
            "those of installed fsspec packages (gs, abfs, ftp, ...) are supported."
        )
    try:
        get_filesystem_class(address.protocol)
    except ImportError as error:
        remedy = known_implementations[address.protocol].get("err", "its fsspec package is missing")
        raise SettingsError(
            f"Folders behind {address.protocol}:// need a further package in .venv: {remedy}"
        ) from error
    return partial(FsspecShare.connect, str(address))
