"""JSON serialisation of answers for the outbox.

Passages are not stored: no platform shows them, and they are far larger than the answer. All other fields
survive the round trip unchanged.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from bot.core.models import (
    Answer,
    AnsweredFrom,
    AnswerFigure,
    AnswerState,
    AppliedFilter,
    Citation,
    Correction,
    Language,
    Milliseconds,
    NearestPage,
    UnreadFile,
)
from storage.models import Box, TenantName

Json = dict[str, Any]


def answer_to_json(answer: Answer) -> Json:
    """Serialise an answer, without its passages, to a JSON value."""
    stored = asdict(replace(answer, passages=()))
    return {**stored, "state": answer.state.value}


def answer_from_json(stored: Json) -> Answer:
    """Deserialise an answer that ``answer_to_json`` serialised; it has no passages."""
    nearest = stored["nearest"]
    return Answer(
        state=AnswerState(stored["state"]),
        text=stored["text"],
        citations=tuple(_citation_from_json(one) for one in stored["citations"]),
        figures=tuple(AnswerFigure(**{**one, "box": Box(*one["box"])}) for one in stored["figures"]),
        nearest=NearestPage(**nearest) if nearest else None,
        unread=tuple(UnreadFile(**one) for one in stored["unread"]),
        milliseconds=Milliseconds(**stored["milliseconds"]),
        standalone=stored["standalone"],
        corrections=tuple(Correction(**one) for one in stored["corrections"]),
        unknown=tuple(stored["unknown"]),
        filter=_filter_from_json(stored["filter"]),
        language=Language(stored["language"]),
        is_generated=stored["is_generated"],
        answered_from=_origin_from_json(stored["answered_from"]),
        people=tuple(stored.get("people", ())),  # absent in answers stored by an earlier version
        headings=tuple(stored.get("headings", ())),
    )


def _citation_from_json(stored: Json) -> Citation:
    tuples = {name: tuple(stored[name]) for name in ("section", "details")}
    return Citation(**{**stored, **tuples, "boxes": tuple(Box(*box) for box in stored["boxes"])})


def _filter_from_json(stored: Json | None) -> AppliedFilter | None:
    return AppliedFilter(**{**stored, "conditions": tuple(stored["conditions"])}) if stored else None


def _origin_from_json(stored: Json | None) -> AnsweredFrom | None:
    return AnsweredFrom(tuple(map(TenantName, stored["tenants"])), stored["name"]) if stored else None
