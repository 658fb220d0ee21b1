"""Settings: each has a description and bounds and is listed; sources have an order; unknown names fail."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from harness.tables import for_each
from pydantic import SecretStr
from pydantic.fields import FieldInfo
from sources import ROOT

from bot.cli.setup.printed_files import render_settings
from bot.settings import BotSettings, examine_settings, load_settings
from bot.sign_in_settings import SignInSettings
from ingestion.settings import IngestionSettings
from ingestion.sources.shares.settings import ShareSettings
from storage.errors import SettingsError
from storage.settings import (
    FootnoteSettings,
    StorageSettings,
    load,
    load_valid,
    misspelt_variables,
    reference_error,
    unknown_settings,
)

ROOMS: tuple[type[FootnoteSettings], ...] = (StorageSettings, IngestionSettings, BotSettings, SignInSettings)
SETTINGS = {
    variable: room.model_fields[name] for room in ROOMS for variable, name in room.variables().items()
}
SECRETS = {
    variable: field
    for variable, field in SETTINGS.items()
    if variable.lower().endswith(("_key", "_token", "_secret", "password"))
}


@pytest.fixture(autouse=True)
def empty_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Use an empty working folder without ``.env`` or home, and an environment without our variables."""
    monkeypatch.chdir(tmp_path)
    for room in ROOMS:
        for variable in room.variables():
            monkeypatch.delenv(variable, raising=False)
    return tmp_path


@for_each("variable, field", SETTINGS.items())
def test_each_setting_has_a_description(variable: str, field: FieldInfo) -> None:
    """Shows that every line of deploy/env.example has a description."""
    assert field.description
    assert field.description.endswith(".")


@for_each("variable, field", [one for one in SETTINGS.items() if one[1].annotation in (int, float)])
def test_each_number_has_a_minimum_and_a_maximum(variable: str, field: FieldInfo) -> None:
    """Shows that no number can be set to an absurd value."""
    rules = {sign for rule in field.metadata for sign in ("ge", "gt", "le", "lt") if hasattr(rule, sign)}
    assert rules & {"ge", "gt"}
    assert rules & {"le", "lt"}


@for_each("variable, field", SECRETS.items())
def test_no_secret_is_printed(variable: str, field: FieldInfo) -> None:
    """Shows that logged settings contain no secret."""
    assert field.annotation == SecretStr | None


def test_the_example_lists_every_setting() -> None:
    """Shows that deploy/env.example is up to date."""
    written = (ROOT / "deploy" / "env.example").read_text()
    assert written == render_settings(), "make format writes it again"


def test_environment_overrides_dotenv_which_overrides_the_home(
    empty_place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shows the precedence of the three sources."""
    home = empty_place / ".footnote"
    home.mkdir()
    (home / "footnote.toml").write_text(
        "FOOTNOTE_PORT = 1001\nFOOTNOTE_CANDIDATES = 31\nOPENAI_MODEL = 'toml'\n"
    )
    (empty_place / ".env").write_text("FOOTNOTE_PORT=1002\nFOOTNOTE_CANDIDATES=32\n")
    monkeypatch.setenv("FOOTNOTE_PORT", "1003")
    settings = load(BotSettings)
    assert (settings.port, settings.candidates, settings.openai_model) == (1003, 32, "toml")


def test_a_command_line_option_overrides_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows that ``serve --port`` overrides FOOTNOTE_PORT, and that a missing option changes nothing."""
    monkeypatch.setenv("FOOTNOTE_PORT", "1003")
    assert load(BotSettings, port=1004).port == 1004
    assert load(BotSettings, port=None).port == 1003


def test_a_mistyped_variable_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows that a typo is reported with the setting that was meant, if one is similar."""
    monkeypatch.setenv("FOOTNOTE_PROT", "1")
    monkeypatch.setenv("FOOTNOTE_ELEPHANT", "1")
    unlike, alike = unknown_settings(ROOMS)
    assert alike == "unknown setting FOOTNOTE_PROT; did you mean FOOTNOTE_PORT?"
    assert unlike == "unknown setting FOOTNOTE_ELEPHANT; `footnote settings` lists them all"


def test_a_variable_like_one_of_ours_is_only_suspected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows that another program's variable refuses nothing, and that upper case makes no difference."""
    for name in ("SLACK_BOT_TOKN", "AWS_ACCESS_KEY", "OPENAI_ORG_ID", "MICROSOFTAPPID"):
        monkeypatch.setenv(name, "x")
    assert unknown_settings(ROOMS) == []
    assert misspelt_variables(ROOMS) == ["SLACK_BOT_TOKN is not a setting; did you mean SLACK_BOT_TOKEN?"]


def test_a_mistyped_line_of_dotenv_is_refused_by_name(empty_place: Path) -> None:
    """Shows the same for ``.env``, which may also contain variables of other programs."""
    (empty_place / ".env").write_text("FOOTNOTE_LINK_DAY=1\nSOMEBODY_ELSES=1\n")
    assert unknown_settings(ROOMS) == ["unknown setting FOOTNOTE_LINK_DAY; did you mean FOOTNOTE_LINK_DAYS?"]


def test_a_mistyped_key_of_the_home_is_refused_by_name(empty_place: Path) -> None:
    """Shows the same for ``footnote.toml``, which contains only our settings."""
    (empty_place / ".footnote").mkdir()
    (empty_place / ".footnote" / "footnote.toml").write_text("WEAVIATE_ULR = 'embedded'\n")
    assert unknown_settings(ROOMS) == ["unknown setting WEAVIATE_ULR; did you mean WEAVIATE_URL?"]


@pytest.mark.parametrize("variable", ["FOOTNOTE_MEMORY_DAYS", "FOOTNOTE_RECORD_DAYS"])
def test_conversation_data_expires_with_its_messages(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    """Shows that turns and records expire no later than the messages by which an erasure finds them."""
    monkeypatch.setenv(variable, "31")
    with pytest.raises(
        SettingsError, match=rf"{variable} \(31\) is longer than FOOTNOTE_MESSAGE_DAYS \(30\)"
    ):
        load(StorageSettings)
    monkeypatch.setenv("FOOTNOTE_MESSAGE_DAYS", "31")
    assert load(StorageSettings).message_days == 31


def test_default_settings_are_accepted() -> None:
    """Shows that an empty folder starts."""
    assert unknown_settings(ROOMS) == []
    assert [load(room) for room in ROOMS]


@pytest.mark.parametrize(
    ("variable", "written", "said"),
    [
        ("FOOTNOTE_CANDIDATES", "3", "must be a whole number from 20 to 200"),
        ("FOOTNOTE_CANDIDATES", "many", "must be a whole number from 20 to 200"),
        ("FOOTNOTE_WEAVIATE_REPLICAS", "0", "must be a whole number from 1 to 99"),
        ("FOOTNOTE_LINK_DAYS", "-1", "must be a number above 0 to 365"),
        ("FOOTNOTE_CONSOLE", "maybe", "must be true or false"),
        ("FOOTNOTE_ROLE", "boss", "must be one of all, bot, worker"),
        (
            "FOOTNOTE_METRICS_LISTEN",
            "here",
            "is malformed. Separate address of /metrics, as in 10.0.0.5:9464",
        ),
        ("FOOTNOTE_OIDC_CLIENT_ID", 600 * "x", "must have at most 500 characters"),
        ("FOOTNOTE_SHARE_ACCOUNTS", "{x", "must be JSON"),
    ],
)
def test_a_rejected_value_is_explained_in_plain_words(
    monkeypatch: pytest.MonkeyPatch, variable: str, written: str, said: str
) -> None:
    """Shows that the error names the variable and what it may be, and repeats no value."""
    monkeypatch.setenv(variable, written)
    room = next(one for one in (*ROOMS, ShareSettings) if variable in one.variables())
    settings, faults = load_valid(room)
    assert [fault.startswith(f"{variable}: {said}") for fault in faults] == [True]
    assert (settings is None) is (variable == "FOOTNOTE_SHARE_ACCOUNTS")
    assert len(written) == 1 or f" {written}" not in faults[0]


def test_every_rejected_setting_is_named_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows that one mistake hides no other, and that rejected settings keep their default for a report."""
    for name in ("FOOTNOTE_PORT", "FOOTNOTE_PROT", "FOOTNOTE_CANDIDATES", "FOOTNOTE_READ_WORKERS"):
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv("OPENAI_API_KEY", "sk ä")
    with pytest.raises(SettingsError) as refused:
        load_settings()
    named = (
        "FOOTNOTE_PROT;",
        "FOOTNOTE_PORT:",
        "FOOTNOTE_CANDIDATES:",
        "FOOTNOTE_READ_WORKERS:",
        "OPENAI_API_KEY ",
    )
    assert [name for name in named if name not in str(refused.value)] == []
    monkeypatch.delenv("OPENAI_API_KEY")
    settings, faults = examine_settings()
    assert settings is not None
    assert (settings.bot.port, settings.bot.candidates, len(faults)) == (8765, 24, 4)


@pytest.mark.parametrize("variable", ["WEAVIATE_URL", "OPENAI_BASE_URL", "SLACK_API_URL"])
def test_no_default_stands_in_for_a_rejected_address(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    """Shows that a report neither checks another home nor sends a key to the default host."""
    monkeypatch.setenv(variable, "https://someone@host")
    settings, faults = examine_settings()
    assert (settings, len(faults)) == (None, 1)


def test_a_wrong_sign_in_counts_as_off_in_a_report(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows that the rest can be checked, although no console would start."""
    monkeypatch.setenv("FOOTNOTE_OIDC_ISSUER", "login.example.com")
    settings, faults = examine_settings()
    assert settings is not None
    assert (settings.sign_in, len(faults)) == (None, 1)


def test_swapped_slack_tokens_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows that both prefixes are compared, and that no token is repeated."""
    monkeypatch.setenv("SLACK_BOT_TOKEN", "xapp-CANARY")
    monkeypatch.setenv("SLACK_APP_TOKEN", "xoxb-CANARY")
    with pytest.raises(SettingsError, match="swap SLACK_BOT_TOKEN and SLACK_APP_TOKEN") as refused:
        load(BotSettings)
    assert "CANARY" not in str(refused.value)
    monkeypatch.setenv("SLACK_BOT_TOKEN", "xoxb-CANARY")
    monkeypatch.setenv("SLACK_APP_TOKEN", "xapp-CANARY")
    assert load(BotSettings).slack_app_token


@pytest.mark.parametrize(
    "written",
    [
        "localhost:8080",
        "footnote.example.com",
        "//footnote.example.com",
        "https://",
        "https:footnote",
        "ftp://footnote.example.com",
        "https://footnote.example.com:port",
        "https://admin:marmalade@footnote.example.com",
        "https://footnote.example.com/?a=b",
        "https://[footnote",
    ],
)
def test_an_incomplete_public_url_is_refused_with_an_example(
    written: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shows that an incomplete URL is refused, and that no password is repeated."""
    monkeypatch.setenv("FOOTNOTE_PUBLIC_URL", written)
    with pytest.raises(
        SettingsError, match=r"FOOTNOTE_PUBLIC_URL: .*https://footnote\.example\.com"
    ) as caught:
        load(BotSettings)
    assert "marmalade" not in str(caught.value)


@pytest.mark.parametrize(
    "written", ["http://localhost:8080", "https://docs.example.com/footnote/", "http://[::1]:8765"]
)
def test_a_complete_public_url_is_accepted(written: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows that a port, a path and an IP address are accepted."""
    monkeypatch.setenv("FOOTNOTE_PUBLIC_URL", written)
    assert load(BotSettings).public_url == written


def test_a_malformed_home_file_is_reported_by_its_path(empty_place: Path) -> None:
    """Shows that a malformed footnote.toml raises SettingsError with its path."""
    (empty_place / ".footnote").mkdir()
    (empty_place / ".footnote" / "footnote.toml").write_text("port: 1")
    with pytest.raises(SettingsError, match=r"footnote\.toml is not valid TOML"):
        load(BotSettings)


SECRETS = [
    variable
    for room in (*ROOMS, ShareSettings)
    for variable, name in room.variables().items()
    if room.model_fields[name].annotation == SecretStr | None
]


@for_each("variable", SECRETS)
def test_no_secret_of_our_own_is_tried_on_a_pdf(variable: str) -> None:
    """Shows that no reference resolves to one, however it is spelled."""
    for spelled in (variable, variable.lower()):
        assert "Footnote's own settings" in (reference_error(f"env:{spelled}") or "")


def test_pdf_passwords_are_given_by_reference_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows a list of references, and that a literal password is refused without being repeated."""
    monkeypatch.setenv("FOOTNOTE_PDF_PASSWORDS", "env:HR_PDF, file:/run/secrets/my pdf,")
    assert load(StorageSettings).password_references == ("env:HR_PDF", "file:/run/secrets/my pdf")
    monkeypatch.setenv("FOOTNOTE_PDF_PASSWORDS", "env:HR_PDF,marmalade")
    with pytest.raises(SettingsError, match=r"FOOTNOTE_PDF_PASSWORDS: .*env:NAME") as caught:
        load(StorageSettings)
    assert "marmalade" not in str(caught.value)


@pytest.mark.parametrize(("link_days", "kept"), [("7", 30), ("90", 90)])
def test_quotes_are_stored_as_long_as_their_links_live(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, link_days: str, kept: float
) -> None:
    """Shows that a link that outlives the retention of quotes still opens its quote."""
    monkeypatch.setenv("FOOTNOTE_HOME", str(tmp_path))
    monkeypatch.setenv("FOOTNOTE_LINK_DAYS", link_days)
    assert load_settings().storage.citation_days == kept


@pytest.mark.parametrize(
    "variable",
    [
        "WEAVIATE_URL",
        "SLACK_API_URL",
        "OPENAI_BASE_URL",
        "FOOTNOTE_SECOND_MODEL_URL",
        "FOOTNOTE_RERANK_URL",
        "FOOTNOTE_EMBED_BASE_URL",
        "AWS_ENDPOINT_URL",
        "FOOTNOTE_SOURCE_URL",
        "FOOTNOTE_VISION_URL",
    ],
)
@pytest.mark.parametrize(
    "written",
    [
        "https://someone:CANARY@host.example/v1",
        "https://CANARY@host.example/v1",
        "https://some%40one:CANARY@x@host.example/v1",
        "https://someone:CANARY/x@host.example/v1",
        "https://someone:CANARY?x@host.example/v1",
        "https://someone:12/CANARY@host.example/v1",
        "https://some/one:CANARY@host.example/v1",
    ],
)
def test_a_url_contains_no_password(variable: str, written: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """URLs are logged and printed at startup: a key belongs in the setting for it."""
    room = next(one for one in (*ROOMS, ShareSettings) if variable in one.variables())
    monkeypatch.setenv(variable, written)
    with pytest.raises(SettingsError, match=f"{variable}: .*put the key into its own setting") as refused:
        load(room)
    assert "CANARY" not in str(refused.value)
    for plain in ("https://host.example/v1/%40me", "http://[::1]:9000/%40me", "http://host:9000/%40me"):
        monkeypatch.setenv(variable, plain)
        load(room)


@pytest.mark.parametrize("written", ["someone:CANARY@host:9000", "http:/someone:CANARY@host", "CANARY@host"])
def test_a_host_without_a_scheme_contains_no_password(written: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Covers settings with a server name only, and the endpoint of a share's account."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", written)
    with pytest.raises(
        SettingsError, match=r"AWS_ENDPOINT_URL: .*put the key into its own setting"
    ) as refused:
        load(ShareSettings)
    assert "CANARY" not in str(refused.value)
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    monkeypatch.setenv("FOOTNOTE_SHARE_ACCOUNTS", json.dumps({"bucket": {"endpoint": written}}))
    with pytest.raises(SettingsError, match=r"FOOTNOTE_SHARE_ACCOUNTS: .*put the key") as refused:
        load(ShareSettings)
    assert "CANARY" not in str(refused.value)


@for_each("letter", ["ö", " ", "\n", "\u200b", "“", "\x00"])
@for_each("variable", ["OPENAI_API_KEY", "SLACK_BOT_TOKEN", "MicrosoftAppPassword", "WEAVIATE_API_KEY"])
def test_a_key_with_a_character_invalid_in_headers_is_refused(variable: str, letter: str) -> None:
    """A key with a copied stray character fails at startup by its name, not during a call."""
    room = next(one for one in ROOMS if variable in one.variables())
    with pytest.raises(SettingsError, match=f"{variable} contains an invalid character") as refused:
        load(room, **{room.variables()[variable]: SecretStr(f"CANARY{letter}1")})
    assert "CANARY" not in str(refused.value)


def test_other_passwords_may_contain_any_character(monkeypatch: pytest.MonkeyPatch) -> None:
    """Covers databases and shares: their passwords are not sent in HTTP headers."""
    monkeypatch.setenv("DATABASE_URL", "postgresql://footnote:pässword@host/db")
    monkeypatch.setenv("FOOTNOTE_SMB_PASSWORD", "grüne Bäume")
    monkeypatch.setenv("FOOTNOTE_BLOBS", "s3://büro/alle pdfs")
    assert load(StorageSettings).database_url
    assert load(ShareSettings).smb_password
