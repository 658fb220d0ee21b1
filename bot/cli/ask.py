"""``footnote ask``: one question, or a file of questions with models loaded once."""

from __future__ import annotations

import argparse
import json
import logging
import shutil
import sys
import textwrap
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeGuard

from bot.answers.citations.source_buttons import cited_pages, figure_pages, numbered
from bot.answers.pipeline import Answering
from bot.bootstrap import open_answering
from bot.chat.conversation.memory import answer_in_thread
from bot.cli.documents import checked_where, documents_where, read_where
from bot.cli.home import EmptyHome, channel_option, chosen_channel, require_home
from bot.cli.json_output import answer_line, dump
from bot.core.models import LOCAL_ASKER, Answer, AnswerState, Language, Question
from bot.core.ports import AnswerListener
from bot.core.wording import reply_words
from bot.settings import load_settings
from storage.errors import InfrastructureError, SettingsError, UnknownChannel
from storage.stores import Stores

ENGLISH = reply_words(Language.ENGLISH)

log = logging.getLogger(__name__)


async def ask(options: argparse.Namespace) -> int:
    """Answer one question or a file of questions."""
    if options.questions:
        return await _ask_many(options)
    if not options.question:
        print('footnote: ask "QUESTION", or --questions FILE.jsonl --json', file=sys.stderr)
        return 2
    line = _Line(None, options.question, options.channel or "", read_where(options.where), options.thread)
    if options.json:
        line, answer = await _ask_one(line)
        print(dump(answer_line(answer, id=None, question=line.question, channel=line.channel)))
    else:
        screen = _TerminalListener() if sys.stdout.isatty() else None
        _, answer = await _ask_one(line, screen)
        print(render_text(answer, screen.printed if screen else ""))
    return 1 if answer.state is AnswerState.FAILED else 0


class _TerminalListener:
    """Answer listener that prints sentences to the terminal as they arrive."""

    def __init__(self) -> None:
        self.printed = ""

    def show(self, text: str) -> None:
        """Print the new part of the text."""
        print(text.removeprefix(self.printed), end="", flush=True)
        self.printed = text


async def _ask_one(line: _Line, listener: AnswerListener | None = None) -> tuple[_Line, Answer]:
    """Return the line with its channel, and the answer; a failed answer if the engines cannot be opened.

    Raises:
        EmptyHome: nothing was ingested yet.
        UnknownChannel: no such channel, or none was named and there are several.
    """
    settings = load_settings()
    require_home(settings)
    try:
        async with open_answering(settings) as (stores, answering):
            line = await _with_channel(line, stores)
            return line, await _answer(line, stores, answering, listener)
    except InfrastructureError as error:
        return line, _failed(error)


async def _with_channel(line: _Line, stores: Stores) -> _Line:
    """Return the line with its channel, or with the only channel if it names none.

    Raises:
        UnknownChannel: it names none, and there are several.
    """
    if line.channel:
        return line
    only = await chosen_channel(stores, None)
    return replace(line, channel=channel_option(only.name, only.tenant))


async def _answer(
    line: _Line, stores: Stores, answering: Answering, listener: AnswerListener | None = None
) -> Answer:
    """Return the answer to a line's question, in its thread if it names one.

    Raises:
        UnknownChannel: no such channel.
        InfrastructureError: the database failed.
    """
    channel = await stores.channels.by_name(line.channel)
    documents = await documents_where(stores, channel.id, line.where)
    question = Question(
        uuid.uuid4().hex, line.question, channel, datetime.now(UTC), documents, asker=LOCAL_ASKER
    )
    thread = line.thread and f"ask {line.thread}"
    return await answer_in_thread(answering, stores.memory, question, thread, listener)


def _failed(error: InfrastructureError) -> Answer:
    print(f"footnote: {error}", file=sys.stderr)
    return Answer(AnswerState.FAILED, ENGLISH.engine_failed)


@dataclass(frozen=True, slots=True)
class _Line:
    """Line of a questions file; ``error`` says what is wrong with a malformed one."""

    id: str | int | None
    question: str
    channel: str
    where: Mapping[str, str] = field(default_factory=dict)
    thread: str | None = None
    error: str | None = None


async def _ask_many(options: argparse.Namespace) -> int:
    if not options.questions.exists() or options.questions.is_dir():
        print(f"footnote: there is no file {options.questions}", file=sys.stderr)
        return 2
    lines = read_questions(options.questions, options.channel, read_where(options.where), options.thread)
    states = []
    settings = load_settings()
    try:
        require_home(settings)
        async with open_answering(settings) as (stores, answering):
            for line in lines:
                asked, answer = await _answer_line(line, stores, answering)
                states.append(_print_one(asked, answer, options.json))
    except EmptyHome as error:
        print(f"footnote: {error}", file=sys.stderr)
        states += [_print_one(line, _unknown(line), options.json) for line in lines]
    except InfrastructureError as error:
        answer = _failed(error)
        states += [_print_one(line, answer, options.json) for line in lines]
    return 1 if AnswerState.FAILED in states else 0


def read_questions(
    path: Path, channel: str | None, where: Mapping[str, str] | None = None, thread: str | None = None
) -> Iterator[_Line]:
    """Yield every line of the file; malformed and blank ones with an ``error``."""
    with path.open(encoding="utf-8-sig", errors="replace") as lines:
        yield from (_read_line(line, channel or "", where or {}, thread) for line in lines)


def _read_line(line: str, channel: str, where: Mapping[str, str], thread: str | None) -> _Line:
    try:
        values = json.loads(line)
    except (ValueError, RecursionError):
        return _Line(None, "", channel, error="this line is not JSON")
    if not isinstance(values, dict):
        return _Line(None, "", channel, error="this line is not an object")
    identity, asked, place = (
        _printable_id(values.get("id")),
        values.get("question"),
        values.get("channel", channel),
    )
    if not _is_encodable_text(asked) or not (place == "" or _is_encodable_text(place)):
        return _Line(identity, "", channel, error='this line lacks a "question", or its "channel" is no text')
    try:
        own, named = values.get("where", {}), values.get("thread", thread)
        if not isinstance(own, dict) or not all(map(_is_encodable_text, own.values())):
            raise SettingsError('"where" of this line is no object of fields and texts')
        if named is not None and not _is_encodable_text(named):
            raise SettingsError('"thread" of this line is no text')
        return _Line(identity, asked, place, {**where, **checked_where(own)}, named)
    except SettingsError as error:
        return _Line(identity, asked, place, error=str(error))


def _printable_id(identity: object) -> str | int | None:
    """Return the id as given, None if it cannot be printed."""
    if isinstance(identity, str):
        return identity if not identity or _is_encodable_text(identity) else None
    return identity if isinstance(identity, int) else None


def _is_encodable_text(value: object) -> TypeGuard[str]:
    """True if the value is a non-blank string without lone surrogates, which cannot be encoded."""
    if not isinstance(value, str) or not value.strip():
        return False
    return not any("\ud800" <= letter <= "\udfff" for letter in value)


async def _answer_line(line: _Line, stores: Stores, answering: Answering) -> tuple[_Line, Answer]:
    """Return the line with its channel, and its answer."""
    if not line.error and not line.channel:
        try:
            line = await _with_channel(line, stores)
        except UnknownChannel as error:
            line = replace(line, error=str(error))
    if line.error:
        return line, _unknown(line)
    try:
        return line, await _answer(line, stores, answering)
    except UnknownChannel:
        return line, _unknown(line)
    except Exception as error:  # a failing line must not stop the others
        log.exception("question failed: %s", type(error).__name__)
        return line, Answer(AnswerState.FAILED, ENGLISH.engine_failed)


def _unknown(line: _Line) -> Answer:
    """Return the answer to a malformed line or one of an unknown channel."""
    if line.error:
        return Answer(AnswerState.FAILED, line.error)
    return Answer(AnswerState.NOT_FOUND, ENGLISH.not_found)


def _print_one(line: _Line, answer: Answer, as_json: bool) -> AnswerState:
    if as_json:
        print(dump(answer_line(answer, id=line.id, question=line.question, channel=line.channel)), flush=True)
    else:
        print(f"{line.question}\n\n{render_text(answer)}\n", flush=True)
    return answer.state


def render_text(answer: Answer, printed: str = "") -> str:
    """Return an answer for a terminal: the text, then one line and link per cited page and per figure.

    ``printed``: sentences already printed; the text continues after them.
    """
    width = min(shutil.get_terminal_size().columns, 100)
    otherwise = reply_words(answer.language).query_notes(answer)
    understood = [*otherwise, ""] if otherwise else []
    lines = answer.text.splitlines()
    begun = (
        [lines.pop(0).removeprefix(printed)]
        if printed and answer.text.startswith(printed)
        else [""] * bool(printed)
    )
    paragraphs = [*begun, *(textwrap.fill(part, width) for part in (*understood, *lines))]
    pages = [f"{numbered(page, page.label)}\n    {page.url}" for page in cited_pages(answer, width)]
    pages += [f"{figure.fallback}\n    {figure.url}" for figure in figure_pages(answer, width)]
    if answer.nearest:
        pages.append(f"{answer.nearest.name}, page {answer.nearest.page}\n    {answer.nearest.url}")
    return "\n".join([*paragraphs, *([""] if pages else []), *pages])
