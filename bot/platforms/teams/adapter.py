"""Teams adapter: verifies the Bot Framework's JWT and commits each activity before answering 200."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Coroutine, Mapping
from typing import Any

from aiohttp import web

from bot.chat.chat_service import ChatService
from bot.chat.conversation.feedback import AnsweredQuestion, FeedbackReply
from bot.chat.conversation.handoffs import Handoff
from bot.core.errors import DeliveryError
from bot.core.ports import ACK_SECONDS
from bot.core.wording import ReplyWords, reply_words
from bot.loopback import is_loopback_host
from bot.platforms.teams.activities import TEAMS, channel_name, is_edit, read_join, read_leave, tenant_of
from bot.platforms.teams.compose_extension import ComposeExtension, is_compose
from bot.platforms.teams.connector import Connector, app_credentials, is_local, is_microsofts
from bot.platforms.teams.feedback_actions import (
    DONE,
    PERSON,
    WHY,
    FeedbackAction,
    is_feedback,
    read_feedback,
)
from bot.platforms.teams.messenger import TeamsMessenger
from bot.platforms.teams.personal_files import TeamsFiles, is_local_file, is_sharepoints, read_messages
from bot.platforms.teams.token_verifier import KeysUnavailable, SigningKeys, TokenRefused, TokenVerifier
from bot.settings import BotSettings
from storage.chat.feedback import FeedbackVerdict
from storage.errors import SettingsError, raised_at
from storage.task_group import DeadlineCalls, cancel_and_wait

PATH = "/api/messages"
MAX_BODY_BYTES = 1 << 18

log = logging.getLogger(__name__)


class TeamsAdapter:
    """``ChatPlatform`` of Teams: one route, whose body is read only after its token was verified."""

    # Bots cannot look up who is in a channel.
    memberships = None

    def __init__(
        self, settings: BotSettings, service: ChatService, *, keys: SigningKeys | None = None
    ) -> None:
        """Build the adapter; no request is sent yet.

        ``keys``: the Bot Framework's signing keys; None: fetched on demand.

        Raises:
            SettingsError: incomplete app settings, or development mode on an address others can reach.
        """
        self.messenger = TeamsMessenger(_connector(settings), settings)
        self.files = TeamsFiles(is_local_file if settings.teams_development else is_sharepoints)
        self._service = service
        self._calls = DeadlineCalls(ACK_SECONDS)
        self._compose = ComposeExtension(service, self._calls, settings)
        self._following_up: set[asyncio.Task[None]] = set()
        self._tenant = settings.teams_tenant_id if settings.teams_app_type == "SingleTenant" else None
        # Any tenant may message a multi-tenant bot, but only our own tenant's direct chats get the library.
        self._home = None if settings.teams_app_type == "SingleTenant" else settings.teams_tenant_id or ""
        app_id = settings.teams_app_id
        self._keys = keys or SigningKeys()
        self._verifier = TokenVerifier(app_id, self._keys) if app_id else None

    def add_routes(self, app: web.Application) -> None:
        """Add the messaging endpoint."""
        app.router.add_post(PATH, self._handle, name="teams_messages")

    async def is_ready(self) -> bool:
        """True if messages can arrive; with token verification this needs the signing keys."""
        return self._verifier is None or await self._keys.has_keys()

    async def start(self) -> None:
        """Do nothing: messages arrive by the route."""

    async def stop(self) -> None:
        """Cancel running calls."""
        await self._calls.aclose()

    async def aclose(self) -> None:
        """Cancel follow-ups, and close the connector."""
        await cancel_and_wait(*self._following_up)
        await self.messenger.connector.aclose()

    async def _handle(self, request: web.Request) -> web.Response:
        claims = await self._verify_token(request)
        activity = await _read_json(request)
        self._check_origin(activity, claims)
        try:
            if is_compose(activity):
                return web.json_response(await self._compose.reply(activity))
            return await self._calls.wait_for(self._handle_activity(activity))
        except Exception as error:  # the platform's edge: Teams sends again, whatever went wrong
            log.error("activity handling failed, answering 503: %s", raised_at(error))
            raise web.HTTPServiceUnavailable from None

    async def _handle_activity(self, activity: Mapping[str, Any]) -> web.Response:
        """Commit an activity, then return the response."""
        if action := read_feedback(activity, self._home):
            return await self._on_feedback(action)
        if messages := read_messages(activity, self._home, self._service.accepts_files):
            for message in messages:
                if not (is_edit(activity) and await self._service.edit(message)):
                    await self._service.receive(message)
        elif joined := read_join(activity, self._home):
            name, address = channel_name(activity), joined.address.to_json()
            await self._service.join(joined.key, name, is_direct=joined.is_direct, address=address)
        elif left := read_leave(activity, self._home):
            await self._service.leave(left)
        return _refused() if is_feedback(activity) else web.Response()

    async def _on_feedback(self, action: FeedbackAction) -> web.Response:
        """Store feedback before the response; post the follow-up of a personal chat after it."""
        feedback = self._service.feedback
        asked = await feedback.question_of_reply(action.place.key, action.message)
        if action.said in (PERSON, DONE):
            self._post_in_background(self._hand_off(action, asked))
            return web.Response()
        if action.said == WHY:
            reply = FeedbackReply(await feedback.why(asked))
        else:
            person = (action.place.key.installation, action.person)
            reply = await feedback.take(
                asked, person, FeedbackVerdict(action.said), page=action.page, comment=action.comment
            )
        # Teams confirms its native buttons itself; a card's button gets no confirmation without a reply.
        if action.place.address.is_personal and (reply.reasons or not action.is_native):
            self._post_in_background(self.messenger.follow_up(action.place.address, reply, action.message))
        return web.json_response({}) if asked or not action.is_native else _refused()

    async def _hand_off(self, action: FeedbackAction, asked: AnsweredQuestion | None) -> None:
        """Tell a person about an answer and confirm it, or store that they have looked at it."""
        handoffs, person = self._service.handoffs, (action.place.key.installation, action.person)
        if asked is None or handoffs is None:
            return
        if action.said == DONE:
            await handoffs.resolve(asked)
            await self.messenger.mark_resolved(action, asked.language)
            return
        words = reply_words(asked.language)
        handoff = await handoffs.prepare(asked, f"{TEAMS}:{person[0]}:{person[1]}")
        if handoff is None:
            text = words.feedback_expired
        elif not await handoffs.open(asked, person):
            text = words.person_asked
        else:
            text = await self._tell(action, handoff, words)
            if text == words.nobody_to_ask:
                await handoffs.resolve(asked)
        await self.messenger.follow_up(action.place.address, FeedbackReply(text), action.message)

    async def _tell(self, action: FeedbackAction, handoff: Handoff, words: ReplyWords) -> str:
        try:
            is_told = await self.messenger.tell_person(action, handoff)
        except DeliveryError as error:
            log.warning("asking a person failed: %s", error)
            is_told = False
        return words.person_told if is_told else words.nobody_to_ask

    def _post_in_background(self, saying: Coroutine[Any, Any, None]) -> None:
        """Post a follow-up in the background: Teams waits for the response, and would resend the click."""
        task = asyncio.create_task(saying, name="teams-follow-up")
        self._following_up.add(task)
        task.add_done_callback(self._following_up.discard)

    async def _verify_token(self, request: web.Request) -> Mapping[str, Any] | None:
        """Return the claims of the verified token; None in development mode, which allows loopback only."""
        if self._verifier is None:
            if not is_loopback_host((request.url.host or "").lower()):
                raise web.HTTPForbidden
            return None
        try:
            return await self._verifier.verify(request.headers.get("Authorization"))
        except TokenRefused:
            raise web.HTTPUnauthorized from None
        except KeysUnavailable:
            log.warning("Bot Framework signing keys unavailable")
            raise web.HTTPServiceUnavailable from None

    def _check_origin(self, activity: Mapping[str, Any], claims: Mapping[str, Any] | None) -> None:
        """Check that the token was issued for this service URL, that it is trusted, and the tenant.

        Raises:
            web.HTTPForbidden: a check failed.
        """
        url = str(activity.get("serviceUrl") or "")
        if claims is None:
            is_fine = is_local(url)
        else:
            is_fine = (
                is_microsofts(url)
                and str(claims["serviceurl"]).rstrip("/").lower() == url.rstrip("/").lower()
            )
            is_fine = is_fine and activity.get("channelId") == "msteams"
            is_fine = is_fine and self._tenant in (None, tenant_of(activity))
        if not is_fine:
            raise web.HTTPForbidden


def _connector(settings: BotSettings) -> Connector:
    app_id, password = settings.teams_app_id, settings.teams_app_password
    if settings.teams_development:
        if app_id or password:
            raise SettingsError(
                "FOOTNOTE_TEAMS_DEVELOPMENT takes messages without tokens: unset MicrosoftAppId"
            )
        if not is_loopback_host(settings.host):
            raise SettingsError(
                "FOOTNOTE_TEAMS_DEVELOPMENT works on loopback only: set FOOTNOTE_HOST=127.0.0.1"
            )
        return Connector(None, is_local)
    return Connector(app_credentials(settings), is_microsofts)


def _refused() -> web.Response:
    """Return the 404 after which Teams shows that the feedback was not accepted."""
    return web.json_response({}, status=404)


async def _read_json(request: web.Request) -> Mapping[str, Any]:
    if request.content_type != "application/json":
        raise web.HTTPUnsupportedMediaType
    if (request.content_length or 0) > MAX_BODY_BYTES or len(body := await request.read()) > MAX_BODY_BYTES:
        raise web.HTTPRequestEntityTooLarge(MAX_BODY_BYTES, request.content_length or 0)
    try:
        activity = json.loads(body)
    except (ValueError, RecursionError):
        raise web.HTTPBadRequest from None
    if not isinstance(activity, dict) or not activity.get("type"):
        raise web.HTTPBadRequest
    return activity
