"""JSON Schema validators; jsonschema is imported lazily, as its format grammars take 2.5 s to load."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import jsonschema.protocols


def validator(schema: Any, *, draft: int, formats: bool = False) -> jsonschema.protocols.Validator:
    """Return a validator for a schema of a draft, optionally checking formats."""
    import jsonschema  # noqa: PLC0415 (loaded by the tests that judge)

    made = {4: jsonschema.Draft4Validator, 7: jsonschema.Draft7Validator}
    return made[draft](schema, format_checker=jsonschema.FormatChecker() if formats else None)
