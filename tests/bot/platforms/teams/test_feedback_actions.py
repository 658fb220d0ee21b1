"""Parsing of feedback in Teams: person, answer, verdict and permission."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from harness.tables import for_each

from bot.chat.conversation.feedback import FeedbackReply
from bot.core.models import Answer, AnswerState, Language
from bot.platforms.teams.activities import PersonalChat, read_activity
from bot.platforms.teams.adapter import PATH
from bot.platforms.teams.feedback_actions import (
    DONE,
    PERSON,
    answer_row,
    handoff_card,
    read_feedback,
    reply_card,
    takes_feedback,
)
from storage.chat.feedback import FeedbackVerdict
from storage.models import ChannelKey, Platform

TENANT = "tenant-1"
KEY = ChannelKey(Platform("teams"), TENANT, "19:ops@thread.tacv2")
SERVICE = "http://127.0.0.1:9/connector"


def invoke(feedback: object = None, **fields: Any) -> dict[str, Any]:
    """Return a thumb below a message of a channel thread; only the conversation names the tenant."""
    said: dict[str, Any] = {"reaction": "dislike", "feedback": feedback}
    activity = {
        "type": "invoke",
        "name": "message/submitAction",
        "replyToId": "1700000000001",
        "serviceUrl": SERVICE,
        "from": {"id": "29:ann", "aadObjectId": "ann"},
        "recipient": {"id": "28:bot"},
        "conversation": {
            "id": "19:ops@thread.tacv2;messageid=17",
            "conversationType": "channel",
            "tenantId": TENANT,
        },
        "channelData": {"source": {"name": "message"}},
        "value": {"actionName": "feedback", "actionValue": said},
    }
    return activity | fields


def click(**data: Any) -> dict[str, Any]:
    """Return a click on a card's button in a personal chat."""
    conversation = {"id": "a:1", "conversationType": "personal", "tenantId": TENANT}
    activity = invoke(type="message", id="c1", conversation=conversation, value=data)
    return {name: value for name, value in activity.items() if name not in {"name", "replyToId"}}


@for_each(
    ("feedback", "comment"),
    [
        ('{"feedbackText": "The page is wrong."}', "The page is wrong."),
        ("The page is wrong.", "The page is wrong."),
        ({"feedbackText": "The page is wrong."}, "The page is wrong."),
        ('{"feedbackText": 7}', ""),
        ('{"page": 7}', '{"page": 7}'),
        ("42", "42"),
        ("[" * 100_000, "[" * 100_000),
        ("half \ud83d", "half \ufffd"),
        (None, ""),
        ("{}", "{}"),
    ],
)
def test_comments_are_read_as_json_or_plain_text(feedback: object, comment: str) -> None:
    """Teams sends comments as JSON, the Playground as plain text; malformed ones cause no error."""
    action = read_feedback(invoke(feedback))
    assert action
    assert (action.place.key, action.message, action.person) == (KEY, "1700000000001", "ann")
    assert (action.said, action.comment) == (FeedbackVerdict.BAD, comment)


@for_each(
    "change",
    [
        {"replyToId": None},
        {"replyToId": ["17"]},
        {"replyToId": "9" * 300},
        {"from": {}},
        {"conversation": {"id": "19:ops", "conversationType": "channel"}},
        {"value": None},
        {"value": {"actionName": "feedback", "actionValue": {"reaction": "love"}}},
        {"value": {"actionName": "other", "actionValue": {"reaction": "like"}}},
        {"name": "message/fetchTask"},
        {"type": "message"},
    ],
)
def test_an_incomplete_invoke_is_no_feedback(change: dict[str, Any]) -> None:
    """Without a message, person, tenant or reaction nothing is stored."""
    assert read_feedback(invoke() | change) is None


def test_a_cards_reasons_and_pages_are_read_back_from_its_clicks() -> None:
    """In a personal chat each button sends its reason and the chosen page."""
    reply = FeedbackReply(
        "What was <b>wrong</b>?",
        [(FeedbackVerdict.WRONG_PAGE, "Wrong page"), (FeedbackVerdict.OUTDATED, "Outdated")],
        ["p. 1 · a.pdf", "p. 2 · b.pdf"],
        "The right page is",
    )
    words, menu, reasons = reply_card(reply, "17")["body"]
    assert words["inlines"][0]["text"] == "What was <b>wrong</b>?"
    assert [one["title"] for one in menu["choices"]] == ["p. 1 · a.pdf", "p. 2 · b.pdf"]
    for button, verdict in zip(reasons["actions"], ("wrong_page", "outdated"), strict=True):
        action = read_feedback(click(**button["data"], page=menu["choices"][1]["value"]))
        assert action
        assert (action.said, action.message, action.page) == (FeedbackVerdict(verdict), "17", 1)
        assert not action.is_native
        assert read_activity(click(**button["data"])) is None


@pytest.mark.parametrize(
    "data",
    [
        {"feedback": "superb", "answer": "17"},
        {"feedback": "bad"},
        {"feedback": "bad", "answer": ""},
        {"feedback": ["bad"], "answer": "17"},
    ],
    ids=str,
)
def test_a_forged_click_is_ignored(data: dict[str, Any]) -> None:
    """A forged click is not taken for an empty question either."""
    assert read_feedback(click(**data)) is None
    assert read_activity(click(**data)) is None


def test_a_cards_click_counts_in_personal_chats_only() -> None:
    """Everyone in another chat would see the follow-up."""
    conversation = {"id": "19:g", "conversationType": "groupChat", "tenantId": TENANT}
    assert read_feedback(click(feedback="why", answer="17") | {"conversation": conversation}) is None


def test_a_person_can_be_asked_anywhere() -> None:
    """A plain no offers it, also in a channel; who was told may resolve it there or in their own chat."""
    none = Answer(AnswerState.NOT_FOUND, "No.")
    assert answer_row(none, "17", is_personal=False) is None
    row = answer_row(none, "17", is_personal=False, offers_person=True)
    assert row
    (button,) = row["actions"]
    conversation = {"id": "19:ops@thread.tacv2", "conversationType": "channel", "tenantId": TENANT}
    clicked = click(**button["data"]) | {"conversation": conversation}
    action = read_feedback(clicked)
    assert action
    assert (action.said, action.message, action.place.key) == (PERSON, "17", KEY)
    assert action.own_chat == PersonalChat("28:bot", "29:ann", TENANT)
    assert read_activity(clicked) is None
    card = {"type": "AdaptiveCard", "version": "1.5", "body": []}
    member = {"id": "29:bob", "name": "Bob"}
    shown = handoff_card(card, action, member, Language.ENGLISH)
    assert shown["msteams"]["entities"][0]["mentioned"] == member
    done = read_feedback(click(**shown["body"][-1]["actions"][0]["data"]) | {"conversation": conversation})
    assert done
    assert (done.said, done.place.key) == (DONE, KEY)
    own = handoff_card(card, action, None, Language.ENGLISH)["body"][-1]["actions"][0]["data"]
    told = read_feedback(click(**own))
    assert told
    assert (told.said, told.place.key, told.place.address.conversation) == (DONE, KEY, "a:1")
    assert read_feedback(click(**own | {"conversation": "19:other"})) is None
    assert read_feedback(click(**own | {"feedback": PERSON})) is None


@for_each("state", AnswerState)
def test_help_and_failures_have_no_feedback(state: AnswerState) -> None:
    """Without a search there is nothing to rate."""
    assert takes_feedback(Answer(state, "")) is (state not in {AnswerState.CHAT, AnswerState.FAILED})


async def test_feedback_is_stored_before_it_is_acknowledged(new_inbox: Any, development_door: Any) -> None:
    """200 and ``{}`` if stored, 404 for an unknown answer, 503 if nothing can be stored."""
    inbox = new_inbox()
    inbox.door = development_door(inbox)
    app = web.Application()
    inbox.door.add_routes(app)
    async with TestClient(TestServer(app, host="127.0.0.1")) as client:
        reply = await client.post(PATH, json=invoke('{"feedbackText": "See page 4."}'))
        assert (reply.status, await reply.json()) == (200, {})
        assert inbox.feedback.said == [("1700000000001", (TENANT, "ann"), FeedbackVerdict.BAD, None)]
        assert inbox.feedback.comments == ["See page 4."]
        for lost in (invoke(replyToId="lost"), invoke(replyToId=None)):
            assert (await client.post(PATH, json=lost)).status == 404
        assert (await client.post(PATH, json=click(feedback="why", answer="lost"))).status == 200
        assert len(inbox.feedback.said) == 1
        inbox.feedback.failure = RuntimeError("disk full")
        assert (await client.post(PATH, json=invoke())).status == 503
    await asyncio.sleep(0)
    await inbox.door.stop()
    await inbox.door.aclose()
