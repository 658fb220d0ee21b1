"""Inbox: questions are stored before they are acknowledged, leased to one worker and answered once."""

import asyncio
import sys
from asyncio.subprocess import PIPE
from dataclasses import replace
from datetime import timedelta

import pytest
from harness.clocks import shift_wall_clock
from sqlalchemy import select, update

from storage.chat.channels import Channels
from storage.chat.inbox import STOP_DELAY, Inbox
from storage.chat.traces import QuestionRecords
from storage.chat_models import STREAM_KEY, InboxItem, NewTurn
from storage.clock import utc_now
from storage.errors import DatabaseUnavailable, LeaseLost, MessageTaken
from storage.models import Channel, ChannelKey, Platform
from storage.sql.database import Database
from storage.sql.tables import InboxRow, OutboxRow, QuestionRecordRow, TurnRow

SLACK = (Platform("slack"),)
MESSAGE = {"thread": "17.1", "text": "How many days?", "address": {"channel": "C1", "thread_ts": "17.1"}}


@pytest.fixture
def inbox(database: Database) -> Inbox:
    """An empty inbox."""
    return Inbox(database)


@pytest.fixture
async def channel(database: Database) -> Channel:
    """A Slack channel."""
    return await Channels(database).ensure(ChannelKey(Platform("slack"), "T1ABC", "C1ABC"))


async def receive(
    inbox: Inbox,
    channel: Channel,
    event: str = "e1",
    message: str = "m1",
    *,
    is_late: bool = False,
) -> bool:
    return await inbox.receive(channel, event_key=event, message_key=message, is_late=is_late, **MESSAGE)


async def claim(inbox: Inbox, owner: str = "a") -> InboxItem:
    item = await inbox.claim(owner, 60, SLACK)
    assert item is not None
    return item


async def expire_leases(database: Database) -> None:
    async with database.transaction() as session:
        await session.execute(update(InboxRow).values(lease_until=utc_now() - timedelta(seconds=1)))


async def test_a_repeated_event_is_stored_once(inbox: Inbox, channel: Channel) -> None:
    """The same event again, or another event of the same message, is a duplicate; a new message is not."""
    assert await receive(inbox, channel, "e1", "m1")
    assert not await receive(inbox, channel, "e1", "m1")
    assert not await receive(inbox, channel, "e2", "m1")
    assert not await receive(inbox, channel, "e1", "m2")
    assert await receive(inbox, channel, "e3", "m3")


async def test_the_bot_takes_part_in_threads_with_questions(
    inbox: Inbox, channel: Channel, database: Database
) -> None:
    """Not in other threads or channels, nor in a thread whose only question failed."""
    other = await Channels(database).ensure(ChannelKey(Platform("slack"), "T1ABC", "C2ABC"))
    assert not await inbox.has_question(channel.tenant, "17.1")
    await receive(inbox, channel)
    assert await inbox.has_question(channel.tenant, "17.1")
    assert not await inbox.has_question(channel.tenant, "18.1")
    assert not await inbox.has_question(other.tenant, "17.1")
    await inbox.fail(await claim(inbox), "nobody takes it")
    assert not await inbox.has_question(channel.tenant, "17.1")


async def test_recent_questions_are_the_askers_own_in_visible_channels(
    inbox: Inbox, channel: Channel, database: Database
) -> None:
    """Newest first and distinct; no unanswered, withdrawn or small-talk questions."""
    other = await Channels(database).ensure(ChannelKey(Platform("slack"), "T1ABC", "C2ABC"))
    rows = [
        (channel, "U1", "old?", "grounded"),
        (channel, "U1", "again?", "passages"),
        (channel, "U2", "theirs?", "grounded"),
        (channel, "U1", "hello", "chat"),
        (other, "U1", "elsewhere?", "not_found"),
        (channel, "U1", "withdrawn?", "grounded"),
        (channel, "U1", "again?", "grounded"),
    ]
    for number, (place, user, text, state) in enumerate(rows):
        event, address = f"e{number}", {"channel": "C1", "user": user}
        await inbox.receive(place, event_key=event, message_key=event, thread="", text=text, address=address)
        item = await claim(inbox)
        await inbox.mark_posting(item)
        await inbox.save_answer(item, {"state": state})
        await inbox.mark_delivered(item)
    await inbox.withdraw(Platform("slack"), "e5")
    await receive(inbox, channel, "e9", "m9")

    async def recent(user: str, *channels: Channel, limit: int = 9) -> list[tuple[str, str]]:
        tenants = [one.tenant for one in channels]
        return [(one.tenant, one.text) for one in await inbox.recent_of(user, tenants, limit)]

    here = [(channel.tenant, "again?"), (channel.tenant, "old?")]
    assert await recent("U1", channel) == here
    assert await recent("U1", channel, limit=1) == here[:1]
    assert await recent("U1", channel, other) == [here[0], (other.tenant, "elsewhere?"), here[1]]
    assert await recent("U2", channel) == [(channel.tenant, "theirs?")]
    assert await recent("U3", channel, other) == await recent("U1") == []


async def test_concurrent_clicks_share_an_answer_once(inbox: Inbox, channel: Channel) -> None:
    """Compare-and-set: one of five clicks wins, unsharing resets it, the rest of the address is unchanged."""
    await receive(inbox, channel)
    clicks = [inbox.set_shared(Platform("slack"), "m1", is_shared=True) for _ in range(5)]
    assert sorted(await asyncio.gather(*clicks)) == [False] * 4 + [True]
    assert await inbox.set_shared(Platform("slack"), "m1", is_shared=False)
    assert not await inbox.set_shared(Platform("slack"), "m1", is_shared=False)
    assert not await inbox.set_shared(Platform("slack"), "m2", is_shared=True)
    item = await claim(inbox)
    assert item.address == MESSAGE["address"] | {"is_shared": False}


async def test_editing_a_question_revokes_the_running_answer(
    inbox: Inbox, channel: Channel, database: Database
) -> None:
    """The message is kept and the answer cleared; unchanged text and other messages have no effect."""
    await receive(inbox, channel)
    first = await claim(inbox)
    await inbox.mark_posting(first)
    await inbox.mark_placed(first, {"ts": "18.1"})
    await inbox.save_answer(first, {"text": "30"})
    assert not await inbox.requeue_edited(Platform("slack"), "m1", MESSAGE["text"])
    assert not await inbox.requeue_edited(Platform("slack"), "m2", "How many hours?")
    assert not await inbox.requeue_edited(Platform("teams"), "m1", "How many hours?")
    assert await inbox.requeue_edited(Platform("slack"), "m1", "How many hours?")
    with pytest.raises(LeaseLost):
        await inbox.mark_delivered(first)
    second = await claim(inbox, "b")
    assert (second.id, second.text, second.message, second.answer) == (
        first.id,
        "How many hours?",
        {"ts": "18.1"},
        None,
    )


async def test_a_withdrawn_question_is_erased(inbox: Inbox, channel: Channel, database: Database) -> None:
    """Text, answer, turn and trace are deleted; its message is returned on every call."""
    await receive(inbox, channel)
    item = await claim(inbox)
    assert await inbox.answer_of(Platform("slack"), "m1") is None
    await inbox.mark_posting(item)
    posting = await inbox.withdraw(Platform("slack"), "m1")
    assert posting
    assert (posting.message, posting.is_posting) == (None, True)
    await receive(inbox, channel, "e2", "m2")
    item = await claim(inbox)
    await inbox.mark_posting(item)
    await inbox.mark_placed(item, {"ts": "18.1"})
    turn = NewTurn(str(item.id), channel.id, "17.1", "q", "q", "a", (), utc_now())
    await inbox.save_answer(item, {"text": "30"}, turn)
    await QuestionRecords(database, 30).keep(str(item.id), channel.id, utc_now(), "grounded", {"text": "q"})
    assert await inbox.answer_of(Platform("slack"), "m2") == (MESSAGE["address"], {"text": "30"})
    for _ in range(2):
        withdrawn = await inbox.withdraw(Platform("slack"), "m2")
        assert withdrawn
        assert withdrawn.message == {"ts": "18.1"}
    with pytest.raises(LeaseLost):
        await inbox.mark_delivered(item)
    assert await inbox.claim("a", 60, SLACK) is None
    assert await inbox.answer_of(Platform("slack"), "m2") is None
    assert not await inbox.requeue_edited(Platform("slack"), "m2", "How many hours?")
    assert await inbox.withdraw(Platform("slack"), "m3") is None
    async with database.snapshot() as session:
        assert list(await session.scalars(select(InboxRow.text))) == ["", ""]
        assert list(await session.scalars(select(TurnRow.id))) == []
        assert list(await session.scalars(select(QuestionRecordRow.id))) == []


async def test_stopping_saves_the_given_answer(inbox: Inbox, channel: Channel, database: Database) -> None:
    """Found by thread or by key, once the placeholder exists; answered ones and other channels stay."""
    tenant, asked = channel.tenant, []
    for number in range(4):
        await receive(inbox, channel, f"e{number}", f"m{number}")
    items = [await claim(inbox) for _ in range(3)]
    for item in items:
        await inbox.mark_posting(item)
    await inbox.mark_placed(items[0], {"ts": "18.1"})
    await inbox.save_answer(items[1], {"text": "30"})

    def stopped(item: InboxItem) -> dict[str, str] | None:
        asked.append(item.id)
        return {"text": "stopped"}

    assert await inbox.stop(tenant, "another", "another", stopped) == []
    other = await Channels(database).ensure(ChannelKey(Platform("slack"), "T1ABC", "C2ABC"))
    assert await inbox.stop(other.tenant, "17.1", "m0", stopped) == []
    assert await inbox.stop(tenant, "17.1", "m0", lambda _: None) == []
    assert await inbox.stop(tenant, "another", "m0", stopped) == [items[0].id]
    assert await inbox.stop(tenant, "17.1", "another", stopped) == [items[2].id]
    assert asked == [items[0].id, items[2].id]
    for item in (items[0], items[2]):
        with pytest.raises(LeaseLost):
            await inbox.save_answer(item, {"text": "30"})
    await inbox.save_answer(items[1], {"text": "30"})
    with shift_wall_clock(2 * STOP_DELAY):
        again = [await claim(inbox) for _ in range(3)]
    assert [one.answer for one in again if one.id in asked] == [{"text": "stopped"}] * 2
    assert [one.message for one in again if one.id == items[0].id] == [{"ts": "18.1"}]


async def test_a_stream_is_claimed_by_one_question(inbox: Inbox, channel: Channel) -> None:
    """Concurrent claims of one thread's stream have one winner; an explicit claim by key still works."""
    for number in range(5):
        await receive(inbox, channel, f"e{number}", f"m{number}")
    items = [await claim(inbox) for _ in range(4)]
    for item in items:
        await inbox.mark_posting(item)
    stream = {"channel": "C1", "ts": "18.1", STREAM_KEY: True}
    taken = await asyncio.gather(
        *(inbox.mark_placed(item, stream) for item in items[:3]),
        inbox.take_message(Platform("slack"), "m3", stream),
        return_exceptions=True,
    )
    lost = [one for one in taken if one is False or isinstance(one, MessageTaken)]
    assert len(lost) == 3
    others = [await inbox.other_messages(item) for item in items]
    assert sorted(map(len, others)) == [0, 1, 1, 1]
    owner = items[others.index([])]
    await inbox.mark_placed(owner, stream)
    assert not await inbox.take_message(Platform("slack"), "m4", stream)
    assert not await inbox.take_message(Platform("slack"), "unknown", stream)
    withdrawn = await inbox.withdraw(Platform("slack"), f"m{(items.index(owner) + 1) % 4}")
    assert withdrawn
    assert list(withdrawn.others) == [stream]
    await inbox.mark_placed(items[(items.index(owner) + 2) % 4], {"channel": "C1", "ts": "18.1"})


async def test_twenty_concurrent_deliveries_are_stored_once(inbox: Inbox, channel: Channel) -> None:
    kept = await asyncio.gather(*(receive(inbox, channel, f"e{n}", "m1") for n in range(20)))
    assert kept.count(True) == 1


async def test_equal_keys_on_two_platforms_are_two_questions(
    inbox: Inbox, channel: Channel, database: Database
) -> None:
    """Platforms number their events independently."""
    teams = await Channels(database).ensure(ChannelKey(Platform("teams"), "tenant", "19:x"))
    assert await receive(inbox, channel)
    assert await receive(inbox, teams)


RECEIVING = """
import asyncio, os, sys
from storage.chat.channels import Channels
from storage.sql.database import Database
from storage.chat.inbox import STOP_DELAY, Inbox
from storage.models import ChannelKey, Platform

async def main():
    database = await Database.open(sys.argv[1])
    channel = await Channels(database).ensure(ChannelKey(Platform("slack"), "T1ABC", "C1ABC"))
    kept = await Inbox(database).receive(
        channel, event_key="e1", message_key="m1", thread="", text="kept?", address={}
    )
    print(kept, flush=True)
    os.kill(os.getpid(), 9)

asyncio.run(main())
"""


async def test_a_received_question_survives_kill_9(inbox: Inbox, channel: Channel, database_url: str) -> None:
    """A process killed right after storing a question leaves it to the next one."""
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", RECEIVING, database_url, stdout=PIPE)
    output, _ = await process.communicate()
    assert (output, process.returncode) == (b"True\n", -9)
    assert not await receive(inbox, channel)
    assert (await claim(inbox)).text == "kept?"


async def test_a_claim_returns_the_question_unchanged(inbox: Inbox, channel: Channel) -> None:
    """Oldest first, with everything that a reply needs."""
    await receive(inbox, channel, "e1", "m1")
    await receive(inbox, channel, "e2", "m2")
    first, second = await claim(inbox), await claim(inbox)
    assert first.id < second.id
    assert (first.text, first.thread, first.address) == tuple(
        MESSAGE[name] for name in ("text", "thread", "address")
    )
    assert (first.channel_id, first.platform, first.attempts) == (channel.id, Platform("slack"), 0)
    assert (first.message, first.answer, first.is_posting) == (None, None, False)
    assert await inbox.claim("a", 60, SLACK) is None


async def test_twenty_workers_never_hold_one_question_twice(inbox: Inbox, channel: Channel) -> None:
    """Concurrent claims get distinct questions or none."""
    for number in range(10):
        await receive(inbox, channel, f"e{number}", f"m{number}")
    claims = await asyncio.gather(*(inbox.claim(f"w{n}", 60, SLACK) for n in range(20)))
    held = [item.id for item in claims if item]
    assert sorted(held) == sorted(set(held))
    assert len(held) == 10


async def test_only_questions_without_a_placeholder_are_queued(
    inbox: Inbox, channel: Channel, database: Database
) -> None:
    """A question with a placeholder, one that may have it, and an empty message are not claimed."""
    wordless = {**MESSAGE, "text": ""}
    await inbox.receive(channel, event_key="note", message_key="note", **wordless)
    for place in ("posting", "placed", None):
        await receive(inbox, channel, f"e {place}", f"m {place}")
    async with database.transaction() as session:
        rows = {row.message_key: row for row in await session.scalars(select(InboxRow))}
        for place in ("posting", "placed"):
            message = {"ts": "1"} if place == "placed" else None
            session.add(OutboxRow(inbox_id=rows[f"m {place}"].id, state=place, message=message))
    (item,) = await inbox.claim_unseen("a", 60, SLACK, 9)
    assert (item.id, item.ahead) == (rows["m None"].id, 3)
    assert await inbox.claim_unseen("a", 60, SLACK, 9) == []
    await inbox.mark_placed(item, {"ts": "1"}, is_released=True)
    assert await inbox.claim_unseen("a", 60, SLACK, 9) == []
    with pytest.raises(LeaseLost):
        await inbox.mark_placed(replace(item, fence=item.fence - 1), {"ts": "2"}, is_released=True)


async def test_channels_are_served_round_robin(inbox: Inbox, channel: Channel, database: Database) -> None:
    """A question per channel and round; late ones are queued behind their channel's others."""
    for number in range(5):
        await receive(inbox, channel, f"a{number}", f"a{number}", is_late=number == 3)
    other = await Channels(database).ensure(ChannelKey(Platform("slack"), "T1ABC", "C2ABC"))
    for number in range(2):
        await receive(inbox, other, f"b{number}", f"b{number}")
    async with database.snapshot() as session:
        names = {row.id: row.message_key for row in await session.scalars(select(InboxRow))}
    served = [names[(await claim(inbox)).id] for _ in names]
    assert served == ["a0", "b0", "a1", "b1", "a2", "a4", "a3"]
    assert await inbox.claim("a", 60, SLACK) is None


async def test_an_idle_channel_accumulates_no_credit(
    inbox: Inbox, channel: Channel, database: Database
) -> None:
    """After four answers in one channel, another one joins the round instead of catching up."""
    for number in range(6):
        await receive(inbox, channel, f"a{number}", f"a{number}")
    for _ in range(4):
        item = await claim(inbox)
        await inbox.mark_posting(item)
        await inbox.mark_delivered(item)
    other = await Channels(database).ensure(ChannelKey(Platform("slack"), "T1ABC", "C2ABC"))
    for number in range(3):
        await receive(inbox, other, f"b{number}", f"b{number}")
    assert [(await claim(inbox)).channel_id for _ in range(4)] == [channel.id, other.id] * 2


async def test_questions_of_a_closed_channel_are_not_claimed(inbox: Inbox, channel: Channel) -> None:
    """A closed channel yields only questions with a placeholder; a refused post leaves none behind."""
    for number in range(3):
        await receive(inbox, channel, f"e{number}", f"m{number}")
    closed = {"closed_channels": [channel.id]}
    assert await inbox.claim_unseen("a", 60, SLACK, 9, **closed) == []
    assert await inbox.claim("a", 60, SLACK, **closed) is None
    allowed = [True, False, False]
    (first,) = await inbox.claim_unseen("a", 60, SLACK, 9, may_post=lambda _: allowed.pop(0))
    await inbox.mark_unposted(first)
    await inbox.retry_later(first, "not so fast", at_least=1)
    with shift_wall_clock(timedelta(seconds=3)):
        again = await inbox.claim_unseen("a", 60, SLACK, 1)
        assert [(item.id, item.is_posting) for item in again] == [(first.id, False)]
        await inbox.mark_placed(again[0], {"ts": "1"}, is_released=True)
        held = await inbox.claim("a", 60, SLACK, **closed)
        assert held
        assert (held.id, held.message) == (first.id, {"ts": "1"})


async def test_two_workers_never_post_for_one_question(inbox: Inbox, channel: Channel) -> None:
    """Concurrent batch claims are disjoint."""
    for number in range(20):
        await receive(inbox, channel, f"e{number}", f"m{number}")
    claims = await asyncio.gather(*(inbox.claim_unseen(f"w{n}", 60, SLACK, 8) for n in range(4)))
    held = [item.id for items in claims for item in items]
    assert len(held) == len(set(held))
    while more := await inbox.claim_unseen("last", 60, SLACK, 8):
        held += [item.id for item in more]
    assert sorted(held) == sorted(set(held))
    assert len(held) == 20


async def test_questions_of_another_platform_are_not_claimed(inbox: Inbox, channel: Channel) -> None:
    """A question is claimed only by a worker that can reply on its platform."""
    await receive(inbox, channel)
    assert await inbox.claim("a", 60, (Platform("teams"),)) is None
    assert await inbox.claim("a", 60, ()) is None
    assert await inbox.claim("a", 60, SLACK) is not None


async def test_a_worker_without_its_lease_cannot_write(
    inbox: Inbox, channel: Channel, database: Database
) -> None:
    """After a takeover, every step of the first worker is refused without side effects."""
    await receive(inbox, channel)
    lost = await claim(inbox, "slow")
    await inbox.mark_posting(lost)
    await expire_leases(database)
    held = await claim(inbox, "quick")
    await inbox.mark_placed(held, {"ts": "1"})
    for step in (
        inbox.renew(lost, 60),
        inbox.mark_posting(lost),
        inbox.mark_placed(lost, {"ts": "2"}),
        inbox.save_answer(lost, {"text": "late"}),
        inbox.mark_delivered(lost),
        inbox.release(lost),
        inbox.retry_later(lost, "late"),
        inbox.fail(lost, "late"),
    ):
        with pytest.raises(LeaseLost):
            await step
    await inbox.renew(held, 60)
    async with database.snapshot() as session:
        reply = (await session.scalars(select(OutboxRow))).one()
        row = (await session.scalars(select(InboxRow))).one()
    assert (reply.message, reply.answer, reply.state) == ({"ts": "1"}, None, "placed")
    assert (row.lease_owner, row.state, row.reason) == ("quick", "waiting", None)


async def test_the_next_worker_resumes_where_the_last_one_stopped(
    inbox: Inbox, channel: Channel, database: Database
) -> None:
    """Posting state, placeholder and answer carry over; each crash counts as an attempt."""
    await receive(inbox, channel)
    await inbox.mark_posting(await claim(inbox))
    await expire_leases(database)
    posting = await claim(inbox)
    assert (posting.is_posting, posting.message, posting.attempts) == (True, None, 1)
    await inbox.mark_placed(posting, {"ts": "1"})
    await expire_leases(database)
    placed = await claim(inbox)
    assert (placed.is_posting, placed.message, placed.answer) == (False, {"ts": "1"}, None)
    await inbox.save_answer(placed, {"text": "15 days"})
    await expire_leases(database)
    answered = await claim(inbox)
    assert (answered.message, answered.answer, answered.attempts) == ({"ts": "1"}, {"text": "15 days"}, 3)
    await inbox.mark_delivered(answered)
    await expire_leases(database)
    assert await inbox.claim("a", 60, SLACK) is None


async def test_release_is_immediate_and_retry_later_is_delayed(inbox: Inbox, channel: Channel) -> None:
    """A released question can be claimed at once, a postponed one only after its delay."""
    await receive(inbox, channel)
    await inbox.release(await claim(inbox))
    await inbox.retry_later(await claim(inbox), "DeliveryError", at_least=0.4)
    assert await inbox.claim("a", 60, SLACK) is None
    with shift_wall_clock(timedelta(seconds=3)):
        assert (await claim(inbox)).attempts == 0


async def test_backoff_grows_and_only_own_faults_count_as_attempts(
    inbox: Inbox, channel: Channel, database: Database
) -> None:
    """Engine outages may last indefinitely without using up a question's attempts."""
    await receive(inbox, channel)
    least, most = [], []  # seconds, by the clock after and before: the machine may stall
    for fault in (False, False, True, False):
        claimed, before = await claim(inbox), utc_now()
        await inbox.retry_later(claimed, "why", is_own_fault=fault)
        async with database.transaction() as session:
            row = (await session.scalars(select(InboxRow))).one()
            assert row.next_attempt_at is not None
            least.append((row.next_attempt_at - utc_now()).total_seconds())
            most.append((row.next_attempt_at - before).total_seconds())
            row.next_attempt_at = None
    assert most[0] > 0.3
    assert least[0] < most[2]
    assert least[2] < 30
    assert (await claim(inbox)).attempts == 1


async def test_a_failed_question_stays_for_the_admin(
    inbox: Inbox, channel: Channel, database: Database
) -> None:
    """A failed question is never claimed again; its reason is stored."""
    await receive(inbox, channel)
    await inbox.fail(await claim(inbox), "DeliveryError")
    assert await inbox.claim("a", 60, SLACK) is None
    async with database.snapshot() as session:
        row = (await session.scalars(select(InboxRow))).one()
    assert (row.state, row.reason) == ("failed", "DeliveryError")


async def test_a_question_that_cannot_be_stored_raises(database_url: str, database: Database) -> None:
    """While another transaction holds the row, receiving raises, so the event is not acknowledged."""
    impatient = await Database.open(database_url, busy_seconds=0.1)
    channel = await Channels(database).ensure(ChannelKey(Platform("slack"), "T1ABC", "C1ABC"))
    await receive(Inbox(database), channel, "e0", "m0")
    async with database.transaction() as session:
        await session.execute(update(InboxRow).values(event_key="e1"))
        with pytest.raises(DatabaseUnavailable, match="locked"):
            await receive(Inbox(impatient), channel)
    assert not await receive(Inbox(impatient), channel)
    await impatient.aclose()


async def test_leases_and_delays_from_a_fast_clock_are_ignored(inbox: Inbox, channel: Channel) -> None:
    """A question leased or postponed by a process two hours ahead is claimed at once."""
    await receive(inbox, channel)
    with shift_wall_clock(timedelta(hours=2)):
        first = await claim(inbox)
    second = await claim(inbox, "b")
    assert (second.id, second.attempts) == (first.id, 1)
    with shift_wall_clock(timedelta(hours=2)):
        await inbox.retry_later(second, "a moment")
    third = await claim(inbox, "c")
    with pytest.raises(LeaseLost):
        await inbox.mark_posting(first)
    await inbox.retry_later(third, "a week, says the platform", at_least=7 * 86_400)
    assert await inbox.claim("d", 60, SLACK) is None
    with shift_wall_clock(timedelta(minutes=16)):
        assert await inbox.claim("d", 60, SLACK) is not None


async def test_a_reply_finds_its_question_in_its_channel_only(
    database: Database, inbox: Inbox, channel: Channel
) -> None:
    """Found by the id of our message once it is answered, by no other id."""
    await receive(inbox, channel)
    item = await claim(inbox)
    await inbox.mark_posting(item)
    await inbox.mark_placed(item, {"id": "m-17"})
    assert await inbox.question_of_reply(channel.tenant, "m-17") is None
    await inbox.save_answer(item, {"language": "de"})
    assert await inbox.question_of_reply(channel.tenant, "m-17") == (channel.id, str(item.id), "de")
    other = await Channels(database).ensure(ChannelKey(Platform("slack"), "T1ABC", "C2ABC"))
    assert await inbox.question_of_reply(other.tenant, "m-17") is None
    assert await inbox.question_of_reply(channel.tenant, "m-1") is None
