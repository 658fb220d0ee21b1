"""Private questions by slash command or message shortcut: ephemeral answers that the asker may share.

Commands and shortcuts also work in channels without the bot. The question goes through the inbox like any
other; the answer is posted to Slack's ``response_url``, which is valid for 30 minutes. An unclear delivery is
repeated (at-least-once), because only the asker would see a duplicate.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import aiohttp
from slack_sdk.webhook.async_client import AsyncWebhookClient

from bot.core.errors import DeliveryError, DeliveryUnclear
from bot.core.models import Answer, AnswerState, Language
from bot.core.plaintext import replace_invalid_chars
from bot.core.ports import IncomingMessage, StoredAnswer
from bot.core.wording import reply_words
from bot.platforms.slack.address import SLACK, ButtonQuestion, SlackAddress
from bot.platforms.slack.blocks import Block, SlackMessage, render
from bot.platforms.slack.events import SLACK_ID, installation_of, is_outsider
from bot.platforms.slack.feedback_buttons import answer_row
from bot.platforms.slack.message_text import plain_text
from bot.platforms.slack.question_buttons import asked_blocks, asked_line, installation_of_click
from storage.chat.traces import PRIVATE_THREAD
from storage.models import ChannelKey

Json = Mapping[str, Any]

log = logging.getLogger(__name__)

SHARE = "share-answer"
SHORTCUT = "ask-about-message"
# Timeout of one request to a response_url.
SECONDS = 5
_HELP = "help"
# Arguments of /footnote that are shorthands; any other text is the question.
_LIST = {"documents": "list documents", "docs": "list documents", "list": "list documents", "": _HELP}


def read_command(form: Json, api_url: str) -> IncomingMessage | None:
    """Parse a slash command; None if an outsider sent it or its ``response_url`` is not Slack's.

    ``api_url``: base URL of Slack's Web API; response URLs must be on its host or a subdomain.
    """
    installation = installation_of(
        {**form, "is_enterprise_install": form.get("is_enterprise_install") == "true"}
    )
    ids = installation, str(form.get("channel_id") or ""), str(form.get("user_id") or "")
    typed = replace_invalid_chars(plain_text(str(form.get("text") or ""), ""))
    return _private(form, api_url, ids, _LIST.get(typed.casefold(), typed), is_acknowledged=True)


def read_shortcut(payload: Json, api_url: str) -> IncomingMessage | None:
    """Parse a message shortcut: the message's text as a question of its user; None as ``read_command``."""
    channel, user = (str((payload.get(name) or {}).get("id") or "") for name in ("channel", "user"))
    ids = installation_of_click(payload), channel, user
    text = replace_invalid_chars(plain_text(str((payload.get("message") or {}).get("text") or ""), ""))
    return _private(payload, api_url, ids, text or _HELP, is_acknowledged=False)


def _private(
    payload: Json, api_url: str, ids: tuple[str, str, str], text: str, *, is_acknowledged: bool
) -> IncomingMessage | None:
    """Return a private question; ``ids``: installation, channel and user."""
    trigger, url = (str(payload.get(name) or "") for name in ("trigger_id", "response_url"))
    if is_outsider(payload) or not all(map(SLACK_ID.fullmatch, ids)):
        return None
    if not trigger or not _is_of_slack(url, api_url):
        return None
    installation, channel, user = ids
    message_key = f"{installation}:{channel}:{trigger}"
    asked = ButtonQuestion(user, text)
    return IncomingMessage(
        key=ChannelKey(SLACK, installation, channel),
        channel_name=None,
        event_key=message_key,
        message_key=message_key,
        thread=f"{PRIVATE_THREAD}{trigger}",  # its own thread: private questions have no conversation context
        text=text,
        address=SlackAddress(
            channel, message_key, user=user, asked=asked, response_url=url, is_acknowledged=is_acknowledged
        ).to_json(),
    )


def _is_of_slack(url: str, api_url: str) -> bool:
    try:
        reply, api = urlsplit(url), urlsplit(api_url)
    except ValueError:
        return False
    host, home = reply.hostname or "", api.hostname or ""
    return reply.scheme == api.scheme and (host == home or host.endswith(f".{home}"))


def acknowledgement(address: SlackAddress, language: Language) -> str:
    """Return the immediate reply: the question, which Slack does not show, and the "searching" line."""
    return f"{asked_line(address)}\n{reply_words(language).searching}"


async def post_private_placeholder(address: SlackAddress, language: Language) -> None:
    """Post the ephemeral placeholder, unless the command was acknowledged with it.

    Raises:
        DeliveryError: Slack refused, or could not be reached.
        DeliveryUnclear: it may or may not have been shown.
    """
    if not address.is_acknowledged:
        text = acknowledgement(address, language)
        await _send(address.response_url, text=text, response_type="ephemeral", replace_original=False)


async def post_private_answer(
    address: SlackAddress, answer: Answer, sources_shown: int, *, offers_person: bool = False
) -> None:
    """Post the answer as an ephemeral message with a button to share it.

    Raises:
        DeliveryError: Slack refused, as it does after 30 minutes, or could not be reached.
        DeliveryUnclear: the answer may or may not have been shown.
    """
    rendered = _rendered(address, answer, sources_shown, offers_person=offers_person)
    is_shareable = answer.state is not AnswerState.FAILED
    share = [_share_button(address.key, answer.language)] if is_shareable else []
    await _send(
        address.response_url,
        **_message(address, rendered, share),
        response_type="ephemeral",
        replace_original=False,
    )


def read_response_url(payload: Json, api_url: str) -> str:
    """Return a click's response URL; '' if it is not Slack's."""
    url = str(payload.get("response_url") or "")
    return url if _is_of_slack(url, api_url) else ""


def read_share(payload: Json, api_url: str) -> tuple[str, str] | None:
    """Parse a click on Share into (message key of the question, response URL); None if not valid."""
    action: Json = (payload.get("actions") or [{}])[0]
    key, url = str(action.get("value") or ""), read_response_url(payload, api_url)
    return (key, url) if key and url and not is_outsider(payload) else None


def may_share(payload: Json, address: SlackAddress) -> bool:
    """True if the asker clicked, in the channel where they asked."""
    clicker, channel = ((payload.get(name) or {}).get("id") for name in ("user", "channel"))
    return address.is_private and (clicker, channel) == (address.user, address.channel)


async def share_to_channel(
    url: str, stored: StoredAnswer, sources_shown: int, *, offers_person: bool = False
) -> None:
    """Post an answer to the channel with its asker and question, then delete the ephemeral one.

    Raises:
        DeliveryError: as ``post_private_answer``; the answer was not posted.
    """
    address = SlackAddress.from_json(stored.address)
    rendered = _rendered(address, stored.answer, sources_shown, offers_person=offers_person)
    message = _message(address, rendered, [])
    await _send(url, **message, response_type="in_channel", replace_original=False)
    try:
        await _send(url, delete_original=True)
    except DeliveryError as error:
        log.info("deleting the ephemeral answer failed: %s", error)


async def reply_privately(url: str, text: str, blocks: Sequence[Block] = ()) -> None:
    """Post an ephemeral reply to a click.

    Raises:
        DeliveryError: as ``post_private_answer``.
    """
    said = {"text": text, "blocks": list(blocks)} if blocks else {"text": text}
    await _send(url, **said, response_type="ephemeral", replace_original=False)


def _rendered(to: SlackAddress, answer: Answer, sources_shown: int, *, offers_person: bool) -> SlackMessage:
    """Render the answer with its sources and feedback buttons."""
    row = answer_row(answer, to.tenant, to.key, offers_person=offers_person)
    share = _share_button(to.key, answer.language)
    return render(answer, sources_shown, extra_blocks=[*asked_blocks(to), share], row=row)


def _message(address: SlackAddress, rendered: SlackMessage, more: list[Block]) -> dict[str, Any]:
    return {
        "text": f"{asked_line(address)}\n{rendered.text}",
        "blocks": [*asked_blocks(address), *rendered.blocks, *more],
        "unfurl_links": False,
        "unfurl_media": False,
    }


def _share_button(key: str, language: Language) -> Block:
    label = {"type": "plain_text", "text": reply_words(language).share, "emoji": False}
    button = {"type": "button", "action_id": SHARE, "text": label, "value": key}
    return {"type": "actions", "block_id": "share", "elements": [button]}


async def _send(url: str, **body: Any) -> None:
    # No retry handlers: a repeated request could post a second message.
    try:
        reply = await AsyncWebhookClient(url, timeout=SECONDS, retry_handlers=[]).send(**body)
    except aiohttp.ClientConnectorError as error:
        raise DeliveryError("Slack could not be reached") from error
    except (aiohttp.ClientError, TimeoutError) as error:
        raise DeliveryUnclear(f"outcome unknown: {type(error).__name__}") from error
    if reply.status_code >= 500:
        raise DeliveryUnclear(f"Slack answered {reply.status_code}")
    if reply.status_code != 200:
        waits = reply.headers.get("Retry-After", "")
        raise DeliveryError(
            f"Slack refused a reply: {reply.status_code}",
            retry_after=float(waits) if waits.isdigit() else None,
        )
