"""Change notes for threads that follow a page: which sentences its new version adds and removes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from bot.answers.citations.citations import DocumentNames
from bot.answers.citations.relocation import FoundBy, PassageLocator, relocate
from bot.answers.citations.signed_links import Links
from bot.answers.verification.claims import reduce_text
from bot.core.models import Answer, AnsweredFrom, AnswerState, Citation, Language
from bot.core.plaintext import shorten
from bot.core.wording import ReplyWords, reply_words
from storage.chat.answer_sources import Subscriptions
from storage.chat.channels import Channels
from storage.chat.citations import Citations
from storage.documents.catalog import Catalog
from storage.models import CitedPlace, LivePublication, TenantName
from storage.queues.reading_repair import SelfHealingReadings
from storage.text.sentences import split_units

# Sentences quoted per kind, added and removed; the page itself is one click away.
MAX_SENTENCES = 4
SENTENCE_CHARS = 300


class PageNotes:
    """Builds change notes; the conversation delivers each once."""

    def __init__(
        self,
        subscriptions: Subscriptions,
        *,
        channels: Channels,
        catalog: Catalog,
        citations: Citations,
        readings: SelfHealingReadings,
        links: Links,
    ) -> None:
        self._subscriptions = subscriptions
        self._channels = channels
        self._catalog = catalog
        self._citations = citations
        self._readings = readings
        self._links = links
        self._locator = PassageLocator(readings)

    async def due(self, note: Mapping[str, int]) -> TenantName | None:
        """Return the channel of a followed page whose live version the thread has not been notified of.

        None if there is nothing to report. ``note``: stored by the transaction that replaced the version.
        """
        followed = await self._subscriptions.get(note["subscription"])
        live = await self._live(note)
        if followed is None or live is None or live.version_id == note["version"]:
            return None
        return (await self._channels.get(live.channel_id)).tenant

    async def write(self, note: Mapping[str, int]) -> Answer:
        """Build the note as an answer; idempotent: a repeated call returns the same text.

        Raises:
            storage.errors.InfrastructureError: a reading is unavailable; retry later.
            LookupError: the subscription or its document was deleted since.
        """
        followed, live = await self._subscriptions.get(note["subscription"]), await self._live(note)
        old = await self._catalog.version_source(note["version"])
        if followed is None or old is None or live is None:
            raise LookupError("a page that is followed no more")
        words = reply_words(Language(followed.language))
        before = CitedPlace(note["version"], note["page"], followed.shown.quote)
        place = await self._locator.locate(before, live.reading_id, own=old.reading_id)
        channel = await self._channels.get(live.channel_id)
        origin = await self._citations.newest_of(channel.id, before)
        after = relocate(replace(before, origin=origin), live.version_id, place)
        (record,) = await self._citations.add(channel.id, [after])
        name = (await DocumentNames(self._catalog).names(channel.id, [live]))[live.version_id]
        lead = words.page_lost if place.found_by is FoundBy.NOTHING else words.page_moved
        said = lead(document=words.document_named(title=name), page=place.page)
        texts = [
            (await self._readings.page(reading, page)).text if reading else ""
            for reading, page in ((old.reading_id, before.page), (live.reading_id, place.page))
        ]
        url = self._links.page_url(channel, record)
        of = 1, live.title, live.file, place.page, after.quote, record.boxes, url
        cited = Citation(*of, version_id=live.version_id, name=name, citation_id=record.id)
        await self._subscriptions.move(note["subscription"], before, after)
        text = "\n".join([f"{said} [1]", *_changes(words, *texts)])
        known = followed.channel_name if channel.name == channel.tenant else channel.name
        shown = AnsweredFrom((channel.tenant,), known if followed.channel_name else "")
        return Answer(AnswerState.CHAT, text, (cited,), language=words.language, answered_from=shown)

    async def _live(self, note: Mapping[str, int]) -> LivePublication | None:
        """Return the live version of the note's document."""
        old = await self._catalog.version_source(note["version"])
        return await self._catalog.live_document(old.channel_id, old.document_id) if old else None


def _changes(words: ReplyWords, before: str, after: str) -> list[str]:
    """Return lines for the sentences removed from and added to a page."""
    gone, new = _without(before, after), _without(after, before)
    return [
        *(words.page_gone(text=shorten(one, SENTENCE_CHARS)) for one in gone[:MAX_SENTENCES]),
        *(words.page_new(text=shorten(one, SENTENCE_CHARS)) for one in new[:MAX_SENTENCES]),
    ] or [words.page_same]


def _without(text: str, other: str) -> Sequence[str]:
    known = reduce_text(other).text
    sentences = [" ".join(text[one.start : one.end].split()) for one in split_units(text)]
    return [one for one in sentences if one and reduce_text(one).text not in known]
