"""Turns a draft into verified text: every sentence carries located quotes.

Pure: what an answerer says about its sources is never trusted, only words that are found. A quote is located
in its passage's text and, through the offset-to-box map, on the page. Both texts are normalised first: case,
whitespace, line-end hyphens, ligatures, kinds of quotation marks and dashes, bars between cells and invisible
characters make no difference.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise, takewhile, zip_longest

from bot.answers.verification.page_markers import unescaped
from bot.answers.verification.table_rows import cells_of, is_caption, readable_rows
from bot.core.models import Claim, Draft, Evidence, LocatedQuote, Quote
from storage.text.sentences import LIST_MARKER
from storage.text.word_boxes import bounding_boxes, main_page

# A quote with fewer normalised characters must be unique; a longer one may occur more than once.
MIN_UNAMBIGUOUS_CHARS = 12

_SAME = {
    **dict.fromkeys("‘’‚‛′´`ʼ", "'"),
    **dict.fromkeys("“”„‟″«»", '"'),
    **dict.fromkeys("‐‑‒–—―−﹘﹣－", "-"),
}
_SIGNS = "⁺⁻₊₋"
_UNSEEN = {"Mn", "Cf", "Cc", "Zs", "Zl", "Zp"}
_MARKS = re.compile(r"(?: \[\d+\])+$")
_ITEM = re.compile(r"(?:[-•*]|\d{1,2}[.)])\s")
_ITEM_START = re.compile(rf"\n+(?=\s*{LIST_MARKER})|\n{{2,}}")
_EDGES = re.compile(r"^[\W_]+|[^\w%°)\]]+$")
_ONE_WORD_A_CHAR = re.compile(r"[\u0e00-\u0eff\u2e80-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_MARK = re.compile(r"\s*\[\s*\d{1,3}(?:\s*[,;–-]\s*\d{1,3})*\s*\]")
_BRACKETED = re.compile(r"\[(\s*\d{1,3}(?:\s*[,;–-]\s*\d{1,3})*\s*)\]")
_LINK = re.compile(r"!?\[([^\]\n]*)\]\([^)\n]*\)|<(?:https?:|mailto:)[^>|\n]*\|?([^>\n]*)>")


@dataclass(frozen=True, slots=True)
class VerifiedClaim:
    """A sentence and the quotes that prove it."""

    text: str
    quotes: tuple[LocatedQuote, ...]
    # See ``Claim.is_reference``.
    is_reference: bool = False


@dataclass(frozen=True, slots=True)
class JudgedClaim:
    """A sentence of a draft with its verdict."""

    claim: Claim
    # Location of each of its quotes; None: not found, or short and ambiguous.
    places: tuple[LocatedQuote | None, ...]
    # The claim as shown, or its fault.
    verdict: VerifiedClaim | str

    @property
    def fault(self) -> str | None:
        """Reason for leaving the sentence out; None if it is shown."""
        return self.verdict if isinstance(self.verdict, str) else None


@dataclass(frozen=True, slots=True)
class VerifiedDraft:
    """Result of verifying a draft."""

    # All sentences of the draft.
    judged: tuple[JudgedClaim, ...]
    # Part of the question that it does not answer.
    missing: str = ""

    @property
    def claims(self) -> tuple[VerifiedClaim, ...]:
        """Sentences that are shown."""
        return tuple(one.verdict for one in self.judged if isinstance(one.verdict, VerifiedClaim))

    @property
    def faults(self) -> tuple[str, ...]:
        """Faults of the sentences left out; an abstention is not a fault."""
        return tuple(one.fault for one in self.judged if one.fault and one.fault != ABSTAINS)


UNFOUND = "no quote matches a passage verbatim"
# Not a fault: the model found no answer.
ABSTAINS = "the sentence is an abstention"


def verify(draft: Draft, evidence: Sequence[Evidence]) -> VerifiedDraft:
    """Keep the quotes of a verbatim draft that are found in the evidence."""
    located = ((claim, locate_all(claim, evidence)) for claim in draft.claims)
    return VerifiedDraft(
        tuple(
            JudgedClaim(claim, places, _check_quote(claim, unique_quotes(places)))
            for claim, places in located
        )
    )


def locate_all(claim: Claim, evidence: Sequence[Evidence]) -> tuple[LocatedQuote | None, ...]:
    """Locate each quote of a claim; None: not found, or short and ambiguous."""
    return tuple(locate(quote, evidence) for quote in claim.quotes)


def number_quotes(
    claims: Sequence[VerifiedClaim], *, by_page: bool = False
) -> tuple[list[str], tuple[LocatedQuote, ...]]:
    """Return (the claims' texts with their [n], the quote behind each [n]), numbered by first use.

    Appending a claim leaves the numbers of earlier ones unchanged. Consecutive rows of one table share its
    caption.

    Args:
        claims: in their order.
        by_page: number pages instead of quotes; a page is cited with all its quotes.
    """
    key = _page if by_page else _place
    places: dict[object, list[LocatedQuote]] = {}
    for quote in unique_quotes(quote for claim in claims for quote in _on_pages(claim)):
        places.setdefault(key(quote), []).append(quote)
    numbered = {place: number for number, place in enumerate(places, start=1)}
    lines, caption = [], ""
    for claim in claims:
        numbers = sorted({numbered[key(quote)] for quote in _on_pages(claim)})
        first, _, rows = claim.text.partition("\n")
        text = f"“{rows}" if rows and first == caption else claim.text
        caption = first if rows and is_caption(first.removeprefix("“")) else ""
        lines.append(text + "".join(f" [{number}]" for number in numbers))
    return lines, tuple(map(_joined, places.values()))


def place_of(quote: LocatedQuote, cited: Sequence[LocatedQuote]) -> int:
    """Return the [n] of a quote among the cited ones, whether they are numbered by quote or by page."""
    quote = next(iter(quote.parts), quote)
    said = reduce_text(quote.quote).text
    return next(
        number
        for number, one in enumerate(cited, start=1)
        if _page(one) == _page(quote) and said in reduce_text(one.quote).text
    )


def join_sentences(lines: Sequence[str], *, is_open: bool = False) -> str:
    """Return the lines of ``number_quotes`` as running text; steps and list items get a line each.

    Consecutive sentences with the same sources carry their numbers once, after the last of them. ``is_open``
    omits them after the very last sentence, because others may follow.
    """
    text, was_item = "", False
    for line, following in zip_longest(lines, lines[1:]):
        said, marks = _split_marks(line)
        is_last = following is None
        is_shared = is_open if is_last else _split_marks(following)[1] == marks
        is_item = _ITEM.match(said) is not None
        separator = "\n" if text and (is_item or was_item) else " " if text else ""
        text, was_item = f"{text}{separator}{said if is_shared else line}", is_item
    return text


def _split_marks(line: str) -> tuple[str, str]:
    found = _MARKS.search(line)
    return (line[: found.start()], found[0]) if found else (line, "")


def _on_pages(claim: VerifiedClaim) -> Iterator[LocatedQuote]:
    """Yield a claim's quotes; one that crosses a page break as one part per page."""
    for quote in claim.quotes:
        yield from quote.parts or (quote,)


def _page(quote: LocatedQuote) -> tuple[int, int]:
    return quote.passage.publication.version_id, quote.page


def _joined(quotes: Sequence[LocatedQuote]) -> LocatedQuote:
    """Merge all quotes of one page into one citation, in reading order."""
    first, *more = ordered = sorted(quotes, key=lambda one: (one.passage.ordinal, one.start))
    if not more:
        return first
    boxes = dict.fromkeys(box for one in ordered for box in one.boxes)
    levels = zip(*(one.section for one in ordered), strict=False)
    common = takewhile(lambda level: len(set(level)) == 1, levels)
    return replace(
        first,
        quote=" … ".join(one.quote for one in ordered),
        boxes=tuple(boxes),
        section=tuple(level[0] for level in common),
    )


def _check_quote(claim: Claim, located: Sequence[LocatedQuote]) -> VerifiedClaim | str:
    """Return a quoted claim in the words of its passage, or its fault."""
    if not located:
        return UNFOUND
    if claim.is_reference:
        return VerifiedClaim(claim.text, tuple(located), is_reference=True)
    # A [3] in the document becomes (3), because [n] marks our sources; and no link may form.
    inert = (_BRACKETED.sub(r"(\1)", readable(one)).replace("](", "] (") for one in located)
    return VerifiedClaim(f"“{' … '.join(inert)}”", tuple(_on_one_page(located)))


def _on_one_page(located: Sequence[LocatedQuote]) -> Iterator[LocatedQuote]:
    """Yield an item with its lead-in: one citation that marks both, or two if a page break separates them."""
    *leads, item = located
    pages = [_introduced(part, leads) for part in item.parts or (item,)]
    yield replace(item, parts=tuple(pages)) if item.parts else pages[0]
    yield from (one for one in leads if all(one.page != part.page for part in pages))


def _introduced(item: LocatedQuote, leads: Iterable[LocatedQuote]) -> LocatedQuote:
    """Return an item, or its part on one page, merged with its lead-in on the same page."""
    parts = (*(one for one in leads if one.page == item.page), item)
    boxes = tuple(box for one in parts for box in one.boxes)
    return replace(item, quote=" … ".join(one.quote for one in parts), boxes=boxes)


def plain_sentence(text: str) -> str:
    """Return a model's sentence as plain text, without [n] markers, links and images; [2024] stays."""
    return " ".join(_MARK.sub("", _LINK.sub(r"\1\2", text)).split())


def unique_quotes(quotes: Iterable[LocatedQuote | None]) -> list[LocatedQuote]:
    """Return each quoted place once, in order of first use."""
    unique: dict[tuple[int, int, str], LocatedQuote] = {}
    for quote in filter(None, quotes):
        unique.setdefault(_place(quote), quote)
    return list(unique.values())


def _place(quote: LocatedQuote) -> tuple[int, int, str]:
    """Return a key that is equal for the same words of a page, even from two overlapping passages."""
    return (quote.passage.publication.version_id, quote.page, reduce_text(quote.quote).text)


@dataclass(frozen=True, slots=True)
class Reduced:
    """A normalised text; ``origins`` maps each of its characters to an offset of the original."""

    text: str
    origins: tuple[int, ...]


@lru_cache(maxsize=256)
def reduce_text(text: str) -> Reduced:
    """Normalise a text for comparison, with its offset map."""
    chars = list(_folded(text))
    kept = [
        (char, origin)
        for at, (char, origin) in enumerate(chars)
        if char != "-" or _separates_numbers(chars, at)
    ]
    return Reduced("".join(char for char, _ in kept), tuple(origin for _, origin in kept))


def plain_quote(quote: LocatedQuote) -> str:
    """Return a quote as printed, on one line and without bars between table cells."""
    return " ".join(cells_of(quote.quote) if _is_row(quote) else quote.quote.split())


def readable(quote: LocatedQuote) -> str:
    """Return a quote for display: table rows with their column names, a list with one item per line."""
    if _is_row(quote):
        return readable_rows(quote.passage.text, quote.start, quote.end)
    return "\n".join(" ".join(part.split()) for part in _ITEM_START.split(quote.quote))


def _is_row(quote: LocatedQuote) -> bool:
    text = quote.passage.text
    return text.startswith("|", text.rfind("\n", 0, quote.start) + 1)


def find_spans(quote: str, text: str) -> list[tuple[int, int]]:
    """Return each (start, end) where ``text`` reads as ``quote``, at word boundaries; none for an empty one.

    Punctuation at the ends of the quote is matched if the text has it, and ignored if not.
    """
    return _spans(quote, text) or _spans(_EDGES.sub("", quote), text)


def _spans(quote: str, text: str) -> list[tuple[int, int]]:
    wanted, haystack = reduce_text(quote).text, reduce_text(text)
    if not any(char.isalnum() for char in wanted):
        return []
    starts = [match.start() for match in re.finditer(f"(?={re.escape(wanted)})", haystack.text)]
    spans = [(haystack.origins[at], haystack.origins[at + len(wanted) - 1] + 1) for at in starts]
    return [span for span in spans if _is_whole(text, *span)]


def locate(quote: Quote, evidence: Sequence[Evidence]) -> LocatedQuote | None:
    """Return the best match of a quote in the evidence, or None.

    The passage that the answerer named is searched first, then all others in order: the words decide, the
    number is only a hint.
    """
    for item in sorted(evidence, key=lambda item: item.number != quote.passage):
        if span := _best_span(quote, item):
            return place(item, *span)
    return None


def place(item: Evidence, start: int, end: int) -> LocatedQuote:
    """Return a span as a located quote: its page is where most of it lies, its boxes those on that page."""
    boxes = bounding_boxes(item.words, start, end)
    page = main_page(item.words, start, end) if boxes else page_at(item, start)
    located = LocatedQuote(
        passage=item.passage,
        start=start,
        end=end,
        page=page,
        quote=item.passage.text[start:end],
        boxes=tuple(boxes.get(page, ())),
        section=item.section_at(end - 1),
    )
    spans = list(_page_spans(item, start, end)) if len(boxes) > 1 else []
    if len(spans) < 2:
        return located
    parts = (place(item, *span) for span in spans)
    return replace(located, parts=tuple(sorted(parts, key=lambda one: one.page != page)))


def _page_spans(item: Evidence, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the (start, end) of text[start:end] on each of its pages, without surrounding whitespace."""
    breaks = [offset for offset, _ in item.page_starts if start < offset < end]
    for first, last in pairwise([start, *breaks, end]):
        said = item.passage.text[first:last]
        if said.strip():
            yield first + len(said) - len(said.lstrip()), first + len(said.rstrip())


def page_at(item: Evidence, offset: int) -> int:
    """Return the page at an offset of a passage's text."""
    return [page for start, page in item.page_starts if start <= offset][-1]


def _best_span(quote: Quote, item: Evidence) -> tuple[int, int] | None:
    text, is_named = item.passage.text, item.number == quote.passage
    if is_named and (copied := _copied_span(quote, text)):
        return copied
    spans = find_spans(quote.text, text) or find_spans(unescaped(quote.text), text)
    if starting := [span for span in spans if is_named and span[0] == quote.start]:
        return starting[0]
    if len(spans) > 1 and len(reduce_text(quote.text).text) < MIN_UNAMBIGUOUS_CHARS:
        return None
    return spans[0] if spans else None


def _copied_span(quote: Quote, text: str) -> tuple[int, int] | None:
    """Return the span at the quote's offset if its characters match there, which saves a search."""
    if quote.start is None or not quote.text:
        return None
    span = quote.start, quote.start + len(quote.text)
    is_there = text[slice(*span)] == quote.text and _is_whole(text, *span)
    return span if is_there and _is_seen(quote.text[0]) and _is_seen(quote.text[-1]) else None


def _is_seen(char: str) -> bool:
    """True if a character counts at the end of a quote."""
    return any(part != "-" for part, _ in _folded(char))


def _folded(text: str) -> Iterator[tuple[str, int]]:
    """Yield comparable characters with their source offsets; whitespace and invisible ones are dropped."""
    before = ""
    for offset, char in enumerate(text):
        if before.isdecimal() and (char in _SIGNS or char.isnumeric() > char.isdecimal()):
            yield "^", offset  # a footnote mark, exponent or fraction is not a digit of the number
        for part in _comparable(char):
            yield part, offset
        before = char


@lru_cache(maxsize=4096)
def _comparable(char: str) -> str:
    """Return the comparable form of a character; cached, because texts use few different ones."""
    parts = unicodedata.normalize("NFKD", _SAME.get(char, char)).casefold()
    seen = (one for one in parts if unicodedata.category(one) not in _UNSEEN and one != "|")
    return "".join(_SAME.get(one, one) for one in seen)


def _separates_numbers(chars: Sequence[tuple[str, int]], at: int) -> bool:
    """True for a dash before a digit and not after a letter: '5-10' and '-5' are not '510' and '5'."""
    follows_letter = at > 0 and chars[at - 1][0].isalpha()
    return not follows_letter and at + 1 < len(chars) and chars[at + 1][0].isdigit()


def _is_whole(text: str, start: int, end: int) -> bool:
    return not _joins(text[start - 1 : start], text[start]) and not _joins(text[end - 1], text[end : end + 1])


def _joins(left: str, right: str) -> bool:
    """True if two adjacent characters belong to one word."""
    return left.isalnum() and right.isalnum() and not _ONE_WORD_A_CHAR.match(left + right)
