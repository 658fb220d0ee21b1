"""Posting to Teams through rate limits, errors and unclear outcomes, against a small fake connector."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from aiohttp import web
from fakes.teams_connector import CONVERSATION, Teams, running_teams

from bot.core.errors import ChannelClosed, DeliveryError, DeliveryUnclear
from bot.core.models import (
    Answer,
    AnswerFigure,
    AnswerState,
    Citation,
    CitedPage,
    Language,
    SourceChange,
)
from bot.core.plaintext import MORE_TO_COME
from bot.core.ports import Announcement, AnnouncementEntry
from bot.core.wording import reply_words
from bot.platforms.teams.connector import AppCredentials, Connector, is_local, is_microsofts
from bot.platforms.teams.messenger import TeamsMessenger
from bot.settings import BotSettings
from storage.models import Box, Channel, ChannelKey, Platform

ANSWER = Answer(
    AnswerState.GROUNDED,
    "Daily [1].",
    (Citation(1, "Backups", "sop.pdf", 2, "daily", (), "https://f.example/v/1"),),
)
LISTED = "[\\[1\\] p. 2 · Backups](https://f.example/v/1)"
SHOWN = f"Daily [1].\n\n{LISTED}"
FIGURE = AnswerFigure(
    "sop.pdf", 2, "Runs", Box(0, 0, 1, 1), "https://f.example/v/2", "https://f.example/f/2", 1
)
PICTURED = replace(ANSWER, figures=(FIGURE,))

OWN_CHAT = "a:29:ann"
CHANNEL = Channel(1, ChannelKey(Platform("teams"), "t", "19:ops").tenant, Platform("teams"), "ops", 1)
EVIL = "[here](https://evil.example) <at>everyone</at> **bold**"


@dataclass
class Outbox:
    """Message ids recorded for one reply."""

    message: dict[str, Any] = field(default_factory=dict)

    async def keep(self, message: dict[str, Any]) -> None:
        """Record the ids."""
        self.message = message


@pytest.fixture
def outbox() -> Outbox:
    """Return the record of one reply."""
    return Outbox()


@pytest.fixture
async def teams() -> AsyncIterator[Teams]:
    """Yield the connector and the token endpoint on loopback."""
    async with running_teams() as teams:
        yield teams


@pytest.fixture
async def messenger(teams: Teams) -> AsyncIterator[TeamsMessenger]:
    """Yield a messenger with credentials that trusts this machine."""
    credentials = AppCredentials("app", "s3cret", "tenant-1", authority=teams.url)
    messenger = TeamsMessenger(Connector(credentials, is_local, pause=0.01), BotSettings())
    yield messenger
    await messenger.connector.aclose()


async def test_a_placeholder_says_when_others_are_answered_first(
    teams: Teams, messenger: TeamsMessenger
) -> None:
    """The notice is in the language of the question."""
    said = reply_words(Language.GERMAN)
    for queued in ("", said.queued):
        await messenger.post_placeholder(teams.address, Language.GERMAN, queued=queued)
    assert [one["text"] for one in teams.shown.values()] == [said.searching, said.queued]


async def test_repeated_deliveries_leave_one_text_and_one_card(
    teams: Teams, messenger: TeamsMessenger, outbox: Outbox
) -> None:
    """The answer replaces the placeholder; repeating the delivery shows nothing new. Pictures need a card."""
    message = await messenger.post_placeholder(teams.address, Language.ENGLISH)
    await messenger.deliver(teams.address, message, ANSWER, outbox.keep)
    (text,) = teams.shown.values()
    assert text["text"] == SHOWN
    await messenger.deliver(teams.address, message, PICTURED, outbox.keep)
    await messenger.deliver(teams.address, outbox.message, PICTURED, outbox.keep)
    text, card = teams.shown.values()
    assert text["text"].startswith(f"{SHOWN} • [")
    assert card["attachments"][0]["content"]["body"][0]["url"] == "https://f.example/f/2"
    assert {conversation for _, conversation, _ in teams.sent} == {CONVERSATION}


async def test_a_draft_updates_the_placeholder_as_plain_text(
    teams: Teams, messenger: TeamsMessenger, outbox: Outbox
) -> None:
    """The draft has no markup and no [n] without a target; the answer replaces it."""
    message = await messenger.post_placeholder(teams.address, Language.ENGLISH)
    await messenger.show_partial(teams.address, message, f"Daily {EVIL} [1].")
    (shown,) = teams.shown.values()
    assert shown["textFormat"] == "plain"
    assert "**bold**." in shown["text"]
    assert shown["text"].endswith(MORE_TO_COME)
    await messenger.deliver(teams.address, message, ANSWER, outbox.keep)
    assert next(iter(teams.shown.values()))["text"] == SHOWN


async def test_a_draft_is_tried_once(teams: Teams, messenger: TeamsMessenger) -> None:
    """A rate limit is not waited for; only the final answer is worth it."""
    message = await messenger.post_placeholder(teams.address, Language.ENGLISH)
    sent = len(teams.sent)
    teams.faults = [web.Response(status=429)]
    with pytest.raises(DeliveryError):
        await messenger.show_partial(teams.address, message, "Daily [1].")
    assert len(teams.sent) == sent + 1


async def test_a_personal_chats_answer_ends_its_stream_once(
    teams: Teams, messenger: TeamsMessenger, outbox: Outbox
) -> None:
    """Shows "searching", then verified sentences as they grow, then one message with its button."""
    personal = teams.address | {"is_personal": True}
    message = await messenger.post_placeholder(personal, Language.ENGLISH)
    assert message == {"id": "stream", "is_stream": True}
    await messenger.show_partial(personal, message, f"Daily {EVIL} [1].")
    await messenger.show_partial(personal, message, f"Daily {EVIL} [1]. At 2.")
    await messenger.deliver(personal, message, ANSWER, outbox.keep)
    await messenger.deliver(personal, outbox.message, ANSWER, outbox.keep)
    begun, first, second = [one for *_, one in teams.sent if one["type"] == "typing"]
    infos = [one["entities"][0] for one in (begun, first, second)]
    assert [one["streamType"] for one in infos] == ["informative", "streaming", "streaming"]
    assert [one["streamSequence"] for one in infos] == [1, 2, 3]
    assert begun["text"] == reply_words(Language.ENGLISH).searching
    assert second["text"].startswith(first["text"])
    assert "<at>" not in first["text"]
    assert "(https://" not in first["text"]
    (final,) = [one for *_, one in teams.sent if "attachments" in one]
    assert [one["title"] for one in final["attachments"][0]["content"]["body"][-1]["actions"]] == ["Why?"]
    (text,) = teams.shown.values()
    assert text["text"] == final["text"] == SHOWN


@pytest.mark.parametrize("is_known", [True, False], ids=["too old", "begun before a crash"])
async def test_an_expired_stream_is_replaced_by_the_answer(
    teams: Teams, messenger: TeamsMessenger, outbox: Outbox, is_known: bool
) -> None:
    """After two minutes, or if another process began it, the answer is still posted once."""
    personal = teams.address | {"is_personal": True}
    message = {"id": "stream", "is_stream": True}
    if is_known:
        message = await messenger.post_placeholder(personal, Language.ENGLISH)
        teams.ended.add("stream")
        with pytest.raises(DeliveryError):
            await messenger.show_partial(personal, message, "Daily [1].")
    else:
        await messenger.show_partial(personal, message, "Daily [1].")
        assert teams.sent == []
    await messenger.deliver(personal, message, ANSWER, outbox.keep)
    assert [one.get("text") for one in teams.shown.values() if "text" in one] == [SHOWN]
    assert len(teams.shown) == (2 if is_known else 1)


async def test_a_placeholder_is_posted_where_teams_refuses_a_stream(
    teams: Teams, messenger: TeamsMessenger, outbox: Outbox
) -> None:
    """Teams streams another answer of the chat: this one uses an ordinary message."""
    personal = teams.address | {"is_personal": True}
    teams.ended.add("stream")
    message = await messenger.post_placeholder(personal, Language.ENGLISH)
    assert "is_stream" not in message
    await messenger.deliver(personal, message, ANSWER, outbox.keep)
    assert next(iter(teams.shown.values()))["text"] == SHOWN


async def test_a_rate_limited_stream_is_ended_later(
    teams: Teams, messenger: TeamsMessenger, outbox: Outbox
) -> None:
    """Rate limits and unclear outcomes are not worked around with another call."""
    personal = teams.address | {"is_personal": True}
    message = await messenger.post_placeholder(personal, Language.ENGLISH)
    teams.faults = [web.Response(status=429, headers={"Retry-After": "120"})]
    with pytest.raises(DeliveryError) as caught:
        await messenger.deliver(personal, message, ANSWER, outbox.keep)
    assert caught.value.retry_after == 120
    teams.faults = [None]
    with pytest.raises(DeliveryUnclear):
        await messenger.deliver(personal, message, ANSWER, outbox.keep)
    assert [method for method, *_ in teams.sent] == ["POST"] * 3
    await messenger.deliver(personal, message, ANSWER, outbox.keep)
    assert [one.get("text") for one in teams.shown.values() if "text" in one] == [SHOWN]


async def test_the_bots_token_is_cached_and_renewed_after_a_401(
    teams: Teams, messenger: TeamsMessenger, outbox: Outbox
) -> None:
    """A token serves many messages; after a 401 the next attempt requests a new one."""
    message = await messenger.post_placeholder(teams.address, Language.ENGLISH)
    assert (teams.tokens, set(teams.authorizations)) == (1, {"Bearer token-1"})
    teams.faults = [web.Response(status=401)]
    with pytest.raises(DeliveryError):
        await messenger.deliver(teams.address, message, ANSWER, outbox.keep)
    await messenger.deliver(teams.address, message, ANSWER, outbox.keep)
    assert teams.authorizations[-1] == "Bearer token-2"


@pytest.mark.parametrize("status", [412, 429, 502, 504])
async def test_transient_errors_are_retried(teams: Teams, messenger: TeamsMessenger, status: int) -> None:
    """The documented statuses are retried with backoff."""
    teams.faults = [web.Response(status=status), web.Response(status=status)]
    await messenger.post_placeholder(teams.address, Language.ENGLISH)
    assert len(teams.shown) == 1


@pytest.mark.parametrize(("status", "error"), [(429, DeliveryError), (502, DeliveryUnclear)])
async def test_retries_are_limited(
    teams: Teams, messenger: TeamsMessenger, status: int, error: type[DeliveryError]
) -> None:
    """After four attempts the outbox retries later."""
    teams.faults = [web.Response(status=status) for _ in range(9)]
    with pytest.raises(error):
        await messenger.post_placeholder(teams.address, Language.ENGLISH)
    assert len(teams.faults) == 5


async def test_a_long_rate_limit_goes_back_to_the_outbox(teams: Teams, messenger: TeamsMessenger) -> None:
    """Retry-After is handed on instead of slept through."""
    teams.faults = [web.Response(status=429, headers={"Retry-After": "120"})]
    with pytest.raises(DeliveryError) as caught:
        await messenger.post_placeholder(teams.address, Language.ENGLISH)
    assert caught.value.retry_after == 120


async def test_a_broken_connection_is_unclear(teams: Teams, messenger: TeamsMessenger) -> None:
    """The placeholder may have been posted, so it is not posted again here."""
    teams.faults = [None]
    with pytest.raises(DeliveryUnclear):
        await messenger.post_placeholder(teams.address, Language.ENGLISH)
    assert len(teams.shown) == 1


async def test_a_card_of_unclear_outcome_is_not_posted_twice(
    teams: Teams, messenger: TeamsMessenger, outbox: Outbox
) -> None:
    """The card may be there."""
    message = await messenger.post_placeholder(teams.address, Language.ENGLISH)
    put_is_fine = web.json_response({"id": message["id"]})
    teams.faults = [put_is_fine, None]
    with pytest.raises(DeliveryUnclear):
        await messenger.deliver(teams.address, message, PICTURED, outbox.keep)
    await messenger.deliver(teams.address, outbox.message, PICTURED, outbox.keep)
    assert sum("attachments" in activity for _, _, activity in teams.sent) == 1
    assert teams.shown[message["id"]]["text"].startswith(SHOWN)


async def test_a_card_that_teams_refused_is_posted_later(
    teams: Teams, messenger: TeamsMessenger, outbox: Outbox
) -> None:
    """A card that was certainly not posted is posted on the next attempt."""
    message = await messenger.post_placeholder(teams.address, Language.ENGLISH)
    put_is_fine = web.json_response({"id": message["id"]})
    teams.faults = [put_is_fine, web.Response(status=429, headers={"Retry-After": "120"})]
    with pytest.raises(DeliveryError):
        await messenger.deliver(teams.address, message, PICTURED, outbox.keep)
    await messenger.deliver(teams.address, outbox.message, PICTURED, outbox.keep)
    assert [sorted(one.keys() & {"text", "attachments"}) for one in teams.shown.values()] == [
        ["text"],
        ["attachments"],
    ]


@pytest.mark.parametrize(
    "url", ["https://evil.example/", "http://169.254.169.254/", "https://botframework.com.evil.example/"]
)
async def test_no_message_or_token_is_sent_to_a_foreign_service_url(teams: Teams, url: str) -> None:
    """A stored URL is checked before a token is requested."""
    credentials = AppCredentials("app", "s3cret", "tenant-1", authority=teams.url)
    connector = Connector(credentials, is_microsofts)
    with pytest.raises(DeliveryError, match="service URL"):
        await TeamsMessenger(connector, BotSettings()).post_placeholder(
            {"service_url": url, "conversation": "c"}, Language.ENGLISH
        )
    assert teams.tokens == 0


async def test_an_unreachable_connector_is_no_unclear_outcome(messenger: TeamsMessenger) -> None:
    """A refused connection means that nothing was posted."""
    with pytest.raises(DeliveryError) as caught:
        await messenger.post_placeholder(
            {"service_url": "http://127.0.0.1:9/", "conversation": "c"}, Language.ENGLISH
        )
    assert not isinstance(caught.value, DeliveryUnclear)


async def test_an_announcement_is_one_card_in_the_channel_itself(
    teams: Teams, messenger: TeamsMessenger
) -> None:
    """Shows that it is no reply in a thread, and that document names are shown without markup."""
    place = messenger.announcement_address(CHANNEL, teams.address)
    assert place is not None
    source = CitedPage((), EVIL, EVIL, "https://footnote.example/v/1")
    told = Announcement("b1", "1 PDF is new here.", (AnnouncementEntry(EVIL, (EVIL,)),), (), (source,))
    await messenger.announce(place, told)
    ((_, conversation, activity),) = teams.sent
    assert conversation == CONVERSATION.split(";", maxsplit=1)[0]
    assert "text" not in activity
    *lines, button = activity["attachments"][0]["content"]["body"]
    assert {line["type"] for line in lines} == {"RichTextBlock"}
    assert {run["type"] for line in lines for run in line["inlines"]} == {"TextRun"}
    assert button["actions"][0]["url"] == "https://footnote.example/v/1"


def test_a_channel_that_never_spoke_has_no_place_yet(messenger: TeamsMessenger) -> None:
    """Shows that Teams must first have sent a service URL for the channel."""
    assert messenger.announcement_address(CHANNEL, None) is None


@pytest.mark.parametrize("status", [403, 404])
async def test_a_conversation_without_the_bot_is_closed(
    teams: Teams, messenger: TeamsMessenger, status: int
) -> None:
    """Shows that a permanent refusal is distinguished from a temporary one."""
    teams.faults = [web.Response(status=status)]
    with pytest.raises(ChannelClosed):
        await messenger.announce(
            teams.address | {"tenant": "ms_x"}, Announcement("b1", "1 PDF is new here.", ())
        )


async def test_source_changes_update_the_text_and_add_no_card(
    teams: Teams, messenger: TeamsMessenger
) -> None:
    """Shows one update of the text, with or without a card; a deleted message raises another error."""
    changes = [SourceChange("Newer:", CitedPage((1,), "p. 5", "Page 5", "https://f.example/v/new"))]
    await messenger.revise(teams.address, {"id": "m0"}, ANSWER, changes)
    ((method, _, activity),) = teams.sent
    assert (method, activity["id"]) == ("PUT", "m0")
    assert activity["text"].startswith("⚠️ Newer: [p. 5](https://f.example/v/new)")
    teams.faults = [web.Response(status=404)]
    with pytest.raises(ChannelClosed):
        await messenger.revise(teams.address, {"id": "m0"}, ANSWER, changes)


async def test_an_erased_answer_is_overwritten_with_its_card(
    teams: Teams, messenger: TeamsMessenger, outbox: Outbox
) -> None:
    """Shows the same sentence written over the text and over the card."""
    message = await messenger.post_placeholder(teams.address, Language.ENGLISH)
    await messenger.deliver(teams.address, message, PICTURED, outbox.keep)
    await messenger.replace_erased(teams.address, outbox.message, Answer(AnswerState.CHAT, "Removed."))
    assert [method for method, _, _ in teams.sent[-2:]] == ["PUT", "PUT"]
    assert [one["text"] for one in teams.shown.values()] == ["Removed.", "Removed."]
    assert not any(one.get("attachments") for one in teams.shown.values())
