"""Health checks and their findings: a state, a sentence, and a fix unless all is well."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

# Default timeout of a check.
CHECK_SECONDS = 5.0


class CheckState(StrEnum):
    """State that a check reports."""

    OK = "ok"
    # Works, but needs attention.
    WARN = "warn"
    # Does not work.
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Finding:
    """Finding of a check."""

    state: CheckState
    # State in one sentence.
    text: str
    # Fix; '' if all is well.
    fix: str = ""
    # URL of the docs section that says more.
    docs: str = ""


def ok(text: str) -> Finding:
    """Return a finding that all is well."""
    return Finding(CheckState.OK, text)


def warn(text: str, fix: str, docs: str) -> Finding:
    """Return a finding of something that works but needs attention."""
    return Finding(CheckState.WARN, text, fix, docs)


def fail(text: str, fix: str, docs: str) -> Finding:
    """Return a finding of something that does not work."""
    return Finding(CheckState.FAIL, text, fix, docs)


Examine = Callable[[], Awaitable[Finding | Sequence[Finding]]]


@dataclass(frozen=True, slots=True)
class HealthCheck:
    """Health check with a name and a timeout."""

    # Name in the report, a word or two.
    name: str
    # Read-only. A StorageError that it raises is a failure, reported by its message.
    examine: Examine
    # URL of the docs section for failures that the check does not name.
    docs: str
    seconds: float = CHECK_SECONDS


@dataclass(frozen=True, slots=True)
class CheckResult:
    """Line of the report."""

    name: str
    state: CheckState
    text: str
    fix: str
    docs: str
