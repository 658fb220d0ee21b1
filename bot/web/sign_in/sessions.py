"""Console sessions in signed cookies, which every bot process on the database can verify.

A session is a short JSON text with a MAC by the link signing keys, so rotating these twice ends all sessions,
too. It says who a person is, not what they may do: roles come from the settings at each request.
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

from bot.answers.citations.signed_links import KeySource
from bot.sign_in_settings import Role, SignInSettings, plain_address
from storage.installations.console_sign_outs import EndedSessions
from storage.sql.audit import AuditedAction

# Session lifetime; afterwards the provider has to authenticate the person again.
SESSION_LIFETIME = timedelta(hours=8)
# Browsers store no longer cookies.
MAX_COOKIE_CHARS = 4096
# Groups in a session, so that its cookie stays below that limit.
MAX_GROUPS = 8
# Longest e-mail address, and almost the longest ``sub`` that a provider may issue.
MAX_NAME_CHARS = 254
# Domain separator of the MAC. Change its number with the fields of ``Session``: older cookies become invalid.
_DOMAIN = b"footnote console session 1\0"


@dataclass(frozen=True, slots=True)
class Session:
    """Signed-in person, as the provider identified them."""

    id: str
    # Verified e-mail address, else the provider's ``sub``.
    person: str
    # Verified e-mail address, '' if it is not verified.
    email: str
    # Only groups that the settings grant a role.
    groups: list[str]
    # Unix seconds.
    expires: int


class Sessions:
    """Issues and verifies sessions."""

    def __init__(
        self,
        settings: SignInSettings,
        keys: KeySource,
        sign_outs: EndedSessions,
        clock: Callable[[], datetime],
    ) -> None:
        self._settings = settings
        self._keys = keys
        self._sign_outs = sign_outs
        self._clock = clock
        self._domain = _DOMAIN + json.dumps([settings.oidc_issuer, settings.oidc_client_id]).encode()

    def create(self, claims: Mapping[str, Any]) -> Session:
        """Return a new session for the person in verified claims."""
        known = plain_address(claims.get("email")) if claims.get("email_verified") is True else ""
        listed = claims.get(self._settings.oidc_groups_claim)
        listed = [listed] if isinstance(listed, str) else listed if isinstance(listed, list) else []
        return Session(
            id=secrets.token_hex(16),
            person=known or str(claims["sub"])[:MAX_NAME_CHARS],
            email=known,
            groups=self._settings.granted_groups([one for one in listed if isinstance(one, str)], MAX_GROUPS),
            expires=int((self._clock() + SESSION_LIFETIME).timestamp()),
        )

    def role(self, session: Session) -> Role | None:
        """Return the person's role by the current settings, None if they have none."""
        return self._settings.role(session.email, session.groups)

    def channels(self, session: Session) -> frozenset[str] | None:
        """Return the channels that a reader may see by the current settings, None for all."""
        return self._settings.channels(session.email, session.groups)

    def actor(self, session: Session) -> str:
        """Return the person's audit name: platform, provider's host, verified address or ``sub:`` and id.

        The prefix is needed because an id may look like another person's address; addresses contain no colon.
        """
        name = session.email or f"sub:{session.person}"
        return f"oidc:{urlsplit(self._settings.oidc_issuer or '').netloc}:{name}"

    def sign(self, session: Session) -> str:
        """Return the session as a signed cookie value.

        Raises:
            OSError, ValueError: as ``KeyRing.keys``.
        """
        body = json.dumps(asdict(session), separators=(",", ":")).encode()
        return f"{_encode(body)}.{_encode(self._mac(self._keys.keys()[0].secret, body))}"

    async def verify(self, cookie: str) -> Session | None:
        """Return the session of a cookie, None if it is not ours, has expired or was signed out.

        Raises:
            DatabaseUnavailable: sign-outs cannot be checked.
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
        """Revoke the session, including any copy of its cookie.

        Raises:
            DatabaseUnavailable: the session is still valid.
        """
        until = datetime.fromtimestamp(session.expires, UTC)
        await self._sign_outs.end(session.id, until, AuditedAction(self.actor(session), "sign out", ""))

    def _mac(self, key: bytes, body: bytes) -> bytes:
        return hmac.digest(key, self._domain + b"\0" + body, hashlib.sha256)


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _parts(cookie: str) -> tuple[bytes, bytes]:
    """Return the body and MAC of a cookie; empty, which never verifies, if it is malformed."""
    if not cookie.isascii() or len(cookie) > MAX_COOKIE_CHARS:
        return b"", b""
    try:
        body, mac = (base64.urlsafe_b64decode(f"{one}===") for one in cookie.split("."))
    except ValueError:
        return b"", b""
    return body, mac
