"""An announcement: what one message tells a channel of its documents, before a platform renders it.

Titles, file names and questions in it come from documents: renderers escape them like all such text.
"""

from __future__ import annotations

from dataclasses import dataclass

from bot.core import wording
from bot.core.models import CitedPage


@dataclass(frozen=True, slots=True)
class AnnouncementEntry:
    """One file or folder of an announcement."""

    headline: str
    notes: tuple[str, ...] = ()
    """What could not be read and why, or what to do."""
    questions: tuple[str, ...] = ()
    """Questions that were tried and that this file answers."""


@dataclass(frozen=True, slots=True)
class Announcement:
    """What one message tells."""

    id: str
    """Names the message, so that it can be found again."""
    lead: str
    entries: tuple[AnnouncementEntry, ...]
    more: tuple[str, ...] = ()
    """How many files there are beside the named ones."""
    sources: tuple[CitedPage, ...] = ()
    """Buttons that open the files' first pages."""


def announcement_paragraphs(announcement: Announcement) -> list[str]:
    """Its words as paragraphs of plain text; a renderer still has to escape them."""
    return [announcement.lead, *map(_paragraph, announcement.entries), *announcement.more]


def _paragraph(entry: AnnouncementEntry) -> str:
    tried = [wording.TRY_ASKING, *(f"• {question}" for question in entry.questions)]
    return "\n".join((entry.headline, *entry.notes, *(tried if entry.questions else ())))
