"""Suggested-question buttons: their payloads, and the question, place and person of a click."""

from __future__ import annotations

from typing import Any

from engines.support.slack_judges import message_faults
from harness.tables import for_each

from bot.platforms.slack.address import SlackAddress
from bot.platforms.slack.question_buttons import asked_blocks, question_blocks, read_question_click
from storage.models import ChannelKey, Platform

KEY = ChannelKey(Platform("slack"), "T0ACME001", "C0ITOPS01")


def click(**changed: Any) -> dict[str, Any]:
    """Return Alice's click on the second of two questions, as Slack sends it, with fields changed."""
    *_, block = question_blocks(["When do backups run?", "Who <checks> them?"], KEY.tenant)
    button = block["accessory"]
    action = {"action_id": button["action_id"], "block_id": block["block_id"], "value": button["value"]}
    payload = {
        "type": "block_actions",
        "team": {"id": "T0ACME001", "domain": "acme"},
        "enterprise": None,
        "is_enterprise_install": False,
        "user": {"id": "U0ALICE01", "team_id": "T0ACME001"},
        "channel": {"id": "C0ITOPS01", "name": "it-ops"},
        "message": {"ts": "17.0001", "text": "Hello"},
        "actions": [action | {"action_ts": "18.0001", "type": "button"}],
    }
    return payload | changed


def test_each_question_is_shown_in_full_next_to_its_button() -> None:
    """The blocks fit Slack's limits for any question."""
    long = "What about <!channel> & " + "x" * 700 + "?"
    lead, *blocks = question_blocks(["When do backups run?", long], KEY.tenant)
    assert lead["type"] == "section"
    assert "When do backups run?" in blocks[0]["text"]["text"]
    assert "<!channel>" not in blocks[1]["text"]["text"]
    assert message_faults([lead, *blocks]) == []
    assert len({block["accessory"]["action_id"] for block in blocks}) == 2
    assert question_blocks([], KEY.tenant) == []


def test_a_click_asks_as_the_clicker_in_the_messages_thread() -> None:
    """Channel and person come from the signed payload."""
    message = read_question_click(click())
    assert message
    assert (message.key, message.text, message.thread) == (KEY, "Who <checks> them?", "17.0001")
    assert message.address["asked"] == {"user": "U0ALICE01", "text": "Who <checks> them?"}
    (block,) = asked_blocks(SlackAddress.from_json(message.address))
    assert block["elements"][0]["text"] == "<@U0ALICE01>: Who &lt;checks&gt; them?"
    assert asked_blocks(SlackAddress("C1", "T1:C1:17.1")) == []


def test_the_key_of_a_click_does_not_name_its_person() -> None:
    """Erasing a person leaves the keys of their questions."""
    message = read_question_click(click())
    assert message
    assert not any("ALICE" in key for key in (message.message_key, message.event_key, message.thread))


def test_one_click_is_one_question_and_another_click_another() -> None:
    """A repeated delivery has the same keys; a click by another person or a later click has others."""
    first, again = read_question_click(click()), read_question_click(click())
    other = read_question_click(click(user={"id": "U0BOB0001"}))
    assert first
    assert again
    assert other
    assert first.message_key == again.message_key != other.message_key


@for_each(
    "changed",
    [
        {"channel": {"id": "C0HRTEAM1"}},
        {"team": {"id": "T0OTHER01"}},
        {"team": None},
        {"enterprise": {"id": "E0ACME001"}, "is_enterprise_install": True},
        {"user": {}},
        {"user": {"id": "U0ALICE01", "team_id": "T0OTHER01"}},
        {"user": {"id": "U0ALICE01", "team_id": "T0OTHER01"}, "enterprise": {"id": "E0ACME001"}},
        {"user": {"id": "U0ALICE01", "team_id": "E0OTHER01"}, "enterprise": {"id": "E0ACME001"}},
        {"channel": None},
        {"message": None},
        {"actions": []},
        {"actions": [{"action_id": "ask-2", "value": "What is secret?"}]},
        {"actions": [{"action_id": "ask-2", "block_id": f"ask:2:{KEY.tenant}"}]},
        {"actions": [{"action_id": "ask-1", "block_id": f"ask:2:{KEY.tenant}", "value": "Why?"}]},
    ],
)
def test_a_click_from_another_place_asks_nothing(changed: dict[str, Any]) -> None:
    """Covers other channels and workspaces, a missing person, and a block that we did not send."""
    assert read_question_click(click(**changed)) is None


def test_an_org_wide_install_is_asked_by_its_enterprise() -> None:
    """The button names the organisation's tenant."""
    key = ChannelKey(Platform("slack"), "E0ACME001", "C0ITOPS01")
    action = {"action_id": "ask-1", "block_id": f"ask:1:{key.tenant}", "value": "Why?", "action_ts": "1.1"}
    installed = {"enterprise": {"id": "E0ACME001"}, "is_enterprise_install": True, "team": None}
    user = {"id": "U0ALICE01", "team_id": "E0ACME001"}
    message = read_question_click(click(**installed, user=user, actions=[action]))
    assert message
    assert message.key == key
    user["team_id"] = "E0OTHER01"
    assert read_question_click(click(**installed, user=user, actions=[action])) is None


def test_a_person_of_the_organisation_may_click_in_any_workspace() -> None:
    """Slack names the organisation instead of their workspace."""
    user = {"id": "U0ALICE01", "team_id": "E0ACME001"}
    assert read_question_click(click(user=user, enterprise={"id": "E0ACME001"}))
    assert read_question_click(click(user=user, team={"id": KEY.installation, "enterprise_id": "E0ACME001"}))
