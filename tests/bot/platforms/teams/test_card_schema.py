"""Cards and the app manifest validated by Microsoft's parser and schema; the Playground applies neither."""

from __future__ import annotations

import copy
import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
from engines.support.json_schemas import validator
from engines.support.teams_schemas import faults_of, manifest_schema
from fakes.core import WORDS

from bot.chat.conversation.feedback import REASONS, FeedbackReply
from bot.core.models import Answer, AnswerState, Citation, CitedPage, Language
from bot.core.ports import Announcement, AnnouncementEntry
from bot.platforms.teams.activities import PersonalChat, TeamsPlace
from bot.platforms.teams.address import TeamsAddress
from bot.platforms.teams.cards import render_announcement, render_card, with_row
from bot.platforms.teams.compose_extension import question_card, waiting_card
from bot.platforms.teams.feedback_actions import (
    PERSON,
    FeedbackAction,
    answer_row,
    handoff_card,
    reply_card,
    resolved_card,
)
from bot.platforms.teams.question_actions import question_rows
from storage.models import ChannelKey, Platform

pytestmark = pytest.mark.engine("playground")

SCRIPT = Path(__file__).parents[4] / "deploy" / "teams" / "make_package.py"
APP_ID = "12345678-1234-1234-1234-123456789abc"


def welcome() -> dict[str, Any]:
    """Return a welcome with a document button and suggested questions."""
    source = CitedPage((), "Handbook · p. 1", "Page 1 of a.pdf", "https://footnote.example/v/1")
    entry = AnnouncementEntry("a.pdf: 3 pages", ("Page 2 could not be read.",))
    card, _ = render_announcement(Announcement("b1", "1 PDF is new.", (entry,), ("and 2 more",), (source,)))
    card["body"] += question_rows(["When do backups run?", "Who restores them?"], "ms_x")
    return card


def offered(*pages: str) -> dict[str, Any]:
    """Return the reply to a thumbs-down."""
    reasons = [(one, one.value) for one in REASONS]
    return reply_card(FeedbackReply("What was wrong?\nSay it.", reasons, pages, "The right page is"), "17")


def cards() -> dict[str, dict[str, Any]]:
    """Return one card of each kind that is not an answer."""
    answer = Answer(AnswerState.NOT_FOUND, "Nothing.")
    citation = Citation(1, "Backups", "sop.pdf", 2, "daily", (), "https://footnote.example/v/1")
    whole = Answer(AnswerState.GROUNDED, "Daily [1].\n\nAt 2.", (citation,), is_generated=True)
    return {
        "whole answer": render_card(whole, 5),
        "question asked in the message box": question_card(WORDS, 2000),
        "answer that is still searched for": waiting_card(WORDS, "f:17"),
        "welcome": welcome(),
        "reasons": offered("p. 1 · a.pdf"),
        "reasons without pages": offered(),
        "thanks": reply_card(FeedbackReply("Thank you."), "17"),
        "why": with_row(None, answer_row(answer, "17", is_personal=True, offers_person=True) or {}),
        "person": handed(answer),
        "resolved": resolved_card(Language.ENGLISH),
    }


def handed(answer: Answer) -> dict[str, Any]:
    """Return the card of a question for a person, who is mentioned."""
    address = TeamsAddress("https://smba.example/", "19:c")
    place = TeamsPlace(ChannelKey(Platform("teams"), "t", "19:c"), False, address)
    own = PersonalChat("28:bot", "29:ann", "t")
    action = FeedbackAction(place, own, "ann", "17", PERSON, "", is_native=False)
    member = {"id": "29:bob", "name": "Bob"}
    return handoff_card(render_card(answer, 5), action, member, Language.ENGLISH)


def test_welcome_and_feedback_are_valid_adaptive_cards() -> None:
    """No unknown element, missing property or invalid value."""
    given = cards()
    assert dict(zip(given, faults_of(list(given.values())), strict=True)) == {name: [] for name in given}


def broken() -> dict[str, dict[str, Any]]:
    """Return valid cards with one fault each."""
    made = {name: copy.deepcopy(welcome()) for name in ("no URL", "element", "action", "value", "version")}
    (opening,) = [
        row["actions"][0] for row in made["no URL"]["body"] if row["type"] == "ActionSet" and "actions" in row
    ]
    del opening["url"]
    made["element"]["body"][0]["type"] = "RichTextBlok"
    made["action"]["body"][-1]["columns"][1]["items"][0]["actions"][0]["type"] = "Action.Sumbit"
    made["value"]["body"][0]["spacing"] = "Gigantic"
    made["version"]["version"] = "9.9"
    made["no id"] = offered("p. 1 · a.pdf")
    del next(one for one in made["no id"]["body"] if one["type"] == "Input.ChoiceSet")["id"]
    made["no choices"] = offered("p. 1 · a.pdf")
    next(one for one in made["no choices"]["body"] if one["type"] == "Input.ChoiceSet")["choices"] = []
    return made


def test_a_broken_card_is_refused() -> None:
    """Shows that the validator names each fault."""
    made = broken()
    assert [
        name for name, faults in zip(made, faults_of(list(made.values())), strict=True) if not faults
    ] == []


def manifest() -> dict[str, Any]:
    """Return the manifest of an admin's package."""
    spec = importlib.util.spec_from_file_location("make_package", SCRIPT)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    made: dict[str, Any] = json.loads(
        json.dumps(module.manifest(module.UUID(APP_ID), "https://pages.acme.example"))
    )
    return made


def test_the_manifest_satisfies_microsofts_schema() -> None:
    """Uses the schema version that the manifest names; a wrong scope, a long name and an unknown key fail."""
    made = manifest()
    schema = manifest_schema(made["manifestVersion"])
    judge = validator(schema, draft=4, formats=True)
    assert [error.message for error in judge.iter_errors(made)] == []
    assert made["$schema"].endswith(f"/v{made['manifestVersion']}/MicrosoftTeams.schema.json")
    for fault in (
        {"bots": [made["bots"][0] | {"scopes": ["groupchats"]}]},
        {"composeExtensions": [made["composeExtensions"][0] | {"commands": [{"id": "ask"}]}]},
        {"name": {"short": "x" * 31, "full": "x"}},
        {"permisions": []},
        {"validDomains": ["x"] * 17},
    ):
        assert not judge.is_valid(made | fault), fault
