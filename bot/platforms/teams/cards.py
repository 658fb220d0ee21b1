"""Renders answers for Teams: a Markdown text with native citations and links, and a card for pictures.

Only the end of a stream has both: Teams splits another activity with text and card, and refuses to update it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bot.answers.citations.source_buttons import (
    LABEL_CHARS,
    figure_pages,
    numbered,
    opened_pages,
    picture_words,
    split_sources,
)
from bot.chat.notifications.receipts import announcement_paragraphs
from bot.core.models import Answer, AnswerFigure, Citation, CitedPage, Language, SourceChange
from bot.core.plaintext import (
    BOLD_BEGINS,
    BOLD_ENDS,
    CODE_BEGINS,
    CODE_ENDS,
    MORE_TO_COME,
    break_links,
    embolden,
    find_links,
    shorten,
    strip_hidden_chars,
    without_markers,
)
from bot.core.ports import Announcement
from bot.core.wording import ReplyWords, reply_words

Json = dict[str, Any]

# Characters of a message; Teams accepts 100 KB of UTF-16, and escaping may turn one character into five.
MAX_MESSAGE_CHARS = 8_000
# Characters of an answer shown in a card; Teams accepts 28 KB.
MAX_CARD_CHARS = 4_000
MAX_CITATIONS = 10
MAX_NAME_CHARS = 80
MAX_ABSTRACT_CHARS = 160
MAX_NOTE_CHARS = 300
# Paragraph that renders as an empty line; Teams puts no space between paragraphs.
EMPTY_LINE = "&nbsp;"
# Between the links to the sources.
SEPARATOR = " • "

_IN_LINKS = str.maketrans({"(": "%28", ")": "%29", " ": "%20", "<": "%3C", ">": "%3E", "\\": "%5C"})
_MARK = re.compile(r"\[(\d{1,3})\]")
_CODE = re.compile(r"(?:[^`<>&\n]|&(?!#?\w+;))+")  # nothing that ends inline code or is HTML in it
_MARKED_CODE = re.compile(f"{CODE_BEGINS}(.*?){CODE_ENDS}", re.DOTALL)
_BOLD = str.maketrans({BOLD_BEGINS: "**", BOLD_ENDS: "**"})
# Markdown syntax: characters special anywhere; headings, rules and lists at the start of a line.
_SYNTAX = re.compile(r"([\\`*_\[\]~|])|^([ \t]*)([#+=-])|^([ \t]*\d{1,9})([.)])(?=\s)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class TeamsMessage:
    """A rendered answer: text, citations and card."""

    # Escaped Markdown.
    text: str
    # schema.org claims for the [n] marks of the text.
    citations: tuple[Json, ...]
    # Adaptive Card with the pictures of figures; None without any.
    card: Json | None
    # Fallback text of the card: ``Page N of file.pdf`` per figure.
    card_summary: str
    # Gets Teams' "AI generated" label: a model worded some of it.
    is_generated: bool = False


def render(answer: Answer, changes: Sequence[SourceChange] = ()) -> TeamsMessage:
    """Render an answer: its text with citations, a line of links to its sources, and a card of its pictures.

    ``changes`` come first.
    """
    said, pages = reply_words(answer.language), opened_pages(answer)
    figures = figure_pages(answer)
    words = _cut(strip_hidden_chars(answer.text).strip() or said.engine_failed, said)
    lines = [shorten(strip_hidden_chars(line), MAX_NOTE_CHARS) for line in said.query_notes(answer)]
    claims = _claims(words, answer.citations, pages)
    links = _links(answer.citations, claims)
    understood = "".join([*map(_change, changes), *(f"{_literal(line)}\n\n" for line in lines)])
    has_pictures = any(figure.image for figure in answer.figures)
    return TeamsMessage(
        text=understood + escape(embolden(words, answer.headings), links) + _sources([*pages, *figures]),
        citations=claims,
        card=_pictures_card(answer, figures) if has_pictures else None,
        card_summary=_summary(figures),
        is_generated=answer.is_generated,
    )


def _sources(pages: Sequence[CitedPage]) -> str:
    """Return one line of links."""
    links = [_link(numbered(page, page.label), page.url) for page in pages]
    return f"\n\n{SEPARATOR.join(links)}" if links else ""


def render_card(answer: Answer, sources_shown: int) -> Json:
    """Render an answer as a single Adaptive Card: text, figures and sources."""
    said, pages, figures = reply_words(answer.language), opened_pages(answer), figure_pages(answer)
    words = _cut(strip_hidden_chars(answer.text).strip() or said.engine_failed, said, MAX_CARD_CHARS)
    above = [shorten(strip_hidden_chars(line), MAX_NOTE_CHARS) for line in said.query_notes(answer)]
    note = [said.generated] if answer.is_generated else []
    headings = set(map(strip_hidden_chars, answer.headings))
    lines = [line for line in [*above, *words.splitlines(), *note] if line.strip()]
    body = [block for line in lines for block in _lines(line, is_bold=line in headings)]
    card = _card(answer, pages, figures, sources_shown)
    return card | {"body": [*body, *card["body"]]}


def _change(change: SourceChange) -> str:
    """Return the line for an updated source, with a link to its current page: text has no buttons."""
    link = f" {_link(change.page.label, change.page.url)}" if change.page else ""
    return f"⚠️ {_literal(strip_hidden_chars(change.line))}{link}\n\n"


def _link(label: str, url: str) -> str:
    return f"[{_literal(strip_hidden_chars(label))}]({url.translate(_IN_LINKS)})"


def render_beginning(text: str) -> str:
    """Render the first sentences of an answer as plain text, with a note that more follows."""
    return (
        f"{shorten(strip_hidden_chars(without_markers(text)).strip(), MAX_MESSAGE_CHARS)}\n\n{MORE_TO_COME}"
    )


def render_announcement(announcement: Announcement) -> tuple[Json, str]:
    """Render an announcement as (Adaptive Card with one row of buttons, its text)."""
    paragraphs = [strip_hidden_chars(paragraph) for paragraph in announcement_paragraphs(announcement)]
    body = [line for paragraph in paragraphs for line in _lines(paragraph)]
    actions = [*map(_opening, announcement.sources)]
    card = _adaptive(body + ([{"type": "ActionSet", "actions": actions}] if actions else []))
    return card, _cut("\n\n".join(paragraphs), reply_words(Language.ENGLISH))


def with_row(card: Json | None, row: Json) -> Json:
    """Return a copy of the card, or a new card, with the row appended."""
    whole = card or _adaptive([])
    return whole | {"body": [*whole["body"], row]}


def with_action(card: Json, action: Json) -> Json:
    """Return a copy of the card with an action at the beginning of its last row, or in a new row."""
    *body, last = card["body"]
    actions = last["actions"] if last["type"] == "ActionSet" else []
    kept = body if actions else card["body"]
    return card | {"body": [*kept, {"type": "ActionSet", "actions": [action, *actions]}]}


def _lines(paragraph: str, *, is_bold: bool = False) -> list[Json]:
    """Return a RichTextBlock per line."""
    # A TextRun has no markup, so its text needs no escaping.
    weight = {"weight": "Bolder"} if is_bold else {}
    return [
        {
            "type": "RichTextBlock",
            "spacing": "None" if place else "Medium",
            "inlines": [{"type": "TextRun", "text": line, **weight}],
        }
        for place, line in enumerate(paragraph.splitlines())
    ]


def escape(text: str, links: Mapping[int, str] | None = None) -> str:
    """Escape a text as Markdown, except for its [n] marks, which link to ``links[n]`` if given."""
    parts = _MARK.split(text)
    shown = [_literal(part) if place % 2 == 0 else f"[{part}]" for place, part in enumerate(parts)]
    # A word joiner after [n] keeps a following "(", ":" or "[" from forming a Markdown link.
    marked = re.sub(r"(?<=\d\])(?=[(:\[])", "\u2060", "".join(shown))
    for number, url in (links or {}).items():
        marked = marked.replace(f"[{number}]", f"[\\[{number}\\]]({url})")
    lines = marked.translate(_BOLD).split("\n")
    return "\n\n".join(line if line.strip() else EMPTY_LINE for line in lines)


def _links(citations: Sequence[Citation], claims: Sequence[Json]) -> dict[int, str]:
    """Return number -> URL for marks beyond the native citations, of which Teams accepts ten."""
    native = {claim["position"] for claim in claims}
    return {one.number: one.url.translate(_IN_LINKS) for one in citations if one.number not in native}


def _literal(text: str) -> str:
    """Escape a text as Markdown; code, and what Teams would autolink, becomes inline code."""
    parts = _MARKED_CODE.split(text)
    return "".join(_as_code(one) if place % 2 else _without_code(one) for place, one in enumerate(parts))


def _without_code(text: str) -> str:
    shown, end = [], 0
    for link in find_links(text):
        shown += [_escape(text[end : link.start()]), _as_code(link[0])]
        end = link.end()
    return "".join([*shown, _escape(text[end:])])


def _as_code(link: str) -> str:
    return f"`{link}`" if _CODE.fullmatch(link) else _escape(break_links(link))


def _escape(text: str) -> str:
    bare = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    # A word joiner keeps a last backslash from escaping the code that follows.
    return _SYNTAX.sub(_escaped, bare) + "\u2060" * bare.endswith("\\")


def _escaped(match: re.Match[str]) -> str:
    return f"{match[2] or match[4] or ''}\\{match[1] or match[3] or match[5]}"


def _cut(text: str, said: ReplyWords, most: int = MAX_MESSAGE_CHARS) -> str:
    if len(text) <= most:
        return text
    return f"{text[:most].rsplit(' ', 1)[0]}… {said.cut_short}"


def _claims(words: str, citations: Sequence[Citation], pages: Sequence[CitedPage]) -> tuple[Json, ...]:
    """Return claims for the first ten citations whose marks occur in the text."""
    labels = {number: page.label for page in pages for number in page.numbers}
    marks = {int(mark) for mark in _MARK.findall(words)}
    shown = {citation.number: citation for citation in reversed(citations) if citation.number in marks}
    return tuple(_claim(shown[number], labels[number]) for number in sorted(shown)[:MAX_CITATIONS])


def _claim(citation: Citation, label: str) -> Json:
    appearance = {
        "@type": "DigitalDocument",
        "name": shorten(strip_hidden_chars(label), MAX_NAME_CHARS),
        "abstract": shorten(strip_hidden_chars(citation.quote), MAX_ABSTRACT_CHARS)
        or shorten(strip_hidden_chars(label), MAX_ABSTRACT_CHARS),
        "url": citation.url,
        "image": {"@type": "ImageObject", "name": "PDF"},
    }
    return {"@type": "Claim", "position": citation.number, "appearance": appearance}


def _card(answer: Answer, pages: Sequence[CitedPage], figures: Sequence[CitedPage], shown: int) -> Json:
    """Return the card: pictures first, right below the text, then a button per page and figure."""
    said = reply_words(answer.language)
    first, further = split_sources(pages, shown)
    body = [block for figure in answer.figures for block in _picture(figure, answer)]
    body += [_row(_opening(page)) for page in first]
    if further:
        rows = _adaptive([_row(_opening(page)) for page in further])
        more = {"type": "Action.ShowCard", "title": said.more_sources(len(further)), "card": rows}
        body.append(_row(more))
    body += [_row(_opening(figure)) for figure in figures]
    return _adaptive(body) | {"msteams": {"width": "Full"}, "fallbackText": _summary([*pages, *figures])}


def _pictures_card(answer: Answer, figures: Sequence[CitedPage]) -> Json:
    body = [block for figure in answer.figures if figure.image for block in _picture(figure, answer)]
    return _adaptive(body) | {"msteams": {"width": "Full"}, "fallbackText": _summary(figures)}


def _picture(figure: AnswerFigure, answer: Answer) -> list[Json]:
    """Return an image, which Teams fetches by a link without sign-in, and its caption."""
    title, alternative = picture_words(answer, figure)
    expanding = {"msteams": {"allowExpand": True}}
    return [{"type": "Image", "url": figure.image, "altText": alternative, **expanding}, *_lines(title)]


def _summary(pages: Sequence[CitedPage]) -> str:
    return "\n".join(strip_hidden_chars(numbered(page, page.fallback)) for page in pages)


def _row(action: Json) -> Json:
    # One button per row: the labels are too long to sit next to each other.
    return {"type": "ActionSet", "actions": [action]}


def _opening(page: CitedPage) -> Json:
    return {
        "type": "Action.OpenUrl",
        "title": shorten(strip_hidden_chars(numbered(page, page.label)), LABEL_CHARS),
        "url": page.url,
    }


def _adaptive(body: Sequence[Json]) -> Json:
    return {"type": "AdaptiveCard", "version": "1.5", "body": list(body)}
