"""``--where FIELD=VALUE``: the documents of a channel that say so of themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from bot.engines import Stores
from storage.errors import SettingsError
from storage.metadata_models import FIELDS, says


def read_where(given: Sequence[str]) -> dict[str, str]:
    """What was given, by field.

    Raises:
        SettingsError: one names no field, or no value.
    """
    where: dict[str, str] = {}
    for name, _, value in (one.partition("=") for one in given):
        if where.setdefault(name.strip(), value.strip()) != value.strip():
            raise SettingsError(f"--where {name}: a field can be asked for once")
    return checked_where(where)


def checked_where(where: Mapping[str, str]) -> dict[str, str]:
    """The same, once every field is known to be one.

    Raises:
        SettingsError: one is none, or has no value.
    """
    for name, value in where.items():
        if name not in FIELDS or not value:
            raise SettingsError(
                f"--where {name}={value}: say FIELD=VALUE; the fields are {', '.join(FIELDS)}"
            )
    return dict(where)


async def documents_where(
    storage: Stores, channel_id: int, where: Mapping[str, str]
) -> frozenset[UUID] | None:
    """The documents of a channel of which all of this is so; None when nothing was asked for."""
    if not where:
        return None
    documents = await storage.catalog.documents(channel_id)
    return frozenset(one.document for one in documents if says(one.metadata, where))
