"""What is exchanged with a language model, and what it costs."""

from __future__ import annotations

from dataclasses import dataclass


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
