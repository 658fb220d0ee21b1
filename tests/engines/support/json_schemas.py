"""JSON Schema by jsonschema, loaded with the first schema: its grammars of formats take 2.5 s a process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import jsonschema.protocols


def validator(schema: Any, *, draft: int, formats: bool = False) -> jsonschema.protocols.Validator:
    """What judges values by a schema of a draft, and their formats too if asked."""
    import jsonschema  # noqa: PLC0415 (loaded by the tests that judge)

    made = {4: jsonschema.Draft4Validator, 7: jsonschema.Draft7Validator}
    return made[draft](schema, format_checker=jsonschema.FormatChecker() if formats else None)
