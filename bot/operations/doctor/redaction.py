"""Redacts secrets from output: those of the settings, tokens, and credentials in URLs.

A check may quote an engine's message, and that may quote a secret, so every line passes through here.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from typing import Any
from urllib.parse import unquote, urlsplit

from pydantic import SecretStr

from bot.settings import SETTINGS_CLASSES
from storage.errors import SettingsError
from storage.settings import FootnoteSettings, read_dotenv, read_toml

HIDDEN = "•••"
# Redacting shorter secrets would garble unrelated words.
MIN_SECRET_CHARS = 4
_USER_INFO = re.compile(r"(?<=://)[^/\s@]+@")
_QUERY = re.compile(r"\?[^\s#'\"]+")
_URL = re.compile(r"\w+://\S+")
# Anything that looks like a token, whatever its origin.
_TOKEN = re.compile(r"\b(xox[a-z]-|xapp-|xoxe\.|sk-)[\w.-]{6,}|\bBearer\s+\S+")


class Redactor:
    """Filter that hides known secrets, tokens, and the userinfo and query of URLs."""

    def __init__(self, secrets: Iterable[str]) -> None:
        """Compile ``secrets``; those shorter than ``MIN_SECRET_CHARS`` are ignored."""
        known = {one for one in secrets if len(one) >= MIN_SECRET_CHARS}
        ordered = sorted(known, key=len, reverse=True)  # longest first: one may be a prefix of another
        self._known = re.compile("|".join(map(re.escape, ordered))) if ordered else None

    def clean(self, text: str) -> str:
        """Return the text with secrets hidden."""
        if self._known:
            text = self._known.sub(HIDDEN, text)
        text = _USER_INFO.sub(f"{HIDDEN}@", text)
        text = _URL.sub(lambda url: _QUERY.sub(f"?{HIDDEN}", url[0]), text)
        return _TOKEN.sub(HIDDEN, text)


@cache
def known_redactor() -> Redactor:
    """Return a redactor of the secrets in all current settings, or of none if they cannot be read."""
    try:
        return Redactor(secrets_of(SETTINGS_CLASSES))
    except OSError:
        return Redactor(())


def secrets_of(rooms: Iterable[type[FootnoteSettings]]) -> set[str]:
    """Return every secret that environment, ``.env`` or ``footnote.toml`` give these settings, valid or not.

    Invalid settings contain secrets as well, so values are read at their sources, without validation.
    """
    variables = {name for room in rooms for name in _secret_variables(room)}
    given: list[tuple[str, Any]] = [*os.environ.items(), *read_dotenv().items()]
    with suppress(SettingsError, OSError):
        given += read_toml().items()
    found: set[str] = set()
    for name, value in given:
        if name in variables:
            found |= set(_parts(value))
        if isinstance(value, str):
            found |= _password(value)
    return found


def _secret_variables(room: type[FootnoteSettings]) -> Iterator[str]:
    for variable, name in room.variables().items():
        if "Secret" in str(room.model_fields[name].annotation) or "Account" in str(
            room.model_fields[name].annotation
        ):
            yield variable


def _parts(value: object) -> Iterator[str]:
    """Yield a secret, and the strings in it if it is JSON."""
    if isinstance(value, SecretStr):
        value = value.get_secret_value()
    if isinstance(value, dict):
        for one in value.values():
            yield from _parts(one)
    elif isinstance(value, str):
        yield value
        with suppress(ValueError):
            if isinstance(decoded := json.loads(value), dict):
                yield from _parts(decoded)


def _password(value: str) -> set[str]:
    """Return the password in a URL, as written and percent-decoded."""
    with suppress(ValueError):
        if "://" in value and (password := urlsplit(value).password):
            return {password, unquote(password)}
    return set()
