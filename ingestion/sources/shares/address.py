"""Share URLs: parser whose messages never repeat the URL, because it may contain a password."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from urllib.parse import urlsplit

from storage.errors import SettingsError

_VARIABLES = {
    "s3": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "sftp": "FOOTNOTE_SFTP_PASSWORD or FOOTNOTE_SFTP_KEY",
    "smb": "FOOTNOTE_SMB_PASSWORD",
    "webdav": "FOOTNOTE_WEBDAV_PASSWORD",
    "webdavs": "FOOTNOTE_WEBDAV_PASSWORD",
}
_IPV6 = re.compile(r"\[[0-9a-fA-F:.]+\]")
_PASSWORD = re.compile(r"://[^/]*:[^/]*@|://.*:.*@")


@dataclass(frozen=True, slots=True)
class ShareAddress:
    """A parsed URL."""

    protocol: str
    # Server name, or bucket.
    host: str
    port: int | None
    user: str | None
    # Path on the server, verbatim: nothing is percent-decoded.
    parts: tuple[str, ...]

    @property
    def server(self) -> str:
        """``host`` or ``host:port``, the key of a share account."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port is None else f"{host}:{self.port}"

    def __str__(self) -> str:
        """Return the normalised URL."""
        user = f"{self.user}@" if self.user else ""
        return "/".join([f"{self.protocol}://{user}{self.server}", *self.parts])


def read_address(url: str) -> ShareAddress:
    """Parse the URL of a folder.

    Raises:
        SettingsError: it contains a password or a query, or is no URL of a folder.
    """
    protocol = url.partition("://")[0].lower()
    if _PASSWORD.search(url):
        variables = _VARIABLES.get(protocol, "what the fsspec package of this protocol names")
        raise SettingsError(
            "The URL of a folder contains a password: remove it, and set it in the environment "
            f"({variables}, or FOOTNOTE_SHARE_ACCOUNTS for several servers)."
        )
    if "?" in url or "#" in url:
        raise SettingsError(
            "The URL of a folder ends in ?... or #...: remove that; credentials belong in the environment."
        )
    if "::" in _IPV6.sub("", url) or any(unicodedata.category(letter).startswith("C") for letter in url):
        raise SettingsError("The URL of a folder is malformed: write protocol://server/path.")
    try:
        split = urlsplit(url)
        host, port = split.hostname, split.port
    except ValueError:
        host = port = None
    if not host:
        raise SettingsError("The URL of a folder names no server: write protocol://server/path.")
    _check_host(protocol, host)
    path = split.path.removeprefix("/").rstrip("/")
    parts = tuple(path.split("/")) if path else ()
    if not all(part not in ("", ".", "..") for part in parts):
        raise SettingsError("The URL of a folder holds //, /./ or /../: write the plain path.")
    return ShareAddress(protocol, host, port, split.username, parts)


def _check_host(protocol: str, host: str) -> None:
    """Refuse impossible server and bucket names, which SDKs report without a clear message.

    Raises:
        SettingsError: the name is impossible.
    """
    if protocol == "s3":
        if not host.isascii():
            raise SettingsError("The URL of a folder names no bucket: its name has no letter but a to z.")
        return
    try:
        host.encode("idna").decode("idna")
    except UnicodeError:
        raise SettingsError(
            "The URL of a folder names a server that cannot exist: write its name as DNS has it, its parts "
            "1 to 63 characters long; one with other letters than a to z as xn--..."
        ) from None
