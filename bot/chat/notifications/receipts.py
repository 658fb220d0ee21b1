"""Builds the announcement of a batch of notices, independent of the platform that renders it.

Searchable files are one line; failures are listed, and files with unreadable parts. Titles and file names
come from documents and are untrusted: renderers escape them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

from bot.answers.citations.citations import CitationService
from bot.answers.understanding.channel_folders import ChannelFolders
from bot.answers.understanding.direct_libraries import DirectLibraries
from bot.chat.notifications import notification_wording
from bot.chat.notifications.gap_digest import GapDigest
from bot.chat.notifications.suggested_questions import suggested_questions
from bot.chat.notifications.welcome import WelcomeBuilder
from bot.core.models import CitedPage, Language
from bot.core.plaintext import shorten
from bot.core.ports import Announcement, AnnouncementEntry
from bot.core.wording import reply_words
from storage.chat.channels import Channels
from storage.chat.notifications import DIGEST, SOURCE_FAILED, SUMMARY, WELCOME, Notices
from storage.chat_models import Notice, Outage
from storage.documents.catalog import Catalog
from storage.errors import InfrastructureError
from storage.models import Channel
from storage.queues.reading_repair import SelfHealingReadings

_log = logging.getLogger(__name__)

MAX_LISTED = 5
# Notices of each kind read for one message: more searchable files are counted without their pages.
MAX_READ = 100
# Searchable files listed even with many failures.
MIN_LIVE = 2
# Longest title, file name or folder location, in characters.
NAME_CHARS = 90
REASON_CHARS = 500

# Kind of notice -> (total, the first of them).
Contents = Mapping[str, tuple[int, Sequence[Notice]]]


def announcement_paragraphs(announcement: Announcement) -> list[str]:
    """Return an announcement as paragraphs of plain text, not escaped yet."""
    return [announcement.lead, *map(_paragraph, announcement.entries), *announcement.more]


def _paragraph(entry: AnnouncementEntry) -> str:
    return "\n".join((entry.headline, *entry.notes))


class _Listed(NamedTuple):
    """Notices listed in a message."""

    failed: list[Notice]
    # Searchable files.
    live: list[Notice]
    folders: list[Notice]
    # Approved web pages.
    sources: list[Notice]
    outages: list[Notice]


def listed_notices(contents: Contents) -> _Listed:
    """Select the notices of a batch that the message lists."""
    failed, live, folders, sources, outages = (
        list(contents[kind][1]) for kind in ("failed", "live", "folder", "source", "outage")
    )
    failed = failed[:MAX_LISTED]
    live = live[: max(MIN_LIVE, MAX_LISTED - len(failed))]
    return _Listed(failed, live, folders[:MAX_LISTED], sources[:MAX_LISTED], outages[:MAX_LISTED])


def write_receipt(
    id: str,
    contents: Contents,
    first_page: CitedPage | None = None,
    *,
    is_elsewhere: bool,
) -> Announcement | None:
    """Build the announcement of a batch; None if none of its notices still applies.

    Args:
        first_page: button to the first page of its only file.
        is_elsewhere: posted outside the documents' channel, so that channel is named.
    """
    failed, live, folders, web, outages = named = listed_notices(contents)
    summaries = contents[SUMMARY][1][:MAX_LISTED]
    if not any(named) and not summaries:
        return None
    entries = [
        *map(_summary, summaries),
        *(_outage(notice.outage) for notice in outages if notice.outage),
        *(_failure(notice, is_elsewhere) for notice in failed),
        *(entry for notice in live if (entry := _success(notice, is_elsewhere)).notes or is_elsewhere),
        *(_folder(notice) for notice in folders),
        *(_web_page(notice) for notice in web),
    ]
    count, known = contents["live"]
    lead = [
        notification_wording.receipt_lead(
            [shorten(one.title, NAME_CHARS) for one in known],
            count,
            sum(one.pages for one in known) if len(known) == count else 0,
            contents["failed"][0],
            is_new=count != 1 or known[0].number == 1,
        )
    ]
    lead += [notification_wording.FOLDERS_LEAD] if folders else []
    lead += [notification_wording.SOURCES_LEAD] if web else []
    lead += [notification_wording.OUTAGES_LEAD] if outages else []
    asks_news = notification_wording.ASK_NEWS if count and not is_elsewhere else ""
    return Announcement(
        id,
        " ".join(filter(None, lead)),
        tuple(entries),
        tuple(_more(contents)),
        (first_page,) if first_page else (),
        asks_news,
    )


def _more(contents: Contents) -> Iterator[str]:
    failed, _, folders, web, outages = listed_notices(contents)
    if (unnamed := contents["failed"][0] - len(failed)) > 0:
        yield notification_wording.more_unreadable(unnamed)
    if (unnamed := contents["folder"][0] - len(folders)) > 0:
        yield notification_wording.more_folders(unnamed)
    if (unnamed := contents["source"][0] - len(web)) > 0:
        yield notification_wording.more_sources(unnamed)
    if (unnamed := contents["outage"][0] - len(outages)) > 0:
        yield notification_wording.more_outages(unnamed)


def _failure(notice: Notice, is_elsewhere: bool) -> AnnouncementEntry:
    headline = notification_wording.unreadable(shorten(notice.file, NAME_CHARS), _place(notice, is_elsewhere))
    reasons = [_sentence(notice.text or ""), notification_wording.EARLIER_ANSWERS if notice.has_live else ""]
    return AnnouncementEntry(headline, tuple(filter(None, reasons)))


def _success(notice: Notice, is_elsewhere: bool) -> AnnouncementEntry:
    headline = notification_wording.receipt(
        shorten(notice.title, NAME_CHARS),
        shorten(PurePosixPath(notice.file).name, NAME_CHARS),
        _place(notice, is_elsewhere),
    )
    return AnnouncementEntry(headline, tuple(_gaps(notice)))


def _gaps(notice: Notice) -> Iterator[str]:
    """Yield notes on the unreadable parts of a searchable file, with advice."""
    silent = [page for page in notice.pages_without_text if page not in notice.unread_pages]
    if notice.unread_pages:
        yield notification_wording.pages_unread(notice.unread_pages)
    if silent:
        yield notification_wording.pages_without_text(silent)
    if notice.ocr_pages:
        yield notification_wording.pages_read_by_ocr(notice.ocr_pages)
    if notice.is_repaired:
        yield notification_wording.REPAIRED


def _folder(notice: Notice) -> AnnouncementEntry:
    location, channel = shorten(notice.location, NAME_CHARS), shorten(notice.channel, NAME_CHARS)
    if notice.text is None:
        return AnnouncementEntry(notification_wording.folder_well(location, channel))
    return AnnouncementEntry(notification_wording.folder_problem(location, channel, _sentence(notice.text)))


def _summary(notice: Notice) -> AnnouncementEntry:
    headline, *lines = (notice.text or "").splitlines()
    return AnnouncementEntry(headline, tuple(lines))


def _outage(outage: Outage) -> AnnouncementEntry:
    reason = _sentence(outage.reason)
    if outage.until is not None:
        return AnnouncementEntry(
            notification_wording.outage_over(outage.part, reason, outage.since, outage.until)
        )
    headline = notification_wording.outage(outage.part, reason, outage.since)
    return AnnouncementEntry(headline, (notification_wording.OUTAGE_HINT,))


def _web_page(notice: Notice) -> AnnouncementEntry:
    url, text = shorten(notice.url, REASON_CHARS), shorten(notice.text or "", REASON_CHARS)
    if notice.kind == SOURCE_FAILED:
        return AnnouncementEntry(notification_wording.source_failed(url, _sentence(text)))
    channel = shorten(notice.channel, NAME_CHARS)
    return AnnouncementEntry(notification_wording.source_changed(url, channel, text))


def _sentence(reason: str) -> str:
    """Capitalize a reason and end it with a full stop."""
    text = shorten(reason, REASON_CHARS)
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "?", "!", "…")) or not text else ".")


def _place(notice: Notice, is_elsewhere: bool) -> str:
    return shorten(notice.channel, NAME_CHARS) if is_elsewhere else ""


class ReceiptBuilder:
    """Builds receipts; ``notifier.py`` decides who gets them, and when."""

    def __init__(
        self,
        notices: Notices,
        channels: Channels,
        readings: SelfHealingReadings,
        citations: CitationService,
        *,
        catalog: Catalog,
        folders: ChannelFolders,
        libraries: DirectLibraries | None = None,
        digest: GapDigest | None = None,
    ) -> None:
        """``digest`` builds weekly digests."""
        self._digest = digest
        libraries = libraries or DirectLibraries(channels)
        self._welcome = WelcomeBuilder(notices, catalog, folders, self._questions, libraries)
        self._notices = notices
        self._channels = channels
        self._readings = readings
        self._citations = citations

    async def prepare(self, batch: str, target: Channel) -> Announcement | None:
        """Return the announcement of a batch to ``target``; None if none of its notices still applies.

        Raises:
            storage.errors.InfrastructureError: a backend is down; nothing was announced.
        """
        contents = await self._notices.read(batch, MAX_READ)
        if contents[WELCOME][0]:
            return await self._welcome.prepare(batch, target)
        if contents[DIGEST][0]:
            return await self._digest.prepare(batch, contents[DIGEST][1][0], target) if self._digest else None
        named = listed_notices(contents)
        live = named.live
        await self._questions(live)
        origins = {notice.channel_id for notices in named for notice in notices}
        origin = await self._channels.get(next(iter(origins))) if len(origins) == 1 else None
        # Every direct chat may read the library, so its files count as the chat's own.
        is_own = origin is not None and (origin.id == target.id or (origin.is_library and target.is_direct))
        is_elsewhere = bool(origins) and not is_own
        is_single = contents["live"][0] == 1
        page = await self._first_page(origin, live[0]) if origin and is_own and is_single else None
        return write_receipt(batch, contents, page, is_elsewhere=is_elsewhere)

    async def prepare_for_console(self, batch: str) -> None:
        """Store questions for the files that a message would list; nothing is posted."""
        await self._questions(listed_notices(await self._notices.read(batch, MAX_LISTED)).live)

    async def _questions(self, live: Sequence[Notice]) -> None:
        """Store suggested questions for the App Home, help and welcomes, unless a reading is unavailable."""
        try:
            for notice in live:
                if notice.questions is None:
                    found = await suggested_questions(self._readings, notice)
                    await self._notices.store_questions(notice.id, found)
        except InfrastructureError as error:
            _log.warning("suggesting questions failed: %s", type(error).__name__)

    async def _first_page(self, channel: Channel, notice: Notice) -> CitedPage:
        url = await self._citations.open_page(channel, _version(notice), 1)
        file = PurePosixPath(notice.file).name
        fallback = reply_words(Language.ENGLISH).page_of(page=1, file=file)
        return CitedPage((), notification_wording.SHOW, fallback, url)


def _version(notice: Notice) -> int:
    if notice.version_id is None:
        raise ValueError("a live notice names its version")
    return notice.version_id
