"""Feedback in Teams: parsing of native feedback buttons and card buttons, and the follow-up cards.

Native buttons send an invoke that names the message; a card's button names it in its data. Both count only
for answers given in the channel or chat they come from. Teams has no ephemeral messages in channels, so
reasons and pages are offered in personal chats only.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bot.chat.conversation.feedback import FeedbackReply
from bot.core.models import Answer, AnswerState, Language
from bot.core.plaintext import replace_invalid_chars, shorten, strip_hidden_chars
from bot.core.wording import reply_words
from bot.platforms.teams.activities import PersonalChat, TeamsPlace, part, place_of
from storage.chat.feedback import FeedbackVerdict

Json = Mapping[str, Any]
Card = dict[str, Any]

INVOKE = "message/submitAction"
WHY = "why"
# Values of the buttons that ask a person, and that mark the question as resolved.
PERSON, DONE = "person", "done"
MAX_ID_CHARS = 256
MAX_LABEL_CHARS = 75
_REACTIONS = {"like": FeedbackVerdict.GOOD, "dislike": FeedbackVerdict.BAD}


@dataclass(frozen=True, slots=True)
class FeedbackAction:
    """A person's feedback on an answer, or a click on another button below it."""

    place: TeamsPlace
    # The person's personal chat with the bot.
    own_chat: PersonalChat
    # Entra object id, else the Bot Framework user id.
    person: str
    # Id of the answer's message.
    message: str
    # A verdict, or WHY, PERSON or DONE.
    said: str
    # Id of the clicked card.
    card: str
    # Sent by Teams' native buttons, not by a card.
    is_native: bool
    # Index, from 0, of the offered page that the person marked as the right one.
    page: int | None = None
    comment: str = ""


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
        return FeedbackAction(
            place, own_chat, person, str(message), verdict, "", is_native=True, comment=comment
        )
    said_by_card, message = value.get("feedback"), value.get("answer")
    is_click = activity.get("type") == "message" and said_by_card in (*FeedbackVerdict, WHY, PERSON, DONE)
    is_here = place.address.is_personal or said_by_card in (PERSON, DONE)
    if not (is_click and is_here and _is_id(message)):
        return None
    if asked := value.get("tenant"):  # the button was posted in another chat than its answer
        place = place._replace(key=place.key._replace(conversation=str(value.get("conversation"))))
        if said_by_card != DONE or place.key.tenant != asked:
            return None
    card, page = str(activity.get("replyToId") or ""), _page(value.get("page"))
    return FeedbackAction(
        place, own_chat, person, str(message), str(said_by_card), card, is_native=False, page=page
    )


def takes_feedback(answer: Answer) -> bool:
    """True if the answer is the result of a search, so that feedback makes sense."""
    return answer.state not in {AnswerState.CHAT, AnswerState.FAILED}


def answer_row(
    answer: Answer, message: str, *, is_personal: bool, offers_person: bool = False
) -> Card | None:
    """Return a card row with "Why?", in personal chats, and "Ask a person" below a plain no; None without."""
    words, actions = reply_words(answer.language), []
    if is_personal and takes_feedback(answer):
        actions.append(_button(words.why, WHY, message))
    if offers_person and (answer.people or answer.state is AnswerState.NOT_FOUND):
        actions.append(_button(words.ask_person, PERSON, message))
    return {"type": "ActionSet", "actions": actions} if actions else None


def handoff_card(
    card: Card, action: FeedbackAction, member: Mapping[str, Any] | None, language: Language
) -> Card:
    """Return the card of a question that a person is asked to look at, which mentions them if a member."""
    place = {"tenant": action.place.key.tenant, "conversation": action.place.key.conversation}
    button = _button(reply_words(language).resolved, DONE, action.message)
    button["data"] |= {} if member else place
    body = [*card["body"], {"type": "ActionSet", "actions": [button]}]
    if member is None:
        return card | {"body": body}
    name = str(member.get("name") or "")
    mention = {"type": "mention", "text": f"<at>{name}</at>", "mentioned": {"id": member["id"], "name": name}}
    named = {"type": "TextBlock", "text": mention["text"], "wrap": True}
    return card | {"body": [named, *body], "msteams": {**card.get("msteams", {}), "entities": [mention]}}


def resolved_card(language: Language) -> Card:
    """Return the card that replaces such a question once it is resolved."""
    return {
        "type": "AdaptiveCard",
        "version": "1.5",
        "body": [_words(f"✅ {reply_words(language).resolved}")],
    }


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
        actions += [_button(reply.ask_person, PERSON, message)] if reply.ask_person else []
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
