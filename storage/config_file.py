"""TOML files that admins write and that are followed while they change: ``AdminFile``.

A mistake is named by its line, and a file with one changes nothing: what it said before stays in force.
"""

from __future__ import annotations

import logging
import os
import re
import threading
import tomllib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

# Keys and numbers that lead to a value: ``("folder", 1, "channel")``.
KeyPath = tuple[str | int, ...]
T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)

# Which folders feed which channels, and which channels a library has.
MAP_NAME = "folders.toml"
_HEADER = re.compile(r"\s*(\[\[?)([^\[\]].*?)\]\]?\s*(#.*)?$")
_KEY = re.compile(r"""\s*((?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|"[^"]*"))*)\s*=""")
_FENCES = ('"""', "'''")
_SENTENCES = {"extra_forbidden": "is not known here; check its spelling", "missing": "is missing"}
# How pydantic says that a key itself is wrong.
_KEY_MARK = "[key]"
_Stamp = tuple[int, int, int, int]
_MISSING: _Stamp = (0, 0, 0, 0)
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, order=True)
class Mistake:
    """Something in a file that has to be put right."""

    line: int
    sentence: str
    # The file's name, without its folder.
    file: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.sentence}"


class InvalidFile(Exception):
    """A file says nothing that could be followed; ``mistakes`` says why, by line."""

    def __init__(self, mistakes: Iterable[Mistake]) -> None:
        self.mistakes = sorted(set(mistakes))
        super().__init__("\n".join(map(str, self.mistakes)))


def default_sentence(error: ErrorDetails) -> str:
    """What pydantic found wrong with a value, as a sentence that begins with the value's key."""
    keys = [part for part in error["loc"] if isinstance(part, str) and part != _KEY_MARK]
    name, words = keys[-1] if keys else "this", _SENTENCES.get(error["type"])
    return f"{name} {words}" if words else f"{name}: {error['msg'][0].lower()}{error['msg'][1:]}"


def read_file(
    name: str, data: bytes, model: type[M], sentence: Callable[[ErrorDetails], str] = default_sentence
) -> tuple[M, Lines]:
    """What a file says, and on which lines.

    Args:
        name: the file's, for its mistakes.
        data: its bytes.
        model: what it may say.
        sentence: words an error of the model for an admin.

    Raises:
        InvalidFile: with every mistake that could be found.
    """
    try:
        text = data.decode("utf-8")
        values, lines = tomllib.loads(text), Lines(text)
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise InvalidFile([Mistake(line, "this is not UTF-8", name)]) from None
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"at line (\d+)", str(error))
        line = min(int(found[1]) if found else 1, text.count("\n") + 1)
        raise InvalidFile([Mistake(line, f"this is not TOML: {error}", name)]) from None
    try:
        return model.model_validate(values), lines
    except ValidationError as error:
        raise InvalidFile(
            Mistake(lines.of(one["loc"]), sentence(one), name) for one in error.errors()
        ) from None


class AdminFile(Generic[T]):
    """A file as it is in force; every method but the properties blocks, so call them in a thread."""

    def __init__(
        self,
        path: Path,
        read: Callable[[bytes], T],
        *,
        what: str,
        named_by: str,
        equal_scans: int = 1,
    ) -> None:
        """Follow the file at ``path``, which need not be there.

        Args:
            path: where it lies.
            read: what its bytes say, none when it is not there; raises InvalidFile.
            what: how the log calls it.
            named_by: the command that names its mistakes.
            equal_scans: how many scans must be equal before it counts: 2 for a file that must not be
                followed while it is being saved.
        """
        self._path = path
        self._read = read
        self._what = what
        self._named_by = named_by
        self._equal_scans = equal_scans
        self._lock = threading.Lock()
        # The stat of the file at the last scan, and how many scans in a row had it.
        self._last: tuple[_Stamp | None, int] = (None, 0)
        self._followed: _Stamp | None = None
        # What it said when it was last valid; None when it never was.
        self.in_force: T | None = None
        # Why the file as it is now is not in force.
        self.mistakes: list[Mistake] = []

    def follow(self) -> T | None:
        """What the file says when it says something new; None when it does not, or is not valid.

        A file with a mistake is read again each time: what is wrong may lie outside it.
        """
        with self._lock:
            try:
                stamp = self._stamp()
                self._last = (stamp, self._last[1] + 1 if stamp == self._last[0] else 1)
                if stamp == self._followed or self._last[1] < self._equal_scans:
                    return None
                data = b"" if stamp == _MISSING else self._path.read_bytes()
                if self._equal_scans > 1 and self._stamp() != stamp:
                    return None  # it was saved while it was read
                self.in_force = self._read(data)
            except InvalidFile as invalid:
                self._complain(invalid.mistakes)
                return None
            except OSError as error:
                sentence = f"the file cannot be read: {error.strerror}"
                self._complain([Mistake(1, sentence, self._path.name)])
                return None
            self._followed, self.mistakes = stamp, []
            return self.in_force

    def follow_again(self) -> None:
        """Return what the file says once more: the last time could not be put into effect."""
        self._followed = None

    def _stamp(self) -> _Stamp:
        """What differs when the file was saved, also with the same text."""
        try:
            found = os.stat(self._path)
        except FileNotFoundError:
            return _MISSING
        return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino

    def _complain(self, mistakes: list[Mistake]) -> None:
        """Say it once in the log, without a word of the file."""
        self._followed = None
        if mistakes != self.mistakes:
            _log.warning(
                "%s has mistakes (line %s): what it said before stays in force; `%s` names them",
                self._what,
                ", ".join(str(one.line) for one in mistakes),
                self._named_by,
            )
        self.mistakes = mistakes


class Lines:
    """The lines of one file."""

    def __init__(self, text: str) -> None:
        """Read a valid TOML text."""
        self._numbers: dict[KeyPath, int] = {}
        counts: dict[KeyPath, int] = {}
        table: KeyPath = ()
        for number, line in _code_lines(text):
            if header := _HEADER.match(line):
                table = _resolve(_names(header[2]), counts)
                if header[1] == "[[":
                    counts[table] = counts.get(table, -1) + 1
                    table = (*table, counts[table])
                self._numbers.setdefault(table, number)
            elif key := _KEY.match(line):
                self._numbers.setdefault((*table, *_names(key[1])), number)

    def of(self, path: KeyPath) -> int:
        """Return the line of a value, else of the nearest table around it, else 1."""
        while path and path not in self._numbers:
            path = path[:-1]
        return self._numbers.get(path, 1)


def _code_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines that do not begin inside a string of several lines, with their numbers from 1."""
    fence = None
    for number, line in enumerate(text.splitlines(), 1):
        if fence is None:
            yield number, line
        for mark in _FENCES:
            if fence in (None, mark) and line.count(mark) % 2:
                fence = None if fence else mark


def _names(dotted: str) -> tuple[str, ...]:
    """Return the keys of a dotted name, as TOML itself reads it."""
    names: list[str] = []
    try:
        value: object = tomllib.loads(f"{dotted} = 0")
    except tomllib.TOMLDecodeError:
        return (dotted,)
    while isinstance(value, dict):
        ((name, value),) = value.items()
        names.append(name)
    return tuple(names)


def _resolve(names: tuple[str, ...], counts: dict[KeyPath, int]) -> KeyPath:
    """Where a header leads: inside an array of tables it means the array's latest table."""
    path: KeyPath = ()
    for index, name in enumerate(names):
        path = (*path, name)
        if index < len(names) - 1 and path in counts:
            path = (*path, counts[path])
    return path
