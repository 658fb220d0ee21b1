"""Citations of approved web pages: links that make a browser scroll to the quote and highlight it.

They use text fragments (https://wicg.github.io/scroll-to-text-fragment/): the first and last words of the
quote as they are on the page. A browser without support opens the page at the heading above the quote, if
that has an anchor.
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
# Words taken from each end of a longer quote.
EDGE_WORDS = 6
# Slack refuses messages with longer links; text fragments beyond it are dropped.
MAX_LINK_CHARS = 3000

_MARKER = re.compile(rf"^\s*(?:{LIST_MARKER})\s*")
# Boundaries between blocks of a page or cells of a row, which a text fragment cannot span.
_PIECE = re.compile(r"\n|\s\|\s|^\s*\||\|\s*$", re.MULTILINE)


def web_citation(number: int, quote: LocatedQuote, text: str) -> Citation:
    """Return a citation of a web page, or of a page of a PDF on the web; ``text``: the quote as shown."""
    publication = quote.passage.publication
    origin = publication.web or WebOrigin("", None)
    anchors = (publication.anchors or ())[quote.passage.ordinal : quote.passage.ordinal + 1]
    place = percent_encoded(next(iter(anchors), ""), safe="!$'()*+,;=@/?")
    fetched = origin.fetched_at.isoformat(timespec="seconds") if origin.fetched_at else ""
    return Citation(
        number=number,
        title=publication.title,
        file=publication.file,
        page=quote.page if publication.anchors is None else 0,
        quote=text,
        boxes=(),
        url=f"{publication.file}#page={quote.page}"
        if publication.anchors is None
        else _within(f"{publication.file}#{place}", [text_directive(quote.quote)]),
        host=origin.host,
        fetched=fetched,
    )


def text_directive(quote: str) -> str:
    """Return the text fragment that highlights a quote; '' if there is nothing to highlight."""
    pieces = [words for part in _PIECE.split(quote) if (words := _MARKER.sub("", part, count=1).split())]
    if not pieces:
        return ""
    first, last = pieces[0], pieces[-1]
    if len(pieces) == 1 and len(first) <= 2 * EDGE_WORDS:
        return f"{_DIRECTIVE}text={_encoded(first)}"
    return f"{_DIRECTIVE}text={_encoded(first[:EDGE_WORDS])},{_encoded(last[-EDGE_WORDS:])}"


def marking_all(urls: Sequence[str]) -> str:
    """Merge links to one page into a link that highlights all their quotes."""
    page, _, _ = urls[0].partition(_DIRECTIVE)
    marks = dict.fromkeys(mark for url in urls if (mark := url.partition(_DIRECTIVE)[2]))
    return _within(page, [f"{'&' if number else _DIRECTIVE}{mark}" for number, mark in enumerate(marks)])


def _within(page: str, marks: Sequence[str]) -> str:
    """Append as many text fragments as fit, in order; drop the anchor if even it does not fit."""
    if len(page) > MAX_LINK_CHARS:
        return page.partition("#")[0]
    ends = accumulate(map(len, marks), initial=len(page))
    fitting = sum(end <= MAX_LINK_CHARS for end in ends) - 1
    return page + "".join(marks[:fitting])


def _encoded(words: list[str]) -> str:
    """Percent-encode words, hyphens too: they would begin a directive's context, commas end its text."""
    return percent_encoded(" ".join(words), safe="").replace("-", "%2D")
