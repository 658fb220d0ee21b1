"""Message extension: which documents are searched, who gets the answer, and Teams' reply deadline."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from fakes.core import WORDS
from fakes.memory_inbox import MemoryInbox
from fakes.teams_connector import running_teams

from bot.core.errors import ChannelClosed
from bot.core.models import Answer, AnswerState, Language
from bot.core.ports import ACK_SECONDS, StoredAnswer
from bot.core.wording import reply_words
from bot.platforms.teams.adapter import PATH, TeamsAdapter
from bot.platforms.teams.compose_extension import REPLY_SECONDS, ComposeExtension
from bot.platforms.teams.connector import Connector, is_local
from bot.platforms.teams.messenger import TeamsMessenger
from bot.settings import BotSettings
from storage.chat.traces import PRIVATE_THREAD
from storage.models import ChannelKey, Platform
from storage.task_group import DeadlineCalls

TENANT = "tenant-1"
OPS, HR = "19:ops@thread.tacv2", "19:hr@thread.tacv2"


def invoke(name: str = "submitAction", place: str = OPS, person: str = "ann", **data: Any) -> dict[str, Any]:
    """Return the invoke of a person who uses the extension in a channel's compose box."""
    return {
        "type": "invoke",
        "name": f"composeExtension/{name}",
        "id": f"f:{place}:{person}",
        "serviceUrl": "http://127.0.0.1:9/connector",
        "from": {"id": f"29:{person}", "aadObjectId": person},
        "conversation": {"id": f"{place};messageid=17", "conversationType": "channel", "tenantId": TENANT},
        "channelData": {"tenant": {"id": TENANT}, "channel": {"id": place}, "source": {"name": "compose"}},
        "locale": "en-US",
        "value": {"commandId": "ask", "commandContext": "compose", "data": data},
    }


class LateInbox(MemoryInbox):
    """Answers only while ``may_answer`` is set."""

    may_answer = True

    async def answer_of(self, message_key: str) -> StoredAnswer | None:
        """Return None until answering is allowed."""
        return await super().answer_of(message_key) if self.may_answer else None


@pytest.fixture
def inbox(new_inbox: Callable[[], MemoryInbox]) -> LateInbox:
    """Answers with a word that occurs only in that conversation's answers."""
    return LateInbox(new_inbox().answer_to)


@pytest.fixture
def send(inbox: LateInbox, development_door: Callable[[Any], TeamsAdapter]) -> Callable[..., Any]:
    """Return ``await send(activity)``: status and body of the reply."""

    async def sent(activity: dict[str, Any]) -> tuple[int, Any]:
        door, app = development_door(inbox), web.Application()
        door.add_routes(app)
        async with TestClient(TestServer(app)) as client, client.post(PATH, json=activity) as response:
            body = await response.json() if response.content_type == "application/json" else None
            found = response.status, body
        await door.stop()
        await door.aclose()
        return found

    return sent


@pytest.fixture
def extension(inbox: LateInbox) -> ComposeExtension:
    """Return the adapter's extension with a short reply timeout."""
    settings = BotSettings(sources_shown=5, question_chars=500)
    return ComposeExtension(inbox.service, DeadlineCalls(ACK_SECONDS), settings, reply_seconds=0.2)


async def test_the_dialog_asks_for_a_question_in_the_persons_language(send: Callable[..., Any]) -> None:
    """The dialog has one field and one button; an empty question gets it again."""
    for activity in (invoke("fetchTask"), invoke(question="  ")):
        status, reply = await send(activity | {"locale": "de-AT"})
        assert (status, reply["task"]["type"]) == (200, "continue")
        card = reply["task"]["value"]["card"]["content"]
        said = reply_words(Language.GERMAN)
        assert [one["type"] for one in card["body"]] == ["RichTextBlock", "Input.Text"]
        assert (card["body"][1]["label"], card["actions"][0]["title"]) == (
            said.compose_question,
            said.compose_ask,
        )


async def test_the_reply_is_a_card_from_the_compose_boxs_channel(
    send: Callable[..., Any], inbox: LateInbox, name_of: Callable[[str], str]
) -> None:
    """The channel comes from the signed envelope; fields sent by the dialog are ignored."""
    status, reply = await send(
        invoke(question="show me all the rules", channel=HR, tenant="ms_x", conversation=HR)
    )
    assert status == 200
    (attachment,) = reply["composeExtension"]["attachments"]
    assert reply["composeExtension"]["type"] == "result"
    card = attachment["content"]
    assert name_of(OPS) in str(card)
    assert name_of(HR) not in str(card)
    assert "<b>all</b> *.bak & _old_ files" in card["body"][0]["inlines"][0]["text"]
    openings = [row["actions"][0] for row in card["body"] if row["type"] == "ActionSet"]
    assert [one["title"] for one in openings if "url" in one] == [
        f"[{n}] p. {n + 1} · {n}.pdf" for n in range(1, 6)
    ]
    (message,) = inbox.kept.values()
    assert message.key == ChannelKey(Platform("teams"), TENANT, OPS)
    assert message.thread.startswith(PRIVATE_THREAD)
    assert (message.text, message.is_direct) == ("show me all the rules", False)
    assert message.address["asker"] == f"teams:{TENANT}:ann"


async def test_a_late_answer_is_fetched_by_a_button(extension: ComposeExtension, inbox: LateInbox) -> None:
    """Teams waits five seconds: the reply says that the search goes on; the question is not asked twice."""
    inbox.may_answer = False
    reply = await extension.reply(invoke(question="when?"))
    (button,) = reply["task"]["value"]["card"]["content"]["actions"]
    assert button["title"] == WORDS.compose_show
    assert await extension.reply(invoke(**button["data"])) == reply
    inbox.may_answer = True
    assert "composeExtension" in await extension.reply(invoke(**button["data"]))
    assert len(inbox.kept) == 1
    assert REPLY_SECONDS < 5


async def test_an_answer_is_only_for_its_asker_in_its_channel(
    send: Callable[..., Any],
    extension: ComposeExtension,
    inbox: LateInbox,
    name_of: Callable[[str], str],
) -> None:
    """Covers another person, another channel, a public question and an unknown id."""
    await send(invoke(place=HR, question="when?"))
    aloud = invoke(place=HR) | {"type": "message", "id": "18", "text": "when?"}
    aloud["conversation"]["conversationType"] = "personal"
    await send(aloud)
    assert len(inbox.kept) == 2
    asked = f"f:{HR}:ann"
    for stranger in (
        invoke(place=HR, person="bob", asked=asked),
        invoke(place=OPS, asked=asked),
        invoke(place=OPS, asked=f"{TENANT}:{HR};messageid=17:{asked}"),
        invoke(place=HR, asked="18"),
        invoke(place=HR, asked="never"),
        invoke(place=HR, asked={"$ne": ""}),
    ):
        reply = await extension.reply(stranger)
        assert "composeExtension" not in reply
        assert name_of(HR) not in str(reply)
    _, own = await send(invoke(place=HR, asked=asked))
    assert name_of(HR) in str(own)


async def test_a_chat_between_people_is_no_direct_chat_of_ours(
    send: Callable[..., Any], inbox: LateInbox
) -> None:
    """The envelope looks like a chat with us, but the compose box must not search the library."""
    between = invoke(question="when?")
    between["conversation"] = {"id": "19:a_b@unq.gbl.spaces", "conversationType": "personal"}
    del between["channelData"]["channel"]
    await send(between)
    (message,) = inbox.kept.values()
    assert message.is_direct is None


async def test_an_invoke_without_person_or_place_asks_nothing(
    send: Callable[..., Any], inbox: LateInbox
) -> None:
    """Without a person, a place or a database no question is asked."""
    nobody = invoke(question="when?")
    del nobody["from"]["aadObjectId"]
    nowhere = invoke(question="when?") | {"conversation": {}, "channelData": {}}
    for activity in (nobody, nowhere):
        assert await send(activity) == (200, {})
    assert inbox.kept == {}
    inbox.failure = RuntimeError("no database")
    assert (await send(invoke(question="when?")))[0] == 503


async def test_nothing_of_a_private_question_is_posted() -> None:
    """No placeholder, draft, answer or card is posted, so that nothing could be updated."""
    answer = Answer(AnswerState.NOT_FOUND, "Nothing.")
    async with running_teams() as teams:
        messenger = TeamsMessenger(Connector(None, is_local), BotSettings())
        address = teams.address | {"is_private": True, "is_personal": True}
        for queued in ("Others first.", ""):
            message = await messenger.post_placeholder(address, Language.ENGLISH, queued=queued)
        assert await messenger.find_placeholder(address) == message
        await messenger.show_partial(address, message, "Daily.")

        async def keep(message: dict[str, Any]) -> None:
            raise AssertionError

        await messenger.deliver(address, message, answer, keep)
        with pytest.raises(ChannelClosed):
            await messenger.revise(address, message, answer, [])
        await messenger.connector.aclose()
        assert teams.sent == []
