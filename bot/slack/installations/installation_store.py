"""Where Bolt's OAuth flow keeps what it gets: installations with sealed tokens, states that are good once.

Only what this app uses is kept: the bot's tokens. Whoever installs it gives none of their own.
"""

from __future__ import annotations

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
from storage.clock import utc_now
from storage.installations.slack_installations import OAuthStates, SlackInstallation, SlackInstallations

STATE_SECONDS = 600
"""So long somebody may take from the first page to the last."""
MAX_NAME_CHARS = 100

log = logging.getLogger(__name__)


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


class OneTimeStates(AsyncOAuthStateStore):
    """States that a browser brings back from Slack."""

    def __init__(self, states: OAuthStates) -> None:
        self._states = states

    @property
    def logger(self) -> Logger:
        """Ours."""
        return log

    async def async_issue(self, *_: Any, **__: Any) -> str:
        """A state that nobody can guess.

        Raises:
            DatabaseUnavailable: it could not be kept.
        """
        state = secrets.token_urlsafe(32)
        await self._states.issue(state, STATE_SECONDS)
        return state

    async def async_consume(self, state: str) -> bool:
        """Whether it was issued here a short while ago, and never consumed.

        Raises:
            DatabaseUnavailable: nobody knows just now.
        """
        return await self._states.consume(state)
