"""Reply addresses in Teams: where an answer goes, who asked, and how."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pydantic import TypeAdapter


@dataclass(frozen=True, slots=True)
class TeamsFile:
    """A file of a message, with its pre-authenticated URL."""

    url: str
    media_type: str
    name: str


@dataclass(frozen=True, slots=True)
class TeamsAddress:
    """Address of a reply or an announcement; fields with their default value are not stored."""

    service_url: str
    # Conversation id; in a channel it includes the thread.
    conversation: str
    is_personal: bool = False
    # '' if Teams does not say who asked; None for announcements, and once erased.
    asker: str | None = None
    # The question, if a button asked it, so that the answer shows it.
    asked: str = ""
    # True if the question came from the message extension: its answer is never posted.
    is_private: bool = False
    upload: TeamsFile | None = None
    # Tenant of the channel, for announcements.
    tenant: str = ""

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> TeamsAddress:
        """Read a stored address; keys that storage added are ignored."""
        return _ADDRESS.validate_python(dict(stored))

    def to_json(self) -> dict[str, Any]:
        """Return the address to store."""
        stored: dict[str, Any] = _ADDRESS.dump_python(self, mode="json", exclude_defaults=True)
        return stored

    @property
    def conversations_url(self) -> str:
        return f"{self.service_url.rstrip('/')}/v3/conversations"

    def without_thread(self) -> TeamsAddress:
        """Return the address of the whole channel or chat."""
        return replace(self, conversation=self.conversation.split(";messageid=", 1)[0])


_ADDRESS = TypeAdapter(TeamsAddress)
