"""Slack adapter on Bolt: commits each event to the inbox before it is acknowledged.

Events arrive as signed HTTP requests or over Socket Mode; both end in the same Bolt listeners.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

import aiohttp
from aiohttp import web
from slack_bolt.adapter.aiohttp import to_aiohttp_response
from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_bolt.async_app import AsyncApp
from slack_bolt.authorization import AuthorizeResult
from slack_bolt.authorization.async_authorize import AsyncCallableAuthorize
from slack_bolt.context.async_context import AsyncBoltContext
from slack_bolt.request.async_request import AsyncBoltRequest
from slack_bolt.response import BoltResponse
from slack_sdk.errors import SlackApiError

from bot.core.conversation.feedback import AnswerFeedback, FeedbackReply
from bot.core.errors import DeliveryError, DeliveryUnclear
from bot.core.models import Language
from bot.core.ports import ACK_SECONDS, ChatIntake, DrawFigure, IncomingMessage, StoredAnswer
from bot.core.understanding.question_terms import language_of
from bot.core.uploads.upload_intake import UploadPolicy
from bot.core.wording import reply_words
from bot.settings import BotSettings, revealed
from bot.slack import feedback_buttons
from bot.slack.events import (
    LEFT,
    SLACK,
    STOPPED,
    installation_of,
    read_edit,
    read_join,
    read_leave,
    read_outsider,
    read_stop,
    read_withdrawal,
)
from bot.slack.installations.oauth import SlackOAuth
from bot.slack.messenger import SlackMessenger
from bot.slack.private_questions import (
    SHARE,
    SHORTCUT,
    acknowledgement,
    may_share,
    read_command,
    read_response_url,
    read_share,
    read_shortcut,
)
from bot.slack.question_buttons import ACTION, read_question_click
from bot.slack.signature import read_signed_body
from bot.slack.surfaces.agent_view import SuggestedPrompts
from bot.slack.surfaces.app_home import AppHome, read_opened
from bot.slack.surfaces.link_previews import LinkPreviews, read_shared_links
from bot.slack.surfaces.link_renewals import LinkRenewals
from bot.slack.web_api import WebClients, web_client
from bot.slack.workspace.app_manifest import EVENT_TYPES, PATH
from bot.slack.workspace.channel_names import ChannelNames
from bot.slack.workspace.memberships import Memberships
from bot.slack.workspace.moved_channels import CHANGED, ChannelIdMap, read_move
from bot.slack.workspace.shared_files import SharedFiles, read_messages
from storage.errors import SettingsError, raised_at
from storage.models import ChannelKey
from storage.task_group import DeadlineCalls, cancel_and_wait

log = logging.getLogger(__name__)

Acknowledge = Callable[..., Awaitable[BoltResponse]]


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
    """Slack's adapter: owns the Bolt app, its listeners and the messenger.

    Bolt acknowledges first by default. ``process_before_response`` runs the listener first: Slack sees a 200
    only after ``receive`` has committed, and redelivers the event otherwise.
    """

    def __init__(
        self,
        settings: BotSettings,
        intake: ChatIntake,
        feedback: AnswerFeedback,
        draw: DrawFigure,
        oauth: SlackOAuth | None = None,
    ) -> None:
        """Build the Bolt app; no request is sent before ``start``.

        Args:
            settings: tokens and secrets.
            intake: stores incoming messages and serves stored answers.
            feedback: stores feedback on answers.
            draw: renders the figures of answers.
            oauth: OAuth installations of a multi-workspace app; None: one workspace, by SLACK_BOT_TOKEN.

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
        clients.channel_ids = self._channel_ids = ChannelIdMap(intake.moves)
        self.messenger = SlackMessenger(
            clients, settings.sources_shown, draw, is_model_writing=settings.has_model
        )
        self.files = SharedFiles(clients, settings.slack_api_url)
        self._uploads = UploadPolicy(settings.uploads)
        self._settings = settings
        self._secret = revealed(settings.slack_signing_secret) or ""
        self._names = ChannelNames(clients, intake.name_channel)
        self._home = AppHome(clients, intake.overviews, intake.recent)
        self._previews = LinkPreviews(clients, intake.preview)
        self.memberships = Memberships(clients)
        self._renewals = LinkRenewals(intake, feedback, self.memberships, self.messenger, settings)
        self._prompts = SuggestedPrompts(clients, intake.direct_questions)
        self._intake = intake
        self._feedback = feedback
        self._calls = DeadlineCalls(ACK_SECONDS)
        self._app = self._bolt_app()
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

    def _bolt_app(self) -> _DeadlineApp:
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
            authorize=authorize,  # type: ignore[arg-type] # with OAuth, Bolt accepts an AsyncAuthorize only
            attaching_conversation_kwargs_enabled=False,
            oauth_flow=self._oauth.flow if self._oauth else None,
            oauth_settings=self._oauth.flow.settings if self._oauth else None,
        )
        app.calls = self._calls
        app.middleware(self._map_channel_ids)
        if self._oauth:
            app.event("app_uninstalled")(self._oauth.on_uninstalled)
            app.event("tokens_revoked")(self._oauth.on_uninstalled)
        app.event(CHANGED)(self._on_channel_id_changed)
        app.event(re.compile("|".join(LEFT)))(self._on_channel_left)
        app.event(STOPPED)(self._on_session_stopped)
        app.event(re.compile(".*"))(self._on_event)
        app.action(ACTION)(self._on_question_click)
        app.action(feedback_buttons.NEW_LINKS)(self._renewals.on_click)
        app.action(feedback_buttons.ACTION)(self._on_feedback)
        app.action(SHARE)(self._on_share_click)
        app.message_shortcut(SHORTCUT)(self._on_message_shortcut)
        app.command(re.compile(".*"))(self._on_slash_command)
        app.action(re.compile("^source-"))(_acknowledge)
        app.error(_on_error)
        return app

    async def _map_channel_ids(
        self, body: dict[str, Any], context: AsyncBoltContext, next_: Callable[[], Awaitable[Any]]
    ) -> None:
        """Map channel ids in the payload to the ids under which the channels were first stored."""
        # channel_id_changed itself has to keep both ids.
        if read_move(body) is None:
            await self._channel_ids.refresh()
            names = ("is_enterprise_install", "enterprise_id", "team_id")
            said = {name: context.get(name) for name in names}
            installation = installation_of((body.get("authorizations") or [said])[0])
            body.update(self._channel_ids.to_stored(body, installation))
        await next_()

    async def _on_channel_id_changed(self, body: dict[str, Any]) -> None:
        if move := read_move(body):
            await self._intake.move(*move)
            self._channel_ids.invalidate()

    async def _on_channel_left(self, body: dict[str, Any]) -> None:
        if left := read_leave(body):
            await self._intake.leave(left)

    async def _on_session_stopped(self, body: dict[str, Any]) -> None:
        """Stop the answers of a thread; if none is in progress, clear the status that Slack still shows."""
        if (stop := read_stop(body)) and not await self._intake.stop(stop):
            await self.messenger.clear_status(stop.key, stop.thread)

    async def _on_event(self, body: dict[str, Any]) -> None:
        follow_ups = self._settings.thread_follow_ups
        if (body.get("event") or {}).get("type") not in EVENT_TYPES:
            return
        if joined := read_join(body):
            await self._intake.join(joined)
            self._names.refresh(joined)
        elif key := read_withdrawal(body):
            if withdrawn := await self._intake.withdraw(SLACK, key):
                await self.messenger.delete(withdrawn, partial(self._intake.claim_message, SLACK, key))
        elif edited := read_edit(body, follow_ups=follow_ups):
            await self._intake.edit(edited)
        elif messages := read_messages(body, self._uploads.accepts, follow_ups=follow_ups):
            for message in messages:
                await self._enqueue(message)
        else:
            await self._reply_to_outsider(body)
            self._update_surfaces(body)

    async def _reply_to_outsider(self, body: dict[str, Any]) -> None:
        """Reply to a person of another organisation, in an ephemeral message, that we cannot answer them."""
        if asked := read_outsider(body):
            place, text = asked
            words = reply_words(language_of(text) or Language.ENGLISH)
            installation = installation_of((body.get("authorizations") or [{}])[0])
            await self.messenger.post_ephemeral(installation, place, words.outsider, ())

    def _update_surfaces(self, body: dict[str, Any]) -> None:
        """Start best-effort background updates: App Home, suggested prompts, link previews."""
        if home := read_opened(body, "home"):
            self._home.publish(home)
        elif chat := read_opened(body, "messages"):
            self._prompts.open(chat.installation, chat.direct)
        elif links := read_shared_links(body):
            self._previews.add(links)

    async def _on_question_click(self, body: dict[str, Any], ack: Acknowledge) -> None:
        if message := read_question_click(body) or await self._home.read_click(body):
            await self._enqueue(message)
        await ack()

    async def _on_feedback(self, body: dict[str, Any], ack: Acknowledge) -> None:
        """Store the feedback, acknowledge, then reply in an ephemeral message that is not retried."""
        click = feedback_buttons.read_feedback_click(body)
        reply = await self._reply_to(click) if click else None
        await ack()
        if click and reply:
            blocks = feedback_buttons.reply_blocks(reply, click)
            url = read_response_url(body, self._settings.slack_api_url)
            await self.messenger.post_ephemeral(click.key.installation, click.place, reply.text, blocks, url)

    async def _reply_to(self, click: feedback_buttons.FeedbackClick) -> FeedbackReply:
        asked = await self._feedback.question_of(click.key, click.message_key, click.language)
        if asked and not await self._may_see(click):
            asked = None
        if click.verdict is None:
            return FeedbackReply(await self._feedback.why(asked, click.language))
        person = (click.key.installation, click.user)
        return await self._feedback.take(
            asked, person, click.verdict, page=click.page, language=click.language
        )

    async def _may_see(self, click: feedback_buttons.FeedbackClick) -> bool:
        """True if the clicker may see details of the answer.

        In a channel every member may. In a direct chat the answer may come from channels that the person has
        left since, so memberships are checked again.
        """
        if not click.place["channel"].startswith("D"):
            return True
        stored = await self._intake.answer_of(SLACK, click.message_key)
        return stored is not None and await self.memberships.may_see(stored)

    async def _on_slash_command(self, body: dict[str, Any], ack: Acknowledge) -> None:
        if (message := read_command(body, self._settings.slack_api_url)) is None:
            await ack()
            return
        await self._enqueue(message)
        language = language_of(message.text) or Language.ENGLISH
        await ack(text=acknowledgement(message.address, language), response_type="ephemeral")

    async def _on_message_shortcut(self, body: dict[str, Any], ack: Acknowledge) -> None:
        if message := read_shortcut(body, self._settings.slack_api_url):
            await self._enqueue(message)
        await ack()

    async def _on_share_click(self, body: dict[str, Any], ack: Acknowledge) -> None:
        if shared := read_share(body, self._settings.slack_api_url):
            key, url = shared
            stored = await self._intake.answer_of(SLACK, key)
            if stored is not None and may_share(body, stored.address):
                await self._share_once(key, url, stored)
        await ack()

    async def _share_once(self, message_key: str, url: str, stored: StoredAnswer) -> None:
        """Post a private answer to its channel, once, if its asker is still a member there."""
        channel = ChannelKey(SLACK, message_key.partition(":")[0], stored.address["channel"])
        is_member = await self.memberships.is_member(channel, stored.address["asked"]["user"])
        if not is_member or not await self.memberships.may_see(stored):
            await self.messenger.reply_to_click(url, reply_words(stored.answer.language).not_shared)
            return
        if not await self._intake.set_shared(SLACK, message_key, is_shared=True):
            return
        try:
            await self.messenger.share(url, stored)
        except DeliveryUnclear:  # it may have been posted: stay marked as shared, so never post it twice
            raise
        except DeliveryError:
            await self._intake.set_shared(SLACK, message_key, is_shared=False)
            raise

    async def _enqueue(self, message: IncomingMessage) -> None:
        if await self._intake.receive(message):
            self._names.refresh(message.key)


async def _acknowledge(ack: Acknowledge) -> None:
    await ack()


async def _authorize_by_envelope(enterprise_id: str | None, team_id: str | None) -> AuthorizeResult:
    """Trust the verified envelope instead of calling auth.test: only the commit comes before the ack."""
    return AuthorizeResult(enterprise_id=enterprise_id, team_id=team_id)


async def _on_error(error: Exception) -> BoltResponse:
    """Answer 503 to any error before the commit, so that Slack redelivers the event."""
    log.error("event handling failed, answering 503: %s", raised_at(error))
    return BoltResponse(status=503)
