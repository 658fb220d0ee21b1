"""Admin commands in a chat: folder status, pause, resume, re-read, erase, approve a deletion.

Admin rights are checked at each use, and each use is audited, including refused ones. In a channel, a command
covers the folders of that channel only, since all members read the reply. In a direct chat it covers all
folders or, where anyone may install the bot, those of the chat's installation and of the library it searches.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from pathlib import PurePosixPath
from uuid import UUID

from bot.chat.commands.chat_intents import ChatCommand, ChatIntent
from bot.core.models import LOCAL_ASKER, Question
from bot.core.plaintext import shorten
from bot.core.wording import ReplyWords
from storage.errors import StillInFolder
from storage.folders.folder_status import FolderStatus
from storage.folders.folders import Folders
from storage.models import Channel, DocumentStatus, Platform
from storage.sql.audit import AuditedAction, AuditLog

# Folders or files that a reply lists; further ones are counted.
MAX_NAMED = 10
TEXT_CHARS = 240

ADMINS_ONLY = {
    ChatIntent.STATUS,
    ChatIntent.PAUSE,
    ChatIntent.RESUME,
    ChatIntent.RETRY,
    ChatIntent.APPROVE,
    ChatIntent.ERASE,
    ChatIntent.ERASE_FOR_GOOD,
}
# Re-reads documents that could not be read; returns their number.
RetryFailed = Callable[[Collection[UUID], AuditedAction], Awaitable[int]]
# (document, path).
_File = tuple[UUID, str]
# Erases a file of a channel everywhere; returns how many texts quote it. Without an action it only counts.
# It raises ``storage.errors.StillInFolder`` for a file that the next scan would bring back.
EraseDocument = Callable[[Channel, str, AuditedAction | None], Awaitable[int]]


class AdminCommands:
    """Executes the commands of admins; refuses everyone else with a sentence."""

    def __init__(
        self,
        admins: Collection[str],
        folders: Folders,
        audit: AuditLog,
        *,
        retry_failed: RetryFailed,
        erase_document: EraseDocument,
        shared: Collection[Platform] = (),
    ) -> None:
        """Create the commands.

        Args:
            admins: in the format of FOOTNOTE_ADMINS; local users (command line, console) are admins as well.
            shared: platforms where anyone may install the bot.
        """
        self._shared = shared
        self._admins = frozenset(admins)
        self._folders = folders
        self._audit = audit
        self._retry_failed = retry_failed
        self._erase_document = erase_document

    async def reply(
        self,
        command: ChatCommand,
        question: Question,
        documents: Sequence[DocumentStatus],
        words: ReplyWords,
    ) -> str | None:
        """Execute a command and return the reply.

        None: it names no known file, so it may be a question.

        Raises:
            storage.errors.InfrastructureError: SQL cannot be reached; nothing was done.
        """
        meant = await self._target_files(command, question, documents)
        if meant is not None and not meant:
            return None
        if not (question.asker == LOCAL_ASKER or question.asker in self._admins):
            await self._audit.record(self._action(command, question, is_done=False))
            return words.admins_only
        if meant is not None:
            return await self._run_file_command(command, question, meant, words)
        folders = [one for one in await self._folders.status() if self._is_seen(one, question)]
        if command.intent in (ChatIntent.PAUSE, ChatIntent.RESUME):
            return await self._pause(command, question, folders, words)
        if command.intent is ChatIntent.APPROVE:
            return await self._approve(command, question, folders, words)
        await self._audit.record(self._action(command, question))
        # All members of a channel read the reply: do not reveal paths on the server to them.
        names_places = question.conversation_channel.is_direct or question.asker == LOCAL_ASKER
        return _status(folders, words, names_places=names_places)

    def _is_seen(self, folder: FolderStatus, question: Question) -> bool:
        chat = question.conversation_channel
        is_here = folder.channel_id == question.channel.id
        is_ours = chat.platform not in self._shared or folder.installation == chat.installation
        return is_here or (chat.is_direct and is_ours)

    @staticmethod
    def _action(
        command: ChatCommand, question: Question, subject: str = "", *, is_done: bool = True
    ) -> AuditedAction:
        return AuditedAction(
            question.asker, command.intent.value, question.conversation_channel.tenant, subject, is_done
        )

    async def _pause(
        self, command: ChatCommand, question: Question, folders: Sequence[FolderStatus], words: ReplyWords
    ) -> str:
        is_paused = command.intent is ChatIntent.PAUSE
        action = self._action(command, question)
        count = await self._folders.pause([one.id for one in folders], action, is_paused=is_paused)
        return (words.paused if is_paused else words.resumed)(count)

    async def _target_files(
        self, command: ChatCommand, question: Question, documents: Sequence[DocumentStatus]
    ) -> list[_File] | None:
        """Return the files that a command names, among the unreadable ones (RETRY) or all (ERASE).

        Deleted files can be erased as well. None: the command is not about files.
        """
        if command.intent is ChatIntent.RETRY:
            unread = [one for one in documents if one.state == "quarantined"]
            unread += [one for one in documents if one.reason and one.state == "live"]
            return _named(command.name, [(one.document, one.file) for one in unread])
        if command.intent not in (ChatIntent.ERASE, ChatIntent.ERASE_FOR_GOOD):
            return None
        deleted = await self._folders.deleted(question.channel.id)
        kept = [(one.document, one.file) for one in documents]
        return _named(command.name, [*kept, *((one.id, one.file) for one in deleted)])

    async def _run_file_command(
        self, command: ChatCommand, question: Question, meant: Sequence[_File], words: ReplyWords
    ) -> str:
        if command.intent is not ChatIntent.RETRY:
            return await self._erase(command, question, meant, words)
        documents = [document for document, _ in meant]
        action = self._action(command, question, str(documents[0]))
        return words.retried(await self._retry_failed(documents, action))

    async def _erase(
        self, command: ChatCommand, question: Question, meant: Sequence[_File], words: ReplyWords
    ) -> str:
        """Erase a file after confirmation; if several have the name, ask for the path."""
        files = sorted({file for _, file in meant})
        if len(files) > 1:
            return "\n".join([words.which_document, *(f"• {file}" for file in files[:MAX_NAMED])])
        is_confirmed = command.intent is ChatIntent.ERASE_FOR_GOOD
        subject = " ".join(sorted({str(document) for document, _ in meant}))
        action = AuditedAction(
            question.asker, ChatIntent.ERASE.value, question.conversation_channel.tenant, subject
        )
        try:
            count = await self._erase_document(question.channel, files[0], action if is_confirmed else None)
        except StillInFolder:
            return words.still_in_folder
        return (
            words.erased(count=count)
            if is_confirmed
            else words.confirm_erasure(document=files[0], count=count)
        )

    async def _approve(
        self, command: ChatCommand, question: Question, folders: Sequence[FolderStatus], words: ReplyWords
    ) -> str:
        folder = next((one for one in folders if str(one.id) == command.name and one.pending_deletions), None)
        if folder is None:
            return words.nothing_to_approve
        action = self._action(command, question, command.name)
        shown = [document for document, _ in folder.pending_deletions]
        return words.approved(await self._folders.approve(folder.id, shown, action))


def _named(name: str, files: Sequence[_File]) -> list[_File]:
    """Return the files with this path, else those with this file name."""
    wanted = name.casefold()
    exact = [one for one in files if one[1].casefold() == wanted]
    return exact or [
        one
        for one in files
        if wanted in (PurePosixPath(one[1]).name.casefold(), PurePosixPath(one[1]).stem.casefold())
    ]


def _status(folders: Sequence[FolderStatus], words: ReplyWords, *, names_places: bool) -> str:
    lines = [words.folders_known(len(folders))]
    for folder in folders[:MAX_NAMED]:
        place = f"{folder.location} → " if names_places else ""
        known = f"• {folder.id} · {place}{folder.channel_name}: {words.files(folder.documents)}"
        notes = [
            words.folder_paused if folder.is_paused else "",
            shorten(folder.problem or "", TEXT_CHARS),
            words.asks_to_delete(len(folder.pending_deletions), folder=folder.id)
            if folder.pending_deletions
            else "",
        ]
        lines.append(" · ".join(filter(None, (known, *notes))))
    if (rest := len(folders) - MAX_NAMED) > 0:
        lines.append(words.more_documents(count=rest))
    return "\n".join(lines)
