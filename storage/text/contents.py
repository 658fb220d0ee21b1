"""Detection of tables of contents."""

from __future__ import annotations

import re

from storage.text.analyzer import fold

_TITLE = re.compile(
    r"(?:table of )?contents|inhalt(?:sverzeichnis)?|table des matieres|sommaire|indice|sumario|contenido"
    r"|inhoud(?:sopgave)?"
)


def is_contents_title(heading: str) -> bool:
    """True for a heading, without its number, that titles a table of contents."""
    return _TITLE.fullmatch(fold(heading).casefold().strip(" :.")) is not None
