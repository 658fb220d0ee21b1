"""The labels that documents print before their metadata, and what may stand behind each.

A template's leftover, or a value of another kind, is no value.
"""

from __future__ import annotations

import re
from typing import NamedTuple

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
_SHAPE = re.compile(
    r"(?<![\w-])[A-Z]{0,6}[-_/]?SOP[A-Za-z]*(?:[-_/.][A-Za-z]+)*[-_/.]?"
    r"\d[A-Za-z0-9]*(?:[-_.][A-Za-z0-9]+)*(?![\w-])"
)
"""Letters up to the first figure, then both, so that a text fits in one way only: with two ways for each
letter, the time to find that nothing fits doubles with every letter."""
_VERSION_PART = r"(?:v(?:er(?:sion)?)?|rev(?:ision)?|issue)\.? ?"
_BEHIND_ID = re.compile(
    rf"[,;(\s]+(?P<all>{_VERSION_PART}(?P<version>\d+(?:\.\d+)*[a-z]?))(?![\w-])", re.IGNORECASE
)
_VERSION = re.compile(
    rf"(?:{_VERSION_PART})?(?P<version>\d+(?:\.\d+)*[a-z]?|[A-Z])(?=$|[\s,;|)])"
    r"(?! *(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|of\b))",
    re.IGNORECASE,
)
_PROCEDURE = re.compile(r"\b(?:standard operating procedure|sop|work instruction)\b", re.IGNORECASE)
_KIND = re.compile(
    r"(?:standard operating procedure|work instruction|operating procedure|employee handbook|handbook|policy"
    r"|procedure|guidelines?|guide|manual|protocol|(?:final |factual )?report|checklist|form"
    r"|training documentation)$",
    re.IGNORECASE,
)
MAX_PREFIX_CHARS = 30
"""Characters of a title that may stand before the kind of document it ends with."""
_ORGANISATION = re.compile(
    r"\b(?:laborator(?:y|ies)|university|college|institute|inc\.?|ltd\.?|llc|gmbh|ag|corp(?:oration)?\.?|company"
    r"|board|agency|instruments|electronics|hospital|foundation|association|society|council|ministry)$"
    r"|^(?:university|ministry|office|bank|institute) of\b",
    re.IGNORECASE,
)
_SMALL_WORDS = {"and", "of", "the", "&", "de", "für"}
_DEPARTMENT = re.compile(
    r"(?P<name>[A-Z][\w&/-]*(?: (?:and|of|&|[A-Z][\w&/-]*)){0,4}) (?:Department|Dept\.?)"
)

NUMBER = "number"
"""Of a label that means the document's number in a procedure, and anything elsewhere."""
IGNORED = ""
"""Of labels that only end the value before them: what they introduce is not kept."""

LABELS = {
    "sop_id": (
        r"(?:sop|document|doc|procedure|policy|control|work instruction|form)[ -]?"
        r"(?:no|nr|num|number|id|identifier|code|ref|reference|control number|#)",
        r"standard operating procedure (?:no|number|id|#)",
        r"sop(?= ?[:#])",
    ),
    NUMBER: (r"(?:reference|ref|number|no)(?= ?[.:#])",),
    "effective": (
        r"(?:date )?effective(?: date| from| as of| on)?",
        r"date (?:effective|of effect|in force)",
        r"(?:valid|in force) (?:from|since|as of)",
        r"(?:implementation|start|commencement) date",
    ),
    "last_updated": (
        r"(?:last |date )?(?:revised|updated|modified|amended)(?: on| date)?",
        r"(?:last )?(?:revision|update|modification|amendment) date",
        r"date of (?:last |latest )?(?:revision|update|amendment)",
        r"last (?:revision|update)",
    ),
    "version": (
        r"(?:document |sop |current )?(?:version|revision|rev|issue|edition|ver)[ .]?(?:no|number|nr|#)?",
    ),
    "department": (
        r"(?:responsible |owning |owner |issuing )?(?:department|dept)(?: name)?",
        r"(?:responsible )?(?:division|business unit)",
    ),
    "author": (r"author(?:s|\(s\))?", r"(?:prepared|written|compiled|drafted|created) by"),
    "organisation": (r"(?:company|organi[sz]ation|institution|facility)(?: name)?",),
    "document_type": (r"(?:document|doc) type", r"type of document"),
    "title": (r"(?:sop |document |procedure |policy )?title", r"subject"),
    IGNORED: (
        r"(?:date )?(?:approved|authori[sz]ed|reviewed|checked|issued|signed|supersedes|replaces)"
        r"(?: by| on| date)?",
        r"(?:approval|authori[sz]ation|next review|review|issue|print(?:ed)?|expiry|expiration|training|due)"
        r"[ -]?date",
        r"(?:next|last|periodic) review(?: due)?",
        r"date(?: of issue| issued)?",
        r"page(?: no)?",
        r"status|signature|name|owner|process owner|classification|location|site|distribution|copy no|scope",
        r"e-?mail(?: address)?|phone|telephone|position|role|keywords|category|section|approver|purpose"
        r"|language",
    ),
}  # fmt: skip

_ALL = "|".join(
    f"(?P<f{number}_{name}>{'|'.join(forms)})" for number, (name, forms) in enumerate(LABELS.items())
)
_LABEL = re.compile(rf"(?<![\w-])(?:{_ALL})\.?(?P<mark> ?[:#=]|(?=\s*$)|(?= {{2,}})|(?= ))", re.IGNORECASE)
_SPACES = re.compile(r"\s+")


def is_nothing(text: str) -> bool:
    """Whether a template was not filled in here."""
    return _NOTHING.fullmatch(text.strip()) is not None


def one_kind_of_hyphen(text: str) -> str:
    """With the plain hyphen, of the same length."""
    return text.translate(_HYPHENS)


def find_id(text: str) -> re.Match[str] | None:
    """The document number that a text begins with: it holds a figure."""
    return _ID.match(one_kind_of_hyphen(text))


def find_version_behind(text: str, end: int) -> re.Match[str] | None:
    """The version that stands behind a document number that ended at ``end``: ``07A v.02``."""
    return _BEHIND_ID.match(text, end)


def find_version(text: str) -> re.Match[str] | None:
    """The version that a text begins with: a number in figures, or one letter; no date."""
    return _VERSION.match(text)


def shaped_ids(text: str) -> list[re.Match[str]]:
    """Everything in a text that is shaped like an SOP's number: ``SOP-IT-04`` whole, never ``SOPs``."""
    return list(_SHAPE.finditer(one_kind_of_hyphen(text)))


def find_department(text: str) -> re.Match[str] | None:
    """``IT Department`` as a whole cell."""
    return _DEPARTMENT.fullmatch(text.strip())


def find_kind(text: str) -> re.Match[str] | None:
    """The kind of document that a cell names, alone or at the end of a title."""
    found = _KIND.search(text)
    return found if found and found.start() <= MAX_PREFIX_CHARS else None


def is_procedure(text: str) -> bool:
    """Whether a line says that the document is one."""
    return _PROCEDURE.search(text) is not None


def is_organisation(text: str) -> bool:
    """Whether it is a name of capitalised words that ends, or begins, as organisations' names do."""
    words = text.split()
    is_name = all(word[:1].isupper() or word in _SMALL_WORDS for word in words)
    return is_name and 2 <= len(words) <= 9 and _ORGANISATION.search(text) is not None


class Labelled(NamedTuple):
    """A label of a line and what stands behind it, up to the next one."""

    name: str
    value: str
    start: int
    """text[start:end] is the value, as it stands in the line."""
    end: int


def name_of(cell: str) -> str | None:
    """The field that a whole cell is the label of; None when it is no label."""
    found = _LABEL.fullmatch(_SPACES.sub(" ", cell).strip()) or _LABEL.fullmatch(
        _SPACES.sub(" ", cell).strip().rstrip(" :.#")
    )
    return None if found is None else _name(found)


def labelled(line: str) -> list[Labelled]:
    """Every label of a line with its value; more than the first one need a colon."""
    found = [one for one in _LABEL.finditer(line) if _opens(line, one)]
    values = []
    for number, one in enumerate(found):
        stop = found[number + 1].start() if number + 1 < len(found) else len(line)
        text = line[one.end() : stop]
        start = one.end() + len(text) - len(text.lstrip(" :#.=\t"))
        end = one.end() + len(text.rstrip(" |;,\t("))
        if end > start:
            values.append(Labelled(_name(one), line[start:end], start, end))
    return values


def _opens(line: str, label: re.Match[str]) -> bool:
    """Whether it begins a cell, or a field after another one."""
    before = line[: label.start()]
    is_first = not before.strip() or before.endswith(("  ", "| ", "("))
    has_mark = label["mark"].strip() != ""
    return has_mark if not is_first else has_mark or line[label.end() :].startswith("  ")


def _name(label: re.Match[str]) -> str:
    group = next(name for name, value in label.groupdict().items() if value is not None and name[0] == "f")
    return group.partition("_")[2]
