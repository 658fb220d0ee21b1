"""Labels of callouts: boxes with a warning, caution or note, in seven languages."""

from __future__ import annotations

import re

# Headings of call-out boxes, which do not open a section.
BOX_WORDS = frozenset(
    """
    warning caution note notice important danger attention tip
    warnung vorsicht achtung gefahr hinweis wichtig
    avertissement remarque avis
    advertencia precaución atención peligro nota aviso importante
    avvertenza attenzione pericolo avviso
    atenção perigo cuidado advertência observação
    waarschuwing gevaar opmerking belangrijk voorzichtig
    """.split()
)
_WORD = re.compile(r"[^\W\d_]+")
_BOX_END = re.compile(r"[:!]| [-–—] |  ")
_BOX_SIGNS = " :!.⚠️▲△*"


def is_callout(line: str) -> bool:
    """True if the line is only the label of a call-out box, such as ``WARNING!``."""
    return line.strip(_BOX_SIGNS).casefold() in BOX_WORDS


def opens_callout(line: str) -> bool:
    """True if the line is, or begins with, the label of a box, followed by a colon, a dash or a wide gap."""
    return is_callout(_BOX_END.split(line.strip(_BOX_SIGNS), maxsplit=1)[0])


def names_callout(text: str) -> bool:
    """True if a word of the text labels call-out boxes."""
    return any(word in BOX_WORDS for word in _WORD.findall(text.casefold()))
