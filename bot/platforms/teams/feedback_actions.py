"""Feedback in Teams: parsing of native feedback buttons and card buttons, and the follow-up cards.

Native buttons send an invoke that names the message; a card's button names it in its data. Both count only
for answers given in the channel or chat they come from. Teams has no ephemeral messages in channels, so
reasons, pages and "Why?" are offered in personal chats only. Renewed links go to the personal chat of the
person who asked for them, or below the answer if Teams cannot open that chat or refuses the post. The reply
that an answer is no longer stored also goes below it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bot.chat.conversation.feedback import FeedbackReply
from bot.core.models import Answer, AnswerState
from bot.core.plaintext import replace_invalid_chars, shorten, strip_hidden_chars
from bot.core.wording import reply_words
from bot.platforms.teams.activities import PersonalChat, TeamsPlace, part, place_of
from storage.chat.feedback import FeedbackVerdict

Json = Mapping[str, Any]
Card = dict[str, Any]

INVOKE = "message/submitAction"
WHY = "why"
LINKS = "links"
MAX_ID_CHARS = 256
MAX_LABEL_CHARS = 75
_REACTIONS = {"like": FeedbackVerdict.GOOD, "dislike": FeedbackVerdict.BAD}


@dataclass(frozen=True, slots=True)
class FeedbackAction:
    """A person's feedback on an answer, or a click on "Why?" or "New links"."""

    place: TeamsPlace
    # The person's personal chat with the bot.
    own_chat: PersonalChat
    # Entra object id, else the Bot Framework user id.
    person: str
    # Id of the answer's message.
    message: str
    # None: "Why?" or "New links".
    verdict: FeedbackVerdict | None
    # Sent by Teams' native buttons, not by a card.
    is_native: bool
    # Index, from 0, of the offered page that the person marked as the right one.
    page: int | None = None
    comment: str = ""
    wants_links: bool = False


def is_feedback(activity: Json) -> bool:
    """True if the activity is a native feedback invoke, whose response Teams shows."""
    return activity.get("type") == "invoke" and activity.get("name") == INVOKE


def read_feedback(activity: Json, home: str | None = None) -> FeedbackAction | None:
    """Parse feedback from native buttons or a card; None for other activities and empty feedback.

    ``home``: as in ``activities.read_activity``.
    """
    place, sender = place_of(activity, home), part(activity, "from")
    person, value = str(sender.get("aadObjectId") or sender.get("id") or ""), part(activity, "value")
    if place is None or not person:
        return None
    bot = str(part(activity, "recipient").get("id") or "")
    own_chat = PersonalChat(bot, str(sender.get("id") or ""), place.key.installation)
    if is_feedback(activity):
        said = part(value, "actionValue")
        message, verdict = activity.get("replyToId"), _REACTIONS.get(str(said.get("reaction")))
        if value.get("actionName") != "feedback" or verdict is None or not _is_id(message):
            return None
        comment = _comment(said.get("feedback"))
        return FeedbackAction(place, own_chat, person, str(message), verdict, is_native=True, comment=comment)
    said_by_card, message = value.get("feedback"), value.get("answer")
    is_click = activity.get("type") == "message" and said_by_card in (*FeedbackVerdict, WHY, LINKS)
    wants_links = said_by_card == LINKS
    if not (is_click and (place.is_personal or wants_links) and _is_id(message)):
        return None
    verdict = None if said_by_card in (WHY, LINKS) else FeedbackVerdict(str(said_by_card))
    page = _page(value.get("page"))
    return FeedbackAction(
        place, own_chat, person, str(message), verdict, is_native=False, page=page, wants_links=wants_links
    )


def takes_feedback(answer: Answer) -> bool:
    """True if the answer is the result of a search, so that feedback makes sense."""
    return answer.state not in {AnswerState.CHAT, AnswerState.FAILED}


def why_row(answer: Answer, message: str) -> Card:
    """Return a card row with the "Why?" button of the answer in this message."""
    return {"type": "ActionSet", "actions": [_button(reply_words(answer.language).why, WHY, message)]}


def links_row(answer: Answer, message: str) -> Card:
    """Return a card row with the "New links" button of the answer in this message."""
    return {"type": "ActionSet", "actions": [_button(reply_words(answer.language).new_links, LINKS, message)]}


def reply_card(reply: FeedbackReply, message: str) -> Card:
    """Render the reply to feedback: its text and, for a bad answer, reasons and pages to choose from."""
    body: list[Card] = [_words(line) for line in strip_hidden_chars(reply.text).splitlines() if line]
    if reply.pages:
        choices = [
            {"title": shorten(strip_hidden_chars(label), MAX_LABEL_CHARS), "value": str(n)}
            for n, label in enumerate(reply.pages)
        ]
        label = strip_hidden_chars(reply.right_page)
        body.append({"type": "Input.ChoiceSet", "id": "page", "label": label, "choices": choices})
    if reply.reasons:
        actions = [_button(label, verdict.value, message) for verdict, label in reply.reasons]
        body.append({"type": "ActionSet", "actions": actions})
    return {"type": "AdaptiveCard", "version": "1.5", "body": body}


def _words(line: str) -> Card:
    return {"type": "RichTextBlock", "inlines": [{"type": "TextRun", "text": line}]}


def _button(label: str, said: str, message: str) -> Card:
    return {
        "type": "Action.Submit",
        "title": shorten(strip_hidden_chars(label), MAX_LABEL_CHARS),
        "data": {"feedback": said, "answer": message},
    }


def _is_id(message: object) -> bool:
    return isinstance(message, str) and 0 < len(message) <= MAX_ID_CHARS


def _page(chosen: object) -> int | None:
    return int(chosen) if isinstance(chosen, str) and chosen.isdecimal() and len(chosen) < 4 else None


def _comment(feedback: object) -> str:
    """Return the free-text comment: Teams sends it as JSON with one key, the Agents Playground as text."""
    if isinstance(feedback, str):
        try:
            read = json.loads(feedback)
        except (ValueError, RecursionError):
            read = None
        feedback = read if isinstance(read, Mapping) and "feedbackText" in read else feedback
    if isinstance(feedback, Mapping):
        feedback = feedback.get("feedbackText")
    return replace_invalid_chars(feedback).strip() if isinstance(feedback, str) else ""
