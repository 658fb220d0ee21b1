"""Golden questions in ``questions/``: what people ask of the corpus, and the pages that answer.

Written by people from the pages, not from search results, and split once by document into a tuning half and a
test half. A line has ``question``, the ``documents`` it is about, ``pages`` (for each thing asked, the
acceptable pages), verbatim ``evidence``, and ``answer`` (for each fact, its spellings). A question that is
misspelt on purpose names its correctly ``spelt`` twin.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

QUESTIONS = Path(__file__).with_name("questions")

# (file name, page number from 1); file names are unique in the corpus.
Page = tuple[str, int]


class Kind(StrEnum):
    """Kind of a question."""

    SINGLE = "single"
    # Needs several documents.
    ACROSS = "across"
    # Depends on earlier turns.
    FOLLOWUP = "followup"
    FIGURE = "figure"
    # Asks for prose, although the page has figures.
    NO_FIGURE = "no_figure"
    # About a document in the corpus that does not have the answer.
    ABSENT_HERE = "absent_here"
    OFF_SUBJECT = "off_subject"


@dataclass(frozen=True, slots=True)
class Golden:
    """A labelled question."""

    id: str
    half: str
    collection: str
    kind: Kind
    text: str
    documents: tuple[str, ...]
    # For each thing asked, the pages that answer it; empty if nothing does.
    needs: tuple[frozenset[Page], ...]
    evidence: tuple[tuple[Page, str], ...]
    # For each fact of a correct answer, its spellings.
    answer: tuple[tuple[str, ...], ...]
    figures: frozenset[Page]
    # (question, answer) of earlier turns.
    history: tuple[tuple[str, str], ...]
    # Id of the correctly spelt question; '' unless this one is misspelt on purpose.
    twin: str = ""

    @property
    def is_answerable(self) -> bool:
        """True if a document has the answer."""
        return bool(self.needs)

    def within(self, document: str) -> tuple[frozenset[Page], ...]:
        """Return the needs met by one document alone; empty unless it meets all."""
        needs = tuple(frozenset(page for page in need if page[0] == document) for need in self.needs)
        return needs if all(needs) else ()


def load_questions(folder: Path = QUESTIONS) -> list[Golden]:
    """Return all questions, in file order."""
    return read_questions(sorted(folder.glob("*.jsonl")))


def read_questions(files: Iterable[Path]) -> list[Golden]:
    """Return the questions of files, in order; each names its collection, a folder of the corpus."""
    lines = [line for file in files for line in file.read_text().splitlines()]
    return [_golden(json.loads(line)) for line in lines]


def some_of_each_kind(questions: Iterable[Golden], most: int) -> list[Golden]:
    """Return at most ``most`` questions of each half and kind, in a reproducible random choice.

    A misspelt question comes with its twin, and is not counted.
    """
    taken = Counter[tuple[str, Kind]]()
    shuffled = sorted(questions, key=lambda one: hashlib.sha256(one.id.encode()).digest())
    chosen = []
    for one in shuffled:
        if not one.twin:
            taken[one.half, one.kind] += 1
            if taken[one.half, one.kind] <= most:
                chosen.append(one)
    ids = {one.id for one in chosen}
    return chosen + [one for one in shuffled if one.twin in ids]


def label_errors(questions: Iterable[Golden], texts: Mapping[Page, str]) -> list[str]:
    """Return the errors in labels: evidence that is not on its page, or on no acceptable one."""
    wrong = []
    for one in questions:
        acceptable = frozenset[Page]().union(*one.needs)
        for page, text in one.evidence:
            if page not in acceptable or plain(text) not in plain(texts.get(page, "")):
                wrong.append(f"{one.id}: {text!r} is not what makes page {page[1]} of {page[0]} acceptable")
    return wrong


def plain(text: str) -> str:
    """Return lower-case letters, digits, % and $ only: what different spellings of a fact share."""
    return re.sub(r"[^a-z0-9%$]+", "", unicodedata.normalize("NFKC", text).replace("\xad", "").lower())


def _golden(line: dict[str, Any]) -> Golden:
    return Golden(
        id=line["id"],
        half=line["half"],
        collection=line["collection"],
        kind=Kind(line["kind"]),
        text=line["question"],
        documents=tuple(_name(file) for file in line.get("documents", ())),
        needs=tuple(_pages(need) for need in line.get("pages", ())),
        evidence=tuple(((_name(file), page), text) for file, page, text in line.get("evidence", ())),
        answer=tuple(map(tuple, line.get("answer", ()))),
        figures=_pages(line.get("figures", ())),
        history=tuple((turn["question"], turn["answer"]) for turn in line.get("history", ())),
        twin=line.get("spelt", ""),
    )


def _pages(pages: Iterable[list[Any]]) -> frozenset[Page]:
    return frozenset((_name(file), page) for file, page, *_ in pages)


def _name(file: str) -> str:
    return file.rpartition("/")[2]
