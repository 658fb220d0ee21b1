"""Explains in words why an answer came out as it did: the query, the top passages, what was left out.

The explanation is generated from the question's record, for the one person who asks for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from bot.core.wording import ReplyWords

Json = dict[str, Any]

# Passages listed.
MAX_EXPLAINED = 6
# Final relevance (0-1) from which a passage is called near, and less near.
NEAR, LESS_NEAR = 0.65, 0.45


def explain(record: Json, words: ReplyWords) -> str:
    """Return the explanation of a recorded answer, one item per line.

    Args:
        record: from ``bot.answers.trace.QuestionRecord.as_json``.
        words: of the language of the explanation.
    """
    return "\n".join(_lines(record, words))


def _lines(record: Json, words: ReplyWords) -> Iterator[str]:
    yield words.why_asked(question=record["searched"])
    searches = record["searches"]
    if not searches:
        return
    search = searches[-1]
    corrected = ", ".join(dict.fromkeys(word for _, word in search["corrections"]))
    if corrected:
        yield words.searched_for(words=corrected)
    if search["unknown"]:
        yield words.why_unknown(words=", ".join(search["unknown"]))
    if search["verdict"]:
        yield words.why_likely(percent=round(100 * search["verdict"]["probability"]))
    candidates = sorted(search["candidates"], key=lambda one: (one["rank"] is None, one["rank"] or 0))
    if candidates:
        yield words.why_passages
    yield from (_passage(one, words) for one in candidates[:MAX_EXPLAINED])


def _passage(one: Json, words: ReplyWords) -> str:
    name = PurePosixPath(one["file"]).name
    label = words.source_label(one["page"], name) if one["page"] else one["file"]
    near = words.why_near if one["score"] >= NEAR else words.why_less_near
    near = near if one["score"] >= LESS_NEAR else words.why_far
    repeats, read = one["outcome"].startswith("repeats"), one["outcome"] == "read"
    outcome = words.why_repeated if repeats else words.why_read if read else words.why_behind
    return f"• {label}: {near}, {outcome}"
