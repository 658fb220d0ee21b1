"""Stores of Bolt's OAuth flow: installations with sealed tokens, and signed states.

Only what this app uses is kept: the bot's tokens. Whoever installs it gives none of their own.
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

from bot.core.plaintext import shorten, tame
from bot.slack.events import SLACK_ID, installation_of
from bot.slack.installations.sealed_tokens import Tokens, TokenSeal
from storage.clock import steady_seconds, utc_now
from storage.installations.slack_installations import SlackInstallation, SlackInstallations

# So long somebody may take from the first page to the last.
STATE_SECONDS = 600
CODES_A_SECOND = 5
MAX_WAIT_SECONDS = 2.0
MAX_NAME_CHARS = 100

log = logging.getLogger(__name__)


class InstallationsBusy(Exception):
    """Too many installations come back at once."""


class SealedInstallationStore(AsyncInstallationStore):
    """Keeps an installation that the flow has made; tokens are read by ``InstalledWorkspaces`` alone."""

    def __init__(self, installations: SlackInstallations, seal: TokenSeal) -> None:
        self._installations = installations
        self._seal = seal

    @property
    def logger(self) -> Logger:
        """Ours."""
        return log

    async def async_save(self, installation: Installation) -> None:
        """Keep it for good.

        Raises:
            BoltError: it is no installation of a bot.
            DatabaseUnavailable: it could not be kept.
        """
        key = installation_of(vars(installation))
        if not installation.bot_token or not SLACK_ID.fullmatch(key):
            raise BoltError("Slack gave no token of a bot")
        name = installation.enterprise_name if installation.is_enterprise_install else installation.team_name
        expires = installation.bot_token_expires_at
        tokens = Tokens(installation.bot_token, installation.bot_refresh_token)
        await self._installations.save(
            SlackInstallation(
                key,
                shorten(tame(name or key), MAX_NAME_CHARS),
                installation.bot_user_id or "",
                self._seal.seal(key, tokens),
                datetime.fromtimestamp(expires, UTC) if expires is not None else None,
                utc_now(),
            )
        )
        log.info("installation=%s installed", key)


class SignedStates(AsyncOAuthStateStore):
    """States that a browser brings back from Slack: signed, so that beginning an installation keeps nothing.

    Bolt puts a state into a cookie, too, and lets no other browser bring it back. A signed state cannot say
    that it was used: this process remembers it, another one, or the next, does not. Slack's code is good once
    all the same. Slack is asked about a code a few times a second at most: anybody can begin an installation
    and bring back a code that they made up.
    """

    def __init__(self, secret: str) -> None:
        """Sign by a secret that every process of the app has."""
        self._secret = secret.encode()
        self._used: dict[str, float] = {}
        self._due = 0.0

    @property
    def logger(self) -> Logger:
        """Ours."""
        return log

    async def async_issue(self, *_: Any, **__: Any) -> str:
        """Make a state that nobody else can."""
        body = f"{secrets.token_urlsafe(24)}.{int(utc_now().timestamp()) + STATE_SECONDS}"
        return f"{body}.{self._mac(body)}"

    async def async_consume(self, state: str) -> bool:
        """Return whether it was issued a short while ago, and was not consumed here.

        Raises:
            InstallationsBusy: too many are waiting; the state stays good.
        """
        now = utc_now().timestamp()
        body, _, mac = state.rpartition(".")
        is_ours = hmac.compare_digest(self._mac(body).encode(), mac.encode(errors="replace"))
        if not is_ours or now >= int(body.rpartition(".")[2]):
            return False
        # The oldest stand first: each is looked at once, however many installations begin.
        while self._used and now >= next(iter(self._used.values())):
            del self._used[next(iter(self._used))]
        if state in self._used:
            return False
        # GCRA, as for sign-ins: some at once, and behind them one after the other.
        moment = steady_seconds()
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
