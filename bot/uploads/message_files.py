"""Splits a message with files into its question and one message per file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from bot.answers.understanding.question_terms import language_of
from bot.core.ports import IncomingMessage
from storage.chat_models import UPLOAD_KEY

# True if files of this message may become documents.
TakesFiles = Callable[[IncomingMessage], bool]

# Files processed per message: Slack allows ten.
MAX_FILES = 10


@dataclass(frozen=True, slots=True)
class MessageFile:
    """A file of a message."""

    # The platform's file id.
    id: str
    name: str
    # By its metadata; also True if the platform hides the metadata.
    is_readable: bool
    # Further fields needed for the download.
    address: Mapping[str, Any] = field(default_factory=dict)


def split_message(
    said: IncomingMessage, asked: IncomingMessage | None, files: Sequence[MessageFile], *, is_taken: bool
) -> list[IncomingMessage]:
    """Return the question of a message, and a message for each of its files that gets a reply.

    Without a mention, only readable files are handled, and only where uploads are on. Text sent with an
    accepted file travels with it and is asked once the file is searchable. With another file only a question
    is answered, and any other text gets the reply to the file: there is one reply, not two.

    Args:
        asked: the same as a question, if it is one.
        is_taken: uploads are on, so readable files become documents.
    """
    if not files:
        return [asked] if asked else []
    readable: Sequence[MessageFile] = [one for one in files if one.is_readable]
    if said.is_unaddressed:
        chosen, words = readable if is_taken else (), ""
    else:
        words = said.text if is_taken and readable else ""
        chosen = () if asked and not words and "?" in said.text else files
    uploads = [_upload(said, one, words if one in readable[:1] else "") for one in chosen[:MAX_FILES]]
    return uploads or ([asked] if asked else [])


def _upload(said: IncomingMessage, file: MessageFile, words: str) -> IncomingMessage:
    key = f"{said.message_key}:{file.id}"
    upload = {**file.address, "id": file.id, "name": file.name, "language": language_of(said.text) or ""}
    return replace(
        said,
        event_key=key,
        message_key=key,
        # An unaddressed file gets a thread key of its own, so that replies below it are no follow-ups to us.
        thread=key if said.is_unaddressed else said.thread,
        text=words,
        address={**said.address, "key": key, UPLOAD_KEY: upload},
        is_unaddressed=False,
    )
