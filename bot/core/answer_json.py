"""An answer as it lies in the outbox, so that a crash after it was made costs no second one.

Passages are left out: no door shows them, and they hold far more text than the answer itself.
All other fields come back exactly as they were.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from bot.core.languages import Language
from bot.core.models import Answer, AnswerFigure, AnswerState, Citation, Milliseconds, NearestPage, UnreadFile
from storage.models import Box

Json = dict[str, Any]


def answer_to_json(answer: Answer) -> Json:
    """The answer without its passages, as a value that JSON can hold."""
    stored = asdict(replace(answer, passages=()))
    return {**stored, "state": answer.state.value}


def answer_from_json(stored: Json) -> Answer:
    """The answer that ``answer_to_json`` was given, with no passages."""
    nearest = stored["nearest"]
    return Answer(
        state=AnswerState(stored["state"]),
        text=stored["text"],
        citations=tuple(_citation(one) for one in stored["citations"]),
        figures=tuple(AnswerFigure(**{**one, "box": Box(*one["box"])}) for one in stored["figures"]),
        nearest=NearestPage(**nearest) if nearest else None,
        unread=tuple(UnreadFile(**one) for one in stored["unread"]),
        milliseconds=Milliseconds(**stored["milliseconds"]),
        standalone=stored.get("standalone", ""),
        language=Language(stored.get("language", Language.ENGLISH)),
    )


def _citation(stored: Json) -> Citation:
    return Citation(**{**stored, "boxes": _boxes(stored["boxes"])})


def _boxes(stored: Sequence[Sequence[float]]) -> tuple[Box, ...]:
    return tuple(Box(*box) for box in stored)
