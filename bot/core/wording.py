"""Reply sentences in every language, from ``replies/<language>.toml``.

No sentence quotes an exception or an id, nor any path but that of the folder for a channel's documents. One
with {placeholders} is called with their values; one with a count has a singular and a plural.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from bot.core.models import Answer, AnswerState, AppliedFilter, Language
from storage.models import Channel

# Files listed by name; the others are counted.
FILES_NAMED = 3
# Words of a question listed as occurring in no document.
WORDS_NAMED = 3
# Languages with a singular for zero, as in "0 document" (Unicode CLDR plural rules).
ZERO_IS_ONE = {Language.FRENCH, Language.PORTUGUESE}


@dataclass(frozen=True, slots=True)
class SentenceTemplate:
    """A sentence with placeholders; a value that is filled in is never parsed as one."""

    text: str

    def __call__(self, **values: object) -> str:
        """Return the sentence with its placeholders filled in."""
        return self.text.format(**values)


@dataclass(frozen=True, slots=True)
class PluralSentence:
    """A sentence with a count, in the singular and the plural."""

    one: str
    other: str
    language: Language

    def __call__(self, count: int, **values: object) -> str:
        """Return the form for ``count``, with its other placeholders filled in."""
        is_one = count == 1 or (count == 0 and self.language in ZERO_IS_ONE)
        return (self.one if is_one else self.other).format(count=count, **values)


@dataclass(frozen=True, slots=True)
class ReplyWords:
    """The sentences of one language; the English file shows each with its placeholders."""

    language: Language
    searching: str
    queued: str
    busy: PluralSentence
    stopped: str
    no_links: str
    outsider: str
    share: str
    not_shared: str
    compose_lead: str
    compose_question: str
    compose_ask: str
    compose_waiting: str
    compose_show: str
    compose_gone: str
    greeting: str
    thanks: str
    goodbye: str
    acknowledged: str
    incomplete: str
    help: str
    try_asking: str
    about: str
    about_model: str
    about_quotes: str
    about_channel: str
    kept_for: PluralSentence
    documents_differ: str
    values_differ: str
    nothing_in: SentenceTemplate
    model_failed: str
    model_unusable: str
    model_broke_off: str
    model_unverified: str
    missing_point: SentenceTemplate
    missing_part: str
    more_steps: PluralSentence
    earlier_steps: PluralSentence
    more_items: PluralSentence
    generated: str
    cut_short: str
    understood: SentenceTemplate
    answered_from: SentenceTemplate
    searched_for: SentenceTemplate
    searched_only: PluralSentence
    searched_all: SentenceTemplate
    by_arrival: PluralSentence
    filter_since: SentenceTemplate
    filter_until: SentenceTemplate
    filter_without: SentenceTemplate
    not_found: str
    no_such_document: str
    not_found_in: PluralSentence
    not_found_in_channels: SentenceTemplate
    unmentioned: PluralSentence
    either_word: SentenceTemplate
    nearest: SentenceTemplate
    nearest_note: str
    still_reading: PluralSentence
    partly_read: PluralSentence
    first_search: str
    unread_files: SentenceTemplate
    and_more: SentenceTemplate
    empty_channel: SentenceTemplate
    empty_chat_channel: str
    empty_named_channel: SentenceTemplate
    empty_library: str
    no_direct_library: str
    memberships_unknown: str
    no_member_channels: str
    left_channel: str
    documents_known: PluralSentence
    pages: PluralSentence
    version: SentenceTemplate
    effective: SentenceTemplate
    updated: SentenceTemplate
    added: SentenceTemplate
    replaced: SentenceTemplate
    more_documents: SentenceTemplate
    reading_files: SentenceTemplate
    unread_reasons: str
    news: SentenceTemplate
    no_news: SentenceTemplate
    document_here: PluralSentence
    no_document_named: SentenceTemplate
    which_document: str
    outline_lead: SentenceTemplate
    outline_sections: str
    engine_failed: str
    question_too_long: SentenceTemplate
    figures_lead: PluralSentence
    figure_on: SentenceTemplate
    figure_described: SentenceTemplate
    figure_unnamed: SentenceTemplate
    table_unnamed: SentenceTemplate
    source: SentenceTemplate
    source_by_ocr: SentenceTemplate
    page_of: SentenceTemplate
    page_in: SentenceTemplate
    web_source: SentenceTemplate
    more_sources: PluralSentence
    document_named: SentenceTemplate
    helpful: str
    not_helpful: str
    why: str
    links_renewed: SentenceTemplate
    what_was_wrong: str
    wrong_page: str
    wrong_answer: str
    should_have_found: str
    outdated: str
    right_page: str
    feedback_thanks: str
    feedback_expired: str
    why_asked: SentenceTemplate
    why_used: SentenceTemplate
    why_closest: SentenceTemplate
    why_likely: SentenceTemplate
    why_unknown: SentenceTemplate
    source_moved: SentenceTemplate
    source_reworded: SentenceTemplate
    source_replaced: SentenceTemplate
    source_withdrawn: SentenceTemplate
    answer_removed: str
    such_documents: PluralSentence
    no_such_documents: str
    all_read: PluralSentence
    none_being_read: str
    people_to_ask: str
    nobody_to_ask: str
    ask_person: str
    person_needed: str
    person_told: str
    person_asked: str
    resolved: str
    sources_again: str
    no_sources: str
    forgot: PluralSentence
    nothing_to_forget: str
    admins_only: str
    subscribed: SentenceTemplate
    nothing_to_subscribe: str
    unsubscribed: PluralSentence
    page_moved: SentenceTemplate
    page_lost: SentenceTemplate
    page_gone: SentenceTemplate
    page_new: SentenceTemplate
    page_same: str
    folders_known: PluralSentence
    files: PluralSentence
    folder_paused: str
    asks_to_delete: PluralSentence
    approved: PluralSentence
    nothing_to_approve: str
    confirm_erasure: SentenceTemplate
    erased: SentenceTemplate
    still_in_folder: str
    retried: PluralSentence
    paused: PluralSentence
    resumed: PluralSentence
    fetching: str
    upload_taken: SentenceTemplate
    upload_for_all: str
    upload_known: SentenceTemplate
    uploads_off: str
    upload_direct: str
    upload_no_pdf: SentenceTemplate
    upload_empty: SentenceTemplate
    upload_too_large: SentenceTemplate
    upload_too_many: PluralSentence
    upload_no_room: SentenceTemplate
    upload_installation_full: SentenceTemplate
    upload_no_folder: SentenceTemplate
    upload_unfetched: SentenceTemplate
    upload_failed: str
    upload_removed: SentenceTemplate
    upload_not_removed: SentenceTemplate
    upload_not_yours: SentenceTemplate
    no_such_upload: SentenceTemplate

    def query_notes(self, answer: Answer) -> list[str]:
        """Return notes on how the query differs from the typed text, one per line; usually none.

        The first names the channel that answered, if a direct chat searched several.
        """
        is_named = answer.channel_name and answer.state is not AnswerState.NOT_FOUND
        words = ", ".join(dict.fromkeys(one.word for one in answer.corrections))
        return [
            *([self.answered_from(channel=answer.channel_name)] if is_named else ()),
            *([self.understood(question=answer.standalone)] if answer.standalone else ()),
            *([self.searched_for(words=words)] if words else ()),
            *([self._filtered(answer.filter)] if answer.filter else ()),
        ]

    def _filtered(self, applied: AppliedFilter) -> str:
        conditions = "; ".join(applied.conditions)
        if not applied.kept:
            return self.searched_all(filter=conditions)
        note = f" ({self.by_arrival(applied.by_arrival)})" if applied.by_arrival else ""
        return self.searched_only(applied.kept, filter=conditions) + note

    def mentioned_nowhere(self, words: Sequence[str], documents: int) -> str:
        """Say that no document mentions these words; names the longest three."""
        return self.unmentioned(documents, words=self._either(words))

    def mentioned_by_none(self, words: Sequence[str]) -> str:
        """Say the same where the number of documents is unknown."""
        return self.why_unknown(words=self._either(words))

    def _either(self, words: Sequence[str]) -> str:
        longest = sorted(words, key=len, reverse=True)[:WORDS_NAMED]
        *named, last = (self.document_named(title=word) for word in words if word in longest)
        return self.either_word(words=", ".join(named), last=last) if named else last

    def unreadable_files(self, names: Sequence[str]) -> str:
        """Say which files could not be read; names at most three."""
        return self.unread_files(files=self._first(names))

    def nothing_found_in(self, names: Sequence[str]) -> str:
        """Say in which documents nothing was found; names at most three."""
        return self.nothing_in(documents=self._first([self.document_named(title=name) for name in names]))

    def pages_used(self, pages: Sequence[str]) -> str:
        """Say which pages an answer used; names at most three."""
        return self.why_used(pages=self._first(pages))

    def partly_searchable(self, names: Sequence[str]) -> str:
        """Say that files are still being read; names at most three."""
        return self.partly_read(len(names), files=self._first(names))

    def found_in_no_channel(self, names: Sequence[str]) -> str:
        """Say in which channels nothing was found; names at most three."""
        return self.not_found_in_channels(channels=self._first(names))

    def being_read(self, names: Sequence[str]) -> str:
        """Say which files are not searchable yet; names at most three."""
        return self.reading_files(files=self._first(names))

    def _first(self, names: Sequence[str]) -> str:
        named, rest = ", ".join(names[:FILES_NAMED]), len(names) - FILES_NAMED
        return self.and_more(files=named, count=rest) if rest > 0 else named

    def no_documents(self, channel: Channel, folder: str) -> str:
        """Say how a channel gets its first documents, or where a direct chat can search.

        ``folder`` is a path on the server, so only local users (command line, console) are shown it.
        """
        if channel.is_direct:
            return self.no_direct_library
        if channel.is_library:
            return self.empty_library
        if channel.is_local:
            return self.empty_channel(folder=folder)
        if channel.name == channel.tenant:
            return self.empty_chat_channel
        return self.empty_named_channel(channel=channel.name)

    def figure_label(self, caption: str, page: int, *, is_table: bool = False) -> str:
        """Return a figure's page and caption: ``p. 4 · Figure 2. Water use``."""
        if caption:
            return self.source_label(page, caption)
        return (self.table_unnamed if is_table else self.figure_unnamed)(page=page)

    def source_label(self, page: int, title: str, *, is_ocr: bool = False) -> str:
        """Return a page and its document: ``p. 4 · Handbook``."""
        return f"{self.page_label(page, is_ocr=is_ocr)} · {title}"

    def page_label(self, page: int, *, is_ocr: bool = False) -> str:
        """Return a page, marked if OCR read it: ``p. 4 (OCR)``."""
        return (self.source_by_ocr if is_ocr else self.source)(page=page)


@cache
def reply_words(language: Language) -> ReplyWords:
    """Return the sentences of a language; cached."""
    file = files("bot.core").joinpath("replies", f"{language}.toml")
    said = tomllib.loads(file.read_text(encoding="utf-8"))
    return ReplyWords(language, **{name: _read(value, language) for name, value in said.items()})


def _read(value: str | dict[str, str], language: Language) -> Any:
    if isinstance(value, dict):
        return PluralSentence(**value, language=language)
    return SentenceTemplate(value) if "{" in value else value
