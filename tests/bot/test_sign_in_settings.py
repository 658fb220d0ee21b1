"""Settings of the console's sign-in: complete, or refused with the missing one's name."""

from __future__ import annotations

from typing import Any

import pytest
from harness.tables import for_each
from pydantic import ValidationError

from bot.sign_in_settings import Role, SignInSettings, require_public_url
from storage.errors import SettingsError

WHOLE: dict[str, Any] = {
    "oidc_issuer": "https://accounts.example",
    "oidc_client_id": "id",
    "oidc_admins": "Ada@Example.com, group:Footnote Admins",
    "oidc_readers": "group:staff",
}


@for_each(
    ("changed", "said"),
    [
        ({"oidc_client_id": None}, "FOOTNOTE_OIDC_CLIENT_ID"),
        ({"oidc_issuer": None}, "FOOTNOTE_OIDC_ISSUER"),
        ({"oidc_admins": "", "oidc_readers": ""}, "FOOTNOTE_OIDC_ADMINS or FOOTNOTE_OIDC_READERS"),
        ({"oidc_admins": "ada"}, "FOOTNOTE_OIDC_ADMINS"),
        ({"oidc_admins": "Group:admins@example.com"}, "FOOTNOTE_OIDC_ADMINS"),
        ({"oidc_admins": "stra\N{LATIN SMALL LETTER SHARP S}e@example.com"}, "FOOTNOTE_OIDC_ADMINS"),
        ({"oidc_readers": "ada@example.com bob@example.com"}, "separate entries by commas"),
        ({"oidc_issuer": "http://accounts.example"}, "https://"),
        ({"oidc_issuer": "https://accounts.example/?a=1"}, "query"),
        ({"oidc_scopes": "email"}, "oidc_scopes"),
        ({"oidc_channel_readers": "group:staff"}, "write each channel as NAME=entries"),
        ({"oidc_channel_readers": "it=staff"}, "FOOTNOTE_OIDC_CHANNEL_READERS"),
    ],
)
def test_an_incomplete_sign_in_is_refused(changed: dict[str, Any], said: str) -> None:
    """The error names the setting."""
    with pytest.raises(ValidationError, match=said):
        SignInSettings(**WHOLE | changed)


def test_sign_in_is_off_by_default() -> None:
    """Shows that sign-in is disabled by default."""
    settings = SignInSettings()
    assert (settings.is_on, settings.role("", []), settings.role("ada@example.com", ["x"])) == (
        False,
        None,
        None,
    )
    require_public_url(settings, None)


def test_the_highest_role_counts_and_names_are_exact() -> None:
    """Addresses are compared without case, groups with case; a group is never an address."""
    settings = SignInSettings(**WHOLE)
    assert settings.role("ADA@example.com", []) is Role.ADMIN
    assert settings.role("", ["staff", "Footnote Admins"]) is Role.ADMIN
    assert settings.role("", ["staff"]) is Role.READER
    assert settings.role("", ["Staff", "ada@example.com"]) is None
    assert settings.role("xada@example.com", []) is None
    assert settings.granted_groups(["other", "staff", "Footnote Admins"], 1) == ["Footnote Admins"]


@for_each(
    ("named", "claimed"),
    [
        ("strasse@example.com", "stra\N{LATIN SMALL LETTER SHARP S}e@example.com"),
        ("staff@example.com", "\N{LATIN SMALL LETTER LONG S}taff@example.com"),
        ("kim@example.com", "\N{KELVIN SIGN}im@example.com"),
        ("group:admins@example.com", "GROUP:admins@example.com"),
        ("group:admins@example.com", "group:admins@example.com"),
        ("ada@example.com", "ada@example.com\n"),
    ],
)
def test_only_the_exact_address_matches(named: str, claimed: str) -> None:
    """Only plain ASCII addresses match, and only their case is ignored."""
    settings = SignInSettings(**WHOLE | {"oidc_admins": named})
    assert settings.role(claimed, []) is None


def test_a_group_that_looks_like_an_address_gives_no_role() -> None:
    """A provider's group names give no role that belongs to an address."""
    assert SignInSettings(**WHOLE | {"oidc_admins": "ada@example.com"}).role("", ["ada@example.com"]) is None


@pytest.mark.parametrize("url", [None, "http://footnote.example"])
def test_sign_in_requires_a_secure_public_url(url: str | None) -> None:
    """The provider redirects browsers over TLS, or on this machine."""
    with pytest.raises(SettingsError, match="FOOTNOTE_PUBLIC_URL"):
        require_public_url(SignInSettings(**WHOLE), url)
    require_public_url(SignInSettings(**WHOLE), "http://127.0.0.1:8765")
    require_public_url(SignInSettings(**WHOLE), "https://footnote.example")


def test_a_reader_sees_the_channels_that_name_them() -> None:
    """By group or address; all without the setting, and none that does not name the person."""
    assert SignInSettings(**WHOLE).channels("ada@example.com", []) is None
    said = "it=group:staff; hr = group:hr, Bob@example.com;"
    settings = SignInSettings(**WHOLE, oidc_channel_readers=said)
    assert settings.channels("", ["staff"]) == {"it"}
    assert settings.channels("bob@example.com", ["staff"]) == {"it", "hr"}
    assert settings.channels("eve@example.com", ["board"]) == frozenset()
    assert settings.granted_groups(["hr", "board"], 8) == ["hr"]
