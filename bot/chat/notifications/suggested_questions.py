"""Suggested questions for a new document: its headings that are questions, as in an FAQ."""

from __future__ import annotations

import re
from collections.abc import Iterable

from storage.chat_models import Notice
from storage.models import Chunk
from storage.queues.reading_repair import SelfHealingReadings

MAX_QUESTION_CHARS = 140
MIN_WORDS = 3
MAX_OFFERED = 3
# Sampled chunks, evenly spaced: a long document often begins with a table of contents.
MAX_CHUNKS_READ = 12

# Plain words only: nothing that a chat client parses as a link, mention or markup.
_PLAIN_QUESTION = re.compile(r"¿?[^\W_][\w\s'’,&/()+%-]*\s?\?")


def plain_questions(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the texts that are questions in plain words, without duplicates."""
    lines = dict.fromkeys(" ".join(text.split()) for text in texts)
    return tuple(
        line
        for line in lines
        if len(line) <= MAX_QUESTION_CHARS
        and len(line.rstrip("? ").split()) >= MIN_WORDS
        and _PLAIN_QUESTION.fullmatch(line)
    )


def asking_headings(chunks: Iterable[Chunk]) -> tuple[str, ...]:
    """Return the headings that are questions."""
    paths = (path for one in chunks for _, path in one.sections)
    return plain_questions(heading for path in paths for heading in path[-1:])


async def suggested_questions(readings: SelfHealingReadings, notice: Notice) -> tuple[str, ...]:
    """Return at most three questions that the new version answers under a heading.

    Raises:
        storage.errors.InfrastructureError: the reading is unavailable.
    """
    if notice.reading_id is None:
        return ()
    ordinals = range(0, notice.chunks, max(1, notice.chunks // MAX_CHUNKS_READ))[:MAX_CHUNKS_READ]
    chunks = await readings.chunks_at([(notice.reading_id, ordinal) for ordinal in ordinals])
    return asking_headings(chunks)[:MAX_OFFERED]
