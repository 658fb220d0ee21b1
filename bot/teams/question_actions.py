"""Buttons of a card that ask a question, and what a click on one asks.

A button belongs to the channel it was posted in: it carries the tenant's name, and a click that comes from
anywhere else asks nothing. The Bot Framework signs clicks, as messages with a value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bot.core.notifications.notification_wording import ASK, TRY_ASKING
from bot.core.plaintext import shorten, tame
from storage.models import TenantName

Json = dict[str, Any]

# Of a question on a button; tried ones have at most 140.
MAX_QUESTION_CHARS = 500


def question_rows(questions: Sequence[str], tenant: TenantName | str) -> list[Json]:
    """Return the questions as rows of a card, each with its button."""
    if not questions:
        return []
    lead: Json = {
        "type": "RichTextBlock",
        "spacing": "Medium",
        "inlines": [{"type": "TextRun", "text": TRY_ASKING}],
    }
    return [lead, *(_row(one, str(tenant)) for one in shown_questions(questions))]


def shown_questions(questions: Sequence[str]) -> list[str]:
    """Return the questions as people see and ask them: nothing in them is a link."""
    return [shorten(tame(one), MAX_QUESTION_CHARS) for one in questions]


def _row(question: str, tenant: str) -> Json:
    """Return the question as text, which wraps where a button's title is cut, and its button beside it."""
    words = {
        "type": "RichTextBlock",
        "inlines": [{"type": "TextRun", "text": f"• {question}"}],
    }
    button = {"type": "ActionSet", "actions": [_button(question, tenant)]}
    return {
        "type": "ColumnSet",
        "columns": [
            {"type": "Column", "width": "stretch", "verticalContentAlignment": "Center", "items": [words]},
            {"type": "Column", "width": "auto", "items": [button]},
        ],
    }


def _button(question: str, tenant: str) -> Json:
    data = {"asks": question, "tenant": tenant}
    return {"type": "Action.Submit", "title": ASK, "tooltip": question, "data": data}


def read_question_click(activity: Mapping[str, Any], tenant: TenantName) -> str | None:
    """Return the question of a click in the channel of this tenant; None for any other message."""
    value = activity.get("value")
    if not isinstance(value, Mapping) or value.get("tenant") != tenant:
        return None
    asks = value.get("asks")
    return asks if isinstance(asks, str) and 0 < len(asks) <= MAX_QUESTION_CHARS else None
