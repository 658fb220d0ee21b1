"""Settings of the bot: answering, links, web server and chat platforms.

``load_settings`` loads the settings of all packages.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, ValidationInfo, field_validator

from bot.answer_settings import AnswerSettings
from bot.loopback import is_loopback_host, is_loopback_url
from bot.sign_in_settings import SignInSettings, require_public_url
from ingestion.settings import IngestionSettings
from ingestion.sources.shares.settings import ShareSettings
from storage.errors import SettingsError
from storage.settings import (
    OPENAI,
    Address,
    InvalidSettings,
    StorageSettings,
    load_valid,
    unknown_settings,
)


def revealed(secret: SecretStr | None) -> str | None:
    """Return a secret's text, None if unset."""
    return secret.get_secret_value() if secret else None


class BotSettings(AnswerSettings):
    """Answering, links, web server and chat platforms."""

    role: str = Field(
        "all",
        pattern="^(all|bot|worker)$",
        description="What `serve` does: all; only answer (bot); only watch folders and read PDFs (worker).",
    )
    host: str = Field("127.0.0.1", description="Address `serve` listens on.")
    port: int = Field(8765, ge=1, le=65535, description="Port `serve` listens on.")
    public_url: str | None = Field(
        None, description="Base of every link, as people's browsers reach it; unset: where `serve` listens."
    )
    metrics_listen: str | None = Field(
        None,
        pattern=r"^(\[[0-9a-fA-F:.]+\]|[\w.-]+):\d{1,5}$",
        description="Separate address of /metrics, as in 10.0.0.5:9464; unset: on the console's port, for "
        "this machine only.",
    )
    connections: int = Field(
        512,
        ge=16,
        le=100_000,
        description="Maximum open HTTP connections, at most half of the process's file descriptors. One more "
        "closes the connection that has waited longest without a complete request.",
    )
    connections_per_address: int = Field(
        256,
        ge=8,
        le=100_000,
        description="Maximum open HTTP connections per client address, which may be a proxy.",
    )
    link_days: float = Field(7, gt=0, le=365, description="Days until a link expires.")
    link_keys: Path | None = Field(
        None,
        description="File with the keys that sign links, created by `footnote links rotate --file` and "
        "mounted on every machine; unset: the keys are stored in SQL.",
    )
    token_keys: Path | None = Field(
        None,
        description="File with the keys that encrypt Slack's tokens, the same on every machine; unset: "
        "token_keys.json in the home.",
    )
    button_opens: str = Field(
        "viewer",
        pattern="^(viewer|pdf)$",
        description="What a source button opens: our viewer, or the PDF itself.",
    )
    console: bool | None = Field(
        None,
        description="Serve the local console; unset: only while links point at this machine.",
    )
    page_images_mb: int = Field(
        512, ge=1, le=1_048_576, description="Size limit of the cache of rendered pages, in MB."
    )
    source_url: Address | None = Field(
        None,
        pattern="^https?://",
        description="URL of this program's source code (AGPL); unset: the service serves its own source.",
    )
    sources_shown: int = Field(5, ge=1, le=10, description="Cited pages that get their own button.")
    questions_at_once: int = Field(4, ge=1, le=64, description="Questions answered at the same time.")
    person_questions: int = Field(
        10,
        ge=0,
        le=1000,
        description="Rate limit: questions per person and minute. Further ones are queued behind others, or "
        "refused by the console under the public URL; 0 = unlimited.",
    )
    channel_questions: int = Field(
        60,
        ge=0,
        le=10_000,
        description="Rate limit per channel and minute; Slack lets an app post once a second in a channel.",
    )
    workspace_questions: int = Field(
        300,
        ge=0,
        le=100_000,
        description="Rate limit per minute and Slack workspace (or organisation that installed the app) or "
        "Teams tenant.",
    )

    receipts: str = Field(
        "channel",
        pattern="^(channel|admin|off)$",
        description="Where new and unreadable PDFs are reported: channel, admin (the admin channel), off.",
    )
    gap_digest: str = Field(
        "off",
        pattern="^(channel|admin|off)$",
        description="Where a channel's unanswered questions of the last seven days are posted on Monday "
        "mornings: channel, admin (the admin channel), off.",
    )
    admin_summary: bool = Field(
        False,
        description="When a month is over, post its usage by channel in FOOTNOTE_ADMIN_CHANNEL.",
    )
    thread_follow_ups: bool = Field(
        True,
        description="In Slack, answer replies without a mention in threads that Footnote has answered in, "
        "except those that mention someone else.",
    )
    ask_person: bool = Field(
        True,
        description="Offer Ask a person below a thumb down, a plain no and on request: the folder's owner in "
        "folders.toml is told, else whoever uploaded the channel's files, else an admin who is a member.",
    )
    direct_chats: str = Field(
        "channels",
        pattern="^(library|channels)$",
        description="What direct chats search: channels (in Slack the channels that the person is a member "
        "of, as checked with Slack at each question, and the library named in folders.toml), library (the "
        "library alone). Teams searches the library.",
    )
    uploads: str = Field(
        "off",
        pattern=r"^\s*(off|((all|library|sl_[A-Z0-9]{2,24}_[A-Z0-9]{2,24}|[a-z]{2,16}_[a-z2-7]{52})"
        r"([\s,]+|$))+)\s*$",
        description="Channels in which PDFs posted in the chat are added as documents: off, all, or tenant "
        "names separated by spaces (`footnote channels` lists them). With library among them, PDFs sent in a "
        "direct chat are added to the library that all direct chats search.",
    )
    upload_files: int = Field(
        50,
        ge=1,
        le=10_000,
        description="Maximum uploaded files per channel; a workspace or tenant may have 20 times as many.",
    )
    upload_mb: int = Field(
        500,
        ge=1,
        le=1_048_576,
        description="Maximum size of a channel's uploads, in MB; a workspace or tenant may have 20 times as "
        "much.",
    )
    admins: str = Field(
        "",
        pattern=r"^(\s*[a-z]{2,16}:[\w-]+:[\w-]+([\s,]+|$))*$",
        description="People who may use admin commands in chats, separated by spaces: slack:<team>:<user> or "
        "teams:<tenant>:<object id>. Users of the console or command line on this machine always may.",
    )
    admin_channel: str | None = Field(
        None,
        pattern="^(sl_[A-Z0-9]{2,24}_[A-Z0-9]{2,24}|[a-z]{2,16}_[a-z2-7]{52})$",
        description="Tenant name of the chat channel that gets problem reports: of folders, of web "
        "pages, and of parts that have failed for a minute.",
    )

    slack_bot_token: SecretStr | None = Field(
        None, validation_alias="SLACK_BOT_TOKEN", description="Slack bot token (xoxb-...)."
    )
    slack_app_token: SecretStr | None = Field(
        None, validation_alias="SLACK_APP_TOKEN", description="Slack app token (xapp-...): Socket Mode."
    )
    slack_client_id: str | None = Field(
        None,
        validation_alias="SLACK_CLIENT_ID",
        description="Client id of a Slack app that many workspaces install at /slack/install, instead of "
        "SLACK_BOT_TOKEN; requires SLACK_CLIENT_SECRET, SLACK_SIGNING_SECRET and FOOTNOTE_PUBLIC_URL.",
    )
    slack_client_secret: SecretStr | None = Field(
        None, validation_alias="SLACK_CLIENT_SECRET", description="Client secret of that Slack app."
    )
    slack_signing_secret: SecretStr | None = Field(
        None, validation_alias="SLACK_SIGNING_SECRET", description="Slack signing secret: events over HTTP."
    )
    slack_api_url: Address = Field(
        "https://slack.com/api/", validation_alias="SLACK_API_URL", description="Slack's Web API."
    )

    teams_app_id: str | None = Field(
        None, validation_alias="MicrosoftAppId", description="Teams bot's app id."
    )
    teams_app_password: SecretStr | None = Field(
        None, validation_alias="MicrosoftAppPassword", description="Teams bot's client secret."
    )
    teams_app_type: str = Field(
        "SingleTenant",
        pattern="^(SingleTenant|MultiTenant)$",
        validation_alias="MicrosoftAppType",
        description="SingleTenant or MultiTenant.",
    )
    teams_tenant_id: str | None = Field(
        None, validation_alias="MicrosoftAppTenantId", description="Entra tenant of a single-tenant bot."
    )
    teams_development: bool = Field(
        False,
        description="Accept Teams messages without tokens, from loopback only: for the Agents Playground.",
    )

    @property
    def serves_chats(self) -> bool:
        """True if this process answers chats and notifies them of files."""
        return self.role != "worker"

    @property
    def runs_ingestion(self) -> bool:
        """True if this process watches folders and reads PDFs."""
        return self.role != "bot"

    @property
    def has_slack_oauth(self) -> bool:
        """True if Slack OAuth is configured, even incompletely."""
        return self.slack_client_id is not None or self.slack_client_secret is not None

    def serves_console(self, public_url: str) -> bool:
        """True if the console is served.

        By default only while links point at this machine: otherwise there may be a proxy in front.
        """
        return is_loopback_url(public_url) if self.console is None else self.console

    @field_validator("slack_bot_token", "slack_app_token")
    @classmethod
    def _refuse_swapped_tokens(cls, value: SecretStr | None, info: ValidationInfo) -> SecretStr | None:
        wanted, other = ("xapp-", "xoxb-") if info.field_name == "slack_app_token" else ("xoxb-", "xapp-")
        if value and value.get_secret_value().startswith(other):
            raise ValueError(
                f"holds a token that begins with {other}, but needs the one that begins with {wanted}: "
                "swap SLACK_BOT_TOKEN and SLACK_APP_TOKEN"
            )
        return value

    @field_validator("public_url")
    @classmethod
    def _validate_public_url(cls, value: str | None) -> str | None:
        """Reject a URL that cannot be the base of links; the message omits it, as it may hold a password."""
        try:
            parts = urlsplit(value or "https://unset")
            is_whole = parts.scheme in ("http", "https") and parts.hostname and (parts.port or 1)
        except ValueError:
            is_whole = False
        if not is_whole or parts.username is not None or parts.query or parts.fragment:
            raise ValueError(
                "must be the complete URL that people's browsers open, with http:// or https:// and a host, "
                "as in https://footnote.example.com"
            )
        return value


# All settings classes.
SETTINGS_CLASSES = (StorageSettings, BotSettings, SignInSettings, IngestionSettings, ShareSettings)


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of all packages."""

    storage: StorageSettings
    bot: BotSettings
    ingestion: IngestionSettings
    # None: console sign-in is off.
    sign_in: SignInSettings | None = None

    @property
    def home(self) -> Path:
        """Data directory of the program (FOOTNOTE_HOME)."""
        return self.storage.home_path

    @property
    def model_hosts(self) -> list[str]:
        """Hosts of models, embedders and rerankers that receive questions, passages or figures, each once."""
        bot, stored = self.bot, self.storage
        models = bot.openai_base_url or OPENAI
        urls = [
            models if bot.has_model else None,
            bot.second_model_url,
            bot.rerank_url if bot.reranker == "endpoint" else None,
            (stored.embed_base_url or OPENAI) if stored.embed_model else None,
            self.ingestion.vision_url,
        ]
        return list(dict.fromkeys(host for url in urls if url and (host := urlsplit(url).hostname)))

    @property
    def inbox(self) -> Path:
        """Watched folder; each folder in it is a channel."""
        return (self.ingestion.inbox or self.home / "inbox").expanduser().absolute()


def load_settings(*, host: str | None = None, port: int | None = None, inbox: Path | None = None) -> Settings:
    """Load and validate all settings; command-line arguments take precedence.

    Raises:
        InvalidSettings: settings are missing, unknown or out of range; every one is named.
        SettingsError: ``footnote.toml`` is not TOML.
    """
    settings, faults = examine_settings(host=host, port=port, inbox=inbox)
    if settings is None or faults:
        raise InvalidSettings(faults)
    return settings


def examine_settings(
    *, host: str | None = None, port: int | None = None, inbox: Path | None = None
) -> tuple[Settings | None, list[str]]:
    """Return all settings, rejected ones at their default, and why they were rejected.

    There are none if the storage's are rejected, since nothing may stand in for a home's own, or an address.

    Raises:
        SettingsError: ``footnote.toml`` is not TOML.
    """
    unknown = unknown_settings(SETTINGS_CLASSES)
    storage, storage_faults = load_valid(StorageSettings)
    bot, bot_faults = load_valid(BotSettings, host=host, port=port)
    ingestion, ingestion_faults = load_valid(IngestionSettings, inbox=inbox)
    sign_in, sign_in_faults = load_valid(SignInSettings)
    faults = [*unknown, *storage_faults, *bot_faults, *ingestion_faults, *sign_in_faults]
    if storage is None or storage_faults or bot is None or ingestion is None:
        return None, faults
    # A link needs its citation, so citations are kept at least as long as links live.
    storage = storage.model_copy(update={"citation_days": max(storage.citation_days, bot.link_days)})
    if ingestion.web_loopback and not is_loopback_host(bot.host):
        faults.append("FOOTNOTE_WEB_LOOPBACK is allowed only while FOOTNOTE_HOST is a loopback address")
    if sign_in is None or not sign_in.is_on:
        return Settings(storage, bot, ingestion), faults
    try:
        require_public_url(sign_in, bot.public_url)
    except SettingsError as error:
        faults.append(str(error))
    return Settings(storage, bot, ingestion, sign_in), faults
