"""Cleans the /Title of a PDF: most real ones are empty, or left over from the program that wrote it."""

from __future__ import annotations

import re
import unicodedata

MAX_TITLE_CHARS = 200

_JUNK = re.compile(
    r"""(?ix)
    untitled.* | no\ title | title | \(anonymous\) | unknown | none | null | default | test
    | (new\ )?(document|presentation|slide|page|sheet|book|workbook|folie|template)[\s_-]*\d*
    | powerpoint[\s-]presentation | slide\s\d+
    | (microsoft\s(word|powerpoint|excel)|word|print)\s*-.*
    | .*\.(docx?|dotx?|pptx?|xlsx?|odt|odp|rtf|tex|dvi|html?|indd|qxd|pdf|ps|txt|tmp|md)
    | (https?|file):.* | about:blank
    | [{(]?[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}[)}]?
    | (scan|img|image|doc)[\s_-]*\d+
    """
)


def sane_title(raw: str | None) -> str:
    """The title if a person wrote it, else ''; never a control character in it, never long."""
    text = unicodedata.normalize("NFKC", (raw or "").replace("\x00", ""))
    text = "".join(char if char.isprintable() else " " for char in text)
    title = " ".join(text.replace("\ufffd", " ").split())
    letters = sum(char.isalpha() for char in title)
    if letters < 3 or _JUNK.fullmatch(title):
        return ""
    return title[:MAX_TITLE_CHARS].rstrip()
