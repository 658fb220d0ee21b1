"""Encrypts the tokens of installations with keys of the home, or of a mounted file, which no database holds.

A sealed pair names its installation inside: moved to another row it opens nothing. The newest key of the ring
seals, all of them open; rotating twice ends what was never sealed again meanwhile.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from pathlib import Path

from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from bot.core.citations.signed_links import KeyRing
from bot.settings import BotSettings
from storage.errors import SettingsError
from storage.settings import StorageSettings


class SealBroken(Exception):
    """Not sealed by a key of this home, or not for this installation."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """What Slack gave; neither is ever shown."""

    bot: str = field(repr=False)
    # What the next token is got for, once; None: this one never ends.
    refresh: str | None = field(default=None, repr=False)


def open_token_seal(settings: BotSettings, stored: StorageSettings) -> TokenSeal:
    """Return the seal whose keys the settings name, else that of the home.

    Raises:
        SettingsError: as ``TokenSeal``; or machines share a store, and each would make its own keys.
    """
    if settings.token_keys is not None:
        return TokenSeal(settings.token_keys, is_ours=False)
    if stored.blobs is not None:
        raise SettingsError(
            "FOOTNOTE_TOKEN_KEYS: with FOOTNOTE_BLOBS all machines need the keys that seal Slack's tokens. "
            "Mount token_keys.json of the home that has it, or one that `footnote links rotate --file "
            "token_keys.json` makes, and name it there"
        )
    return TokenSeal(stored.home_path / "token_keys.json")


class TokenSeal:
    """Seals and opens."""

    def __init__(self, path: Path, *, is_ours: bool = True) -> None:
        """``path``: of the key ring, made at first use; not where it is mounted (``is_ours`` False).

        Raises:
            SettingsError: there is a file that is no key ring, or one that is mounted is not there.
        """
        self._ring = KeyRing(path, is_ours=is_ours)
        try:
            self._ring.keys()
        except OSError as error:
            raise SettingsError(f"{path} cannot be read: {error.strerror}") from error
        except (ValueError, KeyError, TypeError):
            raise SettingsError(
                f"{path} is damaged: put back a copy, or delete it; every Slack workspace then has to "
                "install the app again"
            ) from None

    def seal(self, installation: str, tokens: Tokens) -> bytes:
        """Return the tokens of an installation, encrypted."""
        held = {"installation": installation, "bot": tokens.bot, "refresh": tokens.refresh}
        return self._keys()[0].encrypt(json.dumps(held).encode())

    def open(self, installation: str, sealed: bytes) -> Tokens:
        """What was sealed for this installation.

        Raises:
            SealBroken: nothing was.
        """
        try:
            held = json.loads(MultiFernet(self._keys()).decrypt(sealed))
        except InvalidToken:
            raise SealBroken from None
        if held["installation"] != installation:
            raise SealBroken
        return Tokens(held["bot"], held["refresh"])

    def is_current(self, sealed: bytes) -> bool:
        """True if the newest key sealed it."""
        try:
            self._keys()[0].decrypt(sealed)
        except InvalidToken:
            return False
        return True

    def _keys(self) -> list[Fernet]:
        return [Fernet(base64.urlsafe_b64encode(key.secret)) for key in self._ring.keys()]
