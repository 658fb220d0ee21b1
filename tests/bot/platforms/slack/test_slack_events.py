"""Parsing of Slack events: which of them ask a question, in which channel, and with which text."""

from __future__ import annotations

from typing import Any

import pytest
from harness.tables import for_each

from bot.platforms.slack.events import (
    STOPPED,
    adds_mention,
    read_edit,
    read_event,
    read_join,
    read_leave,
    read_stop,
    read_withdrawal,
)
from bot.platforms.slack.message_text import plain_text
from storage.models import ChannelKey, Platform

BOT = "U0FOOT001"


def envelope(**event: Any) -> dict[str, Any]:
    """Return a channel mention as Slack sends it, with ``event`` fields changed; None removes one."""
    fields = {"type": "app_mention", "channel": "C0ITOPS01", "user": "U0ALICE01", "ts": "17.0001"}
    changed = fields | {"text": f"<@{BOT}> when do backups run?"} | event
    authorization = {"enterprise_id": None, "team_id": "T0ACME001", "user_id": BOT, "is_bot": True}
    return {
        "type": "event_callback",
        "team_id": "T0OTHER01",
        "event_id": "Ev1",
        "authorizations": [authorization | {"is_enterprise_install": False}],
        "event": {name: value for name, value in changed.items() if value is not None},
    }


def test_a_mention_asks_in_the_channel_of_the_verified_envelope() -> None:
    """Reads channel, keys, thread and text of a mention."""
    message = read_event(envelope())
    assert message
    assert message.key == ChannelKey(Platform("slack"), "T0ACME001", "C0ITOPS01")
    assert message.event_key == "T0ACME001:Ev1"
    assert message.message_key == "T0ACME001:C0ITOPS01:17.0001"
    assert (message.thread, message.text) == ("17.0001", "when do backups run?")
    assert message.address["thread"] == "17.0001"
    assert message.address["asker"] == f"slack:T0ACME001:{envelope()['event']['user']}"


def test_the_twin_events_of_one_mention_share_their_message_key() -> None:
    """A mention that also arrives as a message is one message with two event ids."""
    twin = envelope(type="message", channel_type="channel") | {"event_id": "Ev2"}
    first, second = read_event(envelope()), read_event(twin)
    assert first
    assert second
    assert first.message_key == second.message_key
    assert first.event_key != second.event_key


def test_an_org_wide_install_is_named_by_its_enterprise() -> None:
    """Only org-wide installs use the enterprise id."""
    event = envelope()
    event["authorizations"][0] |= {"enterprise_id": "E0ACME001", "is_enterprise_install": True}
    message = read_event(event)
    assert message
    assert message.key.installation == "E0ACME001"


def test_an_enterprise_workspaces_own_install_keeps_its_team() -> None:
    """An enterprise id alone does not merge the workspaces of an organisation."""
    event = envelope()
    event["authorizations"][0]["enterprise_id"] = "E0ACME001"
    message = read_event(event)
    assert message
    assert message.key.installation == "T0ACME001"


def test_a_direct_message_needs_no_mention_and_no_thread() -> None:
    """Every direct message is a question; the answer does not open a thread."""
    message = read_event(envelope(type="message", channel_type="im", channel="D0ALICE01", text="hello"))
    assert message
    assert (message.text, message.address["thread"], message.thread) == ("hello", None, "")
    assert message.is_direct


@pytest.mark.parametrize("kind", ["channel", "group", "mpim", None])
def test_only_a_chat_of_one_person_with_the_bot_is_direct(kind: str | None) -> None:
    """Group messages, and channels whose id looks like a direct chat's, are not direct."""
    message = read_event(envelope(channel_type=kind, channel="D0ALICE01"))
    assert message
    assert not message.is_direct


def test_a_reply_in_a_thread_is_answered_in_that_thread() -> None:
    """The thread is named by its root, not by the reply."""
    message = read_event(envelope(thread_ts="16.0001"))
    assert message
    assert (message.thread, message.address["thread"]) == ("16.0001", "16.0001")


REPLY = {"type": "message", "channel_type": "channel", "thread_ts": "16.0001", "text": "and restores?"}


@pytest.mark.parametrize("kind", ["channel", "group"])
def test_a_reply_without_a_mention_may_be_a_follow_up(kind: str) -> None:
    """In public and private channels such a reply asks if we answered in the thread."""
    message = read_event(envelope(**REPLY | {"channel_type": kind}))
    assert message
    assert (message.is_unaddressed, message.thread, message.text) == (True, "16.0001", "and restores?")
    mentioned = read_event(envelope(**REPLY | {"text": f"<@{BOT}> and restores?", "channel_type": kind}))
    assert mentioned
    assert not mentioned.is_unaddressed


@pytest.mark.parametrize("subtype", ["thread_broadcast", "me_message", "file_share"])
def test_a_mention_is_a_question_in_every_kind_of_message(subtype: str) -> None:
    """Covers replies also sent to the channel, "/me" messages and messages with files."""
    for kind in ("app_mention", "message"):
        assert read_event(envelope(type=kind, subtype=subtype)) is not None


@for_each(
    "event",
    [
        {"text": "<@U0OTHER01> do you know?"},
        {"text": "and restores, <@U0OTHER01|bob>?"},
        {"text": "<!subteam^S0TEAM|@it> what about restores?"},
        {"text": "<!here> what about restores?"},
        {"thread_ts": "17.0001"},
        {"subtype": "thread_broadcast"},
        {"subtype": "message_changed"},
        {"subtype": "bot_message"},
        {"bot_id": "B1"},
        {"edited": {"user": "U0ALICE01"}},
        {"user": BOT},
        {"type": "reaction_added"},
    ],
)
def test_messages_to_others_and_by_bots_are_no_follow_ups(event: dict[str, Any]) -> None:
    """Mentions of other people, thread roots, bots, edits and broadcasts ask nothing."""
    assert read_event(envelope(**REPLY | event)) is None


def test_a_date_in_a_reply_is_no_mention() -> None:
    """Slack writes dates in the same brackets."""
    assert read_event(envelope(**REPLY | {"text": "since <!date^1700000000^{date}|2023>?"}))


def test_follow_ups_can_be_switched_off() -> None:
    """Without follow-ups only a mention asks."""
    assert read_event(envelope(**REPLY), follow_ups=False) is None
    assert read_event(envelope(), follow_ups=False)


def test_a_name_that_begins_like_ours_is_not_ours() -> None:
    """The id of another user may start with ours."""
    assert read_event(envelope(type="message", text=f"<@{BOT}2> when do backups run?")) is None


@for_each(
    "event",
    [
        {"type": "message", "channel_type": "channel", "text": "no mention"},
        {"type": "message", "channel_type": "channel", "text": "<@U0OTHER01> hi"},
        {"bot_id": "B1"},
        {"user": BOT},
        {"user": None},
        {"edited": {"user": "U0ALICE01"}},
        {"type": "message", "channel_type": "im", "subtype": "message_changed"},
        {"type": "message", "channel_type": "im", "subtype": "message_deleted"},
        {"type": "message", "subtype": "channel_join"},
        {"channel": "not a channel"},
        {"channel": None},
        {"ts": None},
    ],
)
def test_events_that_are_no_questions_are_ignored(event: dict[str, Any]) -> None:
    """Bots, edits, joins and conversations among people ask nothing."""
    assert read_event(envelope(**event)) is None


def change(new: str | None = None, old: str = f"<@{BOT}> when?", **message: Any) -> dict[str, Any]:
    """Return an edit of Alice's message from ``old`` to ``new``."""
    text = f"<@{BOT}> when do backups run?" if new is None else new
    edited = {"user": "U0ALICE01", "ts": "18.0001"}
    said = {"type": "message", "user": "U0ALICE01", "ts": "17.0001", "text": text, "edited": edited}
    before = {"type": "message", "user": "U0ALICE01", "ts": "17.0001", "text": old}
    event = {"type": "message", "subtype": "message_changed", "channel_type": "channel", "ts": "18.0002"}
    return envelope(**event, user=None, text=None, message={**said, **message}, previous_message=before)


def test_a_mention_in_blocks_only_asks() -> None:
    """Reads the text of rich text and sections when the message has no other."""
    parts = [
        {"type": "user", "user_id": BOT},
        {"type": "text", "text": " when do <all> backups run?"},
        {"type": "emoji", "name": "wave"},
        {"type": "link", "url": "https://x.example"},
    ]
    rich = [{"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": parts}]}]
    section = [{"type": "section", "text": {"type": "mrkdwn", "text": f"<@{BOT}> when?"}}]
    for blocks, text in ((rich, "when do <all> backups run?https://x.example"), (section, "when?")):
        message = read_event(envelope(type="message", channel_type="channel", text="", blocks=blocks))
        assert message
        assert message.text == text


@for_each(
    ("old", "new", "is_added"),
    [
        ("when?", f"<@{BOT}> when?", True),
        (f"<@{BOT}> when?", f"<@{BOT}> when now?", False),
        (f"<@{BOT}> when?", "when?", False),
    ],
)
def test_an_edit_may_add_the_mention(old: str, new: str, is_added: bool) -> None:
    """Only then does a message ask for the first time."""
    assert adds_mention(change(new, old)) is is_added


def test_an_edit_asks_the_new_text_of_its_message() -> None:
    """The edit has the key of its message, whose question it replaces; it is no new question."""
    message = read_edit(change())
    asked = read_event(envelope())
    assert message
    assert asked
    assert (message.message_key, message.text) == (asked.message_key, "when do backups run?")
    assert read_event(change()) is None


@for_each(
    "event",
    [
        change(old=f"<@{BOT}> when do backups run?"),
        change("<@U0OTHER01> when do backups run?"),
        change(user=BOT, bot_id="B1"),
        change(subtype="tombstone", user="USLACKBOT"),
        envelope(),
    ],
)
def test_changes_that_edit_no_question_are_ignored(event: dict[str, Any]) -> None:
    """Slack's link previews and reactions also change a message, and so do our updates."""
    assert read_edit(event) is None


def test_a_deleted_message_is_identified_by_its_key() -> None:
    """Covers messages with replies, which Slack replaces with a tombstone."""
    asked = read_event(envelope())
    assert asked
    gone = envelope(type="message", subtype="message_deleted", deleted_ts="17.0001", ts="18.1", text=None)
    assert read_withdrawal(gone) == asked.message_key
    assert read_withdrawal(change(subtype="tombstone", user="USLACKBOT")) == asked.message_key
    assert read_withdrawal(change()) is None
    assert read_withdrawal(envelope()) is None


def press(**event: Any) -> dict[str, Any]:
    """Return a click on Stop, with fields changed."""
    pressed = {"type": STOPPED, "thread_ts": "17.0001", "event_ts": "19.5", "streaming_message_ts": ["18.1"]}
    return envelope(**pressed | {"ts": None, "text": None} | event)


def test_the_stop_button_stops_earlier_questions_of_its_thread() -> None:
    """Slack's timestamps are compared, since events may be late. Private questions belong to no thread."""
    stop = read_stop(press())
    assert stop
    asked = read_event(envelope())
    assert asked
    assert (stop.key, stop.thread, stop.message_key) == (asked.key, asked.thread, asked.message_key)
    assert stop.covers(asked.address)
    assert not stop.covers(asked.address | {"ts": "19.6"})
    private = {"channel": "C1", "key": "T1:C1:13", "response_url": "https://hooks.slack.com/1"}
    assert not stop.covers(private)
    assert read_event(press()) is None
    for wrong in ({"type": "message"}, {"thread_ts": None}, {"event_ts": "soon"}, {"channel": "?"}):
        assert read_stop(press(**wrong)) is None


def join(**event: Any) -> dict[str, Any]:
    """Return the event of our joining a channel, with fields changed."""
    return envelope(type="member_joined_channel", user=BOT, channel_type="C", ts=None, text=None, **event)


def test_only_our_own_join_triggers_a_welcome() -> None:
    """Joins of other people and other events of ours are not reported."""
    key = ChannelKey(Platform("slack"), "T0ACME001", "C0ITOPS01")
    assert read_join(join()) == key
    assert read_event(join()) is None
    assert read_join(envelope(type="member_joined_channel")) is None
    assert read_join(envelope(type="message", user=BOT)) is None
    assert read_join(join(channel="not a channel")) is None


@pytest.mark.parametrize("kind", ["channel_left", "group_left", "channel_deleted", "group_deleted"])
def test_a_left_or_deleted_channel_is_reported(kind: str) -> None:
    """Shows that only these events report that we left a channel."""
    assert read_leave(envelope(type=kind)) == ChannelKey(Platform("slack"), "T0ACME001", "C0ITOPS01")
    assert read_leave(envelope(type=kind, channel="not a channel")) is None
    assert read_leave(join()) is None


@pytest.mark.parametrize(("team", "asks"), [("T0ACME001", True), ("T0OTHER01", False), (None, False)])
def test_in_a_shared_channel_only_our_own_people_are_answered(team: str | None, asks: bool) -> None:
    """A person of another or an unknown organisation gets nothing from our documents."""
    event = envelope(user_team=team) | {"is_ext_shared_channel": True}
    assert (read_event(event) is not None) is asks


@for_each(
    ("text", "plain"),
    [
        (f"<@{BOT}> R&amp;D &lt;2&gt; rules", "R&D <2> rules"),
        (f"ask <@{BOT}|footnote> now", "ask  now"),
        ("see <#C1|general> with <@U2|bob>", "see #general with @bob"),
        ("<https://acme.example/a?b=1&amp;c=2|the wiki> <https://x.example>", "the wiki https://x.example"),
        ("&amp;lt; stays", "&lt; stays"),
        ("<!here> who", "who"),
        (f"<@{BOT}> when do <@U2> backups run <!subteam^S1|@it> <@{BOT}>?", "when do backups run ?"),
        (":wave: When do backups run at 10:30:00? :pray::skin-tone-3:", "When do backups run at 10:30:00?"),
        ("since <!date^1700000000^{date}|2023>", "since 2023"),
    ],
)
def test_markup_is_converted_to_plain_text(text: str, plain: str) -> None:
    """Entities are decoded once; mentions and links become their visible text."""
    assert plain_text(text, BOT).split() == plain.split()


def test_characters_that_no_database_stores_are_replaced() -> None:
    """A lone surrogate or NUL must not make Slack redeliver a question for ever."""
    message = read_event(envelope(text=f"<@{BOT}> when \ud83d do\0 backups run \N{GRINNING FACE}?"))
    assert message
    assert message.text == "when \ufffd do\ufffd backups run \N{GRINNING FACE}?"
