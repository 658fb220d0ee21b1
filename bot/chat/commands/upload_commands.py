"""Removes files that were uploaded in a channel, if the uploader or an admin asks for it there."""

from __future__ import annotations

import logging
import re
from collections.abc import Collection
from pathlib import Path

from bot.chat.commands.chat_intents import ChatIntent
from bot.chat.conversation.handoffs import FindOwners
from bot.core.models import LOCAL_ASKER, Question
from bot.core.plaintext import escape_markers, shorten
from bot.core.wording import ReplyWords
from bot.uploads.upload_intake import remove_upload
from storage.chat.uploads import Uploads
from storage.chat_models import Upload
from storage.folders.folders import Folders
from storage.readers.registry import READERS
from storage.sql.audit import AuditedAction, AuditLog
from storage.text.analyzer import fold

NAME_CHARS = 90
MAX_PEOPLE = 3
ACTION = ChatIntent.REMOVE_UPLOAD.value

log = logging.getLogger(__name__)


class UploadCommands:
    """Executes the commands of uploaders and admins; refuses everyone else with a sentence."""

    def __init__(
        self,
        admins: Collection[str],
        uploads: Uploads,
        folders: Folders,
        audit: AuditLog,
        inbox: Path,
        *,
        find_owners: FindOwners = lambda _: (),
    ) -> None:
        """Create the commands.

        ``admins``: in the format of FOOTNOTE_ADMINS; local users (command line, console) are admins as well.
        """
        self._find_owners = find_owners
        self._admins = frozenset(admins)
        self._uploads = uploads
        self._folders = folders
        self._audit = audit
        self._inbox = inbox

    async def remove(self, name: str, question: Question, words: ReplyWords) -> str:
        """Remove the upload with this name, so that it is no longer searched; return the reply.

        Raises:
            storage.errors.InfrastructureError: SQL cannot be reached; repeating the command does the rest.
        """
        upload = await self._named(name, question.channel.id)
        if upload is None:
            return words.no_such_upload(name=escape_markers(shorten(name, NAME_CHARS)))
        if not self._may_remove(question.asker, upload):
            await self._audit.record(self._action(question, upload, is_done=False))
            return words.upload_not_yours(file=escape_markers(upload.name))
        try:
            await remove_upload(
                question.channel,
                upload,
                inbox=self._inbox,
                uploads=self._uploads,
                folders=self._folders,
                action=self._action(question, upload),
            )
        except OSError as error:
            log.warning("could not delete upload: upload=%d: %s", upload.id, type(error).__name__)
            return words.upload_not_removed(file=escape_markers(upload.name))
        return words.upload_removed(file=escape_markers(upload.name))

    async def people(self, question: Question) -> tuple[str, ...]:
        """Return the people to ask: the folders' owners, latest uploaders, then admins.

        Only those of the installation in which the question was asked.

        Raises:
            storage.errors.InfrastructureError: SQL cannot be reached.
        """
        uploads = await self._uploads.of_channel(question.channel.id)
        place = f"{question.conversation_channel.platform}:{question.conversation_channel.installation}:"
        known = (
            *self._find_owners(question.channel),
            *(one.uploader for one in reversed(uploads)),
            *sorted(self._admins),
        )
        return tuple(dict.fromkeys(one for one in known if one.startswith(place)))[:MAX_PEOPLE]

    async def _named(self, name: str, channel_id: int) -> Upload | None:
        """Return the upload with this file name, ignoring extension, punctuation and case."""
        uploads = await self._uploads.of_channel(channel_id)
        exact = [one for one in uploads if one.name.casefold() == name.casefold()]
        return next((one for one in (*exact, *uploads) if _words(one.name) == _words(name)), None)

    def _may_remove(self, asker: str, upload: Upload) -> bool:
        is_uploader = bool(asker) and asker == upload.uploader
        return is_uploader or asker == LOCAL_ASKER or asker in self._admins

    @staticmethod
    def _action(question: Question, upload: Upload, *, is_done: bool = True) -> AuditedAction:
        return AuditedAction(
            question.asker, ACTION, question.conversation_channel.tenant, str(upload.id), is_done
        )


def _words(name: str) -> str:
    return re.sub(r"[\W_]+", " ", READERS.split_suffix(fold(name).casefold())[0]).strip()
