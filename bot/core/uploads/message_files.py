"""A message that brings files: what of it is a question, and what becomes of each file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from bot.core.ports import IncomingMessage
from bot.core.understanding.question_terms import language_of
from storage.chat_models import UPLOAD

# Whether a PDF of this message may become a document.
TakesFiles = Callable[[IncomingMessage], bool]

# Files of one message that are looked at: Slack lets people send ten.
MAX_FILES = 10


@dataclass(frozen=True, slots=True)
class MessageFile:
    """A file of a message."""

    # As its platform names it.
    id: str
    name: str
    # Or may be one, as far as its platform says.
    is_pdf: bool
    # What else it is fetched by.
    address: Mapping[str, Any] = field(default_factory=dict)


def split_message(
    said: IncomingMessage, asked: IncomingMessage | None, files: Sequence[MessageFile], *, is_taken: bool
) -> list[IncomingMessage]:
    """Return the question of a message, and a message for each of its files that something is to be said of.

    Where nobody names us, that is a PDF where files are taken: people show pictures all day. The words
    beside a PDF that is taken go with it: they are asked when it is read, and not before.

    Args:
        said: the message.
        asked: the same as a question, if it is one.
        files: of the message.
        is_taken: PDFs become documents there.
    """
    if not files:
        return [asked] if asked else []
    pdfs: Sequence[MessageFile] = [one for one in files if one.is_pdf]
    if said.is_unaddressed:
        chosen, words = pdfs if is_taken else (), ""
    else:
        chosen = files if is_taken or not said.text else pdfs
        words = said.text if is_taken and pdfs else ""
    uploads = [_upload(said, one, words if one in pdfs[:1] else "") for one in chosen[:MAX_FILES]]
    is_asked = asked is not None and bool(asked.text) and not (is_taken and pdfs)
    return [*([asked] if asked and is_asked else []), *uploads]


def _upload(said: IncomingMessage, file: MessageFile, words: str) -> IncomingMessage:
    key = f"{said.message_key}:{file.id}"
    upload = {**file.address, "id": file.id, "name": file.name, "language": language_of(said.text) or ""}
    return replace(
        said,
        event_key=key,
        message_key=key,
        # A file that nobody gave to us makes us no part of its thread: what is said below it is not to us.
        thread=key if said.is_unaddressed else said.thread,
        text=words,
        address={**said.address, "key": key, UPLOAD: upload},
        is_unaddressed=False,
    )
