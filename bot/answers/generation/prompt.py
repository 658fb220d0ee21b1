"""Builds the prompt of a model and parses its reply, in either of two formats; no network here.

A streamed reply is parsed sentence by sentence, each as soon as its quotes are complete.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from enum import StrEnum
from itertools import chain
from typing import Any

from bot.answers.prompts import read_prompt
from bot.answers.understanding.question_terms import language_of
from bot.answers.verification.page_markers import with_page_markers
from bot.core.errors import ModelReplyUnusable
from bot.core.models import AnalyzedQuestion, Claim, Draft, Evidence, Quote, QuotedPart, QuotedSentence
from bot.core.ports import OnClaim
from storage.models import metadata_line

_QUOTE_LINE = re.compile(r"QUOTE\s*\[?(\d{1,3})\]?\s*:\s*(.+)", re.IGNORECASE)
_CLAIM_LINE = re.compile(r"CLAIM\s*:\s*(.+)", re.IGNORECASE)
_MISSING_LINE = re.compile(r"^\s*MISSING\s*:\s*(.+)$", re.IGNORECASE | re.MULTILINE)
_NOT_FOUND = re.compile(r"NOT[ _]FOUND", re.IGNORECASE)
_FENCED = re.compile(r"\s*```(?:json)?\s*(.*?)\s*```\s*", re.DOTALL)

_QUOTE = {
    "type": "object",
    "properties": {"passage": {"type": "integer"}, "quote": {"type": "string"}},
    "required": ["passage", "quote"],
    "additionalProperties": False,
}
_CLAIM = {
    "type": "object",
    "properties": {"text": {"type": "string"}, "quotes": {"type": "array", "items": _QUOTE}},
    "required": ["text", "quotes"],
    "additionalProperties": False,
}
# JSON schema of a reply, within the subset that OpenAI's strict mode supports.
REPLY_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "sufficient": {"type": "boolean"},
        "claims": {"type": "array", "items": _CLAIM},
        "missing": {"type": "string"},
    },
    "required": ["sufficient", "claims", "missing"],
    "additionalProperties": False,
}

# Errors raised by parsing JSON that is malformed or not what was requested.
PARSE_ERRORS = (ValueError, KeyError, TypeError, OverflowError, RecursionError)

# Start of a reply whose sentences can be streamed; any other reply is parsed at its end.
_OPENING = re.compile(r'\s*(?:```(?:json)?\s*)?\{\s*"sufficient"\s*:\s*true\s*,\s*"claims"\s*:\s*\[')
_BETWEEN = re.compile(r"[\s,]*")
_DECODER = json.JSONDecoder()


def format_passages(evidence: Sequence[Evidence], fence: str) -> str:
    """Return the passages as a model reads them.

    Args:
        evidence: passages to show, in this order.
        fence: random delimiter that no document can know (prompt injection); opens and closes every passage.
    """
    return "\n\n".join(_format_passage(item, fence) for item in evidence)


def _format_passage(item: Evidence, fence: str) -> str:
    passage = item.passage
    first, last = passage.first_page, passage.last_page
    pages = str(first) if first == last else f"{first}-{last}"
    source = passage.publication
    facts = [f"title: {_line(source.title)}", f"file: {_line(source.file_name)}", f"page: {pages}"]
    if says := metadata_line(source.metadata):
        facts.append(f"document: {_line(says)}")
    # A heading directly above a deeper one has no text under it.
    paths = [path for _, path in item.sections]
    paths = [one for one, after in zip(paths, [*paths[1:], ()], strict=True) if one != after[: len(one)]]
    if paths:
        facts.append(f"section: {'; '.join(' > '.join(map(_line, path)) for path in paths)}")
    head = "\n".join((f"<passage {item.number} {fence}>", *facts))
    return f"{head}\n{with_page_markers(passage.text, item.page_starts)}\n</passage {fence}>"


def format_sources(sentences: Sequence[QuotedSentence]) -> str:
    """Return sentences and their sources as a judge reads them: each source once, each place above its own.

    Each source is on one line that begins with its number, so no document can imitate a place or a sentence.
    """
    places: dict[str, list[QuotedPart]] = {}
    for source in dict.fromkeys(source for one in sentences for source in one.sources):
        places.setdefault(_place(source), []).append(source)
    numbers = {source: number for number, source in enumerate(chain.from_iterable(places.values()), start=1)}
    lines = []
    for place, sources in places.items():
        lines.append(f"From: {place}")
        lines += (f"{numbers[one]}: {_line(one.text)}" for one in sources)
    for number, one in enumerate(sentences, start=1):
        cited = ", ".join(str(numbers[source]) for source in one.sources)
        lines.append(f"Sentence {number}, by {cited}: {_line(one.text)}")
    return "\n".join(lines)


def _place(source: QuotedPart) -> str:
    return " > ".join(dict.fromkeys(map(_line, source.names)))


def _line(text: str) -> str:
    """Return text of a document on one line, so that it cannot imitate the header of a passage."""
    return " ".join(text.split())


class ReplyMisformatted(ModelReplyUnusable):
    """A complete reply, but not in the requested format."""


class ReplyFormat(StrEnum):
    """Format of a model's reply."""

    JSON = "json"
    # Lines of plain text, for endpoints without structured output.
    MARKED = "marked"


def instructions(reply_format: ReplyFormat, fence: str) -> str:
    """Return the system prompt."""
    return read_prompt("answer").format(fence=fence, format=read_prompt(f"format-{reply_format}").format())


def user_message(
    question: AnalyzedQuestion,
    evidence: Sequence[Evidence],
    fence: str,
    verified_sentences: Sequence[str] = (),
) -> str:
    """Return the user message: passages, question, verified sentences, and the language of the reply."""
    parts = [format_passages(evidence, fence), format_question(question)]
    if verified_sentences:
        head = "These sentences stand. Do not repeat them, write only what is missing:"
        parts.append("\n".join([head, *(f"- {line}" for line in verified_sentences)]))
    return "\n\n".join((*parts, _language(question)))


def format_question(question: AnalyzedQuestion) -> str:
    """Return the question as typed; a different one that was searched for is a hint, and may be wrong."""
    typed, searched = question.typed or question.text, question.text
    hint = "" if typed == searched else f"\nSearched for (a hint, it may be wrong): {_line(searched)}"
    return f"Question: {typed}{hint}"


def _language(question: AnalyzedQuestion) -> str:
    """Return the language instruction: only a fallback if the question does not show its language."""
    named = question.language.name.title()
    if language_of(question.typed or question.text) is question.language:
        return f"Answer in {named}."
    return f"Answer in the language of the question; where it shows none, in {named}."


def read_reply(reply: str, reply_format: ReplyFormat) -> Draft:
    """Parse a model's reply into a draft.

    Raises:
        ReplyMisformatted: it is not in the requested format.
    """
    if reply_format is ReplyFormat.JSON:
        try:
            value = json_of(reply)
            return Draft(
                tuple(map(read_claim, value["claims"])),
                is_sufficient=bool(value["sufficient"]),
                missing=str(value.get("missing") or ""),
            )
        except PARSE_ERRORS as error:
            raise ReplyMisformatted("the reply does not match the JSON schema") from error
    claims = read_marked_claims(reply)
    if not claims and not _NOT_FOUND.search(reply):
        raise ReplyMisformatted("the reply has neither sentences nor NOT FOUND")
    missing = _MISSING_LINE.search(reply)
    return Draft(tuple(claims), is_sufficient=bool(claims), missing=missing[1].strip() if missing else "")


def json_of(reply: str) -> Any:
    """Parse a reply that is JSON, or JSON in a Markdown code fence.

    Raises one of ``PARSE_ERRORS`` if it is neither.
    """
    fenced = _FENCED.fullmatch(reply)
    return json.loads(fenced[1] if fenced else reply)


def read_claim(item: dict[str, Any]) -> Claim:
    """Parse one sentence of a JSON reply.

    Raises one of ``PARSE_ERRORS`` if it is malformed.
    """
    quotes = tuple(Quote(int(quote["passage"]), str(quote["quote"])) for quote in item["quotes"])
    return Claim(str(item["text"]), quotes)


def read_marked_claims(reply: str) -> list[Claim]:
    """Parse the sentences of a reply in marked lines."""
    claims: list[Claim] = []
    for line in filter(None, map(str.strip, reply.splitlines())):
        if claim := _CLAIM_LINE.match(line):
            claims.append(Claim(claim[1], ()))
        elif (quote := _QUOTE_LINE.match(line)) and claims:
            last = claims.pop()
            claims.append(Claim(last.text, (*last.quotes, Quote(int(quote[1]), quote[2]))))
    return claims


class StreamedReply:
    """Buffers the pieces of a reply and passes on each complete sentence once."""

    def __init__(self, reply_format: ReplyFormat, on_claim: OnClaim) -> None:
        self._on_claim = on_claim
        self._read, self._end = _READERS[reply_format]
        self._text = ""
        self._emitted = 0

    def feed(self, piece: str) -> None:
        """Add the next piece."""
        self._text += piece
        if self._end not in piece:
            return
        claims = self._read(self._text)
        for claim in claims[self._emitted :]:
            self._on_claim(claim)
        self._emitted = max(self._emitted, len(claims))


def _complete_json(text: str) -> list[Claim]:
    claims: list[Claim] = []
    opening = _OPENING.match(text)
    at = opening.end() if opening else len(text)
    while at < len(text):
        try:
            item, at = _DECODER.raw_decode(text, _BETWEEN.match(text, at).end())  # type: ignore[union-attr]
            claims.append(read_claim(item))
        except PARSE_ERRORS:
            break
    return claims


def _complete_lines(text: str) -> list[Claim]:
    """Return all sentences but the last one, which may get another quote."""
    return read_marked_claims(text.rpartition("\n")[0])[:-1]


# Parser of a partial reply, and the character without which no sentence is complete.
_READERS = {ReplyFormat.JSON: (_complete_json, "}"), ReplyFormat.MARKED: (_complete_lines, "\n")}
