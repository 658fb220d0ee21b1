"""Fair queueing of waiting questions: channels take turns, however many questions one of them has.

A question gets its turn when it is stored: one after the last of its channel, but never before the turn that
is being served (start-time fair queuing, Goyal et al. 1996: channels are its flows). So the only question of
a channel has the very next turn, and the four hundredth of another one waits for 399 rounds. Questions are
claimed by turn, then by id, along one index.
"""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import BindParameter, ScalarSelect, Select, and_, exists, func, or_, select, union_all
from sqlalchemy.orm import aliased
from sqlmodel import col

from storage.sql.tables import InboxRow, OutboxRow

# Rounds that a late question waits at least, in which others of its channel may overtake it.
LATE_ROUNDS = 10
# Order in which waiting questions are served.
TURN_ORDER = (col(InboxRow.turn), col(InboxRow.id))


def next_turn(channel_id: int | BindParameter[int], *, is_late: bool) -> ScalarSelect[int]:
    """Return the turn of a question stored now; a late one comes after all of its channel.

    Questions in backoff do not count as served: their turns are past, by up to a day.
    """
    waiting = aliased(InboxRow)
    is_waiting = col(waiting.state) == "waiting"
    last = select((func.max(waiting.turn) + 1).label("turn"))
    last = last.where(is_waiting, col(waiting.channel_id) == channel_id)
    if not is_late:
        last = last.where(~col(waiting.is_late))
    earliest = func.min(waiting.turn) + (LATE_ROUNDS if is_late else 0)
    served = select(earliest.label("turn")).where(is_waiting, col(waiting.next_attempt_at).is_(None))
    turns = union_all(served, last).subquery()
    return select(func.coalesce(func.max(turns.c.turn), 0)).scalar_subquery()


def waiting_on(platforms: Collection[str], closed_channels: Collection[int] = ()) -> Select[InboxRow]:
    """Return the waiting questions in turn; of closed channels only those that have a placeholder."""
    waiting = select(InboxRow).where(col(InboxRow.state) == "waiting", col(InboxRow.platform).in_(platforms))
    if closed_channels:
        has_place = exists().where(col(OutboxRow.inbox_id) == InboxRow.id, col(OutboxRow.state) != "posting")
        waiting = waiting.where(or_(col(InboxRow.channel_id).not_in(closed_channels), has_place))
    return waiting.order_by(*TURN_ORDER)


def only_unseen(waiting: Select[InboxRow]) -> Select[InboxRow]:
    """Restrict to questions with text for which no placeholder was attempted.

    A note on a page, which has no text, becomes visible only when there is something to say.
    """
    has_reply = exists().where(col(OutboxRow.inbox_id) == InboxRow.id)
    return waiting.where(~has_reply, col(InboxRow.text) != "")


def queue_positions(questions: Collection[int]) -> Select[int, int]:
    """Return (id, number of waiting questions served before it) for each question that is not first."""
    other = aliased(InboxRow)
    is_before = or_(
        col(other.turn) < InboxRow.turn,
        and_(col(other.turn) == InboxRow.turn, col(other.id) < InboxRow.id),
    )
    return (
        select(col(InboxRow.id), func.count())
        .join(other, is_before)
        .where(col(InboxRow.id).in_(questions), col(other.state) == "waiting")
        .group_by(col(InboxRow.id))
    )
