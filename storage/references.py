"""Secrets that a line names and does not hold: ``env:NAME`` or ``file:/absolute/path``.

``referenced.py`` follows them.
"""

from __future__ import annotations

import re

_FORM = re.compile(r"env:[A-Za-z_][A-Za-z0-9_]*|file:/[^\0]+")
_OURS = re.compile(r"FOOTNOTE_|DATABASE_URL$|WEAVIATE_|OPENAI_|AWS_|SLACK_|MicrosoftApp", re.IGNORECASE)
"""Variables of our own settings, however they are spelled."""


def fault_of(reference: str) -> str | None:
    """What is wrong with a reference as it is written; the sentence does not repeat it."""
    if not _FORM.fullmatch(reference):
        return (
            "write where the password is found and not the password: env:NAME (a variable of the service's "
            "environment, or of .env) or file:/absolute/path"
        )
    kind, _, name = reference.partition(":")
    if kind == "env" and _OURS.match(name):
        return "the variable belongs to Footnote's own settings: keep the PDFs' password in one of its own"
    return None
