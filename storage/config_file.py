"""Reads the TOML files that admins write, and finds the line on which a table or a key stands: a mistake
names it.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from typing import Any

KeyPath = tuple[str | int, ...]
"""Keys and numbers that lead to a value: ``("folder", 1, "channel")``."""

_HEADER = re.compile(r"\s*(\[\[?)([^\[\]].*?)\]\]?\s*(#.*)?$")
_KEY = re.compile(r"""\s*((?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|"[^"]*"))*)\s*=""")
_FENCES = ('"""', "'''")


class NotToml(ValueError):
    """The bytes are no TOML; ``line`` and ``sentence`` say where and why."""

    def __init__(self, line: int, sentence: str) -> None:
        super().__init__(sentence)
        self.line = line
        self.sentence = sentence


def read_toml(data: bytes) -> tuple[dict[str, Any], Lines]:
    """The values of a file, and on which lines they stand.

    Raises:
        NotToml: it cannot be read at all.
    """
    try:
        text = data.decode("utf-8")
        return tomllib.loads(text), Lines(text)
    except UnicodeDecodeError as error:
        raise NotToml(data[: error.start].count(b"\n") + 1, "this is not UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        line = min(_line_of(error), text.count("\n") + 1)
        raise NotToml(line, f"this is not TOML: {error}") from None


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
        """The line of a value, else of the nearest table around it, else 1."""
        while path and path not in self._numbers:
            path = path[:-1]
        return self._numbers.get(path, 1)


def _line_of(error: tomllib.TOMLDecodeError) -> int:
    """Where a text stops being TOML."""
    found = re.search(r"at line (\d+)", str(error))
    return int(found[1]) if found else 1


def _code_lines(text: str) -> Iterator[tuple[int, str]]:
    """The lines that do not begin inside a string of several lines, with their numbers from 1."""
    fence = None
    for number, line in enumerate(text.splitlines(), 1):
        if fence is None:
            yield number, line
        for mark in _FENCES:
            if fence in (None, mark) and line.count(mark) % 2:
                fence = None if fence else mark


def _names(dotted: str) -> tuple[str, ...]:
    """The keys of a dotted name, as TOML itself reads it."""
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
