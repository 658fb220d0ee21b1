"""Streamed answers: started, appended and stopped as Slack documents it, with a fallback to chat.update."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from fakes.core import WORDS
from fakes.memory_inbox import take_any
from fakes.streaming_slack import StreamingSlack, streaming_slack
from slack_sdk.models.messages.chunk import Chunk

from bot.core.errors import ChannelClosed, DeliveryError, DeliveryUnclear
from bot.core.models import Answer, AnswerState, Language
from bot.platforms.slack.blocks import render
from bot.platforms.slack.feedback_buttons import answer_row
from bot.platforms.slack.messenger import SlackMessenger
from bot.platforms.slack.web_api import web_client
from bot.settings import BotSettings
from storage.chat_models import WithdrawnItem
from storage.models import TenantName

ADDRESS = {
    "channel": "C1",
    "ts": "17.1",
    "thread": "17.1",
    "key": "T1:C1:17.1",
    "user": "U1",
    "team": "T1",
    "bot": "UBOT",
}
ANSWER = Answer(AnswerState.GROUNDED, "Daily [1]. At night [2].", is_generated=True)


@pytest.fixture
async def slack() -> AsyncIterator[StreamingSlack]:
    """Yield a fake Slack with streaming on loopback."""
    async with streaming_slack() as slack:
        yield slack


def new_messenger(slack: StreamingSlack, *, is_model_writing: bool = True) -> SlackMessenger:
    """Return the messenger of one process."""
    return SlackMessenger(
        web_client("xoxb-test", slack.url),
        BotSettings(openai_base_url="http://m" if is_model_writing else None),
    )


def final_blocks() -> list[dict[str, Any]]:
    """Return the blocks that every finished message ends with."""
    tenant = TenantName("sl_T1_C1")
    return list(render(ANSWER, 5, row=answer_row(ANSWER, tenant, ADDRESS["key"])).blocks)


async def finish(slack: StreamingSlack, messenger: SlackMessenger, placed: dict[str, Any]) -> dict[str, Any]:
    """Deliver the answer; return the only message left, no longer streaming."""
    await messenger.deliver(ADDRESS, placed, ANSWER)
    (message,) = slack.messages.values()
    assert not slack.streaming
    assert message["blocks"] == final_blocks()
    assert message["metadata"]["event_payload"] == {"message_key": ADDRESS["key"]}
    return message


async def test_an_answer_is_streamed_by_sentence_and_ends_as_usual(slack: StreamingSlack) -> None:
    """A single message gets escaped text without [n] that have no target yet; only new text is sent."""
    messenger = new_messenger(slack)
    placed = await messenger.post_placeholder(ADDRESS, Language.ENGLISH)
    assert placed == {"channel": "C1", "ts": "18.0", "is_stream": True}
    recipient = {
        name: slack.sent[0][name] for name in ("thread_ts", "recipient_user_id", "recipient_team_id")
    }
    assert recipient == {"thread_ts": "17.1", "recipient_user_id": "U1", "recipient_team_id": "T1"}
    for text in ("Daily <@U9> [1].", "Daily <@U9> [1].", "Daily <@U9> [1]. At *night* [2]."):
        await messenger.show_partial(ADDRESS, placed, text)
    task, *sentences = slack.messages["18.0"]["shown"]
    assert (task["type"], task["title"], task["status"]) == ("task_update", WORDS.searching, "in_progress")
    shown = [block["text"]["text"] for chunk in sentences for block in chunk["blocks"]]
    assert shown == ["Daily &lt;@U9&gt;.", "At *night*."]
    assert all(Chunk.parse(chunk) is not None for chunk in (task, *sentences))
    await finish(slack, messenger, placed)
    assert slack.calls == [
        "chat.startStream",
        "chat.appendStream",
        "chat.appendStream",
        "chat.stopStream",
        "chat.update",
    ]


async def test_delivering_twice_changes_nothing(slack: StreamingSlack) -> None:
    """After a crash between the two deliveries another process repeats it without knowing the stream."""
    messenger = new_messenger(slack)
    placed = await messenger.post_placeholder(ADDRESS, Language.ENGLISH)
    first = dict(await finish(slack, messenger, placed))
    assert await finish(slack, new_messenger(slack), placed) == first


@pytest.mark.parametrize("error", ["message_not_in_streaming_state", "stopped_by_user"])
async def test_a_stream_ended_by_slack_continues_with_chat_update(slack: StreamingSlack, error: str) -> None:
    """The stream expired or was stopped by a person: chat.update writes the draft, then the answer."""
    messenger = new_messenger(slack)
    placed = await messenger.post_placeholder(ADDRESS, Language.ENGLISH)
    await messenger.show_partial(ADDRESS, placed, "Daily [1].")
    slack.streaming.clear()
    slack.refusals = {"chat.appendStream": error, "chat.stopStream": error}
    for text in ("Daily [1]. At", "Daily [1]. At night [2]."):
        await messenger.show_partial(ADDRESS, placed, text)
    (message,) = slack.messages.values()
    assert message["blocks"][0]["text"]["text"] == "Daily. At night."
    await finish(slack, messenger, placed)
    assert slack.calls.count("chat.appendStream") == 2
    assert slack.calls.count("chat.stopStream") == 1


async def test_a_stream_that_refuses_blocks_is_stopped_then_updated(
    slack: StreamingSlack,
) -> None:
    """A message that is still streaming cannot be updated, so the stream is stopped first."""
    messenger = new_messenger(slack)
    placed = await messenger.post_placeholder(ADDRESS, Language.ENGLISH)
    slack.refusals = {"chat.appendStream": "invalid_chunks"}
    await messenger.show_partial(ADDRESS, placed, "Daily [1].")
    assert slack.messages["18.0"]["blocks"][0]["text"]["text"] == "Daily."
    await finish(slack, messenger, placed)


async def test_another_process_stops_the_stream_and_updates_it(slack: StreamingSlack) -> None:
    """The other process does not know which text was shown; the same holds for a rewritten question."""
    placed = await new_messenger(slack).post_placeholder(ADDRESS, Language.ENGLISH)
    await new_messenger(slack).show_partial(ADDRESS, placed, "Daily [1].")
    assert slack.messages["18.0"]["blocks"][0]["text"]["text"] == "Daily."
    await finish(slack, new_messenger(slack), placed)


async def test_a_lost_beginning_is_found_again_and_becomes_the_answer(slack: StreamingSlack) -> None:
    """Slack stores no metadata with a stream: it is our only message in the thread without any."""
    slack.lost = {"chat.startStream"}
    with pytest.raises(DeliveryUnclear):
        await new_messenger(slack).post_placeholder(ADDRESS, Language.ENGLISH)
    messenger = new_messenger(slack)
    placed = await messenger.find_placeholder(ADDRESS)
    assert placed == {"channel": "C1", "ts": "18.0", "is_stream": True}
    await messenger.show_partial(ADDRESS, placed, "Daily [1].")
    await finish(slack, messenger, placed)


async def test_other_messages_of_the_thread_are_no_lost_stream(slack: StreamingSlack) -> None:
    """Messages of people, placeholders with metadata, and earlier messages are not mistaken for it."""
    follow_up = ADDRESS | {"ts": "18.05", "key": "T1:C1:18.05"}
    messenger = new_messenger(slack)
    await messenger.post_placeholder(follow_up, Language.ENGLISH, queued="Others first.")
    slack.messages["18.9"] = {"ts": "18.9", "user": "U2"}
    assert await messenger.find_placeholder(ADDRESS) is None
    slack.messages["18.9"] = {"ts": "18.01", "user": "UBOT"}
    assert await messenger.find_placeholder(follow_up | {"key": "T1:C1:18.06"}) is None


async def test_a_question_claims_the_first_unclaimed_stream(slack: StreamingSlack) -> None:
    """Two streams were started and lost: each question claims one, whichever it was."""
    slack.lost = {"chat.startStream"}
    questions = [ADDRESS | {"ts": ts, "key": f"T1:C1:{ts}"} for ts in ("17.1", "17.5")]
    for one in questions:
        with pytest.raises(DeliveryUnclear):
            await new_messenger(slack).post_placeholder(one, Language.ENGLISH)
    messenger = new_messenger(slack)
    first = await messenger.find_placeholder(questions[1])
    assert first == {"channel": "C1", "ts": "18.0", "is_stream": True}
    second = await messenger.find_placeholder(questions[0], [first])
    assert second == {"channel": "C1", "ts": "18.1", "is_stream": True}
    assert await messenger.find_placeholder(questions[0], [first, second]) is None


@pytest.mark.parametrize("error", ["unknown_method", "missing_recipient_user_id", "ratelimited"])
async def test_a_placeholder_is_posted_where_slack_refuses_a_stream(
    slack: StreamingSlack, error: str
) -> None:
    """The final answer is the same; streaming is not retried for a while."""
    slack.refusals = {"chat.startStream": error}
    messenger = new_messenger(slack)
    placed = await messenger.post_placeholder(ADDRESS, Language.ENGLISH)
    assert placed == {"channel": "C1", "ts": "18.0"}
    await messenger.show_partial(ADDRESS, placed, "Daily [1].")
    await finish(slack, messenger, placed)
    slack.messages.clear()
    await messenger.post_placeholder(ADDRESS, Language.ENGLISH)
    assert slack.calls == [
        "chat.startStream",
        "chat.postMessage",
        "chat.update",
        "chat.update",
        "chat.postMessage",
    ]


async def test_a_channel_that_is_closed_gets_no_placeholder_either(slack: StreamingSlack) -> None:
    """The question fails, as with any post."""
    slack.refusals = {"chat.startStream": "is_archived"}
    with pytest.raises(ChannelClosed):
        await new_messenger(slack).post_placeholder(ADDRESS, Language.ENGLISH)
    assert slack.calls == ["chat.startStream"]


@pytest.mark.parametrize(
    "changed",
    [
        {"thread": None},
        {"channel": "D1"},
        {"asked": {"user": "U1", "text": "When?"}},
        {"user": ""},
        {"team": None},
        {"bot": ""},
    ],
    ids=str,
)
async def test_only_what_is_typed_in_a_channel_is_streamed(
    slack: StreamingSlack, changed: dict[str, Any]
) -> None:
    """Direct chats, clicked buttons and messages without a named writer get no stream."""
    await new_messenger(slack).post_placeholder(ADDRESS | changed, Language.ENGLISH)
    assert slack.calls[0] == "chat.postMessage"


async def test_nothing_is_streamed_without_a_model_or_while_queued(
    slack: StreamingSlack,
) -> None:
    """Quotes are delivered at once, and Slack ends a stream after five minutes."""
    await new_messenger(slack, is_model_writing=False).post_placeholder(ADDRESS, Language.ENGLISH)
    await new_messenger(slack).post_placeholder(ADDRESS, Language.ENGLISH, queued="Others first.")
    assert slack.calls == ["chat.postMessage"] * 2


@pytest.mark.parametrize("method", ["chat.stopStream", "chat.appendStream"])
async def test_a_rate_limit_ends_no_stream(slack: StreamingSlack, method: str) -> None:
    """The outbox retries after Slack's Retry-After, and the stream goes on."""
    messenger = new_messenger(slack)
    placed = await messenger.post_placeholder(ADDRESS, Language.ENGLISH)
    slack.refusals = {method: "ratelimited"}
    with pytest.raises(DeliveryError):
        await (
            messenger.deliver(ADDRESS, placed, ANSWER)
            if method == "chat.stopStream"
            else messenger.show_partial(ADDRESS, placed, "Daily.")
        )
    assert "chat.update" not in slack.calls
    slack.refusals = {}
    await finish(slack, messenger, placed)


async def test_a_lost_end_is_repeated_and_leads_to_one_answer(slack: StreamingSlack) -> None:
    """The result is unknown after a lost response: the delivery is retried."""
    messenger = new_messenger(slack)
    placed = await messenger.post_placeholder(ADDRESS, Language.ENGLISH)
    slack.lost = {"chat.stopStream"}
    with pytest.raises(DeliveryUnclear):
        await messenger.deliver(ADDRESS, placed, ANSWER)
    slack.lost = set()
    await finish(slack, messenger, placed)


async def test_a_deleted_questions_stream_is_deleted(slack: StreamingSlack) -> None:
    """The stream is stopped, then deleted; also if the response to startStream was lost."""
    slack.lost = {"chat.startStream"}
    with pytest.raises(DeliveryUnclear):
        await new_messenger(slack).post_placeholder(ADDRESS, Language.ENGLISH)
    await new_messenger(slack).delete(WithdrawnItem(ADDRESS, None, is_posting=True), take_any)
    assert slack.messages == {}
    assert not slack.streaming


async def test_a_stream_that_another_question_has_is_not_deleted(slack: StreamingSlack) -> None:
    """Slack repeats the deletion event, and by then the owner of the stream is known."""
    slack.lost = {"chat.startStream"}
    with pytest.raises(DeliveryUnclear):
        await new_messenger(slack).post_placeholder(ADDRESS, Language.ENGLISH)

    async def take(message: dict[str, Any]) -> bool:
        return False

    with pytest.raises(DeliveryUnclear):
        await new_messenger(slack).delete(WithdrawnItem(ADDRESS, None, is_posting=True), take)
    assert set(slack.messages) == {"18.0"}
    others = [{"channel": "C1", "ts": "18.0", "is_stream": True}]
    await new_messenger(slack).delete(WithdrawnItem(ADDRESS, None, is_posting=True, others=others), take)
    assert set(slack.messages) == {"18.0"}
