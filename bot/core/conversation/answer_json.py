"""Answers as the outbox keeps them.

A stored answer has no passages: no platform shows them, and they hold far more text than the answer. All
other fields come back exactly as they were.
"""

from __future__ import annotations

from dataclasses import asdict, fields, replace
from pathlib import PurePosixPath
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
    """The answer without its passages, as a value that JSON can hold."""
    stored = asdict(replace(answer, passages=()))
    return {**stored, "state": answer.state.value}


def answer_from_json(stored: Json) -> Answer:
    """The answer that ``answer_to_json`` was given, with no passages."""
    nearest = stored["nearest"]
    return Answer(
        state=AnswerState(stored["state"]),
        text=stored["text"],
        citations=tuple(_citation_from_json(one) for one in stored["citations"]),
        figures=tuple(AnswerFigure(**{**one, "box": Box(*one["box"])}) for one in stored["figures"]),
        nearest=NearestPage(**{"name": PurePosixPath(nearest["file"]).name, **nearest}) if nearest else None,
        unread=tuple(UnreadFile(**one) for one in stored["unread"]),
        milliseconds=Milliseconds(**stored["milliseconds"]),
        standalone=stored.get("standalone", ""),
        corrections=tuple(Correction(**one) for one in stored.get("corrections", ())),
        unknown=tuple(stored.get("unknown", ())),
        filter=_filter_from_json(stored.get("filter")),
        language=Language(stored.get("language", Language.ENGLISH)),
        is_generated=stored.get("is_generated", False),
        answered_from=_origin_from_json(stored.get("answered_from")),
    )


def _citation_from_json(stored: Json) -> Citation:
    known = {field.name for field in fields(Citation)}  # an older release kept others
    values = {name: value for name, value in stored.items() if name in known}
    for name in ("section", "details"):
        values[name] = tuple(values.get(name, ()))
    return Citation(**(values | {"boxes": tuple(Box(*box) for box in stored["boxes"])}))


def _filter_from_json(stored: Json | None) -> AppliedFilter | None:
    return AppliedFilter(**{**stored, "conditions": tuple(stored["conditions"])}) if stored else None


def _origin_from_json(stored: Json | None) -> AnsweredFrom | None:
    return AnsweredFrom(tuple(map(TenantName, stored["tenants"])), stored["name"]) if stored else None
