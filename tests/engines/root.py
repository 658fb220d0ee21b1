"""root: needed to read the memory of a process that has dropped its privileges."""

from __future__ import annotations

import os

from engines import FetchError

NAME = "root"
REMEDY = "sudo make test"
BINDS_EVERYWHERE = False


def missing() -> str | None:
    """Return why it is not available, or None."""
    return None if os.geteuid() == 0 else "only root looks into such a process"


def fetch() -> None:
    """Do nothing.

    Raises:
        FetchError: not run as root.
    """
    if why := missing():
        raise FetchError(why)
