"""Serialization of answers in the outbox."""

import json
from dataclasses import replace
from uuid import uuid4

import pytest

from bot.chat.conversation.answer_json import answer_from_json, answer_to_json
from bot.core.models import (
    Answer,
    AnsweredFrom,
    AnswerFigure,
    AnswerState,
    AppliedFilter,
    Citation,
    Correction,
    Milliseconds,
    NearestPage,
    Passage,
    UnreadFile,
)
from storage.models import Box, LivePublication, Rung, TenantName

BOX = Box(0.1, 0.2, 1 / 3, 0.4)
FULL = Answer(
    state=AnswerState.PARTIAL,
    text="Backups run daily at 2:00 AM — “full” on Sundays [1].",
    citations=(
        Citation(1, "Backup", "it/SOP.pdf", 2, "Backups run daily", (BOX, BOX), "http://127.0.0.1/v/a"),
        Citation(
            2,
            "Backup",
            "it/SOP.pdf",
            1,
            "full on Sundays",
            (),
            "http://127.0.0.1/v/b",
            name="Backup v2",
            section=("2 Runs", "2.1 Times"),
            details=("SOP-IT-04",),
        ),
    ),
    figures=(
        AnswerFigure("it/SOP.pdf", 2, "Rotation", BOX, "http://127.0.0.1/v/c", "http://127.0.0.1/f/c", 2),
    ),
    nearest=NearestPage("it/SOP.pdf", 1, "http://127.0.0.1/v/d", "Backup v2"),
    unread=(UnreadFile("locked.pdf", "needs a password"),),
    milliseconds=Milliseconds(3, 40, 43, 25),
    standalone="When do full backups run?",
    corrections=(Correction("bakcups", "backups"),),
    unknown=("overtime",),
    filter=AppliedFilter(("SOPs, from 2023-01-01 on",), 2, by_arrival=1),
    is_generated=True,
    people=("slack:T0ACME001:U1",),
    headings=("Backup v2, p. 2 · 2.1 Times",),
    answered_from=AnsweredFrom((TenantName("sl_T0ACME001_C0ITOPS01"),), "#it-ops"),
)


@pytest.mark.parametrize("answer", [FULL, Answer(AnswerState.NOT_FOUND, "Not there.")])
def test_an_answer_survives_a_json_round_trip(answer: Answer) -> None:
    """A round trip through JSON preserves values and types."""
    back = answer_from_json(json.loads(json.dumps(answer_to_json(answer))))
    assert back == answer
    assert isinstance(back.state, AnswerState)
    assert all(isinstance(box, Box) for citation in back.citations for box in citation.boxes)


def test_passages_stay_out_of_the_outbox() -> None:
    """Candidate passages are not stored; all other fields are."""
    publication = LivePublication(*(uuid4(), 1, uuid4(), 1, uuid4(), "ab", Rung.QUICK, "a.pdf", "A", 1, 1))
    passage = Passage(publication, 0, "a long secret text", 1, 1, (), 0.5, 2.0, None)
    stored = answer_to_json(replace(FULL, passages=(passage,)))
    assert "secret" not in json.dumps(stored)
    assert answer_from_json(stored) == FULL


def test_the_stored_form_is_plain_json() -> None:
    """No enum, tuple subclass or dataclass is needed to read it."""
    stored = answer_to_json(FULL)
    milliseconds = json.loads(json.dumps(stored))["milliseconds"]
    assert milliseconds == {"retrieve": 3, "answer": 40, "total": 43, "first": 25}
    assert type(stored["state"]) is str
