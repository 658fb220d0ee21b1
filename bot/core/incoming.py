"""A message as a door hands it in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from storage.models import ChannelKey


@dataclass(frozen=True, slots=True)
class IncomingMessage:
    """A verified platform event that asks something."""

    key: ChannelKey
    """From the verified envelope only."""
    channel_name: str | None
    event_key: str
    """The platform's event id with its installation: the same event may be delivered again."""
    message_key: str
    """The message with its installation and conversation: it may arrive as several events."""
    thread: str
    """Within the channel; '' where all that is said there is one running conversation."""
    text: str
    """Without the bot's mention."""
    address: dict[str, Any]
    """Where to reply, as the platform's own messenger wants it; stored as JSON."""
