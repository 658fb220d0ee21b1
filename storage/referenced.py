"""Follows references to secrets, anew each time: a secret may be changed while we run."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from stat import S_ISREG

from pydantic import SecretStr

from storage.settings import read_dotenv

MAX_SECRET_BYTES = 4096
"""Bytes; no more of a file is looked at."""


def resolve_reference(reference: str) -> SecretStr | None:
    """The secret that a sound reference leads to; None when there is none, or nothing that is UTF-8.

    Of a file it is the first line, without blanks around it. Waits for the disk.
    """
    kind, _, name = reference.partition(":")
    found = _variable(name) if kind == "env" else _first_line(Path(name))
    return SecretStr(found) if found and "\0" not in found else None


def _variable(name: str) -> str:
    """Of the environment, else of ``.env``."""
    with suppress(UnicodeDecodeError):
        return os.environb.get(name.encode(), b"").decode() or read_dotenv().get(name, "")
    return ""


def _first_line(path: Path) -> str:
    """The first line of a regular file; a pipe or a device in its place is not waited for."""
    with suppress(OSError, UnicodeDecodeError):
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            is_file = S_ISREG(os.fstat(handle).st_mode)
            text = file.read(MAX_SECRET_BYTES).decode("utf-8-sig") if is_file else ""
        return text.partition("\n")[0].strip()
    return ""
