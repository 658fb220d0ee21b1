"""Message extension "Ask Footnote": private questions from Teams' compose box.

The question goes through the inbox like any other of that channel or chat; only its asker gets the answer, as
a card in the compose box to send or discard. Teams times out after five seconds: slower answers continue in
the background and a button fetches them, for their asker and in the same channel only.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from bot.chat.chat_service import ChatService
from bot.core.models import Answer, Language
from bot.core.plaintext import replace_invalid_chars
from bot.core.ports import IncomingMessage, StoredAnswer
from bot.core.wording import ReplyWords, reply_words
from bot.platforms.teams.activities import TeamsPlace, asker_of, channel_name, part, place_of
from bot.platforms.teams.address import TeamsAddress
from bot.platforms.teams.cards import render_card
from bot.settings import BotSettings
from storage.chat.traces import PRIVATE_THREAD
from storage.task_group import DeadlineCalls

Json = Mapping[str, Any]
Card = dict[str, Any]

FETCH, SUBMIT = "composeExtension/fetchTask", "composeExtension/submitAction"
TITLE = "Ask Footnote"
ADAPTIVE = "application/vnd.microsoft.card.adaptive"
# Teams times out after 5 s: it retries, then shows an error.
REPLY_SECONDS = 4.0
POLL_SECONDS = 0.1
MAX_ID_CHARS = 256


def is_compose(activity: Json) -> bool:
    """True if the activity is an invoke of the message extension."""
    return activity.get("type") == "invoke" and activity.get("name") in (FETCH, SUBMIT)


class ComposeExtension:
    """Handles the extension's invokes; replies with the next dialog or the answer's card."""

    def __init__(
        self,
        service: ChatService,
        calls: DeadlineCalls,
        settings: BotSettings,
        *,
        reply_seconds: float = REPLY_SECONDS,
    ) -> None:
        """Build the handler.

        Args:
            service: stores questions and reads answers.
            calls: ends the storing of a question at the ack deadline; the request waits for the answer, too.
            settings: number of sources shown and maximum length of a question.
            reply_seconds: how long to wait for the answer before offering a button to fetch it.
        """
        self._service = service
        self._calls = calls
        self._sources_shown = settings.sources_shown
        self._question_chars = settings.question_chars
        self._reply_seconds = reply_seconds

    async def reply(self, activity: Json) -> Card:
        """Return the response to an invoke; {} if it names no person or no conversation.

        Raises:
            DatabaseUnavailable: the question could not be stored.
        """
        until = time.monotonic() + self._reply_seconds
        place, said = place_of(activity, None), reply_words(_language(activity))
        asker = asker_of(activity, place.key) if place else ""
        if place is None or not asker:
            return {}
        data = part(activity, "value", "data")
        question, asked = replace_invalid_chars(str(data.get("question") or "")).strip(), data.get("asked")
        if activity.get("name") == SUBMIT and isinstance(asked, str) and len(asked) <= MAX_ID_CHARS:
            return await self._wait(place, asker, asked, said, until)
        if activity.get("name") != SUBMIT or not question or not activity.get("id"):
            return _dialog(question_card(said, self._question_chars))
        message = _message(activity, place, asker, question)
        await self._calls.wait_for(self._service.receive(message))
        return await self._wait(place, asker, str(activity["id"]), said, until)

    async def _wait(self, place: TeamsPlace, asker: str, asked: str, said: ReplyWords, until: float) -> Card:
        """Poll for the answer until the deadline; return its card, else a button to fetch it later."""
        key = _key(place, asked)
        with suppress(TimeoutError):
            async with asyncio.timeout(until - time.monotonic()):
                while True:
                    stored = await self._service.answer_of(key)
                    if stored and not _is_own(stored, asker):
                        return _dialog(question_card(said, self._question_chars, is_gone=True))
                    if stored:
                        return _inserted(stored.answer, self._sources_shown)
                    await asyncio.sleep(POLL_SECONDS)
        return _dialog(waiting_card(said, asked))


def _is_own(stored: StoredAnswer, asker: str) -> bool:
    """True if it answers a private question of this person."""
    address = TeamsAddress.from_json(stored.address)
    return address.is_private and address.asker == asker


def _message(activity: Json, place: TeamsPlace, asker: str, question: str) -> IncomingMessage:
    """Return the question, in its own thread: private questions have no conversation context.

    An invoke does not tell a personal chat with the bot from one between two people, so ``is_direct`` is None
    there: the value stored from an earlier message applies.
    """
    name = str(activity["id"])
    return IncomingMessage(
        key=place.key,
        channel_name=channel_name(activity),
        event_key=_key(place, name),
        message_key=_key(place, name),
        thread=f"{PRIVATE_THREAD}{name}",
        text=question,
        address=replace(place.address, asker=asker, is_private=True).to_json(),
        is_direct=None if place.address.is_personal else False,
    )


def _key(place: TeamsPlace, asked: str) -> str:
    return f"{place.key.installation}:{place.address.conversation}:{asked}"


def _language(activity: Json) -> Language:
    """Return the language of the person's Teams client."""
    with suppress(ValueError):
        return Language(str(activity.get("locale") or "")[:2].lower())
    return Language.ENGLISH


def question_card(said: ReplyWords, most: int, *, is_gone: bool = False) -> Card:
    """Return a form for a question of at most ``most`` characters; ``is_gone``: say its answer is gone."""
    field = {
        "type": "Input.Text",
        "id": "question",
        "label": said.compose_question,
        "isRequired": True,
        "errorMessage": said.compose_question,
        "maxLength": most,
    }
    lead = said.compose_gone if is_gone else said.compose_lead
    return _card([_words(lead), field], said.compose_ask, {})


def waiting_card(said: ReplyWords, asked: str) -> Card:
    """Return a card saying that the answer is not ready, with a button to fetch it by question id."""
    return _card([_words(said.compose_waiting)], said.compose_show, {"asked": asked})


def _words(text: str) -> Card:
    return {"type": "RichTextBlock", "inlines": [{"type": "TextRun", "text": text}]}


def _card(body: list[Card], button: str, data: Json) -> Card:
    actions = [{"type": "Action.Submit", "title": button, "data": dict(data)}]
    return {"type": "AdaptiveCard", "version": "1.5", "body": body, "actions": actions}


def _dialog(card: Card) -> Card:
    shown = {"title": TITLE, "card": {"contentType": ADAPTIVE, "content": card}}
    return {"task": {"type": "continue", "value": shown}}


def _inserted(answer: Answer, sources_shown: int) -> Card:
    attachments = [{"contentType": ADAPTIVE, "content": render_card(answer, sources_shown)}]
    return {"composeExtension": {"type": "result", "attachmentLayout": "list", "attachments": attachments}}
