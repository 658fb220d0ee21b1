"""Prepares a batch's announcement: has questions tried, makes links to first pages, and has it written."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from bot.core.announcement import Announcement
from bot.core.announcing_ports import NoticesPort
from bot.core.citation_desk import CitationService
from bot.core.ports import ChannelDirectoryPort
from bot.core.receipts import MAX_NAMED, named_notices, write_receipt
from bot.core.trying import SuggestedQuestions
from storage.errors import InfrastructureError
from storage.models import Channel
from storage.notice_models import Notice

_log = logging.getLogger(__name__)


class ReceiptBuilder:
    """Knows how a receipt is made; who gets it, and when, is ``announcing.py``'s business."""

    def __init__(
        self,
        notices: NoticesPort,
        channels: ChannelDirectoryPort,
        suggested_questions: SuggestedQuestions,
        citations: CitationService,
        *,
        seconds: float = 45,
    ) -> None:
        """Questions of one batch are tried for at most ``seconds``."""
        self._notices = notices
        self._channels = channels
        self._suggested_questions = suggested_questions
        self._citations = citations
        self._seconds = seconds

    async def prepare(self, batch: str, target: Channel) -> Announcement | None:
        """What ``target`` is told of a batch; None when nothing of it is true any more.

        Raises:
            storage.errors.InfrastructureError: an engine is down; nothing was told.
        """
        contents = await self._notices.read(batch, MAX_NAMED)
        failed, live, folders = named_notices(contents)
        questions = await self._questions(live)
        is_elsewhere = any(notice.channel_id != target.id for notice in (*failed, *live, *folders))
        links = {} if is_elsewhere else {notice.id: await self._first_page(target, notice) for notice in live}
        return write_receipt(batch, contents, questions, links, is_elsewhere=is_elsewhere)

    async def prepare_for_console(self, batch: str) -> None:
        """Have questions tried for the files that a message would name; nothing is posted."""
        await self._questions(named_notices(await self._notices.read(batch, MAX_NAMED))[1])

    async def _questions(self, live: Sequence[Notice]) -> dict[int, Sequence[str]]:
        """Tried questions by notice; a receipt does without them rather than wait."""
        found: dict[int, Sequence[str]] = {}
        try:
            async with asyncio.timeout(self._seconds):
                for notice in live:
                    found[notice.id] = await self._questions_of(notice)
        except TimeoutError:
            _log.info("questions were tried for %d of %d files", len(found), len(live))
        except InfrastructureError as error:
            _log.warning("questions could not be tried: %s", type(error).__name__)
        return found

    async def _questions_of(self, notice: Notice) -> Sequence[str]:
        if notice.questions is not None:
            return notice.questions
        channel = await self._channels.get(notice.channel_id)
        tried = await self._suggested_questions.questions(channel, notice)
        await self._notices.keep_questions(notice.id, tried)
        return tried

    async def _first_page(self, channel: Channel, notice: Notice) -> str:
        if notice.version_id is None:
            raise ValueError("a live notice names its version")
        return await self._citations.open_page(channel, notice.version_id, 1)
