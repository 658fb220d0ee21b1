"""What is exchanged with a language model, and what it costs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Usage:
    """What a model's reply cost, as its endpoint counts tokens."""

    prompt: int
    completion: int


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a model was sent, word for word."""

    system: str
    user: str
    with_schema: bool
    """A JSON schema of the reply was sent along."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole reply: its ``finish_reason`` was "stop"."""

    text: str
    usage: Usage | None


@dataclass(slots=True)
class AuxiliaryCall:
    """A call to a model that writes no answer, but helps one: it words a question, or judges passages."""

    purpose: str
    prompts: list[Prompt] = field(default_factory=list)
    """All that were sent, in order."""
    usage: Usage | None = None
    error: str | None = None
    """What came instead of a reply that is of use."""


_collected: ContextVar[list[AuxiliaryCall]] = ContextVar("helping_calls")


@contextmanager
def collected_calls() -> Iterator[list[AuxiliaryCall]]:
    """The helping calls that are made in here, also by tasks that begin in here.

    They are made far from where a question's record is, by whatever implements a port.
    """
    calls: list[AuxiliaryCall] = []
    token = _collected.set(calls)
    try:
        yield calls
    finally:
        _collected.reset(token)


@contextmanager
def auxiliary_call(purpose: str) -> Iterator[AuxiliaryCall]:
    """A call that is made in here, to be filled in; collected, if anybody does."""
    call = AuxiliaryCall(purpose)
    _collected.get([]).append(call)
    try:
        yield call
    except BaseException as error:  # one that is cut off by its deadline was sent all the same
        call.error = type(error).__name__
        raise
