"""Codes in a question: part, form, account and model numbers, which a document contains or does not.

A question about ``HP762`` is answered by the documents that contain it. What others say is about something
else, however similar it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from uuid import UUID

from bot.answers.understanding.question_terms import exact_words, holds_exactly
from bot.core.models import Passage
from storage.readers.registry import READERS
from storage.text.analyzer import fold

# Minimum length of a number or name for its documents to be read beside those with a code.
MIN_NAME = 3

_CODE = re.compile(
    r"(?=.*\d)(?=.*[^\W\d_])(?=.*[-./]).{4,} | [^\W\d_]+\d{3,}\w* | \d+[^\W\d_]+\d\w{2,} | \d{6,}", re.VERBOSE
)
_SEPARATORS = re.compile(r"[-./]")
_LOWERCASE_WORD = re.compile(r"[a-z]{3,}")
_QUANTITY = re.compile(r"\d[\d.,:]*[a-z]{0,2}(?:-\d[\d.,:]*[a-z]{0,2})?")  # 2.5kg, 15-20kg, 10am-5pm


def code_words(question: str) -> list[str]:
    """Return the codes, part and account numbers in a question, as written; no dates or quantities."""
    return [word for word in exact_words(question) if _is_code(word)]


def _is_code(word: str) -> bool:
    """True for ``HP762``; not for a file's name, ``9-year-old``, ``mid-2024`` or ``2.5kg``."""
    parts = (part for part in _SEPARATORS.split(word) if not _LOWERCASE_WORD.fullmatch(part))
    is_quantity = not word.isdigit() and _QUANTITY.fullmatch(word)
    return bool(_CODE.fullmatch("-".join(parts)) and not is_quantity and not READERS.type_of(word))


def bare_code(text: str) -> str:
    """Return the letters and digits of a text, folded: codes compare equal whatever separates them."""
    return re.sub(r"[\W_]+", "", fold(text)).casefold()


def holds_code(code: str, passage: Passage) -> bool:
    """True if a passage, or a name of its document, contains a code."""
    bare, about = bare_code(code), passage.publication
    names = (about.title, about.file, *(field.value for field in about.metadata.values()))
    return any(bare in bare_code(text) for text in (passage.text, *names, *passage.heading_path))


def split_by_codes(question: str, passages: Sequence[Passage]) -> tuple[Sequence[Passage], Sequence[Passage]]:
    """Split passages into those of documents that a question with a code may be about, and others.

    It may be about documents that contain one of its codes, or a name or number that these lack: the other
    thing that is compared. Without a code, or if no passage contains any, it may be about all.
    """
    codes = code_words(question)
    coded = _documents(one for one in passages if any(holds_code(code, one) for code in codes))
    if not coded:
        return passages, ()
    named = set(coded)
    for word in exact_words(question):
        holding = _documents(filter(holds_exactly([word]), passages)) if len(word) >= MIN_NAME else set()
        if not holding & coded:
            named |= holding
    return (
        [one for one in passages if one.publication.document_id in named],
        [one for one in passages if one.publication.document_id not in named],
    )


def _documents(passages: Iterable[Passage]) -> set[UUID]:
    return {one.publication.document_id for one in passages}
