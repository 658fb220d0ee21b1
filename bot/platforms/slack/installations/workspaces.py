"""Web API clients per installation, with token rotation.

A token is renewed on its first use within two hours of its expiry; concurrent callers keep using the old one
while it is valid. Refresh tokens are single-use, so a renewal runs in a task of its own and is never
cancelled with its caller.
"""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime, timedelta

import aiohttp
from slack_sdk.errors import SlackClientError, SlackTokenRotationError
from slack_sdk.oauth.installation_store import Bot
from slack_sdk.oauth.token_rotation.async_rotator import AsyncTokenRotator
from slack_sdk.web.async_client import AsyncWebClient

from bot.platforms.slack.installations.token_cipher import DecryptionFailed, TokenCipher, Tokens
from bot.platforms.slack.web_api import NotInstalled, TokenUnavailable, web_client
from bot.platforms.slack.workspace.moved_channels import ChannelIdMap
from storage.clock import monotonic_seconds, utc_now
from storage.errors import DatabaseUnavailable, StorageError
from storage.installations.slack_installations import SlackInstallation, SlackInstallations

# How long before expiry a token is renewed; Slack's tokens live for twelve hours.
RENEW_BEFORE_EXPIRY = timedelta(hours=2)
# Lease of the process that renews; after a failure no process retries before it ends.
LEASE_SECONDS = 30.0
# Longest wait for another process to renew an expired token, and the poll interval.
WAIT_SECONDS, POLL_SECONDS = 12.0, 0.2

log = logging.getLogger(__name__)


class InstalledWorkspaces:
    """``WebClients`` for a multi-workspace app; reads the installation on every call, nothing is cached."""

    channel_ids: ChannelIdMap | None = None

    def __init__(
        self, installations: SlackInstallations, cipher: TokenCipher, rotator: AsyncTokenRotator, api_url: str
    ) -> None:
        """Renew tokens through ``rotator``, which holds the app's client secret."""
        self._installations = installations
        self._cipher = cipher
        self._rotator = rotator
        self._api_url = api_url
        self._renewals: set[asyncio.Task[None]] = set()

    async def client_for(self, installation: str) -> AsyncWebClient:
        """Return a client with this installation's token; renew the token if it is due.

        Raises:
            NotInstalled: the app is not installed there, or was removed.
            TokenUnavailable: its token cannot be read or renewed at the moment.
        """
        try:
            held = await self._installation(installation)
            if held.expires_at is not None and held.expires_at <= utc_now() + RENEW_BEFORE_EXPIRY:
                held = await self._with_valid_token(held)
            tokens = self._cipher.decrypt(installation, held.sealed)
        except DecryptionFailed:
            log.error("cannot decrypt the token of %s with this home's keys: reinstall the app", installation)
            raise TokenUnavailable("a token cannot be decrypted with this home's keys") from None
        except (StorageError, OSError, ValueError) as error:
            raise TokenUnavailable(f"reading the token failed: {type(error).__name__}") from error
        client = web_client(tokens.bot, self._api_url)
        client.channel_ids, client.installation = self.channel_ids, installation
        return client

    async def start(self) -> None:
        """Re-encrypt tokens that were encrypted with an older key.

        Raises:
            DatabaseUnavailable: the installations cannot be read.
        """
        for held in await self._installations.all():
            if not self._cipher.is_current(held.sealed):
                try:
                    tokens = self._cipher.decrypt(held.installation, held.sealed)
                except DecryptionFailed:
                    log.error("cannot decrypt the token of %s with this home's keys", held.installation)
                    continue
                sealed = self._cipher.encrypt(held.installation, tokens)
                await self._installations.renew(held, sealed, held.expires_at)

    async def aclose(self) -> None:
        """Wait for renewals in progress."""
        await asyncio.gather(*self._renewals, return_exceptions=True)

    async def _installation(self, installation: str) -> SlackInstallation:
        held = await self._installations.get(installation)
        if held is None:
            raise NotInstalled(f"the app is not installed in {installation}")
        return held

    async def _with_valid_token(self, held: SlackInstallation) -> SlackInstallation:
        """Return the installation with a valid token: renewed if possible, else the old one.

        Raises:
            TokenUnavailable: the old token has expired and could not be renewed.
        """
        deadline = monotonic_seconds() + WAIT_SECONDS
        while True:
            # The lease makes one process renew; the others poll the row below.
            is_ours = await self._installations.begin_renewal(held, LEASE_SECONDS)
            if is_ours:
                task = asyncio.create_task(self._renew(held), name="slack-token")
                self._renewals.add(task)
                task.add_done_callback(self._renewals.discard)
                await asyncio.shield(task)
            held = await self._installation(held.installation)
            if not (held.expires_at is not None and held.expires_at <= utc_now()):
                return held
            if is_ours or held.problem or monotonic_seconds() >= deadline:
                raise TokenUnavailable("token expired and renewal failed")
            await asyncio.sleep(POLL_SECONDS)

    async def _renew(self, held: SlackInstallation) -> None:
        tokens = self._cipher.decrypt(held.installation, held.sealed)
        bot = Bot(
            bot_id="",
            bot_user_id=held.bot_user,
            bot_token=tokens.bot,
            bot_refresh_token=tokens.refresh,
            bot_token_expires_at=0,  # forces the rotation: we have checked the expiry ourselves
            installed_at=held.installed_at.timestamp(),
        )
        try:
            fresh = await self._rotator.perform_bot_token_rotation(bot=bot)
        except SlackTokenRotationError as error:
            response = error.api_error.response
            if response.status_code == 200:
                await self._fail(held, f"Slack rejected the token renewal ({response.get('error')})")
            else:
                log.warning(
                    "installation=%s token renewal failed: status %s", held.installation, response.status_code
                )
        except (SlackClientError, aiohttp.ClientError, TimeoutError) as error:
            log.warning("installation=%s token renewal failed: %s", held.installation, type(error).__name__)
        else:
            if fresh is None or fresh.bot_token_expires_at is None:
                await self._fail(held, "Slack's token renewal returned no token")
            else:
                renewed = Tokens(fresh.bot_token, fresh.bot_refresh_token)
                await self._store_tokens(
                    held, renewed, datetime.fromtimestamp(fresh.bot_token_expires_at, UTC)
                )

    async def _store_tokens(self, held: SlackInstallation, tokens: Tokens, expires_at: datetime) -> None:
        """Store renewed tokens; retry while we hold the lease, because Slack issues them only once."""
        sealed = self._cipher.encrypt(held.installation, tokens)
        deadline = monotonic_seconds() + LEASE_SECONDS
        while True:
            try:
                is_kept = await self._installations.renew(held, sealed, expires_at)
            except DatabaseUnavailable:
                if monotonic_seconds() >= deadline:
                    raise
                await asyncio.sleep(POLL_SECONDS)
            else:
                log.info("installation=%s token renewed, kept=%s", held.installation, is_kept)
                return

    async def _fail(self, held: SlackInstallation, problem: str) -> None:
        log.error("%s (%s): %s: reinstall the app in that workspace", held.name, held.installation, problem)
        await self._installations.note_problem(held, problem)
