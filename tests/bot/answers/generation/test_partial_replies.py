"""Incremental parsing of replies: each sentence is reported as soon as it is complete."""

from __future__ import annotations

import json

import pytest
from fakes.model_server import pieces
from harness.tables import for_each

from bot.answers.generation.prompt import ReplyFormat, StreamedReply, read_reply
from bot.core.models import Claim, Quote

FIRST = Claim('He said "at {2}" \\ [daily].', (Quote(1, "runs, daily"), Quote(2, "}]")))
SECOND = Claim("Überall.", (Quote(3, "everywhere\n"),))
CLAIMS = [
    {"text": claim.text, "quotes": [{"passage": one.passage, "quote": one.text} for one in claim.quotes]}
    for claim in (FIRST, SECOND)
]
REPLY = {"sufficient": True, "claims": CLAIMS}
JSON = json.dumps(REPLY)
MARKED = "CLAIM: At two.\nQUOTE 1: runs daily\nQUOTE [2]: at two\n\nclaim: Everywhere.\nQUOTE 3: all over\n"


def told(text: str, reply_format: ReplyFormat = ReplyFormat.JSON, size: int = 1) -> list[tuple[Claim, int]]:
    """Return each sentence with the number of characters received when it was reported."""
    heard, found = 0, []
    reply = StreamedReply(reply_format, lambda claim: found.append((claim, heard)))
    for piece in pieces(text, size):
        heard += len(piece)
        reply.feed(piece)
    return found


@pytest.mark.parametrize("text", [JSON, f"```json\n{JSON}\n```", json.dumps(REPLY, indent=1)])
def test_a_sentence_in_json_is_reported_at_its_last_brace(text: str) -> None:
    """Braces and quotes inside strings end nothing; the second sentence is reported later than the first."""
    assert [claim for claim, _ in told(text)] == list(read_reply(text, ReplyFormat.JSON).claims)
    (first, at), (_, then) = told(JSON)
    assert first == FIRST
    assert JSON[:at].endswith('"}]"}]}')
    assert at < then < len(JSON)


@for_each("size", [1, 2, 7, 50, 1000])
def test_it_does_not_matter_how_a_reply_is_cut(size: int) -> None:
    """Each sentence is reported once, in order, for any size of the pieces."""
    assert [claim for claim, _ in told(JSON, size=size)] == [FIRST, SECOND]


@for_each(
    "text",
    [
        JSON.replace("true", "false"),
        '{"claims": [{"text": "a", "quotes": []}], "sufficient": false}',
        '{"sufficient": true, "claims": [{"text": "a", "quotes": [{"passage": 1}]}]}',
        '{"sufficient": true, "claims": [7, {"text": "a", "quotes": []}]}',
        '{"sufficient": true, "claims": {"text": "a", "quotes": []}}',
        '[{"text": "a", "quotes": []}]',
        "I think at {two}.",
        "{" * 5000 + "}",
    ],
)
def test_other_replies_report_no_sentence(text: str) -> None:
    """Not-found replies and other formats are only read when complete."""
    assert told(text) == []


def test_a_marked_sentence_is_reported_when_the_next_begins() -> None:
    """Another quote may follow before that; the last sentence is reported at the end of the reply."""
    ((claim, at),) = told(MARKED, ReplyFormat.MARKED)
    assert claim == Claim("At two.", (Quote(1, "runs daily"), Quote(2, "at two")))
    assert MARKED[:at].endswith("Everywhere.\n")
