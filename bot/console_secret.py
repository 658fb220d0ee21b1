"""Console secret: a 0600 file in the home, and the URL that carries it.

Anyone who can read the home may use the console; other users of the machine and visitors through a proxy may
not. The secret survives restarts, so browsers stay signed in. If the file is deleted, the next start creates
a new one.
"""

from __future__ import annotations

import os
import re
import secrets
from pathlib import Path
from urllib.parse import urlencode
from uuid import uuid4

from storage.errors import SettingsError

# Query parameter of the console's URL.
QUERY_NAME = "secret"
_SECRET = re.compile(r"[A-Za-z0-9_-]{32,100}", re.ASCII)


def read_console_secret(home: Path) -> str:
    """Return the home's secret, creating it on first use; concurrent processes agree on the first one.

    Raises:
        SettingsError: the file holds no secret.
    """
    path = home / "console_secret"
    if not path.exists():
        _create(path)
    found = path.read_text(encoding="utf-8", errors="replace").strip()
    if not _SECRET.fullmatch(found):
        raise SettingsError(f"{path} is damaged: delete it, and the next start creates another")
    return found


def console_address(url: str, secret: str | None) -> str:
    """Return the console's URL with the secret, or the plain URL if there is none."""
    return f"{url}/?{urlencode({QUERY_NAME: secret})}" if secret else url


def _create(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{uuid4().hex}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(f"{secrets.token_urlsafe(32)}\n")
            file.flush()
            os.fsync(file.fileno())
        # Unlike a rename, link() fails if the file exists: the first process wins.
        os.link(draft, path)
    except FileExistsError:
        return
    finally:
        draft.unlink()
