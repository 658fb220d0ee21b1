"""Writes the announcement of a batch of notices: pure, and bounded whatever the batch holds.

Failures come first, at most seven files are named, the rest is counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from bot.core import wording
from bot.core.announcement import Announcement, AnnouncementEntry
from bot.core.languages import Language
from bot.core.models import CitedPage
from bot.core.plaintext import shorten
from bot.core.reply_words import reply_words
from storage.notice_models import Notice

MAX_NAMED = 5
MIN_LIVE = 2
"""Files that answer are named beside any number of failures: what there is to ask is news, too."""
NAME_CHARS = 90
"""Characters of a title, a file's name or a folder's location."""
REASON_CHARS = 500

Contents = Mapping[str, tuple[int, Sequence[Notice]]]
"""By kind: how many there are, and the first of them."""


def named_notices(contents: Contents) -> tuple[list[Notice], list[Notice], list[Notice]]:
    """(failed files, files that can be asked about, folders) that the message will name."""
    failed, live, folders = (list(contents[kind][1]) for kind in ("failed", "live", "folder"))
    failed = failed[:MAX_NAMED]
    return failed, live[: max(MIN_LIVE, MAX_NAMED - len(failed))], folders[:MAX_NAMED]


def write_receipt(
    id: str,
    contents: Contents,
    questions: Mapping[int, Sequence[str]],
    first_pages: Mapping[int, str],
    *,
    is_elsewhere: bool,
) -> Announcement | None:
    """What one message says of a batch; None when nothing of it is true any more.

    Args:
        id: names the message.
        contents: the batch.
        questions: tried ones, by notice.
        first_pages: links to first pages, by notice.
        is_elsewhere: it is not told in the documents' own channel, which is named then.
    """
    failed, live, folders = named_notices(contents)
    if not (failed or live or folders):
        return None
    entries = [
        *(_failure(notice, is_elsewhere) for notice in failed),
        *(_success(notice, questions.get(notice.id, ()), is_elsewhere) for notice in live),
        *(_folder(notice) for notice in folders),
    ]
    sources = [_source(notice, first_pages[notice.id]) for notice in live if notice.id in first_pages]
    return Announcement(id, _lead(contents), tuple(entries), tuple(_more(contents)), tuple(sources))


def _lead(contents: Contents) -> str:
    sentences = [wording.receipt_lead(contents["live"][0], contents["failed"][0])]
    sentences += [wording.FOLDERS_LEAD] if contents["folder"][0] else []
    return " ".join(filter(None, sentences))


def _more(contents: Contents) -> Iterator[str]:
    failed, live, folders = named_notices(contents)
    if (unnamed := contents["failed"][0] - len(failed)) > 0:
        yield wording.more_unreadable(unnamed)
    if (unnamed := contents["live"][0] - len(live)) > 0:
        yield wording.more_files(unnamed)
    if (unnamed := contents["folder"][0] - len(folders)) > 0:
        yield wording.more_folders(unnamed)


def _failure(notice: Notice, is_elsewhere: bool) -> AnnouncementEntry:
    headline = wording.unreadable(shorten(notice.file, NAME_CHARS), _place(notice, is_elsewhere))
    reasons = [_sentence(notice.text or ""), wording.EARLIER_ANSWERS if notice.has_live else ""]
    return AnnouncementEntry(headline, tuple(filter(None, reasons)))


def _success(notice: Notice, questions: Sequence[str], is_elsewhere: bool) -> AnnouncementEntry:
    headline = wording.receipt(
        shorten(notice.title, NAME_CHARS),
        shorten(PurePosixPath(notice.file).name, NAME_CHARS),
        notice.pages,
        _place(notice, is_elsewhere),
        is_replacement=notice.number > 1,
    )
    return AnnouncementEntry(headline, tuple(_gaps(notice)), tuple(questions))


def _gaps(notice: Notice) -> Iterator[str]:
    """What could not be read of a file that answers, and what to do."""
    silent = [page for page in notice.pages_without_text if page not in notice.unread_pages]
    if notice.unread_pages:
        yield wording.pages_unread(notice.unread_pages)
    if silent:
        yield wording.pages_without_text(silent)
    if notice.ocr_pages:
        yield wording.pages_read_by_ocr(notice.ocr_pages)
    if notice.is_repaired:
        yield wording.REPAIRED


def _folder(notice: Notice) -> AnnouncementEntry:
    location, channel = shorten(notice.location, NAME_CHARS), shorten(notice.channel, NAME_CHARS)
    if notice.text is None:
        return AnnouncementEntry(wording.folder_well(location, channel))
    return AnnouncementEntry(wording.folder_problem(location, channel, _sentence(notice.text)))


def _sentence(reason: str) -> str:
    """A reason as a sentence of its own."""
    text = shorten(reason, REASON_CHARS)
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "?", "!", "…")) or not text else ".")


def _source(notice: Notice, url: str) -> CitedPage:
    name, words = PurePosixPath(notice.file).name, reply_words(Language.ENGLISH)
    return CitedPage((), words.source_label(1, notice.title), words.page_of(page=1, file=name), url)


def _place(notice: Notice, is_elsewhere: bool) -> str:
    return shorten(notice.channel, NAME_CHARS) if is_elsewhere else ""
