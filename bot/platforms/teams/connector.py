"""Bot Framework connector client: activities in botbuilder's schema, OAuth token, retries with backoff.

Requests go only to service URLs of Microsoft's own connectors; other hosts get no request and no token.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import quote, urlsplit

import aiohttp
from botbuilder.core import CardFactory, MessageFactory
from botbuilder.schema import (
    ActionTypes,
    Activity,
    ActivityTypes,
    CardAction,
    ChannelAccount,
    ConversationParameters,
    Entity,
    SuggestedActions,
)
from yarl import URL

from bot.core.errors import ChannelClosed, DeliveryError, DeliveryUnclear
from bot.core.plaintext import shorten_middle
from bot.loopback import is_loopback_host
from bot.platforms.teams.activities import PersonalChat
from bot.platforms.teams.address import TeamsAddress
from bot.platforms.teams.cards import TeamsMessage
from bot.settings import BotSettings
from storage.errors import SettingsError

ServiceUrlCheck = Callable[[str], bool]

_HOSTS = ("botframework.com", "smba.trafficmanager.net", "teams.microsoft.com", "teams.microsoft.us")

Json = dict[str, Any]

CHIP_CHARS = 26
MAX_TRIES = 4
MAX_WAIT_SECONDS = 20.0
# Statuses for which Microsoft asks bots to retry.
RETRY_STATUSES = {412, 429, 502, 504}
# Statuses in a conversation that the bot was removed from.
PERMANENT_STATUSES = {403, 404}
AUTHORITY = "https://login.microsoftonline.com"
SCOPE = "https://api.botframework.com/.default"


def is_microsofts(url: str) -> bool:
    """True if a service URL belongs to one of Microsoft's connectors, over https."""
    host = _host(url, "https")
    return host is not None and any(host == known or host.endswith(f".{known}") for known in _HOSTS)


def is_local(url: str) -> bool:
    """True if a service URL is on loopback, as the Agents Playground's is."""
    host = _host(url, "http")
    return is_loopback_host(host)


def _host(url: str, scheme: str) -> str | None:
    """Return a URL's host; None for another scheme, credentials, a query or a non-default https port."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    is_plain = parts.scheme == scheme and not (parts.username or parts.password or parts.query)
    if not is_plain or "\\" in url or (scheme == "https" and port not in (None, 443)):
        return None
    return (parts.hostname or "").lower() or None


class MessageEntity(Entity):
    """Entity with arbitrary fields: botbuilder's ``Entity`` serializes only the type."""

    _attribute_map = {  # noqa: RUF012  # msrest reads it from the class, as a dict
        "type": {"key": "type", "type": "str"},
        "additional_properties": {"key": "", "type": "{object}"},
    }


def text_activity(message: TeamsMessage, *, takes_feedback: bool = False) -> Json:
    """Return a text message with its citations, labelled "AI generated" if a model worded it.

    ``takes_feedback``: enable Teams' native feedback buttons.
    """
    activity = _text(message.text, "markdown")
    if takes_feedback:
        activity.channel_data = {"feedbackLoop": {"type": "default"}}
    activity.entities = []
    if message.citations or message.is_generated:
        fields = {
            "@type": "Message",
            "@context": "https://schema.org",
            "@id": "",
            **({"additionalType": ["AIGeneratedContent"]} if message.is_generated else {}),
            "citation": list(message.citations),
        }
        entity = MessageEntity(type="https://schema.org/Message", additional_properties=fields)
        activity.entities.append(entity)
    return _wire(activity)


def suggested_actions_activity(text: str, questions: Sequence[str]) -> Json:
    """Return a text message with a suggested action per question, which sends it; Teams shows three."""
    activity = _text(text, "markdown")
    chips = [CardAction(type=ActionTypes.im_back, title=_chip(one), value=one) for one in questions]
    activity.suggested_actions = SuggestedActions(actions=chips, to=[])
    return _wire(activity)


def _chip(question: str) -> str:
    """Shorten a question to a third of a chat's width."""
    # Cut in the middle: questions that begin alike differ at the end.
    return shorten_middle(question, CHIP_CHARS, CHIP_CHARS * 2 // 3)


def stream_activity(text: str, sequence: int, stream: str = "") -> Json:
    """Return an update of a streamed message: "informative" to begin one, "streaming" text to continue."""
    activity = Activity(type=ActivityTypes.typing, text=text, text_format="markdown")
    kind = {"streamType": "streaming", "streamId": stream} if stream else {"streamType": "informative"}
    activity.entities = [_stream_entity({**kind, "streamSequence": sequence})]
    return _wire(activity)


def final_activity(activity: Json, stream: str, card: Json | None = None) -> Json:
    """Return the final message of a stream, which replaces it; only such a message may also have a card."""
    entity = _wire(_stream_entity({"streamType": "final", "streamId": stream}))
    attached = {"attachments": card_activity(card, "")["attachments"]} if card else {}
    return activity | {"entities": [*activity.get("entities", ()), entity]} | attached


def _stream_entity(fields: Json) -> Entity:
    return MessageEntity(type="streaminfo", additional_properties=fields)


def plain_activity(text: str) -> Json:
    """Return a plain text message."""
    return _wire(_text(text, "plain"))


def card_activity(card: Json, summary: str) -> Json:
    """Return a message with one Adaptive Card."""
    activity = MessageFactory.attachment(CardFactory.adaptive_card(card))
    activity.summary, activity.input_hint = summary, None
    return _wire(activity)


def typing_activity() -> Json:
    """Return a typing indicator."""
    return _wire(Activity(type=ActivityTypes.typing))


def _text(text: str, text_format: str) -> Activity:
    activity = MessageFactory.text(text)
    # MessageFactory sets input_hint, which is for voice assistants and unused by Teams.
    activity.text_format, activity.input_hint = text_format, None
    return activity


def _wire(value: Activity | Entity | ConversationParameters) -> Json:
    serialize: Callable[[], Json] = value.serialize
    return serialize()


class AppCredentials:
    """OAuth client credentials of the bot; its access token is cached until five minutes before expiry."""

    def __init__(self, app_id: str, secret: str, tenant: str, authority: str = AUTHORITY) -> None:
        self._url = f"{authority}/{tenant}/oauth2/v2.0/token"
        self._form = {
            "grant_type": "client_credentials",
            "client_id": app_id,
            "client_secret": secret,
            "scope": SCOPE,
        }
        self._token, self._ends_at = "", 0.0
        self._lock = asyncio.Lock()

    async def token(self, session: aiohttp.ClientSession) -> str:
        """Return an access token valid for at least five minutes.

        Raises:
            DeliveryError: Microsoft issues none.
        """
        async with self._lock:
            if time.monotonic() > self._ends_at - 300:
                await self._fetch(session)
            return self._token

    def invalidate(self) -> None:
        """Invalidate the cached token after the connector rejected it."""
        self._ends_at = 0.0

    async def _fetch(self, session: aiohttp.ClientSession) -> None:
        try:
            async with session.post(self._url, data=self._form, allow_redirects=False) as response:
                if response.status != 200:
                    raise DeliveryError(f"token request failed: status {response.status}")
                granted = await response.json()
            self._token, self._ends_at = granted["access_token"], time.monotonic() + granted["expires_in"]
        except (aiohttp.ClientError, TimeoutError, KeyError, ValueError) as error:
            raise DeliveryError(f"token request failed: {type(error).__name__}") from error


def app_credentials(settings: BotSettings) -> AppCredentials:
    """Return the bot's credentials from the settings.

    Raises:
        SettingsError: the app id, password or tenant is missing.
    """
    app_id, password = settings.teams_app_id, settings.teams_app_password
    if not (app_id and password):
        raise SettingsError("Teams needs both MicrosoftAppId and MicrosoftAppPassword")
    tenant = "botframework.com" if settings.teams_app_type == "MultiTenant" else settings.teams_tenant_id
    if not tenant:
        raise SettingsError("a SingleTenant bot needs MicrosoftAppTenantId")
    return AppCredentials(app_id, password.get_secret_value(), tenant)


class Connector:
    """Client of the connector's REST API: posts and updates activities at trusted service URLs."""

    def __init__(
        self, credentials: AppCredentials | None, is_trusted: ServiceUrlCheck, pause: float = 1.0
    ) -> None:
        self._credentials = credentials
        self._is_trusted = is_trusted
        self._pause = pause
        self._session: aiohttp.ClientSession | None = None

    async def post(self, to: TeamsAddress, activity: Json, *, tries: int = MAX_TRIES) -> str:
        """Post an activity and return its id; '' if Teams returns none.

        Raises:
            DeliveryUnclear: it may or may not have been posted.
            DeliveryError: it was not posted.
        """
        return await self._send("POST", _url(to, "activities"), activity, tries)

    async def put(
        self, to: TeamsAddress, activity_id: str, activity: Json, *, tries: int = MAX_TRIES
    ) -> None:
        """Update an activity posted by the bot.

        Raises:
            DeliveryError: it was not updated, or the outcome is unclear.
        """
        await self._send("PUT", _url(to, "activities", activity_id), activity | {"id": activity_id}, tries)

    async def member(self, to: TeamsAddress, person: str) -> Json | None:
        """Return a member of a conversation, by their Entra object id; None if they are none.

        Raises:
            DeliveryError: Teams does not say.
        """
        url = _url(to.without_thread(), "members", person)
        if not self._is_trusted(str(url.origin())):
            raise DeliveryError("untrusted service URL")
        status, retry_after, reply = await self._request("GET", url, None)
        if status in PERMANENT_STATUSES:
            return None
        if status >= 300:
            raise _refusal(status, retry_after)
        return reply

    async def open_chat(self, to: TeamsAddress, own_chat: PersonalChat) -> str:
        """Return the id of the bot's personal chat with a person; Teams creates it if needed.

        Raises:
            DeliveryError: the person has not installed the app, or the outcome is unclear.
        """
        parameters = ConversationParameters(
            is_group=False,
            bot=ChannelAccount(id=own_chat.bot),
            members=[ChannelAccount(id=own_chat.member)],
            tenant_id=own_chat.tenant,
            channel_data={"tenant": {"id": own_chat.tenant}},
        )
        if chat := await self._send("POST", URL(to.conversations_url, encoded=True), _wire(parameters)):
            return chat
        raise DeliveryError("Teams returned no chat id")

    async def aclose(self) -> None:
        """Close the connections."""
        if self._session:
            await self._session.close()
            self._session = None

    async def _send(self, method: str, url: URL, activity: Json, tries: int = MAX_TRIES) -> str:
        if not self._is_trusted(str(url.origin())):
            raise DeliveryError("untrusted service URL")
        for tries_left in reversed(range(tries)):
            status, retry_after, reply = await self._request(method, url, activity)
            if status < 300:
                return str(reply.get("id") or "")
            jitter = random.uniform(0.5, 1.0)  # noqa: S311  # no secret
            backoff = self._pause * 2 ** (MAX_TRIES - 1 - tries_left) * jitter
            wait = backoff if retry_after is None else retry_after
            if not tries_left or status not in RETRY_STATUSES or wait > MAX_WAIT_SECONDS:
                raise _refusal(status, retry_after)
            await asyncio.sleep(wait)
        raise AssertionError("the last try returns or raises")

    async def _request(self, method: str, url: URL, activity: Json | None) -> tuple[int, float | None, Json]:
        if self._session is None:
            self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=15))
        session, headers = self._session, {}
        if self._credentials:
            headers["Authorization"] = f"Bearer {await self._credentials.token(session)}"
        try:
            async with session.request(
                method, url, json=activity, headers=headers, allow_redirects=False
            ) as response:
                if response.status == 401 and self._credentials:
                    self._credentials.invalidate()
                reply = await response.json() if response.status in (200, 201) else {}
                asked = response.headers.get("Retry-After", "")
                return response.status, float(asked) if asked.isdigit() else None, reply or {}
        except aiohttp.ClientConnectorError as error:  # not connected: nothing was sent
            raise DeliveryError("Teams could not be reached") from error
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            raise DeliveryUnclear(f"outcome unknown: {type(error).__name__}") from error


def _url(to: TeamsAddress, *below: str) -> URL:
    # Conversation ids contain ":", ";" and "@": percent-encode each path segment.
    parts = [quote(part, safe="") for part in (to.conversation, *below)]
    return URL(f"{to.conversations_url}/{'/'.join(parts)}", encoded=True)


def _refusal(status: int, retry_after: float | None) -> DeliveryError:
    if status >= 500:
        return DeliveryUnclear(f"Teams answered {status}", retry_after=retry_after)
    kind = ChannelClosed if status in PERMANENT_STATUSES else DeliveryError
    return kind(f"Teams refused: status {status}", retry_after=retry_after)
