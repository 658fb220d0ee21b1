"""Membership checks: who may read an answer, when Slack is not asked, and unknown people."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from fakes.member_slack import MemberSlack, serve_members

from bot.core.errors import MembershipsUnknown
from bot.platforms.slack.web_api import web_client
from bot.platforms.slack.workspace.memberships import Memberships
from storage.models import ChannelKey, Platform, TenantName

TEAM, ALICE = "T0ACME001", "U0ALICE01"
IT, HR, DIRECT, GROUP = "C0ITOPS01", "C0HRTEAM1", "D0ALICE01", "D0GROUP01"


@pytest.fixture
async def slack() -> AsyncIterator[MemberSlack]:
    """Yield a fake Slack where Alice is in one of two channels."""
    made = MemberSlack({ALICE: {IT}}, {IT: "it-ops", HR: "hr", GROUP: "group"}, directs={DIRECT: ALICE})
    async with serve_members(made) as served:
        yield served


def memberships(slack: MemberSlack) -> Memberships:
    """Return membership checks against this Slack."""
    return Memberships(web_client("xoxb-test", slack.api_url))


def tenant(channel: str) -> TenantName:
    """Return the tenant of a channel of the workspace."""
    return ChannelKey(Platform("slack"), TEAM, channel).tenant


def address(channel: str, **more: object) -> dict[str, object]:
    """Return the address of a question in a channel."""
    return {"channel": channel, "key": f"{TEAM}:{channel}:17.1", **more}


async def test_own_channels_and_libraries_need_no_membership_check(slack: MemberSlack) -> None:
    """Everyone in the channel can read these anyway."""
    library = ChannelKey(Platform.LOCAL, "", "library/policies").tenant
    for place in (IT, HR, DIRECT):
        assert await memberships(slack).may_read(address(place, user=ALICE), [tenant(place), library])
    assert slack.asked == []


@pytest.mark.parametrize("more", [{"user": ALICE}, {}], ids=["a question", "a note"])
async def test_a_direct_chat_checks_its_persons_memberships(
    slack: MemberSlack, more: dict[str, object]
) -> None:
    """The person is named even if the address names none, as for a note; all channels must match."""
    of = memberships(slack)
    assert await of.channels_of_asker(address(DIRECT, **more)) == {tenant(IT): "#it-ops"}
    assert await of.may_read(address(DIRECT, **more), [tenant(IT)])
    assert not await of.may_read(address(DIRECT, **more), [tenant(IT), tenant(HR)])
    assert not await of.may_read(
        address(DIRECT, asked={"user": ALICE, "text": "When?", "channel": HR}, **more), []
    )
    slack.members[ALICE] = set()
    assert not await of.may_read(address(DIRECT, **more), [tenant(IT)])
    assert set(slack.asked) == {ALICE}


async def test_access_is_denied_when_slack_does_not_answer(slack: MemberSlack) -> None:
    """Slack's refusal raises MembershipsUnknown; without a user Slack would list the bot's own channels."""
    with pytest.raises(MembershipsUnknown):
        await memberships(slack).may_read(address(GROUP), [tenant(IT)])
    assert slack.asked == []
    slack.is_silent = True
    with pytest.raises(MembershipsUnknown):
        await memberships(slack).may_read(address(DIRECT, user=ALICE), [tenant(IT)])
