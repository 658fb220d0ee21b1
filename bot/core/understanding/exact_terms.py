"""What a question asks for literally: codes, numbers and names, which no ranking may lose."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from uuid import UUID

from bot.core.models import AnalyzedQuestion, Passage
from storage.text.analyzer import analyze, fold

_WORD = re.compile(r"[^\W_]+(?:[-_./:,&][^\W_]+)*")
_SENTENCE_END = re.compile(r"[.?!]\s*$")


def exact_words(question: str) -> list[str]:
    """The codes, numbers, acronyms and names of a question, as written.

    A name is a capitalised word that does not open a sentence.
    """
    return [
        match[0]
        for match in _WORD.finditer(question)
        if _is_exact(match[0]) or (match[0][0].isupper() and not _opens_sentence(question, match.start()))
    ]


def rare_words(question: AnalyzedQuestion, rarity: float) -> list[str]:
    """The exact words of a question whose idf is above ``rarity``: the others single nothing out."""
    return [word for word in exact_words(question.text) if _idf(question, word) > rarity]


def holds_exactly(words: Sequence[str]) -> Callable[[Passage], bool]:
    """A test whether a passage holds one of these words whole."""
    if not words:
        return lambda _: False
    found = re.compile(
        rf"(?<!\w)(?:{'|'.join(re.escape(fold(word)) for word in words)})(?!\w)", re.IGNORECASE
    )
    return lambda passage: found.search(fold(_all_text(passage))) is not None


def identified_documents(words: Sequence[str], passages: Sequence[Passage]) -> dict[UUID, float]:
    """Publication -> share (0-1) of these words that its passages hold; empty when all hold the same."""
    holders = {word: holds_exactly([word]) for word in words}
    held: dict[UUID, set[str]] = {}
    for passage in passages:
        known = held.setdefault(passage.publication.id, set())
        known.update(word for word in words if word not in known and holders[word](passage))
    shares = {id_: len(known) / len(words) for id_, known in held.items() if words}
    return shares if len(set(shares.values())) > 1 else {}


def _idf(question: AnalyzedQuestion, word: str) -> float:
    return max((question.idf.get(term, 0.0) for term in analyze(word)[:1]), default=0.0)


def _all_text(passage: Passage) -> str:
    return "\n".join((passage.publication.title, *passage.heading_path, passage.text))


def _is_exact(word: str) -> bool:
    return any(char.isdigit() for char in word) or sum(char.isupper() for char in word) > 1


def _opens_sentence(text: str, start: int) -> bool:
    before = text[:start].strip("\"'“‘( ")
    return not before or _SENTENCE_END.search(before) is not None
