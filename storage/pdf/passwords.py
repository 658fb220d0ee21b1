"""The passwords that may open a PDF, on their way from a keyring to the one child that tries them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from pydantic import SecretStr

_ADVICE = (
    "save a copy without one, or give its folder the right one (folders.toml: passwords; for all folders: "
    "FOOTNOTE_PDF_PASSWORDS)"
)


@dataclass(frozen=True, slots=True)
class Passwords:
    """What admins gave for one content."""

    found: tuple[SecretStr, ...] = ()
    # References that lead to nothing where the service runs.
    missing: int = 0

    @property
    def refusal(self) -> str:
        """Why the content stays closed, and what an admin can do."""
        count, lost = len(self.found), ""
        tried = f"; none of the {count} that were given for it opens it" if count else ""
        if count == 1:
            tried = "; the one that was given for it does not open it"
        if self.missing:
            lost = f"; {self.missing} of those named for it could not be found, and the log says which"
        return f"the PDF opens only with a password{tried}{lost}: {_ADVICE}"


class Keyring(Protocol):
    """Knows the passwords of contents."""

    async def passwords_of(self, sha256: str) -> Passwords:
        """What admins gave for a content; raises InfrastructureError when that cannot be asked."""

    def note_wrong(self, sha256: str, tried: Passwords) -> None:
        """None of these opens the content."""


@contextmanager
def password_file(passwords: tuple[SecretStr, ...]) -> Iterator[int]:
    """Yield a file in memory that a child reads them from.

    They never stand in a job: the program that forks all children would remember them, and with it
    the next child, which opens somebody else's file.
    """
    handle = os.memfd_create("passwords", os.MFD_CLOEXEC)
    try:
        with os.fdopen(handle, "wb", closefd=False) as file:
            file.write(json.dumps([one.get_secret_value() for one in passwords]).encode())
        yield handle
    finally:
        os.close(handle)
