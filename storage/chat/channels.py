"""Channels in SQL: the only way from a verified key, or an admin's name, to a tenant."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum
from typing import Any

from sqlalchemy import Row, Select, String, bindparam, delete, exists, or_, select, update
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import SQLModel, col

from storage.clock import utc_now
from storage.errors import InvalidTenant, UnknownChannel
from storage.models import CHAT_PREFIXES, LIBRARY, WEB_PAGES, Channel, ChannelKey, Platform, TenantName
from storage.sql.audit import AuditedAction, record_action
from storage.sql.database import Database
from storage.sql.tables import ChannelMoveRow, ChannelRow, DocumentRow, FactRow, FolderRow

# Limit of a folder's name, in bytes.
MAX_NAME_CHARS = 255
_WEB_PAGES = ChannelKey(Platform.LOCAL, "", WEB_PAGES)
WEB_TENANT = _WEB_PAGES.tenant
_DIRECT_LIBRARY = "library of direct chats"
# Source of a channel's name.
_ADMIN, PLATFORM = "admin", "platform"


class MoveOutcome(Enum):
    """Result of a platform's report that a conversation has a new id."""

    MOVED = "moved"
    # Reported before, or older than a later report.
    KNOWN = "known"
    # No data of the conversation exists.
    UNKNOWN = "unknown"
    # The new id already has documents: nothing was changed.
    OCCUPIED = "occupied"


@dataclass(frozen=True, slots=True)
class DirectLibrary:
    """Library that direct chats search."""

    # Channel of the library.
    channel: Channel
    # Those that an admin lists.
    installations: frozenset[str] = frozenset()


class Channels:
    """Creates and finds channels."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def ensure(
        self, key: ChannelKey, name: str | None = None, *, is_direct: bool | None = None
    ) -> Channel:
        """Return the channel of a verified key; create it if it is new, and update its kind.

        Args:
            key: from a verified envelope.
            name: its name on the platform; overwrites the stored name unless an admin set that.
            is_direct: True for a chat between one person and the bot; None: unchanged.

        Raises:
            InvalidTenant: the key holds a character that its platform never uses.
        """
        name = name or (key.conversation if key.platform == Platform.LOCAL else None)
        known = await self._of_tenant(key.tenant)
        is_named = known and (name in (None, known.name) or known.named_by == _ADMIN)
        is_here = known and known.conversation and known.left_at is None
        if known and is_here and is_named and is_direct in (None, known.is_direct):
            return _channel(known)
        async with self._database.transaction() as session:
            row = await _ensure_row(session, key.tenant)
            row.installation, row.conversation = key.installation, key.conversation
            row.left_at = None
            if is_direct is not None:
                row.is_direct = is_direct
            if name and row.named_by != _ADMIN:
                row.name, row.named_by = name, PLATFORM
            await session.flush()
            return _channel(row)

    async def ensure_tenant(self, tenant: TenantName, name: str | None = None) -> Channel:
        """Return a tenant's channel, for a chat channel whose folder exists before its first message.

        ``name``: the admin's name for it; overwrites the stored name.
        """
        known = await self._of_tenant(tenant)
        if known and (name is None or (name, _ADMIN) == (known.name, known.named_by)):
            return _channel(known)
        async with self._database.transaction() as session:
            row = await _ensure_row(session, tenant)
            if name:
                row.name, row.named_by = name, _ADMIN
            await session.flush()
            return _channel(row)

    async def ensure_named(self, name: str, shown: str | None = None) -> Channel:
        """Return the channel that an admin's name means, a tenant's or a local one; create it if new.

        Args:
            name: a tenant name, or the name of a local channel.
            shown: display name of a tenant's channel; overwrites the stored name.

        Raises:
            UnknownChannel: no channel can have this name.
        """
        tenant = require_channel_name(name)
        if tenant == name:
            return await self.ensure_tenant(tenant, shown)
        return await self.ensure(ChannelKey(Platform.LOCAL, "", name))

    async def ensure_library(self, title: str) -> Channel:
        """Return a library's channel; create it if new. It belongs to no chat; direct chats search it."""
        return await self.ensure(ChannelKey(Platform.LOCAL, "", library_channel(title)))

    async def ensure_web_pages(self) -> Channel:
        """Return the hidden channel of approved web pages; create it if new."""
        return await self.ensure(_WEB_PAGES)

    async def set_address(self, channel: Channel, address: dict[str, Any]) -> None:
        """Store the reply address of a channel in which there was no question yet."""
        changed = update(ChannelRow).where(col(ChannelRow.id) == channel.id)
        async with self._database.transaction() as session:
            await session.execute(changed.values(address=address))

    async def leave(self, key: ChannelKey) -> None:
        """Record that a channel is gone, or that the bot left it; a later message undoes this.

        Raises:
            DatabaseUnavailable: it was not recorded, so the event must not be acknowledged.
        """
        known = update(ChannelRow).where(
            col(ChannelRow.tenant) == key.tenant, col(ChannelRow.left_at).is_(None)
        )
        async with self._database.transaction() as session:
            await session.execute(known.values(left_at=utc_now()))

    async def left_before(self, moment: datetime) -> list[Channel]:
        """Return the channels that the bot left before then, oldest first."""
        query = select(ChannelRow).where(col(ChannelRow.left_at) <= moment).order_by(col(ChannelRow.left_at))
        async with self._database.snapshot() as session:
            return [_channel(row) for row in await session.scalars(query)]

    async def set_direct_library(self, library: DirectLibrary | None) -> None:
        """Set the library that direct chats search; None: none."""
        if await self.direct_library() == library:
            return
        async with self._database.transaction() as session:
            value = [library.channel.id, *sorted(library.installations)] if library else []
            await session.merge(FactRow(name=_DIRECT_LIBRARY, value=json.dumps(value)))

    async def direct_library(self) -> DirectLibrary | None:
        """Return the library that direct chats search; None if an admin names none.

        Raises:
            DatabaseUnavailable: the database does not work.
        """
        async with self._database.snapshot() as session:
            fact = await session.get(FactRow, _DIRECT_LIBRARY)
            if fact is None or not (value := json.loads(fact.value)):
                return None
            row = await session.get(ChannelRow, value[0])
            return DirectLibrary(_channel(row), frozenset(value[1:])) if row else None

    async def by_name(self, name: str) -> Channel:
        """Return a local channel by its name, any other by its tenant name.

        Raises:
            UnknownChannel: there is none; nothing was created.
        """
        row = await self._of_tenant(named_tenant(name))
        if row is None or row.tenant == WEB_TENANT:
            raise UnknownChannel(
                f"no channel named {name!r}: use a name of the last column of `footnote channels`"
            )
        return _channel(row)

    async def get(self, channel_id: int) -> Channel:
        """Return a channel by its id.

        Raises:
            UnknownChannel: there is none.
        """
        async with self._database.snapshot() as session:
            row = await session.get(ChannelRow, channel_id)
        if row is None or row.tenant == WEB_TENANT:
            raise UnknownChannel(f"no channel has the id {channel_id}")
        return _channel(row)

    async def all(self, platform: Platform | None = None) -> list[Channel]:
        """Return all channels, or those of a platform, by name; omit hidden ones, and those that moved."""
        taken = select(col(ChannelMoveRow.tenant)).where(col(ChannelMoveRow.channel_id) != col(ChannelRow.id))
        is_shown = col(ChannelRow.tenant).not_in(taken) & (col(ChannelRow.tenant) != WEB_TENANT)
        query = select(ChannelRow).where(is_shown)
        query = query.order_by(col(ChannelRow.name), col(ChannelRow.id))
        if platform:
            query = query.where(col(ChannelRow.platform) == platform)
        async with self._database.snapshot() as session:
            return [_channel(row) for row in await session.scalars(query)]

    async def of_tenants(self, tenants: Collection[TenantName]) -> list[Channel]:
        """Return the known channels of these tenants, by name."""
        query = select(ChannelRow).where(col(ChannelRow.tenant).in_(tenants))
        async with self._database.snapshot() as session:
            rows = await session.scalars(query.order_by(col(ChannelRow.name), col(ChannelRow.id)))
            return [_channel(row) for row in rows]

    async def with_documents(self, tenants: Collection[TenantName], limit: int) -> list[Channel]:
        """Return the first ``limit`` of these tenants' channels that have documents, by name."""
        has_document = exists().where(
            col(DocumentRow.channel_id) == ChannelRow.id, col(DocumentRow.state) != "deleted"
        )
        query = select(ChannelRow).where(col(ChannelRow.tenant).in_(tenants), has_document)
        async with self._database.snapshot() as session:
            rows = await session.scalars(
                query.order_by(col(ChannelRow.name), col(ChannelRow.id)).limit(limit)
            )
            return [_channel(row) for row in rows]

    async def move(self, old: ChannelKey, new: ChannelKey) -> MoveOutcome:
        """Map a conversation's new id to its channel, which keeps its name, folder and documents.

        A channel of the new id must have no documents; it is replaced, and its folders feed this channel.

        Raises:
            DatabaseUnavailable: it was not recorded, so the event must not be acknowledged.
        """
        async with self._database.transaction() as session:
            row = await session.scalar(_ROW, {"tenant": old.tenant})
            if row is None:
                return MoveOutcome.UNKNOWN
            latest = select(col(ChannelMoveRow.tenant)).where(col(ChannelMoveRow.channel_id) == row.id)
            newest = await session.scalar(latest.order_by(col(ChannelMoveRow.id).desc()).limit(1))
            if (newest or row.tenant) != old.tenant or old == new:
                return MoveOutcome.KNOWN
            actor = f"{old.platform}:{old.installation}"
            action = AuditedAction(actor, "move channel", row.tenant, new.tenant)
            target = await session.scalar(_ROW, {"tenant": new.tenant})
            if target and target.id != row.id:
                if target.tenant != new.tenant or await _has_documents(session, target.id):
                    await record_action(session, replace(action, is_done=False))
                    return MoveOutcome.OCCUPIED
                feeding = update(FolderRow).where(col(FolderRow.channel_id) == target.id)
                await session.execute(feeding.values(channel_id=row.id))
            await session.execute(delete(ChannelMoveRow).where(col(ChannelMoveRow.tenant) == new.tenant))
            session.add(ChannelMoveRow(tenant=new.tenant, channel_id=row.id))
            await record_action(session, action)
            return MoveOutcome.MOVED

    async def moves(self, platform: Platform) -> list[tuple[TenantName, TenantName]]:
        """Return (a channel's tenant name, one that it has received since), the newest last."""
        query = (
            select(col(ChannelRow.tenant), col(ChannelMoveRow.tenant))
            .join(ChannelRow, col(ChannelRow.id) == col(ChannelMoveRow.channel_id))
            .where(col(ChannelRow.platform) == platform)
            .order_by(col(ChannelMoveRow.id))
        )
        async with self._database.snapshot() as session:
            return [(TenantName(ours), TenantName(theirs)) for ours, theirs in await session.execute(query)]

    async def invalidate_links(self, channel_id: int, action: AuditedAction | None = None) -> None:
        """Invalidate all existing links of a channel; ``action`` is recorded with it."""
        raised = update(ChannelRow).where(col(ChannelRow.id) == channel_id)
        async with self._database.transaction() as session:
            await session.execute(raised.values(epoch=ChannelRow.epoch + 1))
            if action:
                await record_action(session, action)

    async def _of_tenant(self, tenant: TenantName) -> Row[Any] | None:
        """Return the columns of a channel's row; None if there is none."""
        found = await self._database.rows(_COLUMNS, {"tenant": tenant}, brief=True)
        return found[0] if found else None


def library_channel(title: str) -> str:
    """Return the name of a library's channel."""
    return f"{LIBRARY}{title}"


def is_folder_name(name: str) -> bool:
    """True if a visible folder in the inbox can have this name, as each local channel has one."""
    is_shown = bool(name.strip()) and name.isprintable() and not name.startswith(".")
    return is_shown and "/" not in name and len(name.encode(errors="replace")) <= MAX_NAME_CHARS


def is_channel_name(name: str) -> bool:
    """True if a channel can have this name in an admin's file: a tenant's, a local one's or a library's."""
    try:
        TenantName(name)
    except InvalidTenant:
        name = name.removeprefix(LIBRARY)
        return is_folder_name(name) and not name.startswith((*CHAT_PREFIXES, "#"))
    return True


def named_tenant(name: str) -> TenantName:
    """Return the tenant that an admin's name for a channel means: a tenant name, else a local channel.

    Raises:
        UnknownChannel: the name is not valid text, as a folder's name may be.
    """
    try:
        return TenantName(name)
    except InvalidTenant:
        pass
    try:
        return ChannelKey(Platform.LOCAL, "", name).tenant
    except UnicodeEncodeError as error:
        raise UnknownChannel(f"{name!r} cannot be a channel: it is not UTF-8") from error


def require_channel_name(name: str) -> TenantName:
    """Return the tenant of a channel that may have to be created.

    Raises:
        UnknownChannel: no channel can have this name.
    """
    tenant = named_tenant(name)
    if tenant != name and not is_folder_name(name):
        raise UnknownChannel(
            f"{name!r} is not a valid channel name: use a folder name without slashes, leading dots or "
            "unprintable characters"
        )
    return tenant


async def _ensure_row(session: AsyncSession, tenant: TenantName) -> ChannelRow:
    """Return the row of a tenant, creating it; the transaction's lock prevents duplicates."""
    row = await session.scalar(_ROW, {"tenant": tenant})
    if row is None:
        row = ChannelRow(tenant=str(tenant), platform=tenant.platform, name=str(tenant))
        session.add(row)
    return row


def _of_tenant(*what: Any) -> Select[Any]:
    """Select from the channel of a ``tenant``; one that has received the name since takes precedence."""
    tenant = bindparam("tenant", type_=String)
    moved = select(col(ChannelMoveRow.channel_id)).where(col(ChannelMoveRow.tenant) == tenant)
    is_own = col(ChannelRow.tenant) == tenant
    return select(*what).where(or_(is_own, col(ChannelRow.id).in_(moved))).order_by(is_own).limit(1)


_ROW: Select[ChannelRow] = _of_tenant(ChannelRow)
# Built once, because every event looks up its channel.
_COLUMNS = _of_tenant(*SQLModel.metadata.tables["channel"].columns)


async def _has_documents(session: AsyncSession, channel_id: int) -> bool:
    """True if the channel has documents, or deleted ones that are not purged yet."""
    found = select(col(DocumentRow.id)).where(col(DocumentRow.channel_id) == channel_id)
    return await session.scalar(found.limit(1)) is not None


def _channel(row: ChannelRow | Row[Any]) -> Channel:
    platform, installation = Platform(row.platform), row.installation or ""
    return Channel(row.id, TenantName(row.tenant), platform, row.name, row.epoch, row.is_direct, installation)
