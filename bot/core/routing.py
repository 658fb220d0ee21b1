"""Decides where a notice is told: in its own channel, in the admins' channel, or in the console alone.

A document's name goes to no third channel.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from storage.models import Channel
from storage.notice_models import NoticeGroup


@dataclass(frozen=True, slots=True)
class Route:
    """Where to."""

    channel_id: int
    is_posted: bool
    """False: nothing is posted, the console of that channel shows it."""


@dataclass(frozen=True, slots=True)
class Routes:
    """The settings that decide it."""

    receipts: str
    """What becomes of new and unreadable files: channel, admin or off."""
    admin: Channel | None
    """Who hears of folders' problems, and of files when ``receipts`` says so."""

    def route(self, group: NoticeGroup) -> Route:
        """Where a group of notices is told."""
        if not group.is_folders and self.receipts == "channel":
            return Route(group.channel_id, is_posted=True)
        is_wanted = group.is_folders or self.receipts == "admin"
        if self.admin is None or not is_wanted:
            return Route(group.channel_id, is_posted=False)
        return Route(self.admin.id, is_posted=True)

    def sort(self, groups: Iterable[NoticeGroup]) -> list[tuple[Route, Sequence[NoticeGroup]]]:
        """The groups of each route: they share a message."""
        sorted_groups: dict[Route, list[NoticeGroup]] = {}
        for group in groups:
            sorted_groups.setdefault(self.route(group), []).append(group)
        return list(sorted_groups.items())
