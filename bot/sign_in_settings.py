"""Settings of the console's OpenID Connect sign-in, and its roles."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from enum import IntEnum
from typing import Self
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, model_validator

from bot.loopback import is_loopback_host
from storage.errors import SettingsError
from storage.settings import Address, FootnoteSettings

# Prefix of an entry that names a value of the groups claim, not an e-mail address.
GROUP = "group:"
_GROUP = re.compile(r"group:[^\r\n]{1,200}")
# Dot-atom of RFC 5322: no colon, so that it cannot read like group:NAME, and no letter that case-folds into
# another one.
_ADDRESS = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9.-]{1,189}")


class Role(IntEnum):
    """Role in the console; each includes the rights of the lower ones."""

    # View pages, ask questions and give feedback.
    READER = 1
    # Also change things.
    ADMIN = 2


class SignInSettings(FootnoteSettings):
    """Console sign-in under the public URL by OpenID Connect, and who gets which role."""

    oidc_issuer: Address | None = Field(
        None,
        pattern="^https?://",
        max_length=500,
        description="Issuer of an OpenID Connect provider, exactly as it names itself, as in "
        "https://accounts.google.com: people sign in there to open the console under FOOTNOTE_PUBLIC_URL.",
    )
    oidc_client_id: str | None = Field(
        None, min_length=1, max_length=500, description="Client id of Footnote at the provider."
    )
    oidc_client_secret: SecretStr | None = Field(
        None, description="Client secret at the provider; unset: a public client, with PKCE only."
    )
    oidc_admins: str = Field(
        "",
        max_length=20_000,
        description="Who may view and change things in the console, separated by commas: e-mail addresses "
        "that the provider has verified, and group:NAME for values of the groups claim; unset: nobody.",
    )
    oidc_readers: str = Field(
        "",
        max_length=20_000,
        description="Who may view pages and ask questions, in the same format; unset: nobody.",
    )
    oidc_channel_readers: str = Field(
        "",
        max_length=20_000,
        description="Which channels a reader sees, as in it=group:staff; hr=group:hr, bob@example.com: names "
        "or tenants as `footnote channels` lists them, with entries in the same format. Once set, readers "
        "see no other channel; unset: readers see all.",
    )
    oidc_groups_claim: str = Field(
        "groups",
        min_length=1,
        max_length=100,
        description="Claim of the ID token or of UserInfo that lists a person's groups or roles.",
    )
    oidc_scopes: str = Field(
        "openid email",
        pattern="^openid( [!-~]+)*$",
        max_length=500,
        description="Scopes requested from the provider, separated by spaces, openid first; some provide "
        "groups only with a scope for them.",
    )

    @property
    def is_on(self) -> bool:
        """True if sign-in is configured."""
        return self.oidc_issuer is not None

    def channels(self, email: str, groups: Collection[str]) -> frozenset[str] | None:
        """Return names or tenants of the channels that a reader may see, None if they may see all."""
        if not self.oidc_channel_readers:
            return None
        names = _names(email, groups)
        return frozenset(
            channel for channel, said in _channel_entries(self) if not names.isdisjoint(_entries(said))
        )

    def role(self, email: str, groups: Collection[str]) -> Role | None:
        """Return the highest role for a verified e-mail address and groups, None if there is none."""
        names = _names(email, groups)
        for role, said in ((Role.ADMIN, self.oidc_admins), (Role.READER, self.oidc_readers)):
            if not names.isdisjoint(_entries(said)):
                return role
        return None

    def granted_groups(self, groups: Collection[str], limit: int) -> list[str]:
        """Return up to ``limit`` of these groups that the settings grant a role, admins' first."""
        of_channels = (said for _, said in _channel_entries(self))
        granting = (self.oidc_admins, self.oidc_readers, *of_channels)
        named = dict.fromkeys(entry for said in granting for entry in _entries(said))
        held = {f"{GROUP}{group}" for group in groups}
        return [one.removeprefix(GROUP) for one in named if one in held][:limit]

    @model_validator(mode="after")
    def _validate_complete(self) -> Self:
        """Reject a sign-in that admits nobody, or whose issuer could be impersonated on the network."""
        of_channels = list(_channel_entries(self))
        if not all(name for name, _ in of_channels):
            raise ValueError("FOOTNOTE_OIDC_CHANNEL_READERS: write each channel as NAME=entries")
        for variable, said in (
            ("ADMINS", self.oidc_admins),
            ("READERS", self.oidc_readers),
            *(("CHANNEL_READERS", said) for _, said in of_channels),
        ):
            if not all(plain_address(one) or _GROUP.fullmatch(one) for one in _entries(said)):
                raise ValueError(
                    f"FOOTNOTE_OIDC_{variable} contains an entry that is neither an ASCII e-mail address nor "
                    "group:NAME; separate entries by commas"
                )
        needed = {
            "FOOTNOTE_OIDC_ISSUER": self.oidc_issuer,
            "FOOTNOTE_OIDC_CLIENT_ID": self.oidc_client_id,
            "FOOTNOTE_OIDC_ADMINS or FOOTNOTE_OIDC_READERS": self.oidc_admins or self.oidc_readers,
        }
        missing = [name for name, value in needed.items() if not value]
        if missing and (len(missing) < len(needed) or self.oidc_client_secret is not None):
            verb = "is" if len(missing) == 1 else "are"
            raise ValueError(f"incomplete OIDC settings: {' and '.join(missing)} {verb} missing")
        if self.oidc_issuer is not None:
            parts = urlsplit(self.oidc_issuer)
            if parts.query or parts.fragment or not parts.hostname:
                raise ValueError("FOOTNOTE_OIDC_ISSUER must be a URL with a host, without query or fragment")
            if parts.scheme != "https" and not is_loopback_host(parts.hostname):
                raise ValueError(
                    "FOOTNOTE_OIDC_ISSUER must begin with https://, unless it is on this machine"
                )
        return self


def require_public_url(settings: SignInSettings, public_url: str | None) -> None:
    """Require a public URL that the provider can redirect browsers to, by TLS or on loopback.

    Raises:
        SettingsError: it is missing or is not https.
    """
    if not settings.is_on:
        return
    parts = urlsplit(public_url or "")
    if parts.scheme != "https" and not is_loopback_host(parts.hostname):
        raise SettingsError(
            "FOOTNOTE_OIDC_ISSUER: the provider sends browsers back after a sign-in; set FOOTNOTE_PUBLIC_URL "
            "to the https:// address under which they reach this server"
        )


def plain_address(text: object) -> str:
    """Return an ASCII e-mail address in lower case; "" for anything else, which matches nobody."""
    return text.lower() if isinstance(text, str) and _ADDRESS.fullmatch(text) else ""


def _names(email: str, groups: Collection[str]) -> set[str]:
    """Return the entries that name a person."""
    return {plain_address(email)} - {""} | {f"{GROUP}{group}" for group in groups}


def _channel_entries(settings: SignInSettings) -> Iterator[tuple[str, str]]:
    """Yield (channel, entries) of the readers of channels; '' for a channel that is not named."""
    for one in settings.oidc_channel_readers.split(";"):
        if one.strip():
            name, is_named, said = one.partition("=")
            yield name.strip() if is_named else "", said


def _entries(said: str) -> Iterator[str]:
    for one in said.split(","):
        entry = one.strip()
        if entry:
            yield plain_address(entry) or entry
