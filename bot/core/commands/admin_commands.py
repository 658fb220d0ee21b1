"""What admins may say in a chat: how folders stand, pause, resume, read a file again, approve a deletion.

Who is one is asked at each use, and each use is kept in the audit, a refused one, too. In a channel a command
speaks of the channel's own folders only, for all its members read the reply; in a direct chat of all of them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from pathlib import PurePosixPath
from uuid import UUID

from bot.core.commands.chat_intents import ChatCommand, ChatIntent
from bot.core.models import LOCAL_ASKER, Question
from bot.core.plaintext import shorten
from bot.core.wording import ReplyWords
from storage.folders.folder_status import FolderStatus
from storage.folders.folders import Folders
from storage.models import DocumentStatus
from storage.sql.audit import AuditedAction, AuditLog

MAX_NAMED = 10
"""Folders, or files, that a reply names before it counts the others."""
TEXT_CHARS = 240

ADMINS_ONLY = {
    ChatIntent.STATUS,
    ChatIntent.PAUSE,
    ChatIntent.RESUME,
    ChatIntent.RETRY,
    ChatIntent.APPROVE,
}
RetryFailed = Callable[[Collection[UUID], AuditedAction], Awaitable[int]]
"""Has documents read anew that could not be; returns how many there are."""


class AdminCommands:
    """Does what admins ask for, and refuses everybody else with a sentence."""

    def __init__(
        self, admins: Collection[str], folders: Folders, audit: AuditLog, retry_failed: RetryFailed
    ) -> None:
        """``admins``: as FOOTNOTE_ADMINS names people; whoever uses this machine itself is one, too."""
        self._admins = frozenset(admins)
        self._folders = folders
        self._audit = audit
        self._retry_failed = retry_failed

    async def reply(
        self,
        command: ChatCommand,
        question: Question,
        documents: Sequence[DocumentStatus],
        words: ReplyWords,
    ) -> str | None:
        """What became of a command; None: it names no file that could be meant, and may be a question.

        Raises:
            storage.errors.InfrastructureError: SQL cannot be reached; nothing was done.
        """
        unread = _unread(command.name, documents) if command.intent is ChatIntent.RETRY else []
        if command.intent is ChatIntent.RETRY and not unread:
            return None
        if not self._is_admin(question.asker):
            await self._audit.keep(self._action(command, question, is_done=False))
            return words.admins_only
        if command.intent is ChatIntent.RETRY:
            action = self._action(command, question, str(unread[0].document))
            return words.retried(await self._retry_failed([one.document for one in unread], action))
        if command.intent in (ChatIntent.PAUSE, ChatIntent.RESUME):
            return await self._pause(command, question, words)
        folders = [one for one in await self._folders.status() if self._is_seen(one, question)]
        if command.intent is ChatIntent.APPROVE:
            return await self._approve(command, question, folders, words)
        await self._audit.keep(self._action(command, question))
        return _status(folders, words)

    def _is_admin(self, asker: str) -> bool:
        return asker == LOCAL_ASKER or asker in self._admins

    @staticmethod
    def _is_seen(folder: FolderStatus, question: Question) -> bool:
        return question.asked_in.is_direct or folder.channel_id == question.channel.id

    @staticmethod
    def _action(
        command: ChatCommand, question: Question, subject: str = "", *, is_done: bool = True
    ) -> AuditedAction:
        return AuditedAction(question.asker, command.intent.value, question.asked_in.tenant, subject, is_done)

    async def _pause(self, command: ChatCommand, question: Question, words: ReplyWords) -> str:
        is_paused = command.intent is ChatIntent.PAUSE
        scope = None if question.asked_in.is_direct else question.channel.id
        count = await self._folders.pause(scope, self._action(command, question), is_paused=is_paused)
        return (words.paused if is_paused else words.resumed)(count)

    async def _approve(
        self, command: ChatCommand, question: Question, folders: Sequence[FolderStatus], words: ReplyWords
    ) -> str:
        folder = next((one for one in folders if str(one.id) == command.name and one.asked), None)
        if folder is None:
            return words.nothing_to_approve
        action = self._action(command, question, command.name)
        shown = [document for document, _ in folder.asked]
        return words.approved(await self._folders.approve(folder.id, shown, action))


def _unread(name: str, documents: Sequence[DocumentStatus]) -> list[DocumentStatus]:
    """The file of a name among those that could not be read; with its path where several have it."""
    wanted = name.casefold()
    failed = [one for one in documents if one.state == "quarantined" or (one.reason and one.state == "live")]
    exact = [one for one in failed if one.file.casefold() == wanted]
    return exact or [
        one
        for one in failed
        if wanted in (PurePosixPath(one.file).name.casefold(), PurePosixPath(one.file).stem.casefold())
    ]


def _status(folders: Sequence[FolderStatus], words: ReplyWords) -> str:
    lines = [words.folders_known(len(folders))]
    for folder in folders[:MAX_NAMED]:
        place = f"• {folder.id} · {folder.location} → {folder.channel_name}: {words.files(folder.documents)}"
        notes = [
            words.folder_paused if folder.is_paused else "",
            shorten(folder.problem or "", TEXT_CHARS),
            words.asks_to_delete(len(folder.asked), folder=folder.id) if folder.asked else "",
        ]
        lines.append(" · ".join(filter(None, (place, *notes))))
    if (rest := len(folders) - MAX_NAMED) > 0:
        lines.append(words.more_documents(count=rest))
    return "\n".join(lines)
