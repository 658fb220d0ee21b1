"""Card buttons that ask a suggested question, and parsing of clicks on them.

A button belongs to the channel it was posted in: it carries the tenant's name, and clicks from elsewhere are
ignored. Clicks arrive as signed message activities with a ``value``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bot.chat.notifications.notification_wording import ASK, NEWS, TRY_ASKING
from bot.core.plaintext import shorten, strip_hidden_chars
from storage.models import TenantName

Json = dict[str, Any]

# Longest question on a button; suggested questions have at most 140 characters.
MAX_QUESTION_CHARS = 500


def question_rows(questions: Sequence[str], tenant: TenantName | str) -> list[Json]:
    """Return card rows, one per question with its button, below a lead."""
    if not questions:
        return []
    lead: Json = {
        "type": "RichTextBlock",
        "spacing": "Medium",
        "inlines": [{"type": "TextRun", "text": TRY_ASKING}],
    }
    return [lead, *(_row(one, str(tenant)) for one in shown_questions(questions))]


def shown_questions(questions: Sequence[str]) -> list[str]:
    """Return the questions as shown and asked: on one line, without hidden characters, shortened."""
    return [shorten(strip_hidden_chars(one), MAX_QUESTION_CHARS) for one in questions]


def _row(question: str, tenant: str) -> Json:
    """Return a row: the question as text and its button."""
    # A text wraps, whereas a long button title would be cut off.
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


def news_button(question: str, tenant: TenantName | str) -> Json:
    """Return the button below a receipt that asks what is new."""
    return _button(question, str(tenant)) | {"title": NEWS}


def _button(question: str, tenant: str) -> Json:
    data = {"asks": question, "tenant": tenant}
    return {"type": "Action.Submit", "title": ASK, "tooltip": question, "data": data}


def read_question_click(activity: Mapping[str, Any], tenant: TenantName) -> str | None:
    """Return the question of a click on a button of this tenant; None for other messages."""
    value = activity.get("value")
    if not isinstance(value, Mapping) or value.get("tenant") != tenant:
        return None
    asks = value.get("asks")
    return asks if isinstance(asks, str) and 0 < len(asks) <= MAX_QUESTION_CHARS else None
