"""Decides where a notice is told: in its own channel, in the admins' channel, or in the console alone.

A document's name goes to no third channel.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from storage.models import Channel
from storage.notice_models import Waiting


@dataclass(frozen=True, slots=True)
class Route:
    """Where to."""

    channel_id: int
    is_spoken: bool
    """False: nothing is posted, the console of that channel shows it."""


@dataclass(frozen=True, slots=True)
class Routes:
    """The settings that decide it."""

    receipts: str
    """What becomes of new and unreadable files: channel, admin or off."""
    admin: Channel | None
    """Who hears of folders' problems, and of files when ``receipts`` says so."""

    def route(self, group: Waiting) -> Route:
        """Where a group of notices is told."""
        if not group.is_folders and self.receipts == "channel":
            return Route(group.channel_id, is_spoken=True)
        is_wanted = group.is_folders or self.receipts == "admin"
        if self.admin is None or not is_wanted:
            return Route(group.channel_id, is_spoken=False)
        return Route(self.admin.id, is_spoken=True)

    def sort(self, groups: Iterable[Waiting]) -> list[tuple[Route, Sequence[Waiting]]]:
        """The groups of each route: they share a message."""
        sorted_groups: dict[Route, list[Waiting]] = {}
        for group in groups:
            sorted_groups.setdefault(self.route(group), []).append(group)
        return list(sorted_groups.items())
