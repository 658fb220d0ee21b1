"""Turns a draft into verified text: every sentence carries located quotes, and says nothing else.

Pure: what an answerer says about its sources is never believed, only the words that are found.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bot.core.models import Claim, Draft, Evidence, LocatedQuote
from bot.core.verification.contradiction import find_contradiction
from bot.core.verification.facts import unsupported
from bot.core.verification.quotes import cells, locate, reduce_text

_MARK = re.compile(r"\s*\[\s*\d{1,3}(?:\s*[,;–-]\s*\d{1,3})*\s*\]")
_BRACKETED = re.compile(r"\[(\s*\d{1,3}(?:\s*[,;–-]\s*\d{1,3})*\s*)\]")
_LINK = re.compile(r"!?\[([^\]\n]*)\]\([^)\n]*\)|<(?:https?:|mailto:)[^>|\n]*\|?([^>\n]*)>")


@dataclass(frozen=True, slots=True)
class VerifiedClaim:
    """A sentence and the places that prove it."""

    text: str
    quotes: tuple[LocatedQuote, ...]


@dataclass(frozen=True, slots=True)
class JudgedClaim:
    """A sentence of a draft, and what became of it."""

    claim: Claim
    places: tuple[LocatedQuote | None, ...]
    """Where each of its quotes was found; None: nowhere, or at several places where it is short."""
    fault: str | None
    """What is wrong with it; None: it is kept."""


@dataclass(frozen=True, slots=True)
class VerifiedDraft:
    """What is left of a draft."""

    text: str
    """One line per claim of a verbatim draft, else running text; [n] by first use."""
    cited: tuple[LocatedQuote, ...]
    """``cited[n - 1]`` is what [n] stands for."""
    faults: tuple[str, ...]
    """What was wrong, in words that a model can act on; they quote nothing of a document."""
    claims: tuple[VerifiedClaim, ...]
    """What is left, sentence by sentence."""
    judged: tuple[JudgedClaim, ...]
    """All that was written."""

    @property
    def dropped(self) -> int:
        """Number of sentences left out."""
        return len(self.faults)


def verify(draft: Draft, evidence: Sequence[Evidence]) -> VerifiedDraft:
    """Keep the claims of a draft that the evidence proves, and number their quotes by first use."""
    kept: list[VerifiedClaim] = []
    judged: list[JudgedClaim] = []
    for claim in draft.claims:
        places = tuple(locate(quote, evidence) for quote in claim.quotes)
        checked = _check(claim, _distinct(filter(None, places)), is_verbatim=draft.verbatim)
        if isinstance(checked, VerifiedClaim):
            kept.append(checked)
        judged.append(JudgedClaim(claim, places, checked if isinstance(checked, str) else None))
    faults = [f"Sentence {number}: {one.fault}" for number, one in enumerate(judged, start=1) if one.fault]
    lines, cited = number_quotes(kept)
    text = ("\n" if draft.verbatim else " ").join(lines)
    return VerifiedDraft(text, cited, tuple(faults), tuple(kept), tuple(judged))


def number_quotes(claims: Sequence[VerifiedClaim]) -> tuple[list[str], tuple[LocatedQuote, ...]]:
    """(the claims' texts with their [n], what each [n] stands for), numbered by first use.

    A claim that is added behind others changes none of theirs.
    """
    cited = _distinct(quote for claim in claims for quote in claim.quotes)
    return [_with_marks(claim, cited) for claim in claims], tuple(cited)


def _check(claim: Claim, located: list[LocatedQuote], *, is_verbatim: bool) -> VerifiedClaim | str:
    """The claim with its located quotes, or what is wrong with it."""
    if not located:
        return "none of its quotes stands in a passage word for word."
    if is_verbatim:
        return VerifiedClaim(f"“{_neutralised(_readable(located[0]))}”", (located[0],))
    text = plain_sentence(claim.text)
    if not text:
        return "it is empty."
    if missing := unsupported(text, _sources(located)):
        return f"{', '.join(missing)} does not occur in the quoted passages."
    if turned := find_contradiction(text, located):
        return turned
    return VerifiedClaim(text, tuple(located))


def plain_sentence(text: str) -> str:
    """A model's sentence as plain text: without [n] of its own, links or images; [2024] stays."""
    return " ".join(_MARK.sub("", _LINK.sub(r"\1\2", text)).split())


def _readable(quote: LocatedQuote) -> str:
    """A document's words on one line; a dot stands between two cells, but none behind a label's colon."""
    return " · ".join(cells(quote)).replace(": · ", ": ")


def _neutralised(quote: str) -> str:
    """A quote that is nothing but words: its own [3] becomes (3), as [n] means our sources; no link forms."""
    return _BRACKETED.sub(r"(\1)", quote).replace("](", "] (")


def _sources(located: Iterable[LocatedQuote]) -> list[str]:
    """All that may carry a sentence's facts: the passages quoted, with their titles and headings."""
    passages = [quote.passage for quote in located]
    return [
        text
        for passage in passages
        for text in (passage.text, passage.publication.title, *passage.heading_path)
    ]


def _distinct(quotes: Iterable[LocatedQuote]) -> list[LocatedQuote]:
    """Each place once, in order of first use."""
    unique: dict[tuple[int, int, str], LocatedQuote] = {}
    for quote in quotes:
        unique.setdefault(_place(quote), quote)
    return list(unique.values())


def _place(quote: LocatedQuote) -> tuple[int, int, str]:
    """The same words of one page are one place, though two overlapping passages hold them."""
    return (quote.passage.publication.version_id, quote.page, reduce_text(quote.quote).text)


def _with_marks(claim: VerifiedClaim, cited: Sequence[LocatedQuote]) -> str:
    places = [_place(quote) for quote in cited]
    numbers = sorted({places.index(_place(quote)) + 1 for quote in claim.quotes})
    return claim.text + "".join(f" [{number}]" for number in numbers)
