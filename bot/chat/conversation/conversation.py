"""Takes each verified message to the single answer a person sees, whatever crashes in between.

Messages from chat platforms are stored before they are acknowledged. A worker loop posts a placeholder,
computes the answer, stores it in the outbox and replaces the placeholder with it. Every step is stored before
the next one begins, so another worker can resume anywhere, and no answer is computed twice.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from uuid import uuid4

from bot.answers.understanding.direct_libraries import DirectLibraries
from bot.chat.conversation.answer_json import answer_to_json
from bot.chat.conversation.direct_chats import DirectChats
from bot.chat.conversation.event_deduplication import EventDeduplicator
from bot.chat.conversation.inbox_replies import InboxReplies, stopped_answer
from bot.chat.conversation.live_updates import UNCONFIRMED_SECONDS, live_updates
from bot.chat.conversation.memory import cited_versions
from bot.chat.conversation.placeholders import Placeholders, delivery_deadline
from bot.chat.conversation.queue_limits import (
    Pacing,
    PostRateLimiter,
    QuestionOrigin,
    QuestionRateLimiter,
    WaitEstimator,
)
from bot.core.errors import AppUninstalled, DeliveryError, DeliveryUnclear, FileNotReady
from bot.core.models import Answer
from bot.core.ports import (
    IncomingMessage,
    IngestUpload,
    Messenger,
    NoteWriter,
    QuestionAnswering,
    StopRequest,
)
from bot.settings import BotSettings
from storage.chat.answer_sources import NOTE
from storage.chat.channels import Channels
from storage.chat.inbox import Inbox
from storage.chat.thread_memory import ThreadMemory
from storage.chat_models import UPLOAD_KEY, InboxItem
from storage.clock import monotonic_seconds
from storage.crash_points import reach
from storage.errors import DatabaseUnavailable, InfrastructureError, LeaseLost, raised_at
from storage.models import Platform
from storage.task_group import cancel_and_wait, keep_leased

_log = logging.getLogger(__name__)

Json = dict[str, Any]

# Failed attempts, by the question's own fault, before it is answered with an error message.
MAX_ATTEMPTS = 3
# Concurrency limit for placeholders while all slots are taken.
MAX_PLACED_AT_ONCE = 16
# How long a refused answer is retried.
MAX_DELIVERY_TIME = timedelta(days=1)
# Answers delayed for this long mean a flood: placeholders then say that others come first.
FLOOD_SECONDS = 0.2


class Conversation:
    """Receives questions and processes each of them up to its delivered answer."""

    def __init__(
        self,
        inbox: Inbox,
        channels: Channels,
        answering: QuestionAnswering,
        memory: ThreadMemory,
        messengers: Mapping[Platform, Messenger],
        *,
        settings: BotSettings,
        notes: NoteWriter | None = None,
        direct: DirectChats | None = None,
        take_upload: IngestUpload | None = None,
        pacing: Pacing | None = None,
        lease_seconds: float = 60,
        poll_seconds: float = 1,
        may_have_work: Callable[[], bool] = lambda: True,
    ) -> None:
        """Create the service; ``run`` starts the work.

        Args:
            messengers: one per connected platform; more may be added until ``run``.
                Questions of other platforms stay queued until theirs is connected again.
            notes: writes change notes for threads that follow a page.
            direct: resolves what direct chats search; None: the library that an admin names.
            take_upload: takes in the files of messages; None: files are ignored.
            settings: rate limits above which a question is answered after others, and the concurrency.
            pacing: how long each step yields to incoming messages.
            lease_seconds: lease after which the question of a dead worker is taken over.
            poll_seconds: polling interval for questions that arrive without a wake-up.
            may_have_work: False if polling would find nothing.
        """
        self._inbox = inbox
        self._channels = channels
        self._messengers = messengers
        self._replies = InboxReplies(
            channels,
            answering,
            memory,
            direct or DirectChats(channels, DirectLibraries(channels), memory),
            notes=notes,
            take_upload=take_upload,
        )
        self._lease_seconds = lease_seconds
        self._poll_seconds = poll_seconds
        self._may_have_work = may_have_work
        self._is_any_closed = False
        self._owner = uuid4().hex
        self._rates = QuestionRateLimiter(settings)
        self._waits = WaitEstimator(settings.questions_at_once)
        self._pacing = pacing or Pacing()
        pace = PostRateLimiter(self._pacing.post_pause)
        self._placeholders = Placeholders(inbox, messengers, self._waits, lease_seconds, pace)
        self._slots = asyncio.Semaphore(settings.questions_at_once)
        self._tasks: set[asyncio.Task[None]] = set()
        self._placing: set[asyncio.Task[None]] = set()
        self._repeated = EventDeduplicator()
        self._receiving = 0
        self._none_receiving, self._none_unseen = asyncio.Event(), asyncio.Event()
        self._none_receiving.set()
        self._none_unseen.set()
        self._is_flooded = False
        self._claiming_since: float | None = None
        self._wakeup, self._arrived = asyncio.Event(), asyncio.Event()
        self._is_stopping = False
        self._ended = asyncio.Event()
        self._ended.set()

    async def receive(self, message: IncomingMessage) -> bool:
        """Store a message durably; False if it is a duplicate or not addressed to the bot.

        Raises:
            InvalidTenant: the envelope names no possible channel.
            DatabaseUnavailable: not stored, so the message must not be acknowledged.
        """
        with self._intake_first():
            if message.is_unaddressed:  # not deduplicated: the same message may also come as a mention
                return await self._receive(message)
            event = (message.key.platform, message.event_key)
            return await self._repeated.store_once(event, partial(self._receive, message))

    async def _receive(self, message: IncomingMessage) -> bool:
        if message.is_unaddressed and not await self._inbox.has_question(message.key.tenant, message.thread):
            return False
        channel = await self._channels.ensure(message.key, message.channel_name, is_direct=message.is_direct)
        origin = QuestionOrigin.of_message(message)
        is_new = await self._inbox.receive(
            channel,
            event_key=message.event_key,
            message_key=message.message_key,
            thread=message.thread,
            text=message.text,
            address=message.address,
            is_late=self._rates.is_beyond(origin),
        )
        if is_new:
            self._rates.count(origin)
        self._announce()
        return is_new

    async def edit(self, message: IncomingMessage) -> bool:
        """Answer an edited question again; False if it is unknown or not changed.

        Raises:
            DatabaseUnavailable: nothing was changed, so the edit must not be acknowledged.
        """
        is_new = await self._inbox.requeue_edited(message.key.platform, message.message_key, message.text)
        self._announce()
        return is_new

    async def stop(self, request: StopRequest) -> bool:
        """Cancel the questions in progress in a thread and say so there; False if there are none.

        Work on them in this process is cancelled now, that of other processes at their next lease renewal.

        Raises:
            InvalidTenant: the envelope names no possible channel.
            DatabaseUnavailable: nothing was changed, so the request must not be acknowledged.
        """

        def stopped(item: InboxItem) -> Json | None:
            is_question = NOTE not in item.address and UPLOAD_KEY not in item.address
            return stopped_answer(item) if is_question and request.covers(item.address) else None

        place = (request.key.tenant, request.thread, request.message_key)
        names = {_task_name(one) for one in await self._inbox.stop(*place, stopped)}
        for task in self._tasks:
            if task.get_name() in names:
                task.cancel()
        return bool(names)

    async def run(self) -> None:
        """Process questions until ``drain`` is called."""
        self._ended.clear()
        placing = asyncio.create_task(self._placeholder_loop(), name="placeholders")
        try:
            while not self._is_stopping:
                await self._take_next()
        finally:
            self._is_stopping = True
            self._announce()
            try:
                await placing
            finally:
                self._ended.set()  # in any case, or ``drain`` would wait forever

    async def drain(self, seconds: float) -> None:
        """Claim no more questions, wait up to ``seconds`` for those in progress, release the rest."""
        self._is_stopping = True
        self._announce()
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=seconds)
        await cancel_and_wait(*self._tasks)
        await self._ended.wait()

    @contextlib.contextmanager
    def _intake_first(self) -> Iterator[None]:
        """Hold back other work while a message is being stored: its platform times out after 3 s."""
        self._receiving += 1
        self._none_receiving.clear()
        try:
            yield
        finally:
            self._receiving -= 1
            if not self._receiving:
                self._none_receiving.set()

    def _announce(self) -> None:
        self._wakeup.set()
        self._arrived.set()

    async def _placeholder_loop(self) -> None:
        """Post placeholders for questions that wait while all slots are taken."""
        while not self._is_stopping:
            await _wait(self._arrived, self._poll_seconds)
            self._arrived.clear()
            if self._is_flooded or self._all_slots_busy():
                while not self._is_stopping and await self._post_placeholders():
                    pass
            self._none_unseen.set()

    def _all_slots_busy(self) -> bool:
        """True if all slots are taken, and none is about to claim a question."""
        since = self._claiming_since
        return self._slots.locked() and (since is None or monotonic_seconds() - since > FLOOD_SECONDS)

    async def _post_placeholders(self) -> bool:
        """Post a batch of placeholders, channels in turn; False if there are none to post."""
        while len(self._placing) > MAX_PLACED_AT_ONCE // 2:
            await asyncio.wait(self._placing, return_when=asyncio.FIRST_COMPLETED)
        await _wait(self._none_receiving, self._pacing.placeholder_delay)
        try:
            items = await self._placeholders.claim(self._owner, MAX_PLACED_AT_ONCE - len(self._placing))
        except Exception as error:  # whatever it is, the next claim may succeed
            _log.warning("claiming placeholders failed: %s", raised_at(error))
            return False
        if items:
            self._none_unseen.clear()
        for item in items:
            task = self._start(self._post_placeholder(item), item)
            self._placing.add(task)
            task.add_done_callback(self._placing.discard)
        return bool(items)

    async def _post_placeholder(self, item: InboxItem) -> None:
        async with self._attempt(item):
            await self._placeholders.post_queued(item)
        self._wakeup.set()

    def _start(self, work: Coroutine[Any, Any, None], item: InboxItem) -> asyncio.Task[None]:
        """Run a step of a question as a task that ``drain`` waits for."""
        task = asyncio.create_task(work, name=_task_name(item.id))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _take_next(self) -> None:
        """Start the next question once a slot is free, or wait for one to arrive."""
        await self._slots.acquire()
        self._wakeup.clear()
        self._claiming_since = monotonic_seconds()
        item = None if self._is_stopping else await self._claim()
        self._claiming_since = None
        if item is not None:
            self._start(self._process(item), item).add_done_callback(lambda _: self._slots.release())
            self._arrived.set()  # if that was the last slot, the others need placeholders now
            return
        self._slots.release()
        while not self._is_stopping and not await _wait(self._wakeup, self._poll_seconds):
            if self._may_have_work() or self._is_any_closed:  # rate-limited channels reopen without a commit
                return

    async def _claim(self) -> InboxItem | None:
        await self._yield_to_intake()
        platforms, closed = tuple(self._messengers), self._placeholders.pace.closed_channels()
        self._is_any_closed = bool(closed)
        try:
            return await self._inbox.claim(
                self._owner, self._lease_seconds, platforms, closed_channels=closed
            )
        except Exception as error:  # whatever it is, the next claim may succeed
            _log.warning("claiming a question failed: %s", raised_at(error))
            return None

    async def _yield_to_intake(self) -> None:
        """Wait, up to a limit, while messages are stored and placeholders posted: those are more urgent."""
        until = asyncio.get_running_loop().time() + self._pacing.answer_delay
        is_calm = await _wait(self._none_receiving, min(FLOOD_SECONDS, self._pacing.answer_delay))
        if not is_calm and self._receiving > 1:  # a single one is no flood: the database is slow
            self._is_flooded = True
            self._arrived.set()
        for calm in (self._none_receiving, self._none_unseen):
            await _wait(calm, until - asyncio.get_running_loop().time())
        self._is_flooded = False

    async def _process(self, item: InboxItem) -> None:
        with self._waits.in_progress():
            async with self._attempt(item):
                await self._reply(item)

    @contextlib.asynccontextmanager
    async def _attempt(self, item: InboxItem) -> AsyncIterator[None]:
        """Run one attempt at a question; on exit it is done, scheduled for retry, failed or released."""
        try:
            async with keep_leased(
                self._lease_seconds, partial(self._inbox.renew, item, self._lease_seconds)
            ):
                yield
        except LeaseLost:
            _log.warning("lease lost to another worker: question=%d", item.id)
        except asyncio.CancelledError:
            with contextlib.suppress(LeaseLost, DatabaseUnavailable):
                await self._inbox.release(item)
            raise
        except Exception as error:  # one question's error must not end the loop that serves all of them
            await self._retry_later(item, error)

    async def _reply(self, item: InboxItem) -> None:
        messenger, note = self._messengers[item.platform], item.address.get(NOTE)
        if note and not item.answer:
            if not await self._replies.is_due(item, note):
                await self._inbox.fail(item, "subscription ended, or page unchanged")
                return
        message = item.message or await self._placeholders.place(item)
        answer = await self._answer(item, messenger, message)
        async with delivery_deadline(self._lease_seconds):
            await messenger.deliver(item.address, message, answer, partial(self._inbox.mark_placed, item))
        if answer.figures:
            hold = partial(self._inbox.renew, item, self._lease_seconds)
            await messenger.attach_figures(item.address, message, answer, hold)
        reach("before-delivered")
        await self._inbox.mark_delivered(item)
        seconds = (datetime.now(UTC) - item.received_at).total_seconds()
        _log.info(
            "question=%d channel=%d platform=%s state=%s claims=%d seconds=%.2f",
            *(item.id, item.channel_id, item.platform, answer.state, item.fence, seconds),
        )

    async def _answer(self, item: InboxItem, messenger: Messenger, message: dict[str, Any]) -> Answer:
        """Return the stored answer, or compute one and store it."""
        async with live_updates(partial(self._show, item, messenger, message)) as listener:
            began = monotonic_seconds()
            made = await self._replies.reply(item, listener, is_given_up=item.attempts >= MAX_ATTEMPTS)
            self._waits.answered(monotonic_seconds() - began)
        if not made.is_kept:
            kept = answer_to_json(made.answer)
            await self._inbox.save_answer(item, kept, made.turn, cited_versions(made.answer))
            reach("after-answer")
        return made.answer

    async def _show(self, item: InboxItem, messenger: Messenger, message: dict[str, Any], text: str) -> None:
        """Stream the verified sentences into the placeholder; the lease is renewed first."""
        await self._inbox.renew(item, self._lease_seconds)
        async with delivery_deadline(self._lease_seconds):
            await messenger.show_partial(item.address, message, text)

    async def _retry_later(self, item: InboxItem, error: Exception) -> None:
        """Schedule a retry, or fail the question.

        Errors of engines and platforms do not count as attempts.
        """
        _log.warning(
            "question will be retried: question=%d channel=%d: %s", item.id, item.channel_id, raised_at(error)
        )
        reason = type(error).__name__
        with contextlib.suppress(LeaseLost, DatabaseUnavailable):
            if self._is_undeliverable(item, error):
                await self._inbox.fail(item, reason)
            elif isinstance(error, DeliveryError):
                unclear = UNCONFIRMED_SECONDS if isinstance(error, DeliveryUnclear) else 0
                await self._inbox.retry_later(item, reason, at_least=error.retry_after or unclear)
            else:
                is_own_fault = not isinstance(error, InfrastructureError | FileNotReady)
                await self._inbox.retry_later(item, reason, is_own_fault=is_own_fault)

    def _is_undeliverable(self, item: InboxItem, error: Exception) -> bool:
        """True if even an error message cannot be delivered, or the retries took too long."""
        if isinstance(error, DeliveryError):
            is_late = datetime.now(UTC) - item.received_at > MAX_DELIVERY_TIME
            return is_late or isinstance(error, AppUninstalled)
        return item.attempts + 1 >= 2 * MAX_ATTEMPTS and not isinstance(error, InfrastructureError)


def _task_name(question: int) -> str:
    return f"question-{question}"


async def _wait(event: asyncio.Event, seconds: float) -> bool:
    """True if the event was set within ``seconds``."""
    try:
        async with asyncio.timeout(max(0.0, seconds)):
            return await event.wait()
    except TimeoutError:
        return False
