"""A Teams adapter with an in-memory inbox, and helpers for answers of the fake bot."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from fakes.memory_inbox import MemoryInbox

from bot.core.models import Answer, AnswerState, Citation
from bot.core.ports import IncomingMessage
from bot.platforms.teams.adapter import TeamsAdapter
from bot.settings import BotSettings

HOST = "www.landlords-and-tenants.housing.example.org"


def name_of(conversation: str) -> str:
    """Return a word that occurs only in the answers to one conversation."""
    return "canary" + hashlib.sha256(conversation.encode()).hexdigest()[:12]


def answer_to(message: IncomingMessage) -> Answer:
    """Return an answer about its own conversation: one cited page, or seven for "all the rules"."""
    name = name_of(message.key.conversation)
    numbers = range(1, 8) if "all the rules" in message.text else range(1, 2)
    citations = tuple(
        Citation(n, f"Rules {name}", f"{n}.pdf", n + 1, "daily", (), f"http://127.0.0.1:8765/v/{name}{n}")
        for n in numbers
    )
    if "on the web" in message.text:
        citations = tuple(map(on_the_web, citations))
    marks = " ".join(f"[{n}]" for n in numbers)
    text = f"For {name}: <b>all</b> *.bak & _old_ files; backups run daily at 2:00 AM {marks}."
    return Answer(AnswerState.GROUNDED, text, citations)


def on_the_web(citation: Citation) -> Citation:
    """Return the citation as a web page on a host with a long name."""
    url = f"https://{HOST}/{citation.number}"
    title = "How deposits of tenants are protected by landlords and their agents"
    return replace(
        citation, title=title, file=url, page=0, url=url, host=HOST, fetched="2026-03-01T12:00:00+00:00"
    )


def open_in_development(inbox: MemoryInbox) -> TeamsAdapter:
    """Return an adapter that accepts messages from this machine without tokens."""
    settings = BotSettings(teams_development=True)
    return TeamsAdapter(settings, inbox.service)


@pytest.fixture
def new_inbox() -> Any:
    """Return ``new_inbox()``."""
    return partial(MemoryInbox, answer_to)


@pytest.fixture
def development_door() -> Any:
    """Return ``development_door(inbox)``."""
    return open_in_development


@pytest.fixture(name="name_of")
def naming() -> Any:
    """Return ``name_of(conversation)``: the word that occurs only in its answers."""
    return name_of
