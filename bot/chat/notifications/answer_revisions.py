"""Updates posted answers in place when a cited document was replaced or withdrawn.

Messages are updated one at a time and paced, because platforms rate-limit updates. The shown state is stored
after the update, so a crash in between repeats an update that changes nothing visible (at-least-once).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePosixPath

from bot.answers.citations.citations import DocumentNames
from bot.answers.citations.relocation import FoundBy, PassageLocator, Place, relocate
from bot.answers.citations.signed_links import Links
from bot.chat.conversation.answer_json import answer_from_json
from bot.core.errors import ChannelClosed, DeliveryError
from bot.core.models import Answer, AnswerState, Citation, CitedPage, Language, SourceChange
from bot.core.ports import Messenger
from bot.core.wording import ReplyWords, reply_words
from storage.chat.answer_sources import AnswerSources
from storage.chat.channels import Channels
from storage.chat.citations import Citations
from storage.chat_models import PostedAnswer, SourceState
from storage.documents.catalog import Catalog
from storage.errors import raised_at
from storage.models import CitedPlace, LivePublication, Platform

_log = logging.getLogger(__name__)

# Failures without a Retry-After before a message is left unchanged for good.
MAX_REFUSALS = 5
# Changed documents listed per answer; more than an answer cites.
MAX_DOCUMENTS = 5
POLL_SECONDS = 5.0
# Between two updates: Slack allows 50 per minute.
PACE_SECONDS = 1.5
LEASE_SECONDS = 120.0
# Minimum delay before a failed update is retried.
RETRY_SECONDS = 60.0


class AnswerReviser:
    """Background loop that updates the messages of answers whose sources changed."""

    def __init__(
        self,
        sources: AnswerSources,
        messengers: Mapping[Platform, Messenger],
        *,
        channels: Channels,
        catalog: Catalog,
        citations: Citations,
        locator: PassageLocator,
        links: Links,
        may_have_work: Callable[[], bool] = lambda: True,
    ) -> None:
        """Build the loop; ``may_have_work`` returns False while a tick would find nothing to do."""
        self._sources = sources
        self._messengers = messengers
        self._channels = channels
        self._catalog = catalog
        self._citations = citations
        self._locator = locator
        self._links = links
        self._may_have_work = may_have_work
        self._refused: Counter[int] = Counter()
        self._stopping = asyncio.Event()

    async def run(self) -> None:
        """Update messages until ``stop``; an exception is logged and the loop continues."""
        wait = 0.0
        while not self._stopping.is_set():
            is_due = wait < POLL_SECONDS or self._may_have_work()  # after one message, look for the next
            wait = POLL_SECONDS
            try:
                if is_due and (was_updated := await self.tick()) is not None:
                    wait = PACE_SECONDS if was_updated else 0
            except Exception as error:  # the loop serves all messages: one failure must not end it
                _log.warning("answer update failed, retrying: %s", raised_at(error))
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), wait)

    def stop(self) -> None:
        """End ``run`` after the update in progress."""
        self._stopping.set()

    async def tick(self) -> bool | None:
        """Claim the message pending longest; return whether it was updated, None if none is pending."""
        posted = await self._sources.claim(tuple(self._messengers), LEASE_SECONDS)
        if posted is None:
            return None
        if posted.removed_in is not None and posted.message:
            language = Language(posted.removed_in or Language.ENGLISH)
            return await self._update(posted, _removed(language), [], {})
        if posted.answer is None or posted.message is None:
            return await self._drop(posted, "the answer is no longer stored")
        answer = answer_from_json(posted.answer)
        states = await self._sources.states({one.version_id for one in answer.citations if not one.host})
        changed = {one.version_id: one.change for one in states if one.change is not None}
        if changed == posted.shown:
            await self._sources.finish(posted, changed)
            return False
        changes = await self._changes(answer, [one for one in states if one.change is not None])
        return await self._update(posted, answer, changes, changed)

    async def _update(
        self, posted: PostedAnswer, answer: Answer, changes: Sequence[SourceChange], shown: Mapping[int, int]
    ) -> bool:
        try:
            messenger, message = self._messengers[posted.platform], posted.message or {}
            async with asyncio.timeout(LEASE_SECONDS / 2):
                if posted.removed_in is None:
                    await messenger.revise(posted.address, message, answer, changes)
                else:
                    await messenger.replace_erased(posted.address, message, answer)
        except ChannelClosed as error:
            return await self._drop(posted, str(error))
        except (DeliveryError, TimeoutError) as error:
            asked = error.retry_after if isinstance(error, DeliveryError) else None
            self._refused[posted.inbox_id] += asked is None
            if self._refused[posted.inbox_id] >= MAX_REFUSALS:
                return await self._drop(posted, str(error))
            _log.warning("answer=%d update failed, retrying: %s", posted.inbox_id, error)
            await self._sources.retry_later(posted, max(asked or 0, RETRY_SECONDS))
            return True
        await self._sources.finish(posted, shown)
        self._refused.pop(posted.inbox_id, None)
        _log.info("answer=%d updated, changed sources=%d", posted.inbox_id, len(shown))
        return True

    async def _drop(self, posted: PostedAnswer, reason: str) -> bool:
        self._refused.pop(posted.inbox_id, None)
        _log.warning("answer=%d not updated: %s", posted.inbox_id, reason)
        await self._sources.finish(posted, posted.shown)
        return False

    async def _changes(self, answer: Answer, states: Sequence[SourceState]) -> list[SourceChange]:
        """Return one change per document, in the order of the answer's citations."""
        order = [one.version_id for one in answer.citations]
        ordered = sorted(states, key=lambda state: order.index(state.version_id))
        return [await self._change(answer, state) for state in ordered[:MAX_DOCUMENTS]]

    async def _change(self, answer: Answer, state: SourceState) -> SourceChange:
        words = reply_words(answer.language)
        cited = [one for one in answer.citations if one.version_id == state.version_id]
        name = cited[0].name or cited[0].title
        live = await self._catalog.live_document(state.channel_id, state.document)
        if state.is_withdrawn or live is None:
            return SourceChange(words.source_withdrawn(document=name), None)
        shown = [
            CitedPlace(one.version_id, one.page, one.quote, one.boxes, one.number, one.citation_id or None)
            for one in cited
        ]
        places = [await self._place(*pair, live) for pair in zip(shown, cited, strict=True)]
        channel = await self._channels.get(state.channel_id)
        records = await self._citations.add(
            channel.id, [relocate(one, live.version_id, at) for one, at in zip(shown, places, strict=True)]
        )
        names = await DocumentNames(self._catalog).names(channel.id, [live])
        page = CitedPage(
            numbers=tuple(one.number for one in cited),
            label=words.source_label(places[0].page, names[live.version_id]),
            fallback=words.page_of(page=places[0].page, file=PurePosixPath(live.file).name),
            url=self._links.page_url(channel, records[0]),
        )
        return SourceChange(_line(words, name, state, places[0]), page)

    async def _place(self, shown: CitedPlace, cited: Citation, live: LivePublication) -> Place:
        return await self._locator.locate(shown, live.reading_id, section=cited.section)


def _removed(language: Language) -> Answer:
    """Return the text that replaces an erased answer."""
    return Answer(AnswerState.CHAT, reply_words(language).answer_removed, language=language)


def _line(words: ReplyWords, name: str, state: SourceState, place: Place) -> str:
    sentence = {
        FoundBy.TEXT: words.source_moved,
        FoundBy.SECTION: words.source_reworded,
        FoundBy.NOTHING: words.source_replaced,
    }[place.found_by]
    day = state.since.date().isoformat() if state.since else ""
    return sentence(document=name, day=day, page=place.page)
