"""Who is signed in: sessions in signed cookies, which every bot of a database reads.

A session is a short JSON text and its MAC by the keys that sign links, so rotating these twice ends all
sessions, too. It says who somebody is, not what they may do: roles are the settings' at each request.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from bot.core.citations.signed_links import KeySource
from bot.sign_in_settings import Role, SignInSettings, plain_address
from storage.installations.console_sign_outs import SignOuts
from storage.sql.audit import AuditedAction

# Then somebody signs in again, and the provider says again who they are.
LIFE = timedelta(hours=8)
# Browsers keep no longer one.
MAX_COOKIE_CHARS = 4096
# That a session keeps, so that its cookie is no longer than that.
MAX_GROUPS = 8
# Of a person: the longest e-mail address, and almost the longest subject that a provider may give.
MAX_NAME_CHARS = 254
# Begins what is signed. Another number with other fields of ``Session``: older cookies are then none.
_DOMAIN = b"footnote console session 1\0"


@dataclass(frozen=True, slots=True)
class Session:
    """Somebody who signed in, as the provider named them."""

    id: str
    # Their verified e-mail address, else the provider's own id of them.
    person: str
    # Verified; nothing where it is not.
    email: str
    # Those that some role is given to.
    groups: list[str]
    # Unix seconds.
    expires: int


class Sessions:
    """Makes sessions and reads them back."""

    def __init__(
        self,
        settings: SignInSettings,
        keys: KeySource,
        sign_outs: SignOuts,
        clock: Callable[[], datetime],
    ) -> None:
        self._settings = settings
        self._keys = keys
        self._sign_outs = sign_outs
        self._clock = clock
        self._domain = _DOMAIN + json.dumps([settings.oidc_issuer, settings.oidc_client_id]).encode()

    def begin(self, claims: Mapping[str, Any]) -> Session:
        """Return a new session of the person whom verified claims are about."""
        known = plain_address(claims.get("email")) if claims.get("email_verified") is True else ""
        listed = claims.get(self._settings.oidc_groups_claim)
        listed = [listed] if isinstance(listed, str) else listed if isinstance(listed, list) else []
        return Session(
            id=secrets.token_hex(16),
            person=known or str(claims["sub"])[:MAX_NAME_CHARS],
            email=known,
            groups=self._settings.named_groups([one for one in listed if isinstance(one, str)], MAX_GROUPS),
            expires=int((self._clock() + LIFE).timestamp()),
        )

    def role(self, session: Session) -> Role | None:
        """What its person may do, by the settings as they are now; None: nothing."""
        return self._settings.role(session.email, session.groups)

    def actor(self, session: Session) -> str:
        """Name the person for the audit: platform, provider's host, verified address or ``sub:`` and id.

        An id may look like somebody's address, and no address holds a colon.
        """
        name = session.email or f"sub:{session.person}"
        return f"oidc:{urlsplit(self._settings.oidc_issuer or '').netloc}:{name}"

    def seal(self, session: Session) -> str:
        """Return the session as a cookie carries it.

        Raises:
            OSError, ValueError: as ``KeyRing.keys``.
        """
        body = json.dumps(asdict(session), separators=(",", ":")).encode()
        return f"{_encode(body)}.{_encode(self._mac(self._keys.keys()[0].secret, body))}"

    async def open(self, cookie: str) -> Session | None:
        """Return the session of a cookie; None: it is not ours, is over, or was ended.

        Raises:
            DatabaseUnavailable: nobody knows just now.
        """
        body, mac = _parts(cookie)
        await self._keys.refresh()
        signers = [one for one in self._keys.keys() if hmac.compare_digest(self._mac(one.secret, body), mac)]
        if not signers:
            return None
        session = Session(**json.loads(body))
        is_over = session.expires <= self._clock().timestamp()
        return None if is_over or await self._sign_outs.is_ended(session.id) else session

    async def end(self, session: Session) -> None:
        """Sign its person out, wherever its cookie was copied to.

        Raises:
            DatabaseUnavailable: it still holds.
        """
        until = datetime.fromtimestamp(session.expires, UTC)
        await self._sign_outs.end(session.id, until, AuditedAction(self.actor(session), "sign out", ""))

    def _mac(self, key: bytes, body: bytes) -> bytes:
        return hmac.digest(key, self._domain + b"\0" + body, hashlib.sha256)


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _parts(cookie: str) -> tuple[bytes, bytes]:
    """Body and MAC of a cookie; of what is none, nothing that was ever signed."""
    if not cookie.isascii() or len(cookie) > MAX_COOKIE_CHARS:
        return b"", b""
    try:
        body, mac = (base64.urlsafe_b64decode(f"{one}===") for one in cookie.split("."))
    except ValueError:
        return b"", b""
    return body, mac
