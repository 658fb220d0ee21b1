"""Channels are created from verified keys and admin commands only."""

import asyncio

import pytest

from storage.chat.channels import Channels, DirectLibrary, is_channel_name
from storage.errors import InvalidTenant, UnknownChannel
from storage.models import ChannelKey, Platform, TenantName
from storage.sql.database import Database

SLACK = ChannelKey(Platform("slack"), "T012AB", "C034CD")
TEAMS = ChannelKey(Platform("teams"), "aad-tenant", "19:meeting@thread.v2;messageid=17")


@pytest.fixture
def channels(database: Database) -> Channels:
    """The channels of a fresh database."""
    return Channels(database)


def local(name: str) -> ChannelKey:
    return ChannelKey(Platform.LOCAL, "", name)


async def test_one_key_is_one_channel(channels: Channels) -> None:
    """Ensuring a key concurrently returns the one existing channel."""
    made = await asyncio.gather(*(channels.ensure(SLACK) for _ in range(10)))
    assert len(set(made)) == 1
    assert made[0].tenant == "sl_T012AB_C034CD"
    assert made[0].platform == Platform("slack")


async def test_a_chat_channel_has_its_latest_name(channels: Channels) -> None:
    """Falls back to the tenant name; the last name that the platform sent is stored."""
    assert (await channels.ensure(SLACK)).name == "sl_T012AB_C034CD"
    assert (await channels.ensure(SLACK, "general")).name == "general"
    assert (await channels.ensure(SLACK)).name == "general"
    assert (await channels.ensure(SLACK, "everybody")).name == "everybody"


async def test_a_name_set_by_an_admin_is_kept(channels: Channels) -> None:
    """Shows that the platform's name, earlier or later, does not override it; an admin may rename again."""
    made = await channels.ensure(SLACK, "#general")
    assert (await channels.ensure_named(made.tenant, "#company")).name == "#company"
    assert (await channels.ensure(SLACK, "#general-2")).name == "#company"
    assert (await channels.ensure_named(made.tenant)).name == "#company"
    assert (await channels.ensure_named(made.tenant, "#all")).name == "#all"


async def test_a_local_channel_is_found_by_its_name(channels: Channels) -> None:
    made = await channels.ensure(local("IT support"))
    assert await channels.by_name("IT support") == made
    assert made.name == "IT support"


async def test_a_chat_channel_is_found_by_its_tenant_only(channels: Channels) -> None:
    """A display name, which any chat member can change, resolves to nothing."""
    made = await channels.ensure(TEAMS, "Finance")
    assert await channels.by_name(made.tenant) == made
    with pytest.raises(UnknownChannel, match="Finance"):
        await channels.by_name("Finance")


async def test_looking_up_an_unknown_name_creates_no_channel(channels: Channels) -> None:
    with pytest.raises(UnknownChannel):
        await channels.by_name("nobody")
    with pytest.raises(UnknownChannel):
        await channels.get(1)
    assert await channels.all() == []


async def test_a_folder_may_exist_before_its_channel_sends_events(channels: Channels) -> None:
    """A channel created from its tenant name is the one that a verified event finds later."""
    tenant = TenantName("sl_T012AB_C034CD")
    early = await channels.ensure_tenant(tenant)
    named = await channels.ensure_tenant(tenant, "#hr-questions")
    assert (named.id, named.name) == (early.id, "#hr-questions")
    assert await channels.ensure_tenant(tenant) == named
    spoken = await channels.ensure(SLACK, "general")
    assert (spoken.id, spoken.tenant) == (early.id, early.tenant)


async def test_an_admin_command_creates_the_channel_that_it_names(channels: Channels) -> None:
    """A tenant name creates that chat channel, any other name a local one."""
    chat, plain = await channels.ensure_named("sl_T012AB_C034CD"), await channels.ensure_named("it")
    assert (chat.platform, plain.platform) == (Platform("slack"), Platform.LOCAL)
    assert await channels.ensure_named("it") == await channels.by_name("it") == plain
    assert (await channels.ensure(SLACK, "general")).id == chat.id


async def test_names_and_keys_of_two_channels_never_collide(channels: Channels) -> None:
    """A local channel cannot take a chat channel's tenant; equal names on two platforms are two channels."""
    chat = await channels.ensure(SLACK, "it")
    teams = await channels.ensure(TEAMS, "it")
    named_like_chat = await channels.ensure(local(chat.tenant))
    assert len({chat.id, teams.id, named_like_chat.id}) == 3
    assert (await channels.by_name(chat.tenant)).id == chat.id


async def test_a_key_with_foreign_characters_is_refused(channels: Channels) -> None:
    """An id that Slack never issues creates no channel."""
    with pytest.raises(InvalidTenant):
        await channels.ensure(ChannelKey(Platform("slack"), "T1/../T2", "C1"))
    assert await channels.all() == []


async def test_channels_are_listed_by_platform(channels: Channels) -> None:
    for key, name in ((SLACK, "b"), (TEAMS, "a"), (local("c"), None)):
        await channels.ensure(key, name)
    assert [channel.name for channel in await channels.all()] == ["a", "b", "c"]
    assert [channel.name for channel in await channels.all(Platform.LOCAL)] == ["c"]


async def test_raising_an_epoch_affects_one_channel(channels: Channels) -> None:
    """Revoking the links of one channel leaves those of the others valid."""
    first, second = await channels.ensure(local("a")), await channels.ensure(local("b"))
    await channels.invalidate_links(first.id)
    assert (await channels.get(first.id)).epoch == 2
    assert (await channels.get(second.id)).epoch == 1


async def test_the_newest_message_decides_if_a_chat_is_direct(channels: Channels) -> None:
    """A chat from before the flag existed becomes direct with its next message."""
    assert not (await channels.ensure(SLACK)).is_direct
    known = await channels.ensure(SLACK, is_direct=True)
    assert known.is_direct
    assert await channels.get(known.id) == known


async def test_no_folder_name_resolves_to_the_channel_of_a_library(channels: Channels) -> None:
    """No inbox folder and no `--channel` that creates channels can feed what direct chats search."""
    library = await channels.ensure_library("policies")
    assert (library.name, library.platform) == ("library/policies", Platform.LOCAL)
    assert await channels.by_name("library/policies") == library
    assert (await channels.ensure(local("policies"))).id != library.id
    with pytest.raises(UnknownChannel):
        await channels.ensure_named("library/policies")
    assert is_channel_name("library/policies")  # in the glossary, and for web pages
    assert not is_channel_name("library/a/b")


async def test_direct_chats_use_the_last_library_that_was_set(channels: Channels) -> None:
    """The last setting wins and can be cleared."""
    first, second = await channels.ensure_library("a"), await channels.ensure_library("b")
    assert await channels.direct_library() is None
    of_some = DirectLibrary(second, frozenset({"T1", "T2"}))
    for library in (DirectLibrary(first), DirectLibrary(second), of_some, None):
        await channels.set_direct_library(library)
        assert await channels.direct_library() == library
