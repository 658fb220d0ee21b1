"""TOML files that admins edit and that are reloaded on change: ``AdminFile``.

Mistakes are reported by line. A file with mistakes changes nothing: its last valid content stays in force.
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

# Path of keys and array indexes to a value: ``("folder", 1, "channel")``.
KeyPath = tuple[str | int, ...]
T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)

# Maps folders to channels, and libraries to their channels.
MAP_NAME = "folders.toml"
_HEADER = re.compile(r"\s*(\[\[?)([^\[\]].*?)\]\]?\s*(#.*)?$")
_KEY = re.compile(r"""\s*((?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|"[^"]*"))*)\s*=""")
_FENCES = ('"""', "'''")
_SENTENCES = {"extra_forbidden": "is not a known key; check the spelling", "missing": "is missing"}
# Pydantic's marker for an invalid key, as opposed to an invalid value.
_KEY_MARK = "[key]"
_Stamp = tuple[int, int, int, int]
_MISSING: _Stamp = (0, 0, 0, 0)
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, order=True)
class Mistake:
    """A mistake in a file, with its line."""

    line: int
    sentence: str
    # File name without its folder.
    file: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.sentence}"


class InvalidFile(Exception):
    """Raised if a file is not valid; ``mistakes`` lists every mistake found, by line."""

    def __init__(self, mistakes: Iterable[Mistake]) -> None:
        self.mistakes = sorted(set(mistakes))
        super().__init__("\n".join(map(str, self.mistakes)))


def default_sentence(error: ErrorDetails) -> str:
    """Return pydantic's error as a sentence that begins with the value's key."""
    keys = [part for part in error["loc"] if isinstance(part, str) and part != _KEY_MARK]
    name, words = keys[-1] if keys else "this", _SENTENCES.get(error["type"])
    return f"{name} {words}" if words else f"{name}: {error['msg'][0].lower()}{error['msg'][1:]}"


def read_file(
    name: str, data: bytes, model: type[M], sentence: Callable[[ErrorDetails], str] = default_sentence
) -> tuple[M, LineIndex]:
    """Return the parsed file and the line numbers of its values.

    Args:
        sentence: turns a validation error into a sentence for an admin.

    Raises:
        InvalidFile: the file has mistakes; all that could be found are listed.
    """
    try:
        text = data.decode("utf-8")
        values, lines = tomllib.loads(text), LineIndex(text)
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
            Mistake(lines.line_of(one["loc"]), sentence(one), name) for one in error.errors()
        ) from None


class AdminFile(Generic[T]):
    """A watched file and its last valid content. Methods block: call them in a thread."""

    def __init__(
        self,
        path: Path,
        read: Callable[[bytes], T],
        *,
        what: str,
        check_command: str,
        equal_scans: int = 1,
    ) -> None:
        """Watch the file at ``path``, which need not exist.

        Args:
            read: parses its content, empty if the file does not exist; raises InvalidFile.
            what: name of the file in the log.
            named_by: command that lists its mistakes.
            equal_scans: consecutive scans with the same stat before the content counts: 2 for a file that
                must not be read while it is being saved.
        """
        self._path = path
        self._read = read
        self._what = what
        self._check_command = check_command
        self._equal_scans = equal_scans
        self._lock = threading.Lock()
        # Stat of the file at the last scan, and for how many scans in a row it was the same.
        self._last: tuple[_Stamp | None, int] = (None, 0)
        self._followed: _Stamp | None = None
        # Last valid content; None if there was none.
        self.current: T | None = None
        # Mistakes of the current content; empty if it is in force.
        self.mistakes: list[Mistake] = []

    def reload_if_changed(self) -> T | None:
        """Return the content if it changed and is valid, else None.

        A file with mistakes is read at every call, because the cause may lie outside it.
        """
        with self._lock:
            try:
                stamp = self._stamp()
                self._last = (stamp, self._last[1] + 1 if stamp == self._last[0] else 1)
                if stamp == self._followed or self._last[1] < self._equal_scans:
                    return None
                data = b"" if stamp == _MISSING else self._path.read_bytes()
                if self._equal_scans > 1 and self._stamp() != stamp:
                    return None  # saved during the read
                self.current = self._read(data)
            except InvalidFile as invalid:
                self._report(invalid.mistakes)
                return None
            except OSError as error:
                sentence = f"the file cannot be read: {error.strerror}"
                self._report([Mistake(1, sentence, self._path.name)])
                return None
            self._followed, self.mistakes = stamp, []
            return self.current

    def invalidate(self) -> None:
        """Make the next reload return the content even if it is unchanged: it could not be applied."""
        self._followed = None

    def _stamp(self) -> _Stamp:
        """Return a fingerprint that changes with every save, even of the same text."""
        try:
            found = os.stat(self._path)
        except FileNotFoundError:
            return _MISSING
        return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino

    def _report(self, mistakes: list[Mistake]) -> None:
        """Log mistakes once, without quoting the file."""
        self._followed = None
        if mistakes != self.mistakes:
            _log.warning(
                "%s has mistakes (line %s); still using the last valid content; run `%s` for details",
                self._what,
                ", ".join(str(one.line) for one in mistakes),
                self._check_command,
            )
        self.mistakes = mistakes


class LineIndex:
    """Line numbers of the values of a TOML file."""

    def __init__(self, text: str) -> None:
        """Index a valid TOML text."""
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

    def line_of(self, path: KeyPath) -> int:
        """Return the line of a value, else of the nearest enclosing table, else 1."""
        while path and path not in self._numbers:
            path = path[:-1]
        return self._numbers.get(path, 1)


def _code_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield lines that do not begin inside a multi-line string, with their numbers from 1."""
    fence = None
    for number, line in enumerate(text.splitlines(), 1):
        if fence is None:
            yield number, line
        for mark in _FENCES:
            if fence in (None, mark) and line.count(mark) % 2:
                fence = None if fence else mark


def _names(dotted: str) -> tuple[str, ...]:
    """Return the keys of a dotted name, parsed by tomllib itself."""
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
    """Return the path of a table header; within an array of tables it refers to the array's latest table."""
    path: KeyPath = ()
    for index, name in enumerate(names):
        path = (*path, name)
        if index < len(names) - 1 and path in counts:
            path = (*path, counts[path])
    return path
