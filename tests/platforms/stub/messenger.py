"""Rooms of the stub platform, and the messenger that posts in them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from bot.answers.citations.source_buttons import figure_pages, numbered, opened_pages, picture_words
from bot.core.models import Answer, Language, SourceChange
from bot.core.ports import Announcement, RenewLease, SaveMessage
from bot.core.wording import reply_words
from storage.models import Channel

Json = dict[str, Any]


@dataclass
class StubMessenger:
    """``ChatMessenger`` of the stub; a message reference is the message's place in its room."""

    # Messages as JSON, by room.
    rooms: dict[str, list[Json]] = field(default_factory=lambda: defaultdict(list))

    async def post_placeholder(
        self, address: Json, language: Language, *, queued: str = "", asked: str = ""
    ) -> Json:
        """Post the placeholder in the question's room."""
        room = self.rooms[address["room"]]
        room.append({"answers": address["key"], "text": queued or reply_words(language).searching})
        return {"place": len(room) - 1}

    async def find_placeholder(self, address: Json, others: Sequence[Json] = ()) -> Json | None:
        """Return the message that answers this question."""
        for place, message in enumerate(self.rooms[address["room"]]):
            if message.get("answers") == address["key"]:
                return {"place": place}
        return None

    async def show_partial(self, address: Json, message: Json, text: str) -> None:
        """Show the first sentences."""
        self._message(address, message)["text"] = text

    async def deliver(self, address: Json, message: Json, answer: Answer, save: SaveMessage) -> None:
        """Replace the placeholder with the answer."""
        self._message(address, message).update(render(answer))

    async def attach_figures(self, address: Json, message: Json, answer: Answer, renew: RenewLease) -> None:
        """Do nothing: pictures are links."""

    async def replace_erased(self, address: Json, message: Json, answer: Answer) -> None:
        """Overwrite an erased answer."""
        self._message(address, message).update(render(answer))

    async def revise(
        self, address: Json, message: Json, answer: Answer, changes: Sequence[SourceChange]
    ) -> None:
        """Overwrite an answer, with a line per change."""
        self._message(address, message).update(render(answer), changes=[one.line for one in changes])

    async def delete(self, address: Json, message: Json) -> None:
        """Delete an answer."""
        self.rooms[address["room"]][message["place"]] = {}

    def announcement_address(self, channel: Channel, address: Json | None) -> Json | None:
        """Return the room of the channel's latest question or join."""
        return {"room": address["room"]} if address else None

    async def announce(self, place: Json, announcement: Announcement) -> None:
        """Post an announcement."""
        lines = [announcement.lead, *(one.headline for one in announcement.entries), *announcement.more]
        self.rooms[place["room"]].append({"announces": announcement.id, "text": "\n".join(lines)})

    async def has_announced(self, place: Json, announcement: str, since: datetime) -> bool:
        """True if the room has this announcement."""
        return any(one.get("announces") == announcement for one in self.rooms[place["room"]])

    def _message(self, address: Json, message: Json) -> Json:
        return self.rooms[address["room"]][message["place"]]


def render(answer: Answer) -> Json:
    """Return an answer as a message: its text, and what its marks, buttons and pictures open."""
    notes = reply_words(answer.language).query_notes(answer)
    pages = [*opened_pages(answer), *figure_pages(answer)]
    return {
        "text": "\n".join([*notes, answer.text]),
        "marks": {str(one.number): one.url for one in answer.citations},
        "sources": [[numbered(page, page.label), page.url] for page in pages],
        "pictures": [
            [one.image, alt, title]
            for one in answer.figures
            if one.image
            for title, alt in [picture_words(answer, one)]
        ],
        "is_generated": answer.is_generated,
    }
