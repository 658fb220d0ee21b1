"""What a model is asked, and how its reply is read: two formats, one meaning, no network here."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from enum import StrEnum
from importlib.resources import files
from typing import Any

from bot.core.errors import ModelReplyUnusable
from bot.core.evidence import format_passages
from bot.core.languages import language_of
from bot.core.models import AnalyzedQuestion, Claim, Draft, Evidence, Quote

_QUOTE_LINE = re.compile(r"QUOTE\s*\[?(\d{1,3})\]?\s*:\s*(.+)", re.IGNORECASE)
_CLAIM_LINE = re.compile(r"CLAIM\s*:\s*(.+)", re.IGNORECASE)
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
REPLY_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"found": {"type": "boolean"}, "claims": {"type": "array", "items": _CLAIM}},
    "required": ["found", "claims"],
    "additionalProperties": False,
}
"""JSON schema of a reply, in the subset that OpenAI's strict mode takes."""


MISSHAPEN = (ValueError, KeyError, TypeError, OverflowError, RecursionError)
"""What reading JSON raises that is not what was asked for."""


class ReplyMisformatted(ModelReplyUnusable):
    """A whole reply, but not in the format that was asked for."""


class ReplyFormat(StrEnum):
    """How a model writes its reply."""

    JSON = "json"
    MARKED = "marked"
    """Lines of plain text, for endpoints without structured output."""


def instructions(reply_format: ReplyFormat, fence: str) -> str:
    """The system prompt."""
    return _prompt("answer").format(fence=fence, format=_prompt(f"format-{reply_format}").format())


def request(
    question: AnalyzedQuestion,
    evidence: Sequence[Evidence],
    fence: str,
    faults: Sequence[str] = (),
    stands: Sequence[str] = (),
) -> str:
    """The user's turn: passages, question, what stands already, what was wrong, and this reply's language."""
    parts = [format_passages(evidence, fence), f"Question: {question.text}"]
    if stands:
        parts.append(_list("These sentences stand. Do not repeat them, write only what is missing:", stands))
    if faults:
        parts.append(_list("Your last reply was refused. Repair this:", faults))
    return "\n\n".join((*parts, _language(question)))


def _language(question: AnalyzedQuestion) -> str:
    """A language that the question itself does not show is no order: it may be in one that we do not know."""
    named = question.language.name.title()
    if language_of(question.text) is question.language:
        return f"Answer in {named}."
    return f"Answer in the language of the question; where it shows none, in {named}."


def read_reply(reply: str, reply_format: ReplyFormat) -> Draft:
    """A model's reply as a draft.

    Raises:
        ReplyMisformatted: it is not what the prompt asked for.
    """
    return _read_json(reply) if reply_format is ReplyFormat.JSON else _read_marked(reply)


def _list(head: str, lines: Sequence[str]) -> str:
    return "\n".join([head, *(f"- {line}" for line in lines)])


def _prompt(name: str) -> str:
    return files("bot.core").joinpath("prompts", f"{name}.md").read_text(encoding="utf-8")


def _read_json(reply: str) -> Draft:
    try:
        value = json_of(reply)
        claims = tuple(read_claim(item) for item in value["claims"]) if value["found"] else ()
    except MISSHAPEN as error:
        raise ReplyMisformatted("the reply is not the JSON that was asked for") from error
    return Draft(claims)


def json_of(reply: str) -> Any:
    """The value of a reply that is JSON, or JSON in a fence of Markdown.

    Raises one of ``MISSHAPEN`` when it is neither.
    """
    fenced = _FENCED.fullmatch(reply)
    return json.loads(fenced[1] if fenced else reply)


def read_claim(item: dict[str, Any]) -> Claim:
    """One sentence of a reply in JSON.

    Raises one of ``MISSHAPEN`` when it is none.
    """
    quotes = tuple(Quote(int(quote["passage"]), str(quote["quote"])) for quote in item["quotes"])
    return Claim(str(item["text"]), quotes)


def _read_marked(reply: str) -> Draft:
    claims = read_marked_claims(reply)
    if not claims and not _NOT_FOUND.search(reply):
        raise ReplyMisformatted("the reply has neither sentences nor NOT FOUND")
    return Draft(tuple(claims))


def read_marked_claims(reply: str) -> list[Claim]:
    """The sentences of a reply in marked lines."""
    claims: list[Claim] = []
    for line in filter(None, map(str.strip, reply.splitlines())):
        if claim := _CLAIM_LINE.match(line):
            claims.append(Claim(claim[1], ()))
        elif (quote := _QUOTE_LINE.match(line)) and claims:
            last = claims.pop()
            claims.append(Claim(last.text, (*last.quotes, Quote(int(quote[1]), quote[2]))))
    return claims
