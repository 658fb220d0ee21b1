"""Records notification events in the transaction that makes them true.

Each event is announced once, however often it is recorded: its key is unique.
``storage/chat/notifications.py`` hands events out in batches, ``bot/chat/notifications`` posts them.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from typing import Any
from uuid import UUID

from sqlalchemy import exists, func, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import aliased
from sqlmodel import col

from storage.chat.channels import WEB_TENANT
from storage.chat_models import Outage
from storage.clock import utc_now
from storage.models import Rung
from storage.sql.database import Database
from storage.sql.document_state import newest_number
from storage.sql.leased_queue import is_process_dead, is_running
from storage.sql.tables import (
    ChannelRow,
    DocumentRow,
    FactRow,
    FolderRow,
    NoticeRow,
    PublicationRow,
    ReadingRow,
    UploadRow,
    VersionRow,
    WebPageRow,
)

# Subfolder of a channel's inbox folder for files that were uploaded in the chat.
UPLOADS_FOLDER = "uploads"
# Prefix of the key of a notice about an unsupported file, followed by folder id, colon and file.
UNSUPPORTED_KEY = "stranger:"
# Prefix of an outage's fact, which stores its state, and of its notices' keys. The part follows; a notice's
# key adds a colon and its start, and for its end another colon and the end.
OUTAGE_KEY = "outage:"
# A bot that has not reported an outage for this time no longer counts as seeing it: it has exited or
# recovered.
REPORT_TTL = timedelta(minutes=2)


async def record_live(session: AsyncSession, publication: PublicationRow) -> None:
    """Record that a version answers in a channel, to be announced the first time."""
    if await _is_hidden(session, publication.channel_id):
        return
    version = await session.get_one(VersionRow, publication.version_id)
    upload = await upload_of(session, version.document_id)
    key = f"live:{publication.channel_id}:{version.id}"
    await _record_notice(
        session,
        kind="live",
        key=key if upload is None else f"{key}:{upload}",  # a repeated upload gets a receipt again
        channel_id=publication.channel_id,
        document_id=version.document_id,
        version_id=version.id,
        upload_id=upload,
    )


async def _is_hidden(session: AsyncSession, channel_id: int) -> bool:
    """True for the channel of approved web pages, whose documents are not announced."""
    channel = await session.get(ChannelRow, channel_id)
    return channel is not None and channel.tenant == WEB_TENANT


async def record_restored(session: AsyncSession, document: UUID) -> None:
    """Record that a deleted document answers again, to be announced if it was uploaded again."""
    if await upload_of(session, document) is None:
        return
    live = (
        select(PublicationRow)
        .join(VersionRow, col(VersionRow.id) == PublicationRow.version_id)
        .where(col(VersionRow.document_id) == document, col(PublicationRow.state) == "live")
    )
    for publication in await session.scalars(live):
        await record_live(session, publication)


async def record_failed(session: AsyncSession, contents: Collection[str]) -> None:
    """Record that contents cannot be read, to be announced once for each file that has one now."""
    other = aliased(ReadingRow)  # of a generation that has read the content, or is about to try
    may_yet_be_read = exists().where(
        col(other.sha256) == VersionRow.sha256, col(other.state).in_(("waiting", "done"))
    )
    query = (
        select(VersionRow, DocumentRow, ReadingRow)
        .join(DocumentRow, col(DocumentRow.id) == VersionRow.document_id)
        .join(ReadingRow, col(ReadingRow.sha256) == VersionRow.sha256)
        .where(col(VersionRow.sha256).in_(contents), col(DocumentRow.state) != "deleted")
        .where(col(ReadingRow.state) == "failed", col(ReadingRow.rung) == Rung.QUICK.value)
        .where(col(VersionRow.number) == newest_number(VersionRow), ~may_yet_be_read)
        .order_by(col(ReadingRow.created_at).desc())
    )
    for version, document, reading in (await session.execute(query)).all():
        if await _is_hidden(session, document.channel_id):
            continue
        await _record_notice(
            session,
            kind="failed",
            key=f"failed:{version.id}",
            channel_id=document.channel_id,
            document_id=document.id,
            version_id=version.id,
            text=reading.reason,
            upload_id=await upload_of(session, document.id),
        )


async def record_unstorable(session: AsyncSession, document: DocumentRow, reason: str) -> None:
    """Record that a file's bytes could not be stored, to be announced once per reason and version."""
    await session.flush()
    newest = select(func.max(VersionRow.number)).where(col(VersionRow.document_id) == document.id)
    number = await session.scalar(newest) or 0
    digest = blake2b(reason.encode(), digest_size=8).hexdigest()
    await _record_notice(
        session,
        kind="failed",
        key=f"refused:{document.id}:{number}:{digest}",
        channel_id=document.channel_id,
        document_id=document.id,
        text=reason,
        upload_id=await upload_of(session, document.id),
    )


async def record_folder(session: AsyncSession, folder_id: int, problem: str | None) -> None:
    """Record a folder's problem, or its end; call it before the folder's row changes."""
    folder = await session.get_one(FolderRow, folder_id)
    if folder.problem != problem:
        await _record_notice(
            session, kind="folder", channel_id=folder.channel_id, folder_id=folder_id, text=problem
        )


async def record_unsupported(session: AsyncSession, folder: FolderRow, strangers: Mapping[str, str]) -> None:
    """Record unsupported files of a folder with the reason, each to be announced once."""
    for file, reason in strangers.items():
        await _record_notice(
            session,
            kind="stranger",
            key=f"{UNSUPPORTED_KEY}{folder.id}:{file}",
            channel_id=folder.channel_id,
            folder_id=folder.id,
            text=reason,
        )


async def record_source_failed(session: AsyncSession, page: WebPageRow, channel_id: int) -> None:
    """Record that a web page has failed for long, to be announced once until it is fetched again.

    ``channel_id``: a channel whose questions may open it.
    """
    await _record_notice(
        session,
        kind="source failed",
        key=f"source failed:{page.failing_since}:{page.url}",
        channel_id=channel_id,
        url=page.url,
        text=page.error,
    )


async def record_source_changed(
    session: AsyncSession, url: str, channel_id: int, version_id: int, quote: str
) -> None:
    """Record that a web page lost a quote shown in a channel, to be announced once per cited version."""
    await _record_notice(
        session,
        kind="source changed",
        key=f"source changed:{channel_id}:{version_id}:{url}",
        channel_id=channel_id,
        url=url,
        text=quote,
    )


async def record_welcome(session: AsyncSession, channel_id: int) -> None:
    """Record that the bot joined a channel, to be announced once; again only if the first was dropped."""
    key = f"welcome:{channel_id}"
    await _record_notice(session, kind="welcome", key=key, channel_id=channel_id)
    refused = update(NoticeRow).where(col(NoticeRow.key) == key, col(NoticeRow.state) == "dropped")
    await session.execute(refused.values(state="waiting", batch=None, told_in=None, created_at=utc_now()))


async def record_digests(database: Database, channels: Collection[int], week: str) -> None:
    """Record the end of a week for these channels, each to get one digest of unanswered questions."""
    for channel_id in channels:
        async with database.transaction(exclusive=False) as session:
            await _record_notice(
                session, kind="digest", key=f"digest:{week}:{channel_id}", channel_id=channel_id
            )


async def record_summary(database: Database, channel_id: int, month: str, text: str) -> None:
    """Record a month's usage, to be announced once to the admins, whose channel this is."""
    async with database.transaction(exclusive=False) as session:
        await _record_notice(
            session, kind="summary", key=f"summary:{month}", channel_id=channel_id, text=text
        )


class Outages:
    """Outages as seen by all bots of a home; each start and each end is announced once.

    A part is down as long as one of the bots sees it so. The state is in SQL, so that a restarted bot
    announces nothing twice.
    """

    def __init__(self, database: Database, channel_id: int, bot: str) -> None:
        """Announce to the admins' channel; ``bot``: this process's name from ``process_name``."""
        self._database = database
        self._channel_id = channel_id
        self._bot = bot

    async def report(self, failing: Mapping[str, Outage | None], ended: Sequence[Outage]) -> None:
        """Record what this bot sees, and the notices that follow from it.

        Args:
            failing: current outages by part; None for one too recent to be announced.
            ended: outages that lasted, but could not be recorded while they did.

        Raises:
            DatabaseUnavailable: nothing was recorded; the same report may be repeated.
        """
        if not failing and not ended and not any(one["until"] is None for one in await self._known()):
            return
        async with self._database.transaction() as session:
            query = select(FactRow).where(col(FactRow.name).startswith(OUTAGE_KEY))
            facts = {row.name.removeprefix(OUTAGE_KEY): row for row in await session.scalars(query)}
            over = {one.part: one for one in ended}
            for part in sorted({*facts, *failing, *over}):
                await self._keep_part(session, part, facts.get(part), failing, over.get(part))

    async def _known(self) -> list[dict[str, Any]]:
        query = select(col(FactRow.value)).where(col(FactRow.name).startswith(OUTAGE_KEY))
        return [json.loads(row.value) for row in await self._database.rows(query)]

    async def _keep_part(
        self,
        session: AsyncSession,
        part: str,
        fact: FactRow | None,
        failing: Mapping[str, Outage | None],
        ended: Outage | None,
    ) -> None:
        known: dict[str, Any] = json.loads(fact.value) if fact else {"until": "", "bots": {}}
        is_open = known["until"] is None
        lasting = failing.get(part)
        if lasting and not is_open and _has_just_ended(known, lasting):
            lasting = None  # ignored: this bot will see the end on its next check
        if lasting and not is_open:
            known = {"reason": lasting.reason, "since": lasting.since.isoformat(), "until": None, "bots": {}}
            await self._record(session, lasting)
        elif ended and not is_open and not _is_known(known, ended):
            known = {"reason": ended.reason, "since": ended.since.isoformat(), "bots": {}}
            await self._close(session, part, known, ended.until)
        elif not lasting and not is_open:
            return
        if known["until"] is None:
            known["bots"] = self._seeing(known["bots"], is_seen=part in failing)
            if not known["bots"]:
                await self._close(session, part, known, ended.until if ended else None)
        await session.merge(FactRow(name=f"{OUTAGE_KEY}{part}", value=json.dumps(known)))

    def _seeing(self, bots: Mapping[str, str], *, is_seen: bool) -> dict[str, str]:
        """Return bot -> expiry of its report, for the bots that see the part fail."""
        now = utc_now()
        seeing = {
            bot: until
            for bot, until in bots.items()
            if bot != self._bot
            and not is_process_dead(bot)
            and is_running(datetime.fromisoformat(until), now, 2 * REPORT_TTL)
        }
        return seeing | ({self._bot: (now + REPORT_TTL).isoformat()} if is_seen else {})

    async def _close(
        self, session: AsyncSession, part: str, known: dict[str, Any], until: datetime | None
    ) -> None:
        """Record the end of an outage."""
        since, end = datetime.fromisoformat(known["since"]), until or utc_now()
        known["until"] = end.isoformat()
        await self._record(session, Outage(part, known["reason"], since, end))

    async def _record(self, session: AsyncSession, outage: Outage) -> None:
        moments = [outage.since, *([outage.until] if outage.until else [])]
        await _record_notice(
            session,
            kind="outage",
            key=":".join([f"{OUTAGE_KEY}{outage.part}", *(f"{one.timestamp():.0f}" for one in moments)]),
            channel_id=self._channel_id,
            text=outage.reason,
        )


def _is_known(known: Mapping[str, Any], ended: Outage) -> bool:
    """True if another bot has reported the same outage: the last one overlaps with it."""
    return bool(known["until"]) and datetime.fromisoformat(known["until"]) >= ended.since


def _has_just_ended(known: Mapping[str, Any], lasting: Outage) -> bool:
    """True if another bot has just reported the end of the same outage."""
    is_late = known["until"] and utc_now() > datetime.fromisoformat(known["until"]) + REPORT_TTL
    return _is_known(known, lasting) and not is_late


def outage_of(key: str, reason: str) -> Outage:
    """Parse the key of an outage's notice."""
    part, *moments = key.removeprefix(OUTAGE_KEY).split(":")
    since, until = (*(datetime.fromtimestamp(int(one), UTC) for one in moments), None)[:2]
    if since is None:
        raise ValueError("the notice of an outage says when it began")
    return Outage(part, reason, since, until)


async def upload_of(session: AsyncSession, document: UUID) -> int | None:
    """Return the upload from which a document came; None if it came another way."""
    query = (
        select(col(UploadRow.id))
        .join(DocumentRow, col(DocumentRow.channel_id) == UploadRow.channel_id)
        .join(FolderRow, col(FolderRow.id) == DocumentRow.folder_id)
        .where(col(DocumentRow.id) == document, col(FolderRow.origin) == "inbox")
        .where(col(DocumentRow.file) == f"{UPLOADS_FOLDER}/" + col(UploadRow.name))
    )
    found: int | None = await session.scalar(query)
    return found


async def _record_notice(session: AsyncSession, **values: Any) -> None:
    dialect = session.get_bind().dialect.name
    insert = postgresql.insert if dialect == "postgresql" else sqlite.insert
    row = insert(NoticeRow).values(state="waiting", created_at=utc_now(), **values)
    await session.execute(row.on_conflict_do_nothing(index_elements=["key"]))
