"""Passwords of locked PDFs, and their transfer to the one child that tries them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from pydantic import SecretStr

_ADVICE = "save a copy without one, or ask an admin to give its folder the right one"


@dataclass(frozen=True, slots=True)
class Passwords:
    """Passwords that admins configured for a content."""

    found: tuple[SecretStr, ...] = ()
    # Number of references that could not be resolved.
    missing: int = 0

    @property
    def refusal(self) -> str:
        """Reason why the PDF stays locked, with advice for an admin."""
        count, lost = len(self.found), ""
        tried = f"; none of the {count} that were given for it opens it" if count else ""
        if count == 1:
            tried = "; the one that was given for it does not open it"
        if self.missing:
            plural = "" if self.missing == 1 else "s"
            lost = f"; {self.missing} configured password{plural} could not be resolved (see the log)"
        return f"the PDF opens only with a password{tried}{lost}: {_ADVICE}"


class Keyring(Protocol):
    """Lookup of passwords by content."""

    async def passwords_of(self, sha256: str) -> Passwords:
        """Return the passwords configured for a content; raises InfrastructureError if that fails."""

    def note_wrong(self, sha256: str, tried: Passwords) -> None:
        """Record that none of these opens the content."""


@contextmanager
def password_file(passwords: tuple[SecretStr, ...]) -> Iterator[int]:
    """Yield an in-memory file with the passwords, for a child to read.

    They are never part of a job: the fork server would keep them in memory, and with it the next child, which
    opens another file.
    """
    handle = os.memfd_create("passwords", os.MFD_CLOEXEC)
    try:
        with os.fdopen(handle, "wb", closefd=False) as file:
            file.write(json.dumps([one.get_secret_value() for one in passwords]).encode())
        yield handle
    finally:
        os.close(handle)
