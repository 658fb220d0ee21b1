"""Citations of approved web pages: links that let a browser scroll to the quote and mark it.

The mark is a text fragment (https://wicg.github.io/scroll-to-text-fragment/): the first and the last words of
the quote as they stand on the page. A browser that does not know them opens the page, at the heading above
the quote where that has an anchor.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import accumulate
from urllib.parse import quote as percent_encoded

from bot.core.models import Citation, LocatedQuote
from storage.models import WebOrigin
from storage.text.sentences import LIST_MARKER

_DIRECTIVE = ":~:"
# Words of each end of a longer quote.
EDGE_WORDS = 6
# Slack refuses a message with a longer link; what goes beyond marks nothing.
MAX_LINK_CHARS = 3000

_MARKER = re.compile(rf"^\s*(?:{LIST_MARKER})\s*")
# Between two blocks of a page, or two cells of a row: no single run of text holds both.
_PIECE = re.compile(r"\n|\s\|\s|^\s*\||\|\s*$", re.MULTILINE)


def web_citation(number: int, quote: LocatedQuote, text: str) -> Citation:
    """A citation of a web page, or of a page of a PDF on the web; ``text`` is the quote as it is shown."""
    publication = quote.passage.publication
    origin = publication.web or WebOrigin("", None)
    anchors = origin.anchors[quote.passage.ordinal : quote.passage.ordinal + 1]
    place = percent_encoded(next(iter(anchors), ""), safe="!$'()*+,;=@/?")
    fetched = origin.fetched_at.isoformat(timespec="seconds") if origin.fetched_at else ""
    return Citation(
        number=number,
        title=publication.title,
        file=publication.file,
        page=quote.page if origin.is_pdf else 0,
        quote=text,
        boxes=(),
        url=f"{publication.file}#page={quote.page}"
        if origin.is_pdf
        else _within(f"{publication.file}#{place}", [text_directive(quote.quote)]),
        host=origin.host,
        fetched=fetched,
    )


def text_directive(quote: str) -> str:
    """Return the part of a link that marks a quote; '' where there is nothing to mark."""
    pieces = [words for part in _PIECE.split(quote) if (words := _MARKER.sub("", part, count=1).split())]
    if not pieces:
        return ""
    first, last = pieces[0], pieces[-1]
    if len(pieces) == 1 and len(first) <= 2 * EDGE_WORDS:
        return f"{_DIRECTIVE}text={_encoded(first)}"
    return f"{_DIRECTIVE}text={_encoded(first[:EDGE_WORDS])},{_encoded(last[-EDGE_WORDS:])}"


def marking_all(urls: Sequence[str]) -> str:
    """One link to the page of these, which are of one page, that marks what each of them marks."""
    page, _, _ = urls[0].partition(_DIRECTIVE)
    marks = dict.fromkeys(mark for url in urls if (mark := url.partition(_DIRECTIVE)[2]))
    return _within(page, [f"{'&' if number else _DIRECTIVE}{mark}" for number, mark in enumerate(marks)])


def _within(page: str, marks: Sequence[str]) -> str:
    """A link with as many of its marks, the first ones, as it may be long; without the anchor if it must."""
    if len(page) > MAX_LINK_CHARS:
        return page.partition("#")[0]
    ends = accumulate(map(len, marks), initial=len(page))
    fitting = sum(end <= MAX_LINK_CHARS for end in ends) - 1
    return page + "".join(marks[:fitting])


def _encoded(words: list[str]) -> str:
    """Return a hyphen would begin a directive's context, a comma end its text."""
    return percent_encoded(" ".join(words), safe="").replace("-", "%2D")
