"""Feedback in Slack: the buttons under an answer, and the meaning of each click."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from engines.support.slack_judges import message_faults
from harness.tables import for_each

from bot.chat.conversation.feedback import REASONS, FeedbackReply
from bot.core.models import Answer, AnswerState, Citation, Language
from bot.platforms.slack.blocks import render
from bot.platforms.slack.feedback_buttons import (
    DONE,
    LINKS,
    PERSON,
    WHY,
    answer_row,
    handoff_row,
    opened_url,
    read_feedback_click,
    reply_blocks,
)
from storage.chat.feedback import FeedbackVerdict
from storage.models import ChannelKey, Platform

KEY = ChannelKey(Platform("slack"), "T0ACME001", "C0ITOPS01")
ASKED = "T0ACME001:C0ITOPS01:17.0001"
ANSWER = Answer(AnswerState.GROUNDED, "At night. [1]", language=Language.GERMAN)
REPLY = FeedbackReply(
    "What was wrong?", [(one, "x" * 90) for one in REASONS], ["p. 1 of " + "y" * 99], "Right"
)


def click(element: dict[str, Any], block: dict[str, Any], **changed: Any) -> dict[str, Any]:
    """Return Alice's click on a button of a block, as Slack sends it, with fields changed."""
    action = {"action_id": element["action_id"], "block_id": block["block_id"], "value": element["value"]}
    payload = {
        "type": "block_actions",
        "team": {"id": "T0ACME001"},
        "enterprise": None,
        "is_enterprise_install": False,
        "user": {"id": "U0ALICE01"},
        "channel": {"id": "C0ITOPS01"},
        "container": {"thread_ts": "17.0001", "is_ephemeral": True},
        "actions": [action],
    }
    return payload | changed


def test_each_block_is_valid_for_slack() -> None:
    """Covers very long replies; replies without a search have no buttons."""
    said = read_feedback_click(click(*_why()))
    assert said
    long = replace(REPLY, text="<why> & what?\n" * 900, pages=REPLY.pages * 9)
    for reply in (REPLY, long):
        assert message_faults([*_blocks(), *reply_blocks(reply, said)]) == []
    for state in (AnswerState.CHAT, AnswerState.FAILED):
        assert answer_row(Answer(state, "Hello"), KEY.tenant, ASKED) is None


def _blocks(
    answer: Answer = ANSWER, key: str = ASKED, *, offers_person: bool = False
) -> list[dict[str, Any]]:
    row = answer_row(answer, KEY.tenant, key, offers_person=offers_person)
    return list(render(answer, 5, row=row).blocks)


def _why() -> tuple[dict[str, Any], dict[str, Any]]:
    *_, block = _blocks()
    return block["elements"][-1], block


def test_a_thumb_is_a_good_or_bad_verdict() -> None:
    """Reads person, question and language; "Why?" gives no verdict."""
    *_, block = _blocks()
    for button, verdict in zip(block["elements"], ("good", "bad"), strict=False):
        said = read_feedback_click(click(button, block))
        assert said
        assert (said.key, said.user, said.message_key) == (KEY, "U0ALICE01", ASKED)
        assert (said.said, said.language) == (FeedbackVerdict(verdict), Language.GERMAN)
    why = read_feedback_click(click(*_why()))
    assert why
    assert why.said == WHY
    assert why.place == {"channel": "C0ITOPS01", "user": "U0ALICE01", "thread_ts": "17.0001"}


def test_links_of_an_answer_that_cites_pages_can_be_renewed() -> None:
    """A click on a source names its question; its URL is read from the message that has it."""
    cited = Citation(1, "Rules", "rules.pdf", 1, "At night.", (), "https://x.example/v/t")
    *_, block = _blocks(replace(ANSWER, citations=(cited,)))
    source, *others = block["elements"]
    assert len(others) == 3
    clicked = click(source, block, message={"blocks": [block]})
    said = read_feedback_click(clicked)
    assert said
    assert (said.said, said.message_key, opened_url(clicked)) == (LINKS, ASKED, "https://x.example/v/t")
    assert opened_url(click(source, block)) == ""


def test_a_plain_no_and_a_named_person_offer_to_ask_somebody() -> None:
    """The button is there if it is switched on; who was told may resolve it from their own chat."""
    none = Answer(AnswerState.NOT_FOUND, "No.")
    named = Answer(AnswerState.CHAT, "Ask:", people=("slack:T0ACME001:U1",))
    for answer, others in ((none, 3), (named, 0)):
        *_, block = _blocks(answer, offers_person=True)
        *rest, person = block["elements"]
        said = read_feedback_click(click(person, block))
        assert said
        assert (said.said, said.person, len(rest)) == (PERSON, "slack:T0ACME001:U0ALICE01", others)
    assert all("feedback-person" not in str(_blocks(one)) for one in (none, named))
    assert "feedback-person" not in str(_blocks(offers_person=True))
    row = handoff_row(KEY.tenant, Language.GERMAN, ASKED)
    *_, block = render(none, 5, row=row).blocks
    told = click(block["elements"][0], block, channel={"id": "D0OWNER01"})
    assert getattr(read_feedback_click(told), "said", "") == DONE
    assert read_feedback_click(told | {"channel": {"id": "C0HRTEAM1"}}) is None


def test_a_direct_chats_answer_may_belong_to_another_channel() -> None:
    """The question's key decides; a click in another direct chat is ignored."""
    key = "T0ACME001:D0ALICE01:17.0001:5f2c"
    *_, block = _blocks(key=key)
    button = block["elements"][0]
    said = read_feedback_click(click(button, block, channel={"id": "D0ALICE01"}))
    assert said
    assert (said.key, said.message_key, said.place["channel"]) == (KEY, key, "D0ALICE01")
    assert read_feedback_click(click(button, block, channel={"id": "D0BOB0001"})) is None


def test_a_reason_brings_the_page_that_was_chosen() -> None:
    """Reads the state of the menu, unless it is forged."""
    why = read_feedback_click(click(*_why()))
    assert why
    _, menu, buttons = reply_blocks(REPLY, why)
    for value, page in (("0", 0), ("x", None)):
        chosen = {menu["block_id"]: {"feedback-page": {"selected_option": {"value": value}}}}
        said = read_feedback_click(click(buttons["elements"][2], buttons, state={"values": chosen}))
        assert said
        assert (said.said, said.page) == (FeedbackVerdict.SHOULD_HAVE_FOUND, page)
    pick = {"action_id": "feedback-page", "value": ""}
    assert read_feedback_click(click(pick, menu)) is None


@for_each(
    "changed",
    [
        {"channel": {"id": "C0HRTEAM1"}},
        {"team": {"id": "T0OTHER01"}},
        {"user": {}},
        {"user": {"id": "U0GUEST01", "team_id": "T0OTHER01"}},
        {"actions": []},
        {"actions": [{"action_id": "feedback", "value": f"good de {ASKED}"}]},
        {"actions": [{"action_id": "feedback", "block_id": f"feedback:{KEY.tenant}", "value": "best de x"}]},
        {"actions": [{"action_id": "feedback", "block_id": f"feedback:{KEY.tenant}", "value": "good xx x"}]},
    ],
)
def test_a_click_from_another_place_is_ignored(changed: dict[str, Any]) -> None:
    """Covers other channels and workspaces, unknown people, outsiders, foreign blocks and forged values."""
    assert read_feedback_click(click(*_why(), **changed)) is None
