"""Encrypts the tokens of installations (Fernet) with a key ring in a file; keys are never in the database.

The plaintext names the installation, so a ciphertext copied to another row does not decrypt for it. Key
rotation: the newest key encrypts, all keys of the ring decrypt; two rotations end tokens that were not
re-encrypted in between.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from pathlib import Path

from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from bot.answers.citations.signed_links import KeyRing
from bot.settings import BotSettings
from storage.errors import SettingsError
from storage.settings import StorageSettings


class DecryptionFailed(Exception):
    """Encrypted with a key that is not in our key ring, or for another installation."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """Bot token and refresh token of an installation; kept out of ``repr`` and logs."""

    bot: str = field(repr=False)
    # Single-use; None: the bot token never expires.
    refresh: str | None = field(default=None, repr=False)


def open_token_cipher(settings: BotSettings, stored: StorageSettings) -> TokenCipher:
    """Return a cipher with the key ring named by FOOTNOTE_TOKEN_KEYS, else with the home's own.

    Raises:
        SettingsError: as ``TokenCipher``; or several machines share a store and would each create other keys.
    """
    if settings.token_keys is not None:
        return TokenCipher(settings.token_keys, is_ours=False)
    if stored.blobs is not None:
        raise SettingsError(
            "FOOTNOTE_TOKEN_KEYS: with FOOTNOTE_BLOBS all machines need the keys of Slack's tokens. "
            "Mount token_keys.json of the home that has it, or one that `footnote links rotate --file "
            "token_keys.json` makes, and name it there"
        )
    return TokenCipher(stored.home_path / "token_keys.json")


class TokenCipher:
    """Encrypts and decrypts the tokens of installations."""

    def __init__(self, path: Path, *, is_ours: bool = True) -> None:
        """Read the key ring at ``path``; create it at first use unless it is mounted (``is_ours`` False).

        Raises:
            SettingsError: the file is damaged or unreadable, or a mounted one is missing.
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

    def encrypt(self, installation: str, tokens: Tokens) -> bytes:
        """Encrypt the tokens of an installation with the newest key."""
        held = {"installation": installation, "bot": tokens.bot, "refresh": tokens.refresh}
        return self._keys()[0].encrypt(json.dumps(held).encode())

    def decrypt(self, installation: str, sealed: bytes) -> Tokens:
        """Decrypt the tokens of an installation.

        Raises:
            DecryptionFailed: no key of the ring decrypts them, or they are of another installation.
        """
        try:
            held = json.loads(MultiFernet(self._keys()).decrypt(sealed))
        except InvalidToken:
            raise DecryptionFailed from None
        if held["installation"] != installation:
            raise DecryptionFailed
        return Tokens(held["bot"], held["refresh"])

    def is_current(self, sealed: bytes) -> bool:
        """True if it was encrypted with the newest key."""
        try:
            self._keys()[0].decrypt(sealed)
        except InvalidToken:
            return False
        return True

    def _keys(self) -> list[Fernet]:
        return [Fernet(base64.urlsafe_b64encode(key.secret)) for key in self._ring.keys()]
