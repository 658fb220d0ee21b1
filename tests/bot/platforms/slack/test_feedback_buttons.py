"""Feedback in Slack: the buttons under an answer, and the meaning of each click."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from engines.support.slack_judges import message_faults
from harness.tables import for_each

from bot.chat.conversation.feedback import REASONS, FeedbackReply
from bot.core.models import Answer, AnswerState, Citation, Language
from bot.platforms.slack.feedback_buttons import feedback_blocks, read_feedback_click, reply_blocks
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
        assert message_faults([*feedback_blocks(ANSWER, KEY.tenant, ASKED), *reply_blocks(reply, said)]) == []
    for state in (AnswerState.CHAT, AnswerState.FAILED):
        assert feedback_blocks(Answer(state, "Hello"), KEY.tenant, ASKED) == []


def _why() -> tuple[dict[str, Any], dict[str, Any]]:
    _, block = feedback_blocks(ANSWER, KEY.tenant, ASKED)
    return block["elements"][0], block


def test_a_thumb_is_a_good_or_bad_verdict() -> None:
    """Reads person, question and language; "Why?" gives no verdict."""
    block, _ = feedback_blocks(ANSWER, KEY.tenant, ASKED)
    (thumbs,) = block["elements"]
    for button, verdict in (("positive_button", "good"), ("negative_button", "bad")):
        said = read_feedback_click(click({"action_id": "feedback", **thumbs[button]}, block))
        assert said
        assert (said.key, said.user, said.message_key) == (KEY, "U0ALICE01", ASKED)
        assert (said.verdict, said.language) == (FeedbackVerdict(verdict), Language.GERMAN)
    why = read_feedback_click(click(*_why()))
    assert why
    assert why.verdict is None
    assert why.place == {"channel": "C0ITOPS01", "user": "U0ALICE01", "thread_ts": "17.0001"}


def test_links_of_an_answer_that_cites_pages_can_be_renewed() -> None:
    """The button for new links gives no verdict; answers that cite only web pages have none."""
    cited = Citation(1, "Rules", "rules.pdf", 1, "At night.", (), "https://x.example/v/t")
    _, block = feedback_blocks(replace(ANSWER, citations=(cited,)), KEY.tenant, ASKED)
    why, links = block["elements"]
    said = read_feedback_click(click(links, block))
    assert said
    assert (said.wants_links, said.verdict, said.message_key) == (True, None, ASKED)
    assert not getattr(read_feedback_click(click(why, block)), "wants_links", True)
    web = replace(cited, host="example.org")
    _, block = feedback_blocks(replace(ANSWER, citations=(web,)), KEY.tenant, ASKED)
    assert len(block["elements"]) == 1


def test_a_direct_chats_answer_may_belong_to_another_channel() -> None:
    """The question's key decides; a click in another direct chat is ignored."""
    key = "T0ACME001:D0ALICE01:17.0001:5f2c"
    block, _ = feedback_blocks(ANSWER, KEY.tenant, key)
    button = {"action_id": "feedback", **block["elements"][0]["positive_button"]}
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
        assert (said.verdict, said.page) == (FeedbackVerdict.SHOULD_HAVE_FOUND, page)
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
