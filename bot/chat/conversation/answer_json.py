"""JSON serialisation of answers for the outbox.

Passages are not stored: no platform shows them, and they are far larger than the answer. All other fields
survive the round trip unchanged.
"""

from __future__ import annotations

from typing import Any, get_type_hints

from pydantic import TypeAdapter

from bot.core.models import Answer

Json = dict[str, Any]

_FIELDS = {name: TypeAdapter(kind) for name, kind in get_type_hints(Answer).items() if name != "passages"}


def answer_to_json(answer: Answer) -> Json:
    """Serialise an answer, without its passages, to a JSON value."""
    return {name: field.dump_python(getattr(answer, name), mode="json") for name, field in _FIELDS.items()}


def answer_from_json(stored: Json) -> Answer:
    """Deserialise an answer that ``answer_to_json`` serialised; it has no passages."""
    # An answer stored by an earlier version lacks newer fields.
    known = {name: field.validate_python(stored[name]) for name, field in _FIELDS.items() if name in stored}
    return Answer(**known)
