"""Lists the documents of a channel: all, the new ones, or those with a given name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import PurePosixPath

from bot.answers.understanding.channel_documents import DATE_FIELDS, field_day
from bot.core.plaintext import escape_markers, shorten
from bot.core.wording import ReplyWords
from storage.models import DocumentStatus

# Documents listed by name; further ones are counted.
MAX_SHOWN = 15
MAX_UNREAD = 5
NEWS_DAYS = 14
# How many of the latest documents are shown if none is new.
MIN_NEWS = 3
TITLE_CHARS = 120
REASON_CHARS = 240


class DocumentList:
    """Lists of the documents of one channel, in one language."""

    def __init__(self, words: ReplyWords, documents: Sequence[DocumentStatus]) -> None:
        self._words = words
        self._live = [one for one in documents if one.state == "live"]
        self._reading = [one for one in documents if one.state in {"waiting", "reading"}]
        self._unread = [one for one in documents if one.state == "quarantined"]
        self._files = Counter(PurePosixPath(one.file).name for one in documents)

    def write(self) -> str:
        """List all live documents by title, then those still being read and those that are unreadable."""
        by_title = sorted(self._live, key=lambda one: (self.name_of(one).casefold(), one.file))
        lead = [self._words.documents_known(len(by_title))] if by_title else []
        return "\n".join([*lead, *self._bullets(by_title), *self._gaps()])

    def write_news(self, now: datetime) -> str:
        """List new documents and new versions, latest first; if there are none, the latest ones."""
        fresh = self._fresh(now)
        lead = self._words.news if fresh else self._words.no_news
        shown = fresh or [one for _, one in self._by_arrival()[:MIN_NEWS]]
        leads = [lead(days=NEWS_DAYS)] if shown else []
        return "\n".join([*leads, *self._bullets(shown, with_arrival=True), *self._gaps()])

    def _fresh(self, now: datetime) -> list[DocumentStatus]:
        return [one for day, one in self._by_arrival() if day >= now - timedelta(days=NEWS_DAYS)]

    def _by_arrival(self) -> list[tuple[datetime, DocumentStatus]]:
        arrived = [(one.arrived_at, one) for one in self._live if one.arrived_at]
        return sorted(arrived, key=lambda pair: (pair[0], pair[1].file), reverse=True)

    def write_choice(self) -> str:
        """Ask which of these documents is meant."""
        return "\n".join([self._words.which_document, *self._bullets(self._live)])

    def write_found(self) -> str:
        """Confirm that these documents, which were asked for by name, are here."""
        lead = [self._words.document_here(len(self._live))] if self._live else []
        return "\n".join([*lead, *self._bullets(self._live), *self._gaps()])

    def write_such(self, is_meant: Callable[[DocumentStatus], bool], none_such: Callable[[int], str]) -> str:
        """List the documents that ``is_meant`` selects, in any state, with why one is not searchable.

        ``none_such``: says that there are none, given the number of live documents.
        """
        live = [one for one in self._live if is_meant(one)]
        others = [one for one in (*self._reading, *self._unread) if is_meant(one)]
        if not (live or others):
            return none_such(len(self._live))
        such = DocumentList(self._words, others)
        return "\n".join(
            [self._words.such_documents(len(live) + len(others)), *self._bullets(live), *such._gaps()]
        )

    def _bullets(self, documents: Sequence[DocumentStatus], *, with_arrival: bool = False) -> Iterator[str]:
        for document in documents[:MAX_SHOWN]:
            is_undated = not any(field_day(document.metadata.get(name)) for name in DATE_FIELDS)
            is_shown = document.arrived_at is not None and (with_arrival or is_undated)
            arrival = [self._arrival(document)] if is_shown else []
            yield f"• {' · '.join([self.name_of(document), *self._facts(document), *arrival])}"
        if (rest := len(documents) - MAX_SHOWN) > 0:
            yield self._words.more_documents(count=rest)

    def name_of(self, document: DocumentStatus) -> str:
        """Return title and file name, or path if the name is not unique, without [n] look-alikes."""
        path = PurePosixPath(document.file)
        file = str(path) if self._files[path.name] > 1 else path.name
        if document.title in ("", path.name):
            return escape_markers(file)
        return escape_markers(f"{shorten(document.title, TITLE_CHARS)} ({file})")

    def _facts(self, document: DocumentStatus) -> Iterator[str]:
        said = {name: shorten(one.day or one.value, TITLE_CHARS) for name, one in document.metadata.items()}
        sop_id = said.get("sop_id", "")
        if document.pages:
            yield self._words.pages(document.pages)
        if sop_id and sop_id.casefold() not in document.title.casefold():
            yield escape_markers(sop_id)
        if "version" in said:
            yield self._words.version(version=escape_markers(said["version"]))
        if "department" in said:
            yield escape_markers(said["department"])
        if "effective" in said:
            yield self._words.effective(day=escape_markers(said["effective"]))
        elif "last_updated" in said:
            yield self._words.updated(day=escape_markers(said["last_updated"]))

    def _arrival(self, document: DocumentStatus) -> str:
        day = document.arrived_at.date().isoformat() if document.arrived_at else ""
        return (self._words.replaced if document.number > 1 else self._words.added)(day=day)

    def _gaps(self) -> Iterator[str]:
        """Yield the files that are not searchable yet, and the unreadable ones with the reason."""
        if self._reading:
            yield self._words.being_read(
                [escape_markers(PurePosixPath(one.file).name) for one in self._reading]
            )
        if self._unread:
            yield self._words.unread_reasons
        for one in self._unread[:MAX_UNREAD]:
            reason = shorten(one.reason or "", REASON_CHARS)
            yield escape_markers(f"• {PurePosixPath(one.file).name}{f': {reason}' if reason else ''}")
        if (rest := len(self._unread) - MAX_UNREAD) > 0:
            yield self._words.more_documents(count=rest)
