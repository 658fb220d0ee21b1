"""Installation store and state store for Bolt's OAuth flow: encrypted bot tokens, signed states.

Only bot tokens are stored; the app requests no user tokens.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import secrets
from datetime import UTC, datetime
from logging import Logger
from typing import Any

from slack_bolt.error import BoltError
from slack_sdk.oauth.installation_store import Installation
from slack_sdk.oauth.installation_store.async_installation_store import AsyncInstallationStore
from slack_sdk.oauth.state_store.async_state_store import AsyncOAuthStateStore

from bot.core.plaintext import shorten, strip_hidden_chars
from bot.platforms.slack.events import SLACK_ID, installation_of
from bot.platforms.slack.installations.token_cipher import TokenCipher, Tokens
from storage.clock import monotonic_seconds, utc_now
from storage.installations.slack_installations import SlackInstallation, SlackInstallations

# Lifetime of an OAuth state: the time a person has from the install page to the redirect.
STATE_SECONDS = 600
# Rate limit for code exchanges with Slack, and the longest wait for a slot.
CODES_A_SECOND = 5
MAX_WAIT_SECONDS = 2.0
MAX_NAME_CHARS = 100

log = logging.getLogger(__name__)


class InstallationsBusy(Exception):
    """Too many OAuth redirects arrive at once."""


class EncryptedInstallationStore(AsyncInstallationStore):
    """Stores installations made by the OAuth flow; only ``InstalledWorkspaces`` reads their tokens."""

    def __init__(self, installations: SlackInstallations, cipher: TokenCipher) -> None:
        self._installations = installations
        self._cipher = cipher

    @property
    def logger(self) -> Logger:
        """Logger of this module."""
        return log

    async def async_save(self, installation: Installation) -> None:
        """Upsert the installation with its encrypted tokens.

        Raises:
            BoltError: it has no bot token.
            DatabaseUnavailable: it could not be stored.
        """
        key = installation_of(vars(installation))
        if not installation.bot_token or not SLACK_ID.fullmatch(key):
            raise BoltError("installation has no bot token")
        name = installation.enterprise_name if installation.is_enterprise_install else installation.team_name
        expires = installation.bot_token_expires_at
        tokens = Tokens(installation.bot_token, installation.bot_refresh_token)
        await self._installations.save(
            SlackInstallation(
                key,
                shorten(strip_hidden_chars(name or key), MAX_NAME_CHARS),
                installation.bot_user_id or "",
                self._cipher.encrypt(key, tokens),
                datetime.fromtimestamp(expires, UTC) if expires is not None else None,
                utc_now(),
            )
        )
        log.info("installation=%s installed", key)


class SignedStates(AsyncOAuthStateStore):
    """Stateless OAuth states: HMAC-signed with an expiry, so starting an installation writes nothing to SQL.

    Bolt also sets the state as a cookie and rejects other browsers. Single use is enforced per process only,
    because a signed state cannot record that it was consumed; Slack's code itself works once. Code exchanges
    are rate-limited, because anybody can start an installation and return with an invented code.
    """

    def __init__(self, secret: str) -> None:
        """Sign with ``secret``, which all processes of the app share."""
        self._secret = secret.encode()
        # Consumed states -> their expiry, oldest first.
        self._used: dict[str, float] = {}
        # Monotonic seconds at which the rate limiter is idle again.
        self._due = 0.0

    @property
    def logger(self) -> Logger:
        """Logger of this module."""
        return log

    async def async_issue(self, *_: Any, **__: Any) -> str:
        """Return a new signed state: random token, expiry, HMAC."""
        body = f"{secrets.token_urlsafe(24)}.{int(utc_now().timestamp()) + STATE_SECONDS}"
        return f"{body}.{self._mac(body)}"

    async def async_consume(self, state: str) -> bool:
        """True if the state was issued by us, has not expired and was not consumed in this process.

        Raises:
            InstallationsBusy: too many code exchanges are waiting; the state stays valid.
        """
        now = utc_now().timestamp()
        body, _, mac = state.rpartition(".")
        is_ours = hmac.compare_digest(self._mac(body).encode(), mac.encode(errors="replace"))
        if not is_ours or now >= int(body.rpartition(".")[2]):
            return False
        # Purge expired states; the dict is in order of expiry, so the cost is amortised O(1).
        while self._used and now >= next(iter(self._used.values())):
            del self._used[next(iter(self._used))]
        if state in self._used:
            return False
        # GCRA rate limiter, as for sign-ins: a burst of one second's worth, then evenly spaced.
        moment = monotonic_seconds()
        wait = max(self._due, moment) - moment - 1
        if wait > MAX_WAIT_SECONDS:
            raise InstallationsBusy
        self._used[state] = now + STATE_SECONDS
        self._due = max(self._due, moment) + 1 / CODES_A_SECOND
        await asyncio.sleep(max(wait, 0))
        return True

    def _mac(self, body: str) -> str:
        message = b"footnote slack installation 1\0" + body.encode(errors="replace")
        return hmac.digest(self._secret, message, hashlib.sha256).hex()
