"""Explains in at most three sentences why an answer came out as it did, from the question's record."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from bot.core.wording import ReplyWords

Json = dict[str, Any]


def explain(record: Json, words: ReplyWords) -> str:
    """Return the explanation of a recorded answer.

    Args:
        record: from ``bot.answers.trace.QuestionRecord.as_json``.
        words: of the language of the explanation.
    """
    return " ".join(_sentences(record, words))


def _sentences(record: Json, words: ReplyWords) -> Iterator[str]:
    """Yield what was searched for, which pages were used, and how sure the answer is."""
    yield words.why_asked(question=record["searched"])
    searches, cited = record["searches"], record.get("citations", ())
    if cited:
        yield words.pages_used(list(dict.fromkeys(_page(one, words) for one in cited)))
    if not searches:
        return
    search = searches[-1]
    ranked = [one for one in search["candidates"] if one["rank"]]
    if ranked and not cited:
        yield words.why_closest(page=_page(min(ranked, key=lambda one: one["rank"]), words))
    if search["unknown"]:
        yield words.mentioned_by_none(search["unknown"])
    elif search["verdict"]:
        yield words.why_likely(percent=round(100 * search["verdict"]["probability"]))


def _page(one: Json, words: ReplyWords) -> str:
    """Return the name of a page: its number and file, or the host of a web page."""
    name = PurePosixPath(one["file"]).name
    if not one["page"]:
        return urlsplit(one["file"]).hostname or name
    return words.page_in(page=one["page"], document=words.document_named(title=name))
