"""``footnote ask``: one question, or a file of them with the models kept loaded in between."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import textwrap
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeGuard

from bot.cli.json_lines import answer_line, dump
from bot.core import wording
from bot.core.answering import Answering
from bot.core.models import Answer, AnswerState, Question
from bot.core.sources import cited_pages
from bot.service import load_settings, open_answering
from storage.channels import Channels
from storage.errors import UnknownChannel
from storage.models import Channel


async def ask(options: argparse.Namespace) -> int:
    """Answer one question or a whole file."""
    if options.questions:
        return await _ask_many(options)
    if not options.question or not options.channel:
        print('footnote: ask "QUESTION" --channel NAME, or --questions FILE.jsonl --json', file=sys.stderr)
        return 2
    async with open_answering(load_settings()) as (storage, answering):
        channel = await storage.channels.by_name(options.channel)
        answer = await answering.answer(_question(options.question, channel))
    if options.json:
        print(dump(answer_line(answer, id=None, question=options.question, channel=options.channel)))
    else:
        print(render_text(answer))
    return 1 if answer.state is AnswerState.FAILED else 0


def _question(text: str, channel: Channel) -> Question:
    return Question(id=uuid.uuid4().hex, text=text, channel=channel, asked_at=datetime.now(UTC))


@dataclass(frozen=True, slots=True)
class _Line:
    """One line of a questions file; ``fault`` says what is wrong with a malformed one."""

    id: Any
    """Whatever the line gave, so that it comes back as it was."""
    question: str
    channel: str
    fault: str | None = None


async def _ask_many(options: argparse.Namespace) -> int:
    if not options.questions.is_file():
        print(f"footnote: there is no file {options.questions}", file=sys.stderr)
        return 2
    failed = False
    async with open_answering(load_settings()) as (storage, answering):
        for line in read_questions(options.questions, options.channel):
            answer = await _answer_line(line, storage.channels, answering)
            failed = failed or answer.state is AnswerState.FAILED
            _print_one(line, answer, options.json)
    return 1 if failed else 0


def read_questions(path: Path, channel: str | None) -> Iterator[_Line]:
    """Every line of the file; a malformed or blank one says what is wrong with it."""
    with path.open(encoding="utf-8", errors="replace") as lines:
        yield from (_read_line(line, channel or "") for line in lines)


def _read_line(line: str, channel: str) -> _Line:
    try:
        values = json.loads(line)
    except (ValueError, RecursionError):
        return _Line(None, "", channel, "this line is not JSON")
    if not isinstance(values, dict):
        return _Line(None, "", channel, "this line is not an object")
    identity, asked, where = values.get("id"), values.get("question"), values.get("channel", channel)
    if not _is_text(asked) or not _is_text(where):
        return _Line(identity, "", channel, 'this line lacks a "question" or a "channel" that is text')
    return _Line(identity, asked, where)


def _is_text(value: object) -> TypeGuard[str]:
    """Whether it is a text that can be written down: half a surrogate pair cannot."""
    if not isinstance(value, str) or not value.strip():
        return False
    return not any("\ud800" <= letter <= "\udfff" for letter in value)


async def _answer_line(line: _Line, channels: Channels, answering: Answering) -> Answer:
    if line.fault:
        return Answer(AnswerState.FAILED, line.fault)
    try:
        channel = await channels.by_name(line.channel)
    except UnknownChannel:
        return Answer(AnswerState.NOT_FOUND, wording.NOT_FOUND)
    return await answering.answer(_question(line.question, channel))


def _print_one(line: _Line, answer: Answer, as_json: bool) -> None:
    if as_json:
        print(dump(answer_line(answer, id=line.id, question=line.question, channel=line.channel)), flush=True)
    else:
        print(f"{line.question}\n\n{render_text(answer)}\n", flush=True)


def render_text(answer: Answer) -> str:
    """An answer for a terminal: the text, then one line and link per cited page."""
    width = min(shutil.get_terminal_size().columns, 100)
    paragraphs = [textwrap.fill(part, width) for part in answer.text.splitlines()]
    pages = [
        f"{''.join(f'[{number}]' for number in page.numbers)} {page.label}\n    {page.url}"
        for page in cited_pages(answer)
    ]
    if answer.nearest:
        pages.append(f"{answer.nearest.file}, page {answer.nearest.page}\n    {answer.nearest.url}")
    return "\n".join([*paragraphs, *([""] if pages else []), *pages])
