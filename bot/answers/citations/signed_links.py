"""Signed, expiring links to one page or figure of one version for one channel, and their signing keys.

A token is packed bytes and their MAC in base64url: it contains no name and no word of a document, which are
in SQL under the citation's id. Tokens are bearer tokens: anyone with the link may open it until it expires.

The keys are stored in SQL (``shared_keys``), or in a mounted file. The newest one signs, all keys of the ring
verify; two rotations invalidate all earlier links.
"""

from __future__ import annotations

import base64
import hmac
import json
import os
import re
import secrets
import struct
from collections.abc import Callable
from dataclasses import astuple, dataclass, replace
from datetime import datetime, timedelta
from enum import IntEnum
from pathlib import Path
from typing import NamedTuple, Protocol
from urllib.parse import urlsplit
from uuid import uuid4

from bot.core.errors import LinkEnded, LinkForged
from storage.models import Channel, CitationRecord

ACTIVE_KEYS = 2
KEY_BYTES = 32

# Measured from the first signing: renewals cannot extend a link beyond it.
MAX_LIFE = timedelta(days=30)

_FORMAT = 1
_DOMAIN = b"footnote link\x00"
# Format, key id, purpose, audience; channel, version, page, citation, expiry, epoch, first signing.
_BODY = struct.Struct(">4B2QI2QIQ")
_MAC_BYTES = 32
# 84 bytes are a multiple of three: no padding, and exactly one encoding of any bytes.
_TOKEN = re.compile(r"[A-Za-z0-9_-]{112}", re.ASCII)


def is_token(text: str) -> bool:
    """True if a text has the form of a token, whether or not we signed it."""
    return _TOKEN.fullmatch(text) is not None


class LinkKey(NamedTuple):
    """Signing key; its id (0-255) is part of every token that it signed."""

    id: int
    secret: bytes


class KeySource(Protocol):
    """Source of the active keys."""

    def keys(self) -> tuple[LinkKey, ...]:
        """Return the signing key first, then those that only verify."""

    async def refresh(self) -> None:
        """Pick up changes made by other processes."""


class KeyRing:
    """The active keys in a file, newest first; created at first use.

    Several processes may share the file: it is created and replaced atomically, and a change by another
    process is seen at the next use.
    """

    def __init__(self, path: Path, *, is_ours: bool = True) -> None:
        """``is_ours``: False for a mounted file, which is only read."""
        self._path = path
        self._is_ours = is_ours
        self._stat: tuple[int, int, int] | None = None
        self._keys: tuple[LinkKey, ...] = ()

    @property
    def is_made(self) -> bool:
        """True if the file exists."""
        return self._path.exists()

    def keys(self) -> tuple[LinkKey, ...]:
        """Return the active keys, newest first: one before the first rotation, then two.

        Raises:
            OSError: the file can be neither read nor created.
            ValueError: the file is not a key ring.
        """
        if self._is_ours and not self._path.exists():
            self._create()
        status = self._path.stat()
        stat = status.st_ino, status.st_mtime_ns, status.st_size
        if stat != self._stat:
            self._keys, self._stat = _parse_keys(self._path.read_bytes()), stat
        return self._keys

    async def refresh(self) -> None:
        """Do nothing: ``keys`` checks the file each time."""

    def rotate(self) -> None:
        """Sign with a new key; links of the previous key still open, older ones become invalid."""
        kept = self.keys()[: ACTIVE_KEYS - 1]
        newest = LinkKey((kept[0].id + 1) % 256, secrets.token_bytes(KEY_BYTES))
        self._temporary((newest, *kept)).replace(self._path)

    def _create(self) -> None:
        """Create the first ring; if another process was faster, its ring is used."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        temporary = self._temporary((LinkKey(1, secrets.token_bytes(KEY_BYTES)),))
        # Unlike a rename, a hard link fails if the file exists: the first process wins.
        try:
            os.link(temporary, self._path)
        except FileExistsError:
            return
        finally:
            temporary.unlink()

    def _temporary(self, keys: tuple[LinkKey, ...]) -> Path:
        """Write a complete ring to a temporary file, and fsync it before it is moved into place."""
        path = self._path.with_name(f".{self._path.name}.{uuid4().hex}")
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(_format_keys(keys))
            file.flush()
            os.fsync(file.fileno())
        return path


def _format_keys(keys: tuple[LinkKey, ...]) -> bytes:
    rows = [{"id": key.id, "secret": base64.b64encode(key.secret).decode()} for key in keys]
    return json.dumps({"keys": rows}, indent=1).encode()


def _parse_keys(data: bytes) -> tuple[LinkKey, ...]:
    rows = json.loads(data)["keys"]
    keys = tuple(LinkKey(int(row["id"]), base64.b64decode(row["secret"], validate=True)) for row in rows)
    if not keys or any(len(key.secret) < KEY_BYTES for key in keys):
        raise ValueError("link key file is empty or has a short key")
    return keys


class Purpose(IntEnum):
    """Purpose of a token; a token of one purpose is invalid for any other."""

    PAGE = 1
    # The picture of one figure, and nothing else of its document.
    FIGURE = 2


class Audience(IntEnum):
    """Audience of a link."""

    # Anyone who has the link: the channel's members, and anyone they share it with.
    BEARER = 1


@dataclass(frozen=True, slots=True)
class LinkClaims:
    """Claims vouched for by our signature; SQL decides whether they still hold."""

    channel_id: int
    version_id: int
    page: int
    citation_id: int
    # Unix seconds.
    expires: int
    # The channel's epoch at signing.
    epoch: int
    # Unix seconds of the first signing; kept by renewals.
    signed: int


class Links:
    """Makes and verifies links."""

    def __init__(
        self,
        keys: KeySource,
        public_url: str,
        lifetime: timedelta,
        clock: Callable[[], datetime],
        opens: str = "viewer",
    ) -> None:
        self.public_url = public_url.rstrip("/")
        self.lifetime = lifetime
        self.clock = clock
        self.keys = keys
        self._opens = opens

    def has_keys(self) -> bool:
        """True if there is a key to sign with.

        Raises:
            OSError, ValueError: the key file is missing or damaged.
        """
        return bool(self.keys.keys())

    async def refresh_keys(self) -> None:
        """Pick up key changes made by other processes; raises like the key source."""
        await self.keys.refresh()

    def ended_url(self) -> str:
        """Return a link that expired long ago: a service with our keys answers 410, any other one 404.

        Raises:
            OSError, ValueError: as ``KeyRing.keys``.
        """
        claims = LinkClaims(0, 0, 0, 0, expires=0, epoch=0, signed=0)
        return f"{self.public_url}/v/{_token(self.keys.keys()[0], Purpose.PAGE, claims)}"

    def page_url(self, channel: Channel, citation: CitationRecord) -> str:
        """Return a signed, expiring URL of the cited page: in our viewer, or the PDF if so configured."""
        url = f"{self.public_url}/v/{self._new_token(Purpose.PAGE, channel, citation)}"
        return f"{url}/file.pdf#page={citation.page}" if self._opens == "pdf" else url

    def figure_url(self, channel: Channel, citation: CitationRecord) -> str:
        """Return a signed, expiring URL of the picture of the figure that ``citation`` marks."""
        return f"{self.public_url}/f/{self._new_token(Purpose.FIGURE, channel, citation)}"

    def token_for_citation(self, token: str, citation: CitationRecord) -> str:
        """Return a token for another quote of the same answer, with the same key and expiry.

        Raises:
            LinkForged: we did not sign ``token``.
        """
        key, body = self._verify(token)
        claims = _parse(key, body, Purpose.PAGE)
        place = {"version_id": citation.version_id, "page": citation.page, "citation_id": citation.id}
        return _token(key, Purpose.PAGE, replace(claims, **place))

    def renew(self, token: str) -> str:
        """Return the token with a later expiry, up to ``MAX_LIFE`` after its first signing, or unchanged.

        It keeps its key, so that it becomes invalid with all links of that key. A link whose configured
        lifetime is longer is not renewed.

        Raises:
            LinkForged, LinkEnded: as ``read``; an expired link stays expired.
        """
        claims = self.read(token)
        latest = claims.signed + int(MAX_LIFE.total_seconds())
        expires = min(int((self.clock() + self.lifetime).timestamp()), latest)
        if expires <= claims.expires:
            return token
        return _token(self._verify(token)[0], Purpose.PAGE, replace(claims, expires=expires))

    def viewer_path(self, url: str) -> str:
        """Return the viewer's path, without host or prefix, of a URL made by ``page_url``."""
        _, _, token = urlsplit(url).path.removesuffix("/file.pdf").rpartition("/v/")
        return f"/v/{token}"

    def figure_path(self, url: str) -> str:
        """Return the path, without host or prefix, of a URL made by ``figure_url``."""
        return f"/f/{urlsplit(url).path.rpartition('/f/')[2]}"

    def read(self, token: str, purpose: Purpose = Purpose.PAGE) -> LinkClaims:
        """Verify a token and return its claims.

        Raises:
            LinkForged: we did not sign it, or not for this purpose.
            LinkEnded: it has expired.
        """
        claims = _parse(*self._verify(token), purpose)
        if claims.expires <= self.clock().timestamp():
            raise LinkEnded("expired", claims.channel_id, claims.citation_id)
        return claims

    def decode_any(self, token: str) -> LinkClaims:
        """Return the claims of a token of any purpose, expired or not.

        Raises:
            LinkForged: we did not sign it.
        """
        key, body = self._verify(token)
        try:
            return _parse(key, body, Purpose.PAGE)
        except LinkForged:
            return _parse(key, body, Purpose.FIGURE)

    def _new_token(self, purpose: Purpose, channel: Channel, citation: CitationRecord) -> str:
        now = self.clock()
        expires = int((now + self.lifetime).timestamp())
        place = (channel.id, citation.version_id, citation.page, citation.id)
        claims = LinkClaims(*place, expires, channel.epoch, int(now.timestamp()))
        return _token(self.keys.keys()[0], purpose, claims)

    def _verify(self, token: str) -> tuple[LinkKey, bytes]:
        """Return (the key that signed a token, the signed bytes); tries every key, whatever id is stated."""
        if not is_token(token):
            raise LinkForged("not a token")
        data = base64.urlsafe_b64decode(token)
        body, mac = data[:-_MAC_BYTES], data[-_MAC_BYTES:]
        signers = [key for key in self.keys.keys() if hmac.compare_digest(_mac(key, body), mac)]
        if not signers:
            raise LinkForged("not our signature")
        return signers[0], body


def _token(key: LinkKey, purpose: Purpose, claims: LinkClaims) -> str:
    body = _BODY.pack(_FORMAT, key.id, purpose, Audience.BEARER, *astuple(claims))
    return base64.urlsafe_b64encode(body + _mac(key, body)).decode()


def _mac(key: LinkKey, body: bytes) -> bytes:
    return hmac.digest(key.secret, _DOMAIN + body, "sha256")


def _parse(key: LinkKey, body: bytes, purpose: Purpose) -> LinkClaims:
    """Unpack bytes that are known to be ours."""
    *head, channel, version, page, citation, expires, epoch, signed = _BODY.unpack(body)
    if head != [_FORMAT, key.id, purpose, Audience.BEARER]:
        raise LinkForged("token has another format, purpose or audience")
    return LinkClaims(channel, version, page, citation, expires, epoch, signed)
