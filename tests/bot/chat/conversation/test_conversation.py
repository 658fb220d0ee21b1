"""Conversation: each received question gets exactly one visible answer, whatever crashes."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from fakes.core import WORDS
from fakes.memory_inbox import service_with
from harness.empty_homes import make_sqlite
from harness.waiting import PATIENCE, until, until_true
from sqlalchemy import select, update

from bot.answers.understanding.direct_libraries import DirectLibraries
from bot.chat.chat_service import ChatService
from bot.chat.conversation.conversation import FLOOD_SECONDS, Conversation
from bot.chat.conversation.direct_chats import DirectChats
from bot.chat.conversation.queue_limits import Pacing
from bot.core.errors import DeliveryError, DeliveryUnclear, FileNotReady
from bot.core.models import Answer, AnsweredFrom, AnswerFigure, AnswerState, Language, Question
from bot.core.ports import AnswerListener, IncomingMessage, RenewLease, SaveMessage, StopRequest
from bot.core.wording import reply_words
from bot.settings import BotSettings
from storage.chat.channels import Channels, DirectLibrary
from storage.chat.inbox import Inbox
from storage.chat.thread_memory import ThreadMemory
from storage.chat_models import UPLOAD_KEY, InboxItem
from storage.clock import utc_now
from storage.errors import IndexUnavailable, LeaseLost
from storage.models import Box, Channel, ChannelKey, Platform, TenantName
from storage.sql.database import Database
from storage.sql.tables import InboxRow, TurnRow

Json = dict[str, Any]
PLACEHOLDER = "…"
QUEUED = reply_words(Language.ENGLISH).queued
FIGURE = AnswerFigure(
    "a.pdf", 1, "Backups by day", Box(0, 0, 1, 1), "http://127.0.0.1/v/a", "http://127.0.0.1/f/a"
)


class Killed(BaseException):
    """Simulates SIGKILL: the process does nothing afterwards."""


class Fallible:
    """Forwards calls to ``inner`` and raises planned errors before or after them."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.planned: list[tuple[str, str, BaseException]] = []

    def plan(self, method: str, when: str, *errors: BaseException) -> None:
        """Let the next calls of ``method`` raise, one error each."""
        self.planned += [(method, when, error) for error in errors]

    def _take(self, method: str, when: str) -> None:
        for entry in self.planned:
            if entry[:2] == (method, when):
                self.planned.remove(entry)
                raise entry[2]

    def __getattr__(self, method: str) -> Callable[..., Any]:
        async def call(*arguments: Any, **options: Any) -> Any:
            self._take(method, "before")
            result = await getattr(self._inner, method)(*arguments, **options)
            self._take(method, "after")
            return result

        return call


class Chat:
    """A fake chat platform: its visible messages, and a messenger that can find its placeholder."""

    def __init__(self, *, can_look: bool = True) -> None:
        self.visible: list[tuple[Json, str]] = []
        # Texts written over placeholders.
        self.writes: list[str] = []
        # Captions of the figures shown by each message.
        self.pictures: dict[int, list[str]] = {}
        self.can_look = can_look
        # Conversations in which the platform currently refuses posts.
        self.full: set[str] = set()

    async def post_placeholder(
        self, address: Json, language: Language, *, queued: str = "", asked: str = ""
    ) -> Json:
        """Post a placeholder."""
        if address.get("in") in self.full:
            raise DeliveryError("not so fast", retry_after=0.2)
        self.visible.append((address, queued or PLACEHOLDER))
        return {"index": len(self.visible) - 1}

    async def find_placeholder(self, address: Json, others: Sequence[Json] = ()) -> Json | None:
        """Find the placeholder for this address."""
        found = [index for index, (where, _) in enumerate(self.visible) if where == address]
        return {"index": found[0]} if found and self.can_look else None

    async def show_partial(self, address: Json, message: Json, text: str) -> None:
        """Update the placeholder with a draft."""
        assert self.visible[message["index"]][0] == address
        self.visible[message["index"]] = (address, f"{text} {PLACEHOLDER}")
        self.writes.append(text)

    async def deliver(self, address: Json, message: Json, answer: Answer, save: SaveMessage) -> None:
        """Replace the placeholder with the answer."""
        assert self.visible[message["index"]][0] == address
        self.visible[message["index"]] = (address, answer.text)
        self.writes.append(answer.text)
        self.pictures.pop(message["index"], None)

    async def attach_figures(self, address: Json, message: Json, answer: Answer, renew: RenewLease) -> None:
        """Attach the figures."""
        await renew()
        assert self.visible[message["index"]] == (address, answer.text)
        self.pictures[message["index"]] = [one.caption for one in answer.figures]

    def replies(self, event: str = "e1") -> list[str]:
        """Return the messages visible for one question."""
        return [text for address, text in self.visible if address["event"] == event]


class Answers:
    """Answers each question with its own text; a closed ``gate`` blocks answering."""

    def __init__(self) -> None:
        self.asked: list[Question] = []
        self.at_once = self.most_at_once = 0
        self.gate = asyncio.Event()
        self.gate.set()
        # Draft shown before the gate.
        self.beginning = ""
        self.figures: tuple[AnswerFigure, ...] = ()
        self.answered_from: AnsweredFrom | None = None

    async def answer(self, question: Question, listener: AnswerListener | None = None) -> Answer:
        """Return the answer once the gate is open."""
        self.asked.append(question)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            if self.beginning and listener:
                listener.show(self.beginning)
                await asyncio.sleep(0.1)
            await self.gate.wait()
        finally:
            self.at_once -= 1
        text = f"{question.text} Yes [1]."
        return Answer(AnswerState.GROUNDED, text, figures=self.figures, answered_from=self.answered_from)


UNLIMITED = {"person_questions": 0, "channel_questions": 0, "workspace_questions": 0}


class World:
    """World with one database, chat and answerer, in which workers start and die."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.inbox = Fallible(Inbox(database, max_backoff_seconds=0.2))
        self.memory = Fallible(ThreadMemory(database, 30))
        self.chat = Chat()
        self.messenger = Fallible(self.chat)
        self.answers = Answers()
        self.answering = Fallible(self.answers)
        self.messengers: dict[Platform, Any] = {Platform("slack"): self.messenger}

    def worker(self, **options: Any) -> Conversation:
        """Return a worker that is not running yet."""
        chosen = {name: options.pop(name) for name in BotSettings.model_fields if name in options}
        settings = BotSettings(**UNLIMITED | chosen)
        fast = {"poll_seconds": 0.05, "lease_seconds": 60, **options}
        channels = Channels(self.database)
        return Conversation(
            self.inbox, channels, self.answering, self.memory, self.messengers, settings=settings, **fast
        )

    @asynccontextmanager
    async def running(self, drain_seconds: float = 1, **options: Any) -> AsyncIterator[Conversation]:
        """Run a worker."""
        worker = self.worker(**options)
        task = asyncio.create_task(worker.run())
        try:
            yield worker
        finally:
            await worker.drain(drain_seconds)
            await task

    async def rows(self) -> list[InboxRow]:
        """Return all questions."""
        async with self.database.snapshot() as session:
            return list(await session.scalars(select(InboxRow).order_by(InboxRow.id)))

    async def turns(self) -> list[TurnRow]:
        """Return all stored turns."""
        async with self.database.snapshot() as session:
            return list(await session.scalars(select(TurnRow).order_by(TurnRow.id)))

    async def set_rows(self, **values: Any) -> None:
        """Change all questions without the workers' knowledge."""
        async with self.database.transaction() as session:
            await session.execute(update(InboxRow).values(**values))

    async def until(self, state: str = "done", questions: int = 1) -> None:
        """Wait until ``questions`` questions are in this state."""
        found: list[InboxRow] = []

        async def are_in_state() -> bool:
            found[:] = await self.rows()
            return [row.state for row in found].count(state) == questions

        await until(are_in_state, log=lambda: str([(row.state, row.reason, row.attempts) for row in found]))


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    """Yield a world with a fresh database."""
    database = await Database.open(make_sqlite(tmp_path))
    yield World(database)
    await database.aclose()


def message(event: str = "e1", **values: Any) -> IncomingMessage:
    given = IncomingMessage(
        key=ChannelKey(Platform("slack"), "T1ABC", "C1ABC"),
        channel_name="general",
        event_key=event,
        message_key=f"message of {event}",
        thread="17.1",
        text=f"Question {event}?",
        address={"event": event},
    )
    return replace(given, **values)


async def test_a_question_gets_its_answer_in_its_place(world: World) -> None:
    """The answer replaces the placeholder; the channel is that of the envelope."""
    async with world.running() as worker:
        assert await worker.receive(message())
        await world.until("done")
    assert world.chat.visible == [({"event": "e1"}, "Question e1? Yes [1].")]
    (question,) = world.answers.asked
    assert question.channel.tenant == "sl_T1ABC_C1ABC"


async def test_repeated_and_twin_events_are_answered_once(world: World) -> None:
    """The same event three times and a twin of the message, before and after the answer, give one reply."""
    async with world.running() as worker:
        received = [await worker.receive(message()) for _ in range(3)]
        await world.until("done")
        received.append(await worker.receive(message("twin", message_key="message of e1")))
        await asyncio.sleep(0.2)
    assert received == [True, False, False, False]
    assert world.chat.visible == [({"event": "e1"}, "Question e1? Yes [1].")]


async def test_an_unaddressed_message_asks_only_in_our_threads(world: World) -> None:
    """The message is answered in a thread with a question of ours; else nothing is stored."""
    async with world.running() as worker:
        assert not await worker.receive(message("e1", is_unaddressed=True))
        assert await Channels(world.database).all() == []
        assert await worker.receive(message("e2"))
        assert not await worker.receive(message("e3", thread="18.1", is_unaddressed=True))
        assert await worker.receive(message("e4", is_unaddressed=True))
        await world.until("done", 2)
    asked = sorted(question.text for question in world.answers.asked)  # both may be in progress at once
    assert asked == ["Question e2?", "Question e4?"]


STEPS = [
    ("inbox", "mark_posting"),
    ("messenger", "post_placeholder"),
    ("inbox", "mark_placed"),
    ("answering", "answer"),
    ("messenger", "show_partial"),
    ("inbox", "save_answer"),
    ("messenger", "deliver"),
    ("messenger", "attach_figures"),
    ("inbox", "mark_delivered"),
]


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(("part", "step"), STEPS)
async def test_a_crash_at_any_step_leads_to_one_visible_answer(
    world: World, part: str, step: str, when: str
) -> None:
    """A worker dies before or after each step, and the next one finishes the question.

    The answer is generated again only if it was not stored yet; its figures appear once.
    """
    world.answers.figures = (FIGURE,)
    world.answers.beginning = "Question e1? Yes."
    getattr(world, part).plan(step, when, Killed())
    await world.worker().receive(message())
    async with world.running():
        await until_true(lambda: not getattr(world, part).planned)
    await world.set_rows(lease_until=utc_now() - timedelta(seconds=1))
    async with world.running():
        await world.until("done")
    assert world.chat.replies() == ["Question e1? Yes [1]."]
    assert world.chat.pictures == {0: ["Backups by day"]}
    is_lost = step == "show_partial" or (step, when) in {("answer", "after"), ("save_answer", "before")}
    assert len(world.answers.asked) == (2 if is_lost else 1)
    assert [turn.question for turn in await world.turns()] == ["Question e1?"]


async def test_a_draft_is_shown_in_place_and_then_replaced(world: World) -> None:
    """Verified sentences replace the placeholder while more are written, never next to the answer."""
    world.answers.beginning = "Yes."
    world.answers.gate.clear()
    async with world.running() as worker:
        await worker.receive(message())
        await until_true(lambda: world.chat.replies() == [f"Yes. {PLACEHOLDER}"])
        world.answers.gate.set()
        await world.until("done")
    assert world.chat.replies() == ["Question e1? Yes [1]."]


async def test_an_edited_question_is_answered_again_in_place(world: World) -> None:
    """Shows it during the answer to the old text, too; the thread memory has only the new one."""
    world.answers.gate.clear()
    async with world.running(lease_seconds=0.6) as worker:
        await worker.receive(message())
        await until_true(lambda: bool(world.answers.asked))
        assert await worker.edit(message(text="Another?"))
        await until_true(lambda: len(world.answers.asked) > 1)
        world.answers.gate.set()
        await world.until("done")
        assert world.chat.replies() == ["Another? Yes [1]."]
        assert not await worker.edit(message(text="Another?"))
        assert await worker.edit(message(text="A third?"))
        await until_true(lambda: world.chat.replies() == ["A third? Yes [1]."])
        await world.until("done")
    assert [turn.question for turn in await world.turns()] == ["A third?"]
    service = service_with(platform=Platform("slack"), inbox=Inbox(world.database))
    given = await ChatService.answer_of(service, "message of e1")
    assert given
    assert given.answer.text == "A third? Yes [1]."
    assert await ChatService.answer_of(service, "another message") is None


def stop(covers: Callable[[Json], bool] = lambda _: True, thread: str = "17.1") -> StopRequest:
    """Return a stop request for a thread, as sent by Slack's button."""
    return StopRequest(message().key, thread, "message of another", covers)


async def test_a_stopped_question_ends_at_once_with_a_message(world: World) -> None:
    """Cancels its task without a retry or a stored turn; later questions are answered."""
    world.answers.gate.clear()
    async with world.running(lease_seconds=60) as worker:
        await worker.receive(message(text="Wie lange?"))
        await until_true(lambda: world.answers.at_once == 1)
        assert not await worker.stop(stop(lambda _: False))
        assert not await worker.stop(stop(thread="18.1"))
        assert await worker.stop(stop(lambda address: address == {"event": "e1"}))
        await until_true(lambda: world.answers.at_once == 0)
        await world.until("done")
        assert not await worker.stop(stop())
        world.answers.gate.set()
        await worker.receive(message("e2"))
        await world.until("done", 2)
    assert world.chat.replies() == [reply_words(Language.GERMAN).stopped]
    assert world.chat.replies("e2") == ["Question e2? Yes [1]."]
    assert len(world.answers.asked) == 2
    assert [turn.question for turn in await world.turns()] == ["Question e2?"]


async def test_a_question_in_another_process_is_stopped_too(world: World) -> None:
    """The process that gets the event replies; the other one has lost its lease before any new claim."""
    world.answers.gate.clear()
    async with world.running() as first:
        await first.receive(message())
        await until_true(lambda: world.answers.at_once == 1)
        async with world.running() as second:
            assert await second.stop(stop())
            world.answers.gate.set()
            await until_true(lambda: world.answers.at_once == 0)
            await world.until("done")
    assert world.chat.replies() == [reply_words(Language.ENGLISH).stopped]
    assert await world.turns() == []


async def test_answered_questions_and_uploads_are_not_stopped(world: World) -> None:
    """The answer is already complete, and a file is stored regardless of its message's text."""
    world.messenger.plan("deliver", "before", DeliveryError("not now"))
    async with world.running() as worker:
        await worker.receive(message())
        await until_true(lambda: not world.messenger.planned)
        assert not await worker.stop(stop())
        await world.until("done")
        world.answers.gate.clear()
        await worker.receive(message("e2", address={"event": "e2", UPLOAD_KEY: {}}))
        await until_true(lambda: world.answers.at_once == 1)
        assert not await worker.stop(stop())
        world.answers.gate.set()
        await world.until("done", 2)
    assert world.chat.replies() == ["Question e1? Yes [1]."]
    assert world.chat.replies("e2") == ["Question e2? Yes [1]."]


async def test_a_worker_without_its_lease_shows_no_draft(world: World) -> None:
    """A delayed worker may wake after another has answered: it renews its lease before every update."""
    world.answers.beginning = "Yes."
    world.inbox.plan("renew", "before", LeaseLost("another worker has it"))
    async with world.running() as worker:
        await worker.receive(message())
        await until_true(lambda: not world.inbox.planned)
        await world.until("done")
    assert world.chat.writes == ["Question e1? Yes [1]."]


async def test_a_worker_without_its_lease_attaches_no_figures(world: World) -> None:
    """During the upload of figures, the message may have become another answer's."""
    world.answers.figures = (FIGURE,)
    world.inbox.plan("renew", "before", LeaseLost("another worker has it"))
    async with world.running() as worker:
        await worker.receive(message())
        await until_true(lambda: not world.inbox.planned)
    assert world.chat.writes == ["Question e1? Yes [1]."]
    assert world.chat.pictures == {}


@pytest.mark.parametrize("error", [DeliveryError("slow down", retry_after=60), DeliveryUnclear("no reply")])
async def test_a_platform_that_refuses_a_draft_still_gets_the_answer(world: World, error: Exception) -> None:
    """A failed draft costs neither the answer nor an attempt."""
    world.answers.beginning = "Yes."
    world.messenger.plan("show_partial", "after", error)
    async with world.running() as worker:
        await worker.receive(message())
        await world.until("done")
    assert world.chat.replies() == ["Question e1? Yes [1]."]
    assert [row.attempts for row in await world.rows()] == [0]


async def test_a_question_gets_the_history_of_its_own_thread(world: World) -> None:
    """Other threads of the channel, and threads of other channels with the same id, are not included."""
    async with world.running() as worker:
        elsewhere = ChannelKey(Platform("slack"), "T1ABC", "C2ABC")
        for event, values in (
            ("e1", {}),
            ("e2", {"thread": "18.1"}),
            ("e3", {"key": elsewhere}),
            ("e4", {}),
        ):
            await worker.receive(message(event, **values))
            await world.until("done", int(event[1]))
    histories = {one.text: [turn.question for turn in one.history] for one in world.answers.asked}
    assert histories == {
        "Question e1?": [],
        "Question e2?": [],
        "Question e3?": [],
        "Question e4?": ["Question e1?"],
    }


async def test_two_crashes_around_the_first_post_still_show_one_answer(world: World) -> None:
    """Crashes after the post and during the search for it leave one placeholder to find."""
    world.messenger.plan("post_placeholder", "after", Killed())
    world.messenger.plan("find_placeholder", "after", Killed())
    await world.worker().receive(message())
    for left in (1, 0):
        async with world.running():
            await until_true(lambda left=left: len(world.messenger.planned) == left)
        await world.set_rows(lease_until=utc_now() - timedelta(seconds=1))
    async with world.running():
        await world.until("done")
    assert world.chat.replies() == ["Question e1? Yes [1]."]


async def test_without_find_placeholder_delivery_is_at_least_once(world: World) -> None:
    """A second placeholder may appear for a lost first post; one of them is answered."""
    world.chat.can_look = False
    world.messenger.plan("post_placeholder", "after", Killed())
    await world.worker().receive(message())
    async with world.running():
        await until_true(lambda: not world.messenger.planned)
    await world.set_rows(lease_until=utc_now() - timedelta(seconds=1))
    async with world.running():
        await world.until("done")
    assert world.chat.replies() == [PLACEHOLDER, "Question e1? Yes [1]."]


async def test_an_unclear_post_is_searched_before_it_is_repeated(world: World) -> None:
    """A connection that broke after the post leads to no second placeholder."""
    world.messenger.plan("post_placeholder", "after", DeliveryUnclear("the connection broke"))
    async with world.running() as worker:
        await worker.receive(message())
        await world.until("done")
    assert world.chat.replies() == ["Question e1? Yes [1]."]


async def test_a_refused_delivery_is_retried_without_the_model(world: World) -> None:
    """A refused delivery waits for Retry-After and delivers the stored answer."""
    world.messenger.plan("deliver", "before", DeliveryError("rate limited", retry_after=2))
    started = utc_now()
    async with world.running() as worker:
        await worker.receive(message())
        await world.until("done")
    assert utc_now() - started >= timedelta(seconds=2)
    assert world.chat.replies() == ["Question e1? Yes [1]."]
    assert len(world.answers.asked) == 1
    assert [row.attempts for row in await world.rows()] == [0]


@pytest.mark.long
async def test_a_hanging_platform_does_not_block_a_slot_forever(world: World) -> None:
    """A post without a response counts as unclear after half the lease."""
    hanging = asyncio.Event()

    class Hanging(Chat):
        async def post_placeholder(
            self, address: Json, language: Language, *, queued: str = "", asked: str = ""
        ) -> Json:
            if not hanging.is_set():
                hanging.set()
                await super().post_placeholder(address, language)
                await asyncio.sleep(3600)
            return await super().post_placeholder(address, language)

    chat = Hanging()
    world.messengers[Platform("slack")] = chat
    async with world.running(lease_seconds=8) as worker:  # a busy machine posts within half of it
        await worker.receive(message())
        await world.until("done")
    assert chat.replies() == ["Question e1? Yes [1]."]


async def test_a_platform_that_keeps_refusing_fails_the_question(world: World) -> None:
    """A question whose answer was refused for a day fails, with a reason for the admin."""
    await world.worker().receive(message())
    await world.set_rows(created_at=utc_now() - timedelta(days=2))
    world.messenger.plan("post_placeholder", "before", DeliveryError("channel is archived"))
    async with world.running():
        await world.until("failed")
    assert [row.reason for row in await world.rows()] == ["DeliveryError"]
    assert world.chat.visible == []


async def test_a_question_that_keeps_failing_gets_a_failure_message(world: World) -> None:
    """After three unexpected errors the person gets a failure message: neither silence nor a traceback."""
    world.answering.plan("answer", "before", *[ValueError(f"fault {n}") for n in range(3)])
    async with world.running() as worker:
        await worker.receive(message())
        await world.until("done")
    assert world.chat.replies() == [WORDS.engine_failed]
    assert [row.attempts for row in await world.rows()] == [3]
    assert await world.turns() == []  # failures are not stored in the thread memory


async def test_a_question_that_kills_workers_gets_a_failure_message(world: World) -> None:
    """Three crashed workers use up the attempts as well."""
    world.answering.plan("answer", "before", *[Killed() for _ in range(3)])
    await world.worker().receive(message())
    for left in (2, 1, 0):
        async with world.running():
            await until_true(lambda left=left: len(world.answering.planned) == left)
        await world.set_rows(lease_until=utc_now() - timedelta(seconds=1))
    async with world.running():
        await world.until("done")
    assert world.chat.replies() == [WORDS.engine_failed]


async def test_an_engine_outage_uses_up_no_attempt(world: World) -> None:
    """Infrastructure errors are retried without limit; the question is answered after recovery."""
    world.answering.plan("answer", "before", IndexUnavailable("down"), IndexUnavailable("down"))
    await world.worker().receive(message())
    await world.set_rows(attempts=2)
    async with world.running():
        await world.until("done")
    assert world.chat.replies() == ["Question e1? Yes [1]."]
    assert [row.attempts for row in await world.rows()] == [2]


async def test_an_undeliverable_answer_becomes_a_failure_message(world: World) -> None:
    """A bug in rendering an answer ends with the failure message instead of endless retries."""
    await world.worker().receive(message())
    await world.set_rows(attempts=2)
    world.messenger.plan("deliver", "before", KeyError("a fault in rendering"))
    async with world.running():
        await world.until("done")
    assert world.chat.replies() == [WORDS.engine_failed]


async def test_a_question_without_deliverable_failure_message_fails(world: World) -> None:
    """A question whose failure message fails too is failed instead of being retried forever."""
    await world.worker().receive(message())
    await world.set_rows(attempts=5)
    world.messenger.plan("post_placeholder", "before", KeyError("an address from nowhere"))
    async with world.running():
        await world.until("failed")
    assert [row.reason for row in await world.rows()] == ["KeyError"]


async def test_concurrency_is_limited(world: World) -> None:
    """Six questions with two slots: never more than two at once, and all are answered."""
    world.answers.gate.clear()
    async with world.running(questions_at_once=2) as worker:
        for number in range(6):
            await worker.receive(message(f"e{number}"))
        await until_true(lambda: world.answers.at_once == 2)
        await asyncio.sleep(0.3)
        world.answers.gate.set()
        await world.until("done", 6)
    assert world.answers.most_at_once == 2
    assert len(world.chat.visible) == 6


@pytest.mark.parametrize("answer_delay", [60.0, 0.1])
async def test_storing_messages_takes_precedence_over_answering(world: World, answer_delay: float) -> None:
    """No work begins while a message is being stored, but a slow database delays it only for a while."""
    has_come, may_be_kept = asyncio.Event(), asyncio.Event()

    class SlowInbox(Inbox):
        async def receive(self, channel: Channel, *, event_key: str, **values: Any) -> bool:
            if event_key == "slow":
                has_come.set()
                await may_be_kept.wait()
            return await super().receive(channel, event_key=event_key, **values)

    world.inbox = Fallible(SlowInbox(world.database))
    async with world.running(pacing=Pacing(answer_delay, answer_delay)) as worker:
        slow = asyncio.create_task(worker.receive(message("slow")))
        await has_come.wait()
        await worker.receive(message())
        if answer_delay < 1:
            await world.until("done")
        else:
            await asyncio.sleep(0.3)
            assert world.chat.visible == []
        may_be_kept.set()
        assert await slow
        await world.until("done", 2)


async def test_one_slowly_stored_question_is_no_flood(world: World) -> None:
    """A slow database is no flood: the question gets the usual placeholder."""

    class SlowInbox(Inbox):
        async def receive(self, *arguments: Any, **values: Any) -> bool:
            await asyncio.sleep(2 * FLOOD_SECONDS)
            return await super().receive(*arguments, **values)

        async def claim(self, *arguments: Any, **values: Any) -> InboxItem | None:
            await asyncio.sleep(0.1)
            return await super().claim(*arguments, **values)

    world.inbox = Fallible(SlowInbox(world.database))
    world.answers.gate.clear()
    async with world.running() as worker:
        await worker.receive(message())
        await until_true(lambda: world.answers.at_once == 1)
        assert [text for _, text in world.chat.visible] == [PLACEHOLDER]
        world.answers.gate.set()
        await world.until("done")


async def test_queued_questions_get_placeholders_at_once(world: World) -> None:
    """Placeholders say that others come first; each is replaced by its answer, and none is posted twice."""
    world.answers.gate.clear()
    async with world.running(questions_at_once=2) as worker:
        for number in range(20):
            await worker.receive(message(f"e{number}"))
        await until_true(lambda: len(world.chat.visible) == 20)
        assert [text for _, text in world.chat.visible].count(QUEUED) == 18
        assert len(world.answers.asked) == 2
        world.answers.gate.set()
        await world.until("done", 20)
    assert sorted(text for _, text in world.chat.visible) == sorted(
        f"Question e{number}? Yes [1]." for number in range(20)
    )
    assert {row.attempts for row in await world.rows()} == {0}


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(
    ("part", "step"),
    [("messenger", "post_placeholder"), ("inbox", "mark_placed")],
)
async def test_a_crash_while_posting_queued_placeholders_is_recovered(
    world: World, part: str, step: str, when: str
) -> None:
    """The worker that claims the question finds its placeholder."""
    world.answers.gate.clear()
    async with world.running(questions_at_once=1) as worker:
        await worker.receive(message("e1"))
        await until_true(lambda: world.answers.at_once == 1)
        getattr(world, part).plan(step, when, Killed())
        await worker.receive(message("e2"))
        await until_true(lambda: not getattr(world, part).planned)
        world.answers.gate.set()
        await world.until("done", 1 if (step, when) != ("mark_placed", "after") else 2)
    await world.set_rows(lease_until=utc_now() - timedelta(seconds=1))
    async with world.running():
        await world.until("done", 2)
    assert world.chat.replies("e2") == ["Question e2? Yes [1]."]


async def test_a_crash_before_posting_queued_placeholders_is_recovered(world: World) -> None:
    """A worker dies after recording that eight placeholders are being posted, having posted none or one."""
    for number in range(8):
        await world.worker().receive(message(f"e{number}"))
    claimed = await Inbox(world.database).claim_unseen("dead", 60, (Platform("slack"),), 16)
    assert len(claimed) == 8
    await world.chat.post_placeholder(claimed[0].address, Language.ENGLISH)
    await world.set_rows(lease_until=utc_now() - timedelta(seconds=1))
    async with world.running():
        await world.until("done", 8)
    for number in range(8):
        assert world.chat.replies(f"e{number}") == [f"Question e{number}? Yes [1]."]


def message_in(conversation: str, event: str, asker: str = "", workspace: str = "T1ABC") -> IncomingMessage:
    """Return a question in a channel."""
    address = {"event": event, "in": conversation, "asker": asker}
    return message(event, key=ChannelKey(Platform("slack"), workspace, conversation), address=address)


async def test_one_channels_flood_does_not_delay_other_channels(world: World) -> None:
    """A question after two dozen of another channel gets its placeholder and answer among the first."""
    world.answers.gate.clear()
    worker = world.worker()
    for number in range(24):
        await worker.receive(message_in("C1ABC", f"e{number}"))
    await worker.receive(message_in("C2ABC", "other"))
    async with world.running(questions_at_once=1):
        await until_true(lambda: len(world.chat.visible) == 25)
        world.answers.gate.set()
        await world.until("done", 25)
    assert "other" in [address["event"] for address, _ in world.chat.visible][:3]
    assert "Question other?" in [question.text for question in world.answers.asked][:3]


async def test_a_channel_that_refuses_posts_does_not_delay_others(world: World) -> None:
    """Rate limits are respected; in the end each question is answered in one message."""
    world.answers.gate.clear()
    world.chat.full = {"C1ABC"}
    async with world.running(questions_at_once=1, pacing=Pacing(post_pause=0.01)) as worker:
        await worker.receive(message_in("C3ABC", "busy"))
        await until_true(lambda: world.answers.at_once == 1)
        for number in range(20):
            await worker.receive(message_in("C1ABC", f"e{number}", asker=f"U{number % 2}"))
        await worker.receive(message_in("C2ABC", "other"))
        await until_true(lambda: bool(world.chat.replies("other")))
        assert len(world.chat.visible) == 2
        world.chat.full.clear()
        world.answers.gate.set()
        await world.until("done", 22)
    assert len(world.chat.visible) == 22
    assert {row.attempts for row in await world.rows()} == {0}


async def test_a_person_over_the_limit_is_queued_last_with_an_estimate(world: World) -> None:
    """Shows the limit per person; other people's questions keep their turn and show no wait."""
    world.answers.gate.clear()
    async with world.running(questions_at_once=1, person_questions=3) as worker:
        await worker.receive(message_in("C1ABC", "e0", asker="U1"))
        await until_true(lambda: world.answers.at_once == 1)
        for number in range(1, 8):
            await worker.receive(message_in("C1ABC", f"e{number}", asker="U1"))
        await worker.receive(message_in("C1ABC", "other", asker="U2"))
        await until_true(lambda: len(world.chat.visible) == 9)
        shown = {address["event"]: text for address, text in world.chat.visible}
        assert [shown[f"e{number}"] == QUEUED for number in range(8)] == [False, True, True] + 5 * [False]
        assert shown["other"] == QUEUED
        assert "I’ll answer in about a minute" in shown["e7"]
        world.answers.gate.set()
        await world.until("done", 9)
    order = [question.text for question in world.answers.asked]
    assert order.index("Question other?") < order.index("Question e3?")


@pytest.mark.parametrize(
    ("limits", "flood", "other"),
    [
        ({"person_questions": 50, "channel_questions": 3}, ["T1ABC C1ABC"], "T1ABC C2ABC"),
        (
            {"channel_questions": 50, "workspace_questions": 3},
            [f"T1ABC C{n}ABC" for n in range(1, 9)],
            "T2ABC C1ABC",
        ),
    ],
    ids=["channel", "workspace"],
)
async def test_floods_of_channels_and_workspaces_are_queued_last(
    world: World, limits: dict[str, int], flood: list[str], other: str
) -> None:
    """Shows the limits per channel and per workspace."""
    world.answers.gate.clear()
    async with world.running(questions_at_once=1, **limits) as worker:
        for number in range(8):
            workspace, channel = flood[number % len(flood)].split()
            await worker.receive(message_in(channel, f"e{number}", f"U{number}", workspace))
            await until_true(lambda: world.answers.at_once == 1)
        workspace, channel = other.split()
        await worker.receive(message_in(channel, "other", "U9", workspace))
        await until_true(lambda: len(world.chat.visible) == 9)
        shown = {address["event"]: text for address, text in world.chat.visible}
        assert ["I’ll answer in about" in shown[f"e{number}"] for number in range(8)] == 3 * [False] + 5 * [
            True
        ]
        assert shown["other"] == QUEUED
        world.answers.gate.set()
        await world.until("done", 9)
    order = [question.text for question in world.answers.asked]
    assert order.index("Question other?") < order.index("Question e3?")


async def test_draining_ends_although_posting_placeholders_failed(world: World) -> None:
    """Any error in posting placeholders must not block the shutdown."""
    world.answers.gate.clear()
    worker = world.worker(questions_at_once=1)
    task = asyncio.create_task(worker.run())
    await worker.receive(message("e1"))
    await until_true(lambda: world.answers.at_once == 1)
    world.inbox.plan("claim_unseen", "before", Killed())
    await worker.receive(message("e2"))
    await until_true(lambda: not world.inbox.planned)
    async with asyncio.timeout(PATIENCE):
        await worker.drain(0)
    assert isinstance((await asyncio.gather(task, return_exceptions=True))[0], Killed)


async def test_draining_finishes_questions_in_progress(world: World) -> None:
    """A question in progress at shutdown is still answered within the drain timeout."""
    world.answers.gate.clear()
    async with world.running(drain_seconds=PATIENCE) as worker:
        await worker.receive(message())
        await until_true(lambda: world.answers.at_once == 1)
        asyncio.get_running_loop().call_later(0.3, world.answers.gate.set)
    assert world.chat.replies() == ["Question e1? Yes [1]."]


async def test_unfinished_questions_are_resumed_at_the_next_start(world: World) -> None:
    """A shutdown releases unfinished questions: the next worker claims them at once, uncounted."""
    world.answers.gate.clear()
    async with world.running() as worker:
        await worker.receive(message("e1"))
        await until_true(lambda: world.answers.at_once == 1)
    assert world.answers.at_once == 0
    assert await worker.receive(message("e2"))
    world.answers.gate.set()
    async with world.running():
        await world.until("done", 2)
    assert world.chat.replies("e1") == ["Question e1? Yes [1]."]
    assert world.chat.replies("e2") == ["Question e2? Yes [1]."]
    assert [row.attempts for row in await world.rows()] == [0, 0]


async def test_a_worker_whose_lease_was_taken_aborts(world: World) -> None:
    """While a worker hangs, another claims the question; the first aborts and changes nothing."""
    world.answers.gate.clear()
    async with world.running(lease_seconds=3) as worker:
        await worker.receive(message())
        await until_true(lambda: world.answers.at_once == 1)
        await world.set_rows(fence=99, lease_owner="another", lease_until=utc_now() + timedelta(seconds=5))
        await until_true(lambda: world.answers.at_once == 0)
        assert [(row.state, row.fence) for row in await world.rows()] == [("waiting", 99)]
    assert world.chat.replies() == [PLACEHOLDER]


async def until_renewed(world: World, times: int) -> None:
    """Wait until the lease of the question in progress was renewed ``times`` times."""
    await until_true(lambda: world.answers.at_once == 1)
    ends = set()
    while len(ends) <= times:
        ends |= {row.lease_until for row in await world.rows()}
        await asyncio.sleep(0.05)


async def test_a_lease_is_renewed_again_after_an_unexpected_error(world: World) -> None:
    """Shows that an answer longer than a lease is neither claimed nor generated twice.

    Holds although one renewal failed unexpectedly.
    """
    world.answers.gate.clear()
    world.inbox.plan("renew", "before", ValueError("unforeseen"))
    async with world.running(lease_seconds=4) as worker:
        await worker.receive(message())
        await until_renewed(world, 3)
        world.answers.gate.set()
        await world.until("done")
    assert len(world.answers.asked) == 1
    assert world.chat.replies() == ["Question e1? Yes [1]."]


async def test_a_question_is_released_after_its_last_renewal(world: World) -> None:
    """Shows that no renewal is in flight to the database when the question is released."""
    steps: list[str] = []
    renewing = asyncio.Event()

    class SlowRenewal(Fallible):
        async def renew(self, *_: Any) -> None:
            renewing.set()
            try:
                await asyncio.sleep(60)
            finally:
                for _ in range(20):  # a transaction takes its time to end
                    await asyncio.sleep(0)
                steps.append("renewed")

        async def release(self, *arguments: Any) -> None:
            steps.append("released")
            await Fallible.__getattr__(self, "release")(*arguments)

    world.inbox = SlowRenewal(Inbox(world.database))
    world.answers.gate.clear()
    async with world.running(lease_seconds=0.3) as worker:
        await worker.receive(message())
        await asyncio.wait_for(renewing.wait(), PATIENCE)
        await worker.drain(0)
    assert steps == ["renewed", "released"]


async def test_questions_of_a_disabled_platform_wait(world: World) -> None:
    """A question from a disabled platform is answered once the platform is enabled again."""
    teams = Chat()
    key = ChannelKey(Platform("teams"), "tenant", "19:x")
    async with world.running() as worker:
        await worker.receive(message("t1", key=key))
        await worker.receive(message("s1"))
        await world.until("done")
    assert teams.visible == []
    world.messengers[Platform("teams")] = teams
    async with world.running():
        await world.until("done", 2)
    assert teams.replies("t1") == ["Question t1? Yes [1]."]


async def test_logs_contain_ids_and_no_user_text(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """Neither a question nor an error that quotes it is logged; the question's id is."""
    caplog.set_level(logging.DEBUG, logger="bot")
    world.answering.plan("answer", "before", ValueError("cannot parse 'my secret salary'"))
    async with world.running() as worker:
        await worker.receive(message(text="What about my secret salary?"))
        await world.until("done")
    assert "question=1 channel=1" in caplog.text
    assert "salary" not in caplog.text


DIRECT = ChannelKey(Platform("slack"), "T1ABC", "D1ABC")


async def test_a_direct_chat_searches_the_library_and_stores_its_turns(world: World) -> None:
    """Shows the searched channel and the place of the turn; the text is not stored in the library."""
    library = await Channels(world.database).ensure_library("policies")
    await Channels(world.database).set_direct_library(DirectLibrary(library))
    async with world.running() as worker:
        await worker.receive(message(key=DIRECT, is_direct=True, thread=""))
        await world.until("done")
    (question,) = world.answers.asked
    assert question.channel == library
    assert question.chat is not None
    assert question.chat.tenant == DIRECT.tenant
    (row,), (turn,) = await world.rows(), await world.turns()
    assert row.channel_id == turn.channel_id == question.chat.id != library.id


@pytest.mark.parametrize("is_direct", [False, True])
async def test_other_chats_search_only_their_own_documents(world: World, is_direct: bool) -> None:
    """Without a library a direct chat searches its own documents; other chats never search the library."""
    channels = Channels(world.database)
    if not is_direct:
        await channels.set_direct_library(DirectLibrary(await channels.ensure_library("policies")))
    async with world.running() as worker:
        await worker.receive(message(is_direct=is_direct, text="Search library/policies, direct chat D1ABC"))
        await world.until("done")
    (question,) = world.answers.asked
    assert (question.channel.tenant, question.chat) == (message().key.tenant, None)
    assert question.channel.is_direct is is_direct


async def test_a_crash_does_not_change_a_direct_chats_scope(world: World) -> None:
    """The kind of chat is stored: after a crash the next worker also searches the library."""
    channels = Channels(world.database)
    await channels.set_direct_library(DirectLibrary(await channels.ensure_library("policies")))
    await world.worker().receive(message(key=DIRECT, is_direct=True))
    async with world.running():
        await world.until("done")
    (question,) = world.answers.asked
    assert question.channel.name == "library/policies"


@pytest.mark.parametrize("is_member", [True, False])
async def test_a_delayed_answer_is_shown_only_to_current_members(world: World, is_member: bool) -> None:
    """An answer stored before a crash and delivered after it becomes a notice for former members."""
    tenant = ChannelKey(Platform("slack"), "T1ABC", "C2ABC").tenant
    world.answers.answered_from = AnsweredFrom((tenant,), "#it")
    members = {tenant}

    class Lookup:
        async def channels_of_asker(self, address: Json) -> Json:
            return dict.fromkeys(members, "#it")

        async def may_read(self, address: Json, tenants: Collection[TenantName]) -> bool:
            return set(tenants) <= members

    channels, memberships = Channels(world.database), {Platform("slack"): Lookup()}
    direct = DirectChats(channels, DirectLibraries(channels), world.memory, memberships)
    world.inbox.plan("save_answer", "after", Killed())
    await world.worker().receive(message(key=DIRECT, is_direct=True))
    async with world.running(direct=direct):
        await until_true(lambda: not world.inbox.planned)
    await world.set_rows(lease_until=utc_now() - timedelta(seconds=1))
    members -= set() if is_member else {tenant}
    async with world.running(direct=direct):
        await world.until("done")
    assert world.chat.replies() == ["Question e1? Yes [1]." if is_member else WORDS.left_channel]
    assert len(world.answers.asked) == 1


def with_file(event: str = "e1", text: str = "") -> IncomingMessage:
    """Return a message with a file and text."""
    return message(event, text=text, address={"event": event, UPLOAD_KEY: {"id": "F1", "language": "de"}})


async def test_a_file_without_text_gets_one_reply_and_asks_nothing(world: World) -> None:
    """The result replaces the placeholder; no search is made, and no turn is stored."""
    taken: list[InboxItem] = []

    async def take(item: InboxItem) -> Answer:
        taken.append(item)
        return Answer(AnswerState.CHAT, "Taken.")

    async with world.running(take_upload=take) as worker:
        assert await worker.receive(with_file())
        assert not await worker.receive(with_file())
        await world.until("done")
    assert world.chat.replies() == ["Taken."]
    assert (len(taken), world.answers.asked, await world.turns()) == (1, [], [])


async def test_a_question_with_a_file_is_answered_once_it_is_read(world: World) -> None:
    """Waiting for the file uses up no attempt; the answer replaces the file's placeholder."""
    waiting = [FileNotReady("not yet") for _ in range(5)]

    async def take(item: InboxItem) -> Answer | None:
        if waiting:
            raise waiting.pop()
        return None

    async with world.running(take_upload=take) as worker:
        await worker.receive(with_file(text="Who signs it?"))
        await world.until("done")
    assert world.chat.replies() == ["Who signs it? Yes [1]."]
    assert [turn.question for turn in await world.turns()] == ["Who signs it?"]
    (row,) = await world.rows()
    assert row.attempts == 0


async def test_a_file_that_keeps_failing_gets_a_failure_message(world: World) -> None:
    """The failure message is in the language of the text, after three attempts."""
    tries: list[int] = []

    async def take(item: InboxItem) -> Answer | None:
        tries.append(item.attempts)
        raise RuntimeError("a fault of ours")

    async with world.running(take_upload=take) as worker:
        await worker.receive(with_file())
        await world.until("done")
    assert world.chat.replies() == [reply_words(Language.GERMAN).upload_failed]
    assert tries == [0, 1, 2]
