"""Patterns of metadata labels in documents, and of the values after them.

Unfilled template text and values of the wrong kind do not count.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ingestion.extraction import dates
from ingestion.extraction.metadata_labels import LABELS

_NOTHING = re.compile(
    r"(?:tb[cda]|n/?a|none|nil|unknown|pending|x+|[-–—_.…*?\s]+|to be (?:determined|assigned|confirmed)"
    r"|insert\b.*|enter\b.*|select\b.*|\[.*\]?|<.*>?|\{.*\}?)",
    re.IGNORECASE,
)
_HYPHENS = str.maketrans({hyphen: "-" for hyphen in "\u2010\u2011\u2012\u2013\u2212\u00ad"})
_ID = re.compile(
    r"(?:(?:sop|doc|wi|pol|[A-Z]{1,6})[ #]{1,2})?(?=[\w./-]*\d)[A-Za-z0-9]+(?:[-_./][A-Za-z0-9]+)*",
    re.IGNORECASE,
)
# Letters up to the first digit, then both, so that a text matches in only one way. With two ways per letter
# the time to fail would double with every letter (catastrophic backtracking).
_SHAPE = re.compile(
    r"(?<![\w-])(?:[A-Z]{0,6}[-_/]?SOP[A-Z]*(?:[-_/.][A-Z]+)*[-_/.]?|SOP [A-Z]{1,6}[-_/.]?)"
    r"\d[A-Z0-9]*(?:[-_.][A-Z0-9]+)*(?![\w-])",
    re.IGNORECASE,
)
_VERSION_PART = (
    r"(?:v|ver|versi(?:on|ón|one|e)|versão|rev|revisi(?:on|ón|one|e)|revisão|révision|issue|ausgabe)\.? ?"
)
_AFTER_ID = re.compile(
    rf"[,;(|·•–—/\s-]+(?P<all>{_VERSION_PART}(?P<version>\d+(?:\.\d+)*[a-z]?))(?![\w-])",
    re.IGNORECASE,
)
_VERSION = re.compile(
    rf"(?:{_VERSION_PART})?(?P<version>\d+(?:\.\d+)*[a-z]?|[A-Z])(?=$|[\s,;|)])"
    r"(?! *(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|of\b))",
    re.IGNORECASE,
)
_PROCEDURE = re.compile(
    r"\b(?:standard operating procedure|sop|work instruction|(?:standard)?arbeitsanweisung"
    r"|verfahrensanweisung|procédure|mode opératoire|procedimiento|procedura|procedimento|werkinstructie)\b",
    re.IGNORECASE,
)
_KIND = re.compile(
    r"(?:standard operating procedure|work instruction|operating procedure|employee handbook|handbook|policy"
    r"|procedure|guidelines?|guide|manual|protocol|(?:final |factual )?report|checklist|form"
    r"|training documentation)$",
    re.IGNORECASE,
)
# Maximum length of a title before the document kind that ends it.
MAX_PREFIX_CHARS = 30
_DEPARTMENT = re.compile(
    r"(?P<name>[A-Z][\w&/-]*(?: (?:and|of|&|[A-Z][\w&/-]*)){0,4}) (?:Department|Dept\.?)"
)

_ALL = "|".join(
    f"(?P<f{number}_{name}>{'|'.join(forms)})" for number, (name, forms) in enumerate(LABELS.items())
)
_LABEL = re.compile(
    rf"(?<![\w-])(?:{_ALL})\.?(?P<mark> ?[:#=]| [-–—] |(?=\s*$)|(?= {{2,}})|(?=[ \d]))", re.IGNORECASE
)
_CELL_START = ("  ", "| ", "(", "· ", "• ", " - ", " – ", " — ", "/ ")
_BEFORE = " |·•(,;/-–—"
# Lines without any of these are prose, unless they begin with a label; that is much faster to see.
_MAY_BE_LABELLED = re.compile(r"[:#=(]| {2}|[|·•/] | [-–—] ")
_SEPARATORS = " |·•(,;/-–—\t"
_TAIL = re.compile(r"(?:[\s|·•;,(]|\s[-–—/])+$")
_CELL_END = re.compile(r"\s*(?:$| {2}|[|·•)]| [-–—] )")
# Values accepted after a label without a mark, if only another label follows: never a sentence.
_BARE = {
    "version": re.compile(r" ?(?:v\.? ?)?(?:\d+(?:\.\d+)*[a-z]?|[A-Z](?=\s*$| {2}))(?![\w-])"),
    "sop_id": re.compile(r" (?=\S*\d)[A-Za-z0-9]+(?:[-_./][A-Za-z0-9]+)*(?![\w-])"),
    "effective": dates.AFTER_LABEL,
    "last_updated": dates.AFTER_LABEL,
}
_SPACES = re.compile(r"\s+")


def is_nothing(text: str) -> bool:
    """True if the value is an unfilled template placeholder."""
    return _NOTHING.fullmatch(text.strip()) is not None


def one_kind_of_hyphen(text: str) -> str:
    """Return the text with ASCII hyphens; its length stays the same."""
    return text.translate(_HYPHENS)


def find_id(text: str) -> re.Match[str] | None:
    """Return the document number at the start of a text; it contains a digit."""
    return _ID.match(one_kind_of_hyphen(text))


def find_version_after(text: str, end: int) -> re.Match[str] | None:
    """Return the version after a document number that ends at ``end``, as in ``07A v.02``."""
    return _AFTER_ID.match(text, end)


def find_version(text: str) -> re.Match[str] | None:
    """Return the version at the start of a text: a number in digits, or one letter, but no date."""
    return _VERSION.match(text)


def shaped_ids(text: str) -> list[re.Match[str]]:
    """Return all matches that look like a SOP number: ``SOP-IT-04`` whole, never ``SOPs``."""
    found = _SHAPE.finditer(one_kind_of_hyphen(text))
    return [one for one in found if "SOP" in one[0] or re.search(r"[-_/. ]", one[0])]


def find_department(text: str) -> re.Match[str] | None:
    """Return the match if a whole cell is a department, like ``IT Department``."""
    return _DEPARTMENT.fullmatch(text.strip())


def find_kind(text: str) -> re.Match[str] | None:
    """Return the document kind that a cell names, alone or at the end of a title."""
    found = _KIND.search(text)
    return found if found and found.start() <= MAX_PREFIX_CHARS else None


def is_procedure(text: str) -> bool:
    """True if a line calls the document a procedure."""
    return _PROCEDURE.search(text) is not None


class Labelled(NamedTuple):
    """A label in a line and its value, which ends before the next label."""

    name: str
    value: str
    # The value is text[start:end] of the line.
    start: int
    end: int


def name_of(cell: str) -> str | None:
    """Return the field whose label fills the whole cell; None if it is not a label."""
    found = _LABEL.fullmatch(_SPACES.sub(" ", cell).strip()) or _LABEL.fullmatch(
        _SPACES.sub(" ", cell).strip().rstrip(" :.#")
    )
    return None if found is None else _name(found)


def labelled(line: str) -> list[Labelled]:
    """Return the labels of a line with their values; without a mark, a value must match the label's kind."""
    if not _MAY_BE_LABELLED.search(line) and not _LABEL.match(line, len(line) - len(line.lstrip(_BEFORE))):
        return []
    found: list[re.Match[str]] = []
    open_at = 0
    for one in _LABEL.finditer(line):
        is_first = not line[open_at : one.start()].strip(_BEFORE) or line[: one.start()].endswith(_CELL_START)
        bare = _bare_end(line, one)
        if _has_mark(line, one, is_first=is_first) or (is_first and bare):
            found.append(one)
            open_at = bare or one.end()
    values = []
    for number, one in enumerate(found):
        stop = found[number + 1].start() if number + 1 < len(found) else len(line)
        text = line[one.end() : stop]
        start = one.end() + len(text) - len(text.lstrip(" :#.=\t"))
        end = one.end() + len(_TAIL.sub("", text))
        if end > start:
            values.append(Labelled(_name(one), line[start:end], start, end))
    return values


def _has_mark(line: str, label: re.Match[str], *, is_first: bool) -> bool:
    """True if a colon follows, or for a label that starts a cell, a dash or the next cell."""
    mark = label["mark"].strip()
    return mark in {":", "#", "="} or (is_first and (mark != "" or line[label.end() :].startswith("  ")))


def _bare_end(line: str, label: re.Match[str]) -> int:
    """Return the offset where the value of an unmarked label ends; 0 if there is none."""
    shape = _BARE.get(_name(label))
    found = shape.match(line, label.end()) if shape and not label["mark"].strip() else None
    if found is None:
        return 0
    following = _LABEL.match(line, len(line) - len(line[found.end() :].lstrip(_SEPARATORS)))
    is_followed = following and (following["mark"].strip() or _bare_end(line, following))
    is_last = is_followed or _CELL_END.match(line, found.end())
    return found.end() if is_last else 0


def _name(label: re.Match[str]) -> str:
    group = next(name for name, value in label.groupdict().items() if value is not None and name[0] == "f")
    return group.partition("_")[2]
