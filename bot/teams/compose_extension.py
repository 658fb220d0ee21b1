"""The message extension "Ask Footnote": a question asked in the box in which people write their messages.

The question is kept like any other of that channel or chat, and answered to whoever asks alone: as a card in
their box, which they send or throw away. Teams waits five seconds for a reply. What takes longer goes on, and
a button fetches it; it opens the answers of its own asker in its own channel only.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any

from bot.core.models import Answer, Language
from bot.core.plaintext import mend
from bot.core.ports import GivenAnswer, IncomingMessage, Receive
from bot.core.wording import ReplyWords, reply_words
from bot.teams.activities import TeamsPlace, asker_of, channel_name, part, place_of
from bot.teams.cards import render_whole
from storage.chat.traces import PRIVATE_THREAD
from storage.models import Platform

Json = Mapping[str, Any]
Card = dict[str, Any]
Given = Callable[[Platform, str], Awaitable[GivenAnswer | None]]

FETCH, SUBMIT = "composeExtension/fetchTask", "composeExtension/submitAction"
TITLE = "Ask Footnote"
ADAPTIVE = "application/vnd.microsoft.card.adaptive"
# Of the five after which Teams asks again and then shows an error.
REPLY_SECONDS = 4.0
POLL_SECONDS = 0.1
MAX_ID_CHARS = 256


def is_compose(activity: Json) -> bool:
    """True if somebody uses the extension."""
    return activity.get("type") == "invoke" and activity.get("name") in (FETCH, SUBMIT)


def is_private(address: Json) -> bool:
    """True if a question was asked by the extension: nothing of its answer is posted."""
    return bool(address.get("is_private"))


class ComposeExtension:
    """Takes what the extension's dialog says, and replies with the next dialog or with the answer's card."""

    def __init__(
        self,
        receive: Receive,
        given: Given,
        *,
        sources_shown: int,
        question_chars: int,
        reply_seconds: float = REPLY_SECONDS,
    ) -> None:
        """What it needs.

        Args:
            receive: keeps a question.
            given: reads the answer of a question, once there is one.
            sources_shown: cited pages that get a button.
            question_chars: the longest question.
            reply_seconds: longest wait for an answer before a button takes its place.
        """
        self._receive = receive
        self._given = given
        self._sources_shown = sources_shown
        self._question_chars = question_chars
        self._reply_seconds = reply_seconds

    async def reply(self, activity: Json) -> Card:
        """What Teams shows next; {} for an envelope that names nobody or no place.

        Raises:
            DatabaseUnavailable: the question could not be kept.
        """
        until = time.monotonic() + self._reply_seconds
        place, said = place_of(activity, None), reply_words(_language(activity))
        asker = asker_of(activity, place.key) if place else ""
        if place is None or not asker:
            return {}
        data = part(activity, "value", "data")
        question, asked = mend(str(data.get("question") or "")).strip(), data.get("asked")
        if activity.get("name") == SUBMIT and isinstance(asked, str) and len(asked) <= MAX_ID_CHARS:
            return await self._wait(place, asker, asked, said, until)
        if activity.get("name") != SUBMIT or not question or not activity.get("id"):
            return _dialog(question_card(said, self._question_chars))
        message = _message(activity, place, asker, question)
        await self._receive(message)
        return await self._wait(place, asker, str(activity["id"]), said, until)

    async def _wait(self, place: TeamsPlace, asker: str, asked: str, said: ReplyWords, until: float) -> Card:
        """Return the answer as soon as it is there, else a button that asks for it again."""
        key = _key(place, asked)
        with suppress(TimeoutError):
            async with asyncio.timeout(until - time.monotonic()):
                while True:
                    given = await self._given(Platform.TEAMS, key)
                    if given and not (is_private(given.address) and given.address.get("asker") == asker):
                        return _dialog(question_card(said, self._question_chars, is_gone=True))
                    if given:
                        return _inserted(given.answer, self._sources_shown)
                    await asyncio.sleep(POLL_SECONDS)
        return _dialog(waiting_card(said, asked))


def _message(activity: Json, place: TeamsPlace, asker: str, question: str) -> IncomingMessage:
    """Return the question, in a thread of its own: what one asks privately leans on nothing.

    Of a personal chat the envelope does not say whether it is with us or between two people: it is a direct
    chat where a message to us said so.
    """
    name = str(activity["id"])
    return IncomingMessage(
        key=place.key,
        channel_name=channel_name(activity),
        event_key=_key(place, name),
        message_key=_key(place, name),
        thread=f"{PRIVATE_THREAD}{name}",
        text=question,
        address=place.address | {"asker": asker, "is_private": True},
        is_direct=None if place.is_personal else False,
    )


def _key(place: TeamsPlace, asked: str) -> str:
    return f"{place.key.installation}:{place.where}:{asked}"


def _language(activity: Json) -> Language:
    """Of the person's own Teams."""
    with suppress(ValueError):
        return Language(str(activity.get("locale") or "")[:2].lower())
    return Language.ENGLISH


def question_card(said: ReplyWords, most: int, *, is_gone: bool = False) -> Card:
    """A field for a question of at most so many characters; ``is_gone``: of an answer that is not there."""
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
    """That the answer to a question of this id is not there yet, and a button that fetches it."""
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
    attachments = [{"contentType": ADAPTIVE, "content": render_whole(answer, sources_shown)}]
    return {"composeExtension": {"type": "result", "attachmentLayout": "list", "attachments": attachments}}
