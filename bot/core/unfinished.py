"""Reads the sentences of a reply that is still being written, each once its quotes are complete."""

from __future__ import annotations

import json
import re

from bot.core.models import Claim
from bot.core.prompting import MISSHAPEN, ReplyFormat, read_claim, read_marked_claims
from bot.core.writing_ports import OnClaim

_OPENING = re.compile(r'\s*(?:```(?:json)?\s*)?\{\s*"found"\s*:\s*true\s*,\s*"claims"\s*:\s*\[')
"""What a model says before its first sentence; one that says it later is read at its end."""
_BETWEEN = re.compile(r"[\s,]*")
_DECODER = json.JSONDecoder()


class StreamedReply:
    """Collects a reply's pieces and tells each of its sentences, once."""

    def __init__(self, reply_format: ReplyFormat, on_claim: OnClaim) -> None:
        self._on_claim = on_claim
        self._read, self._end = _READERS[reply_format]
        self._text = ""
        self._emitted = 0

    def feed(self, piece: str) -> None:
        """Take the next piece."""
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
        except MISSHAPEN:
            break
    return claims


def _complete_lines(text: str) -> list[Claim]:
    """All but the last one, to which another quote may belong."""
    return read_marked_claims(text.rpartition("\n")[0])[:-1]


_READERS = {ReplyFormat.JSON: (_complete_json, "}"), ReplyFormat.MARKED: (_complete_lines, "\n")}
"""How to read what there is, and what a sentence cannot be complete without."""
