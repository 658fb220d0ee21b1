"""A check of an installation, and what it found: one line, and where it is not well how that is mended."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

# How long one check may take, unless it says otherwise.
CHECK_SECONDS = 5.0


class CheckState(StrEnum):
    """How a thing stands."""

    OK = "ok"
    # It works, and should not stay so.
    WARN = "warn"
    # Something does not work.
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check found."""

    state: CheckState
    # How things stand, in one sentence.
    text: str
    # What to do; '' where all is well.
    mend: str = ""
    # Address of the section of the docs that says more.
    page: str = ""


def ok(text: str) -> Finding:
    """Return all is well."""
    return Finding(CheckState.OK, text)


def warn(text: str, mend: str, page: str) -> Finding:
    """It works, and should not stay so."""
    return Finding(CheckState.WARN, text, mend, page)


def fail(text: str, mend: str, page: str) -> Finding:
    """It does not work."""
    return Finding(CheckState.FAIL, text, mend, page)


Examine = Callable[[], Awaitable[Finding | Sequence[Finding]]]


@dataclass(frozen=True, slots=True)
class HealthCheck:
    """One thing to look at."""

    # What a line calls it, in a word or two.
    name: str
    # Looks, and changes nothing. An error of storage that it raises is a failure with its sentence.
    examine: Examine
    # Where the docs say more of what goes wrong in a way that the check does not name.
    page: str
    seconds: float = CHECK_SECONDS


@dataclass(frozen=True, slots=True)
class CheckResult:
    """A line of the report."""

    name: str
    state: CheckState
    text: str
    mend: str
    page: str
