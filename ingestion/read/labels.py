"""The labels that documents print before their metadata, and what may stand behind each."""

from __future__ import annotations

import re
from typing import NamedTuple

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


class Labelled(NamedTuple):
    """A label of a line and what stands behind it, up to the next one."""

    name: str
    value: str
    start: int
    """text[start:end] is the value, as it stands in the line."""
    end: int


_ALL = "|".join(
    f"(?P<f{number}_{name}>{'|'.join(forms)})" for number, (name, forms) in enumerate(LABELS.items())
)
_LABEL = re.compile(rf"(?<![\w-])(?:{_ALL})\.?(?P<mark> ?[:#=]|(?=\s*$)|(?= {{2,}})|(?= ))", re.IGNORECASE)
_SPACES = re.compile(r"\s+")


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
