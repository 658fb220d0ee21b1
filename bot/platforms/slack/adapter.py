"""Slack adapter on Bolt: commits each event to the inbox before it is acknowledged.

Events arrive as signed HTTP requests or over Socket Mode; both end in the same Bolt listeners.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import aiohttp
from aiohttp import web
from slack_bolt.adapter.aiohttp import to_aiohttp_response
from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_bolt.async_app import AsyncApp
from slack_bolt.authorization import AuthorizeResult
from slack_bolt.authorization.async_authorize import AsyncCallableAuthorize
from slack_bolt.error import BoltUnhandledRequestError
from slack_bolt.request.async_request import AsyncBoltRequest
from slack_bolt.response import BoltResponse
from slack_sdk.errors import SlackApiError

from bot.chat.chat_service import ChatService
from bot.core.ports import ACK_SECONDS
from bot.platforms.slack.installations.oauth import SlackOAuth
from bot.platforms.slack.listeners import (
    answer_buttons,
    channels,
    handoff_buttons,
    messages,
    questions,
    shared_answers,
    surfaces,
)
from bot.platforms.slack.listeners.context import SlackContext
from bot.platforms.slack.listeners.signature import read_signed_body
from bot.platforms.slack.messenger import SlackMessenger
from bot.platforms.slack.surfaces.agent_view import SuggestedPrompts
from bot.platforms.slack.surfaces.app_home import AppHome
from bot.platforms.slack.surfaces.link_previews import LinkPreviews
from bot.platforms.slack.web_api import WebClients, web_client
from bot.platforms.slack.workspace.app_manifest import PATH
from bot.platforms.slack.workspace.channel_names import ChannelNames
from bot.platforms.slack.workspace.memberships import Memberships
from bot.platforms.slack.workspace.moved_channels import ChannelIdMap
from bot.platforms.slack.workspace.shared_files import SharedFiles
from bot.settings import BotSettings, revealed
from storage.errors import SettingsError, raised_at
from storage.task_group import DeadlineCalls, cancel_and_wait

log = logging.getLogger(__name__)


class _SocketModeClient(Protocol):
    """The part of slack_sdk's Socket Mode client that we use; the client reconnects until it is closed."""

    # The WebSocket session, set from the handshake on.
    current_session: Any
    # Each is called with (client, parsed message, raw message).
    message_listeners: list[Any]

    async def connect(self) -> None: ...

    async def is_connected(self) -> bool: ...

    async def close(self) -> None: ...


class _DeadlineApp(AsyncApp):
    """Bolt app that answers 503 before Slack's own timeout, so that Slack redelivers the event.

    This holds for Socket Mode too, where only a 200 is acknowledged. The redelivered event is idempotent:
    it is stored once, even if the first delivery is committed after all.
    """

    calls: DeadlineCalls

    async def async_dispatch(self, req: AsyncBoltRequest) -> BoltResponse:
        """Dispatch as Bolt does; answer 503 once the ack deadline has passed."""
        try:
            return await self.calls.wait_for(super().async_dispatch(req))
        except TimeoutError:
            log.error("event not committed in time: answering 503 for redelivery")
            return BoltResponse(status=503)


class SlackAdapter:
    """``ChatPlatform`` of Slack: owns the Bolt app, its listeners and the messenger.

    Bolt acknowledges first by default. ``process_before_response`` runs the listener first: Slack sees a 200
    only after ``receive`` has committed, and redelivers the event otherwise.
    """

    def __init__(
        self,
        settings: BotSettings,
        service: ChatService,
        oauth: SlackOAuth | None = None,
    ) -> None:
        """Build the Bolt app; no request is sent before ``start``.

        ``oauth``: OAuth installations of a multi-workspace app; None: one workspace, by SLACK_BOT_TOKEN.

        Raises:
            SettingsError: neither an app token nor a signing secret is set, so no event can arrive.
        """
        if settings.slack_app_token is None and settings.slack_signing_secret is None:
            raise SettingsError(
                "SLACK_BOT_TOKEN is set, but events cannot arrive: set SLACK_APP_TOKEN (Socket Mode) "
                "or SLACK_SIGNING_SECRET (HTTP)"
            )
        self._client = web_client(revealed(settings.slack_bot_token) or "", settings.slack_api_url)
        self._oauth = oauth
        clients: WebClients = oauth.workspaces if oauth else self._client
        clients.channel_ids = self._channel_ids = ChannelIdMap(service.moves)
        self.messenger = SlackMessenger(clients, settings, service.draw)
        self.files = SharedFiles(clients, settings.slack_api_url)
        self.memberships = Memberships(clients)
        self._settings = settings
        self._secret = revealed(settings.slack_signing_secret) or ""
        self._names = ChannelNames(clients, service)
        self._home = AppHome(clients, service)
        self._prompts = SuggestedPrompts(clients, service)
        self._previews = LinkPreviews(clients, service)
        self._calls = DeadlineCalls(ACK_SECONDS)
        self._app = self._bolt_app(
            SlackContext(settings, service, self.messenger, self.memberships, self._names)
        )
        self._socket: _SocketModeClient | None = None
        # The WebSocket session on which Slack sent its hello.
        self._greeted: Any = None
        self._connecting: asyncio.Task[None] | None = None

    def add_routes(self, app: web.Application) -> None:
        """Add the Events API route if a signing secret is set, and the OAuth routes if OAuth is."""
        if self._secret:
            app.router.add_post(PATH, self._handle, name="slack_events")
        if self._oauth:
            self._oauth.add_routes(app)

    async def start(self) -> None:
        """Check the bot token and connect Socket Mode in the background.

        Raises:
            SettingsError: Slack rejects the bot token. An unreachable Slack raises nothing.
        """
        if self._oauth:
            await self._oauth.workspaces.start()
            return
        await self._check_token()
        if app_token := revealed(self._settings.slack_app_token):
            client = web_client(app_token, self._settings.slack_api_url)
            socket: _SocketModeClient = AsyncSocketModeHandler(self._app, app_token, web_client=client).client
            socket.message_listeners.append(self._note_greeting)
            self._socket = socket
            # ``connect`` retries until it succeeds; ``is_ready`` is False until then.
            self._connecting = asyncio.create_task(socket.connect(), name="slack-socket")

    async def stop(self) -> None:
        """Stop taking events; what was committed stays in the inbox."""
        if self._connecting:
            await cancel_and_wait(self._connecting)
        if self._socket:
            await self._socket.close()
        await self._calls.aclose()
        await self._names.aclose()
        await self._home.aclose()
        await self._prompts.aclose()
        await self._previews.aclose()

    async def aclose(self) -> None:
        """Wait for token renewals in progress; call after the last message was sent."""
        if self._oauth:
            await self._oauth.workspaces.aclose()

    async def is_ready(self) -> bool:
        """True if events can arrive: always over HTTP, over Socket Mode from Slack's hello to disconnect."""
        if self._socket is None:
            return True
        # Between the handshake and the hello, Slack may not deliver events to this session.
        is_greeted = self._greeted is not None and self._greeted is self._socket.current_session
        return is_greeted and await self._socket.is_connected()

    async def _note_greeting(
        self, socket: _SocketModeClient, message: Mapping[str, Any], _: str | None
    ) -> None:
        if message.get("type") == "hello":
            self._greeted = socket.current_session

    async def _check_token(self) -> None:
        try:
            await self._client.auth_test()
        except SlackApiError as error:
            if error.response.status_code != 200:
                log.warning("Slack auth.test failed: status %s", error.response.status_code)
                return
            raise SettingsError(
                f"Slack rejected SLACK_BOT_TOKEN ({error.response.get('error')}): check the token"
            ) from error
        except (aiohttp.ClientError, TimeoutError) as error:
            log.warning("Slack unreachable at start: %s", type(error).__name__)

    async def _handle(self, request: web.Request) -> web.Response:
        body = await read_signed_body(request, self._secret)
        headers: dict[str, str | Sequence[str]] = dict(request.headers)
        response = await self._app.async_dispatch(AsyncBoltRequest(body=body, headers=headers))
        return await to_aiohttp_response(response)

    def _bolt_app(self, slack: SlackContext) -> _DeadlineApp:
        logger = logging.getLogger("slack_bolt.footnote")
        logger.setLevel(
            logging.ERROR
        )  # at lower levels Bolt logs request bodies, and warns about settings that we chose
        authorize = AsyncCallableAuthorize(logger=logger, func=_authorize_by_envelope)
        app = _DeadlineApp(
            name="footnote",
            logger=logger,
            client=self._client,
            signing_secret=self._secret,
            process_before_response=True,
            raise_error_for_unhandled_request=True,
            authorize=authorize,  # type: ignore[arg-type] # with OAuth, Bolt accepts an AsyncAuthorize only
            attaching_conversation_kwargs_enabled=False,
            oauth_flow=self._oauth.flow if self._oauth else None,
            oauth_settings=self._oauth.flow.settings if self._oauth else None,
        )
        app.calls = self._calls
        if self._oauth:
            app.event("app_uninstalled")(self._oauth.on_uninstalled)
            app.event("tokens_revoked")(self._oauth.on_uninstalled)
        app.middleware(self._channel_ids.map_payload)
        channels.listen(app, slack, self._channel_ids)
        surfaces.listen(app, slack, self._home, self._prompts, self._previews)
        questions.listen(app, slack, self._home)
        for room in (messages, handoff_buttons, answer_buttons, shared_answers):
            room.listen(app, slack)
        app.error(_on_error)
        return app


async def _authorize_by_envelope(enterprise_id: str | None, team_id: str | None) -> AuthorizeResult:
    """Trust the verified envelope instead of calling auth.test: only the commit comes before the ack."""
    return AuthorizeResult(enterprise_id=enterprise_id, team_id=team_id)


async def _on_error(error: Exception, body: Mapping[str, Any]) -> BoltResponse:
    """Answer 503 to any error before the commit, so that Slack redelivers the event."""
    if isinstance(error, BoltUnhandledRequestError):  # an event that we did not subscribe to needs no retry
        return BoltResponse(status=200 if "event" in body else 404)
    log.error("event handling failed, answering 503: %s", raised_at(error))
    return BoltResponse(status=503)
