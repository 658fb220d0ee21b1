"""Runs the questions through the installed program, in channels of a collection and of a single document.

The home is kept in ``build/eval``: a second run reads nothing again unless the reading version has changed.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from tools.evaluation.golden import Golden, Kind, Page
from tools.evaluation.replies import Reply, read_reply

FOOTNOTE = Path(sys.executable).with_name("footnote")
WORK = Path("build/eval")


@dataclass(frozen=True, slots=True)
class Asked:
    """A question in a channel, with the pages that answer it there."""

    golden: Golden
    channel: str
    needs: tuple[frozenset[Page], ...]


def in_collections(questions: Iterable[Golden]) -> list[Asked]:
    """Return every question in the channel of its collection."""
    return [Asked(one, one.collection, one.needs) for one in questions]


def in_documents(questions: Iterable[Golden]) -> list[Asked]:
    """Return the questions about one document, each in the channel of that document only."""
    alone = [one for one in questions if len(one.documents) == 1 and one.kind is not Kind.ACROSS]
    asked = [Asked(one, _channel(one.documents[0]), one.within(one.documents[0])) for one in alone]
    return [one for one in asked if one.needs or not one.golden.is_answerable]


def channels_of(files: Iterable[Path]) -> dict[str, set[str]]:
    """Return channel -> file names: one channel per collection, and one per document."""
    channels: dict[str, set[str]] = {}
    for file in files:
        for channel in (file.parent.name, _channel(file.name)):
            channels.setdefault(channel, set()).add(file.name)
    return channels


def _channel(document: str) -> str:
    return "only-" + document.removesuffix(".pdf").lower()


@dataclass(frozen=True, slots=True)
class Home:
    """A home that contains the corpus; ``settings`` are environment variables."""

    name: str
    settings: Mapping[str, str]

    def ingest(self, files: Sequence[Path]) -> None:
        """Read all files fully into their channels.

        Raises:
            RuntimeError: the home was moved, and would ingest each file a second time.
        """
        self._stay()
        paths = {file.name: file for file in files}
        for channel, names in channels_of(files).items():
            for name in names:
                self._put(paths[name], channel)
        print(f"{self.name}: reading {len(files)} PDFs", file=sys.stderr, flush=True)
        self._run("ingest", str(self._folder / "root"), "--wait", "full", output=sys.stderr.fileno())

    def ask(self, asked: Sequence[Asked], **settings: str) -> list[Reply]:
        """Return the reply to each question, in order; ``settings`` override those of the home.

        Raises:
            RuntimeError: a question failed, so that nothing would be measured.
        """
        questions = self._folder / "questions.jsonl"
        questions.write_text("".join(f"{json.dumps(line)}\n" for one in asked for line in _lines(one)))
        command = ("ask", "--questions", str(questions), "--json")
        lines = [json.loads(line) for line in self._run(*command, **settings).splitlines()]
        failed = [line for line in lines if line["state"] == "failed"]
        if failed:
            raise RuntimeError(f"{len(failed)} questions failed; the first: {failed[0]}")
        replies = {line["id"]: read_reply(line) for line in lines}
        return [replies[one.golden.id] for one in asked]

    @property
    def _folder(self) -> Path:
        return (WORK / self.name).absolute()

    def _stay(self) -> None:
        """Record the path of the home, and refuse one that was moved."""
        place, here = self._folder / "place.txt", str(self._folder)
        known = place.read_text() if place.exists() else here
        if known != here:
            raise RuntimeError(f"{here} was made as {known}: delete it, and the PDFs are read anew")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(here)

    def _put(self, file: Path, channel: str) -> None:
        place = self._folder / "root" / channel / file.name
        place.parent.mkdir(parents=True, exist_ok=True)
        if not place.exists():
            shutil.copyfile(file, place)

    def _run(self, *arguments: str, output: int = subprocess.PIPE, **settings: str) -> str:
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        environment = {**kept, **self.settings, **settings, "FOOTNOTE_HOME": str(self._folder / "home")}
        done = subprocess.run(
            [FOOTNOTE, *arguments], env=environment, stdout=output, stderr=sys.stderr, text=True, check=False
        )
        return done.stdout or ""


def _lines(asked: Asked) -> list[dict[str, Any]]:
    """Return a question after its earlier turns, all in a new thread."""
    place = {"channel": asked.channel, "thread": uuid4().hex}
    earlier = [{"id": None, "question": turn, **place} for turn, _ in asked.golden.history]
    return [*earlier, {"id": asked.golden.id, "question": asked.golden.text, **place}]
