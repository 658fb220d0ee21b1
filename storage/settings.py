"""Settings: environment first, then ``.env``, then ``footnote.toml`` in the home.

Each package declares its settings in a subclass of ``FootnoteSettings``. The composition root calls
``unknown_settings`` once with all of them, because no single package can recognise a mistyped variable.

A setting may reference a secret instead of holding it: ``env:NAME`` or ``file:/absolute/path``.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self, TypeVar, get_args

from dotenv import dotenv_values
from pydantic import AfterValidator, Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, SettingsConfigDict
from pydantic_settings.exceptions import SettingsError as MalformedJson
from pydantic_settings.sources import InitSettingsSource, PydanticBaseSettingsSource

from storage.errors import SettingsError

_FORM = re.compile(r"env:[A-Za-z_][A-Za-z0-9_]*|file:/[^\0]+")
# Names of Footnote's own variables, in any case.
_OURS = re.compile(r"FOOTNOTE_|DATABASE_URL$|WEAVIATE_|OPENAI_|AWS_|SLACK_|MicrosoftApp", re.IGNORECASE)

PREFIX = "FOOTNOTE_"
DEFAULT_HOME = Path(".footnote")
# Pydantic's names of bounds, in words.
_SIGNS = {"ge": "from", "gt": "above", "le": "to", "lt": "below"}
# A pattern that only lists words.
_CHOICE = re.compile(r"\^\((\w+(?:\|\w+)+)\)\$")
# Similarity from which an unknown name is taken for a misspelt one.
MISSPELT = 0.8
# Default endpoint of chat and embedding models.
OPENAI = "https://api.openai.com/v1"


def reference_error(reference: str) -> str | None:
    """Return the error of a malformed secret reference, without repeating it; None if it is valid."""
    if not _FORM.fullmatch(reference):
        return (
            "write a reference instead of the password: env:NAME (a variable of the service's environment, "
            "or of .env) or file:/absolute/path"
        )
    kind, _, name = reference.partition(":")
    if kind == "env" and _OURS.match(name):
        return "the variable belongs to Footnote's own settings: keep the PDFs' password in one of its own"
    return None


def _without_credentials(address: str) -> str:
    """Refuse an address with an @, which may follow a user name or a password: addresses are logged.

    The host is not parsed, because clients disagree on a slash in a password. The message repeats nothing.
    """
    if "@" in address:
        raise ValueError(
            "contains credentials (@): put the key into its own setting; write %40 for an @ in a path"
        )
    return address


# An address that may be logged.
Address = Annotated[str, AfterValidator(_without_credentials)]


def resolve_home() -> Path:
    """Return the data directory."""
    home = os.environ.get("FOOTNOTE_HOME") or read_dotenv().get("FOOTNOTE_HOME") or DEFAULT_HOME
    return Path(home).expanduser().absolute()


def read_dotenv() -> dict[str, str]:
    """Return the variables of ``.env`` in the working directory."""
    return {key: value or "" for key, value in dotenv_values(".env").items()}


def read_toml() -> dict[str, Any]:
    """Return ``footnote.toml`` of the home; its keys are variable names.

    Raises:
        SettingsError: the file is not TOML.
    """
    path = resolve_home() / "footnote.toml"
    if not path.exists():
        return {}
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} is not valid TOML: {error}") from error
    return values


class FootnoteSettings(BaseSettings):
    """Base of every package's settings."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_file=".env",
        extra="ignore",
        frozen=True,
        populate_by_name=True,
        env_ignore_empty=True,
    )

    # Secrets that may hold any character, unlike API keys.
    free_text_secrets: ClassVar[frozenset[str]] = frozenset({"blobs", "database_url", "pdf_passwords"})

    @model_validator(mode="after")
    def _refuse_damaged_keys(self) -> Self:
        """Refuse an API key with a character that no HTTP header allows, often from copy and paste."""
        for variable, name in self.variables().items():
            value = getattr(self, name)
            if name in self.free_text_secrets or not isinstance(value, SecretStr):
                continue
            if not re.fullmatch(r"[!-~]+", value.get_secret_value()):
                raise ValueError(f"{variable} contains an invalid character; copy the key again")
        return self

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Order sources by precedence: arguments, environment, .env, footnote.toml."""
        known = cls.variables()
        in_home = {known[key]: value for key, value in read_toml().items() if key in known}
        return init_settings, env_settings, dotenv_settings, InitSettingsSource(settings_cls, in_home)

    @classmethod
    def variables(cls) -> dict[str, str]:
        """Return environment variable -> field name for every setting of this package."""
        return {
            (
                field.validation_alias if isinstance(field.validation_alias, str) else PREFIX + name.upper()
            ): name
            for name, field in cls.model_fields.items()
        }


S = TypeVar("S", bound=FootnoteSettings)


class InvalidSettings(SettingsError):
    """Raised if settings are rejected; ``faults`` has a sentence for each."""

    def __init__(self, faults: Sequence[str], fields: Sequence[str] = ()) -> None:
        super().__init__("; ".join(faults))
        self.faults = faults
        # Fields with a rejected value; the others may still contradict each other.
        self.fields = fields


def load(settings_class: type[S], **overrides: Any) -> S:
    """Read one package's settings.

    Raises:
        InvalidSettings: values are missing or out of bounds; each sentence names the variable.
    """
    return _read(settings_class, {key: value for key, value in overrides.items() if value is not None})


def load_valid(settings_class: type[S], **overrides: Any) -> tuple[S | None, list[str]]:
    """Return one package's settings with rejected values at their default, and why they were rejected.

    There are no settings if the rest is contradictory, or if an address was rejected: keys that are meant for
    it would go to the default one.
    """
    given = {key: value for key, value in overrides.items() if value is not None}
    faults: list[str] = []
    while True:
        try:
            return _read(settings_class, given), faults
        except InvalidSettings as error:
            faults += error.faults
            fields = {name: settings_class.model_fields[name] for name in error.fields}
            defaults = {name: one.get_default(call_default_factory=True) for name, one in fields.items()}
            if not defaults or defaults.keys() <= given.keys() or any(map(_is_address, fields.values())):
                return None, faults
            given |= defaults


def _is_address(field: FieldInfo) -> bool:
    return Address in get_args(field.annotation) or any(
        isinstance(one, AfterValidator) for one in field.metadata
    )


def _read(settings_class: type[S], values: dict[str, Any]) -> S:
    try:
        return settings_class(**values)
    except ValidationError as error:
        faults = error.errors()
        fields = [_field_of(settings_class, fault) for fault in faults if fault["loc"]]
        raise InvalidSettings([_explain(settings_class, fault) for fault in faults], fields) from None
    except MalformedJson as error:
        variables = {field: variable for variable, field in settings_class.variables().items()}
        named = [variables[word] for word in re.findall(r"\w+", str(error)) if word in variables]
        raise InvalidSettings([f"{name}: must be JSON" for name in named]) from None


def _field_of(settings_class: type[FootnoteSettings], fault: ErrorDetails) -> str:
    """Return the field of an error, which names it by its variable or its field."""
    name = str(fault["loc"][0])
    return settings_class.variables().get(name, name)


def _explain(settings_class: type[FootnoteSettings], fault: ErrorDetails) -> str:
    """Return pydantic's error as a sentence; it repeats no value, which may be a misplaced secret."""
    if not fault["loc"]:
        return str(fault["ctx"]["error"])
    name = _field_of(settings_class, fault)
    variable = next(variable for variable, field in settings_class.variables().items() if field == name)
    return f"{variable}: {_expectation(settings_class.model_fields[name], fault)}"


def _expectation(field: FieldInfo, fault: ErrorDetails) -> str:
    kind, context = fault["type"], fault.get("ctx", {})
    if kind == "value_error":
        return str(context["error"])
    if kind.startswith("bool"):
        return "must be true or false"
    types = {field.annotation, *get_args(field.annotation)}
    if types & {int, float}:
        return f"must be {'a whole number' if int in types else 'a number'} {bounds(field)}"
    if choice := _CHOICE.fullmatch(context.get("pattern", "")):
        return f"must be one of {choice[1].replace('|', ', ')}"
    if kind == "string_too_long":
        return f"must have at most {context['max_length']} characters"
    return f"is malformed. {field.description}"


def bounds(field: FieldInfo) -> str:
    """Return the allowed range in words, as in ``from 1 to 64``; '' if there is none."""
    return " ".join(
        f"{word} {getattr(rule, sign)}"
        for rule in field.metadata
        for sign, word in _SIGNS.items()
        if getattr(rule, sign, None) is not None
    )


def unknown_settings(settings_classes: Iterable[type[FootnoteSettings]]) -> list[str]:
    """Return a sentence per ``FOOTNOTE_`` variable, or key of ``footnote.toml``, that no package knows.

    Raises:
        SettingsError: ``footnote.toml`` is not TOML.
    """
    known = _known(settings_classes)
    given = [name for name in (*os.environ, *read_dotenv()) if name.startswith(PREFIX)]
    unknown = sorted({name for name in (*given, *read_toml()) if name not in known})
    return [f"unknown setting {name}; {_suggestion(name, known)}" for name in unknown]


def misspelt_variables(settings_classes: Iterable[type[FootnoteSettings]]) -> list[str]:
    """Return a sentence per variable without ``FOOTNOTE_`` that resembles a setting; it may be another's."""
    known = _known(settings_classes)
    plain = [name for name in known if not name.startswith((PREFIX, "AWS_"))]
    given = {name for name in (*os.environ, *read_dotenv()) if name not in known}
    named = {name.lower() for name in known}
    strange = [name for name in given if not name.startswith(PREFIX) and name.lower() not in named]
    near = {name: get_close_matches(name, plain, 1, MISSPELT) for name in sorted(strange)}
    return [f"{name} is not a setting; did you mean {match[0]}?" for name, match in near.items() if match]


def _known(settings_classes: Iterable[type[FootnoteSettings]]) -> set[str]:
    return {variable for one in settings_classes for variable in one.variables()} | {"FOOTNOTE_HOME"}


def _suggestion(name: str, known: Iterable[str]) -> str:
    match = get_close_matches(name, sorted(known), 1, MISSPELT)
    return f"did you mean {match[0]}?" if match else "`footnote settings` lists them all"


class AwsSettings(FootnoteSettings):
    """AWS account for S3: folders, blobs and backups."""

    aws_access_key_id: str | None = Field(
        None,
        validation_alias="AWS_ACCESS_KEY_ID",
        description="S3: access key; unset: profiles and roles, as AWS's own tools find them.",
    )
    aws_secret_access_key: SecretStr | None = Field(
        None, validation_alias="AWS_SECRET_ACCESS_KEY", description="S3: secret of that key."
    )
    aws_session_token: SecretStr | None = Field(
        None, validation_alias="AWS_SESSION_TOKEN", description="S3: token of temporary credentials."
    )
    aws_endpoint_url: Address | None = Field(
        None, validation_alias="AWS_ENDPOINT_URL", description="S3: server, when it is not Amazon's."
    )


class StorageSettings(FootnoteSettings):
    """Storage locations and engines."""

    home: Path = Field(DEFAULT_HOME, description="Data directory.")
    database_url: SecretStr | None = Field(
        None,
        validation_alias="DATABASE_URL",
        description="postgresql://user:password@host/database or sqlite:////path; unset: a file in the home.",
    )
    weaviate_url: Address | None = Field(
        None,
        validation_alias="WEAVIATE_URL",
        description="Index: unset for the embedded one, 'embedded' for a Weaviate child of our own, or http(s)://host:port.",
    )
    weaviate_api_key: SecretStr | None = Field(
        None, validation_alias="WEAVIATE_API_KEY", description="Key of the Weaviate server at WEAVIATE_URL."
    )
    weaviate_grpc_port: int = Field(
        50051, ge=1, le=65535, description="gRPC port of the Weaviate server at WEAVIATE_URL."
    )
    weaviate_replicas: int | None = Field(
        None,
        ge=1,
        le=99,
        description="Replication factor of a new Weaviate collection: 3 for clusters of three or more "
        "nodes; unset: server default, mostly 1.",
    )
    weaviate_binary: Path | None = Field(
        None,
        description="Server binary for WEAVIATE_URL=embedded; unset: what `make weaviate` built.",
    )
    blobs: SecretStr | None = Field(
        None,
        description="Where PDFs, readings and drawn pages are kept: s3://bucket/prefix, or any address that "
        "fsspec reaches; unset: in the home.",
    )
    blob_cache_mb: int = Field(
        2048,
        ge=64,
        le=16_777_216,
        description="Local cache limit in MB for PDFs, and the same for readings, if FOOTNOTE_BLOBS is set.",
    )
    index_timeout: float = Field(
        10.0, gt=0, le=120, description="Seconds after which a call to the index counts as failed."
    )
    embedder: Path | None = Field(
        None, description="Folder with model.onnx and tokenizer.json; unset: the bundled MiniLM."
    )
    embed_model: str | None = Field(
        None,
        min_length=1,
        description="Embedding model at an OpenAI-compatible endpoint; unset: FOOTNOTE_EMBEDDER.",
    )
    embed_base_url: Address | None = Field(
        None, pattern="^https?://", description="Endpoint of FOOTNOTE_EMBED_MODEL; unset: OpenAI's own."
    )
    embed_api_key: SecretStr | None = Field(
        None,
        description="Its key; unset: OPENAI_API_KEY, if it is OpenAI's own endpoint or OPENAI_BASE_URL.",
    )
    embed_dimensions: int | None = Field(
        None, ge=1, le=16_384, description="Vector dimension; known for OpenAI's own models."
    )
    embed_window: int = Field(512, ge=32, le=65_536, description="Context window in tokens (cl100k_base).")
    embed_batch_items: int = Field(64, ge=1, le=2048, description="Max texts per request.")
    embed_batch_tokens: int = Field(
        32_768, ge=32, le=1_000_000, description="Max tokens (cl100k_base) per request."
    )
    embed_seconds: float = Field(60, gt=0, le=600, description="Timeout per batch in seconds.")
    embed_question_seconds: float = Field(
        10, gt=0, le=120, description="Seconds the embedder may take for one question."
    )
    embed_threads: int = Field(2, ge=1, le=64, description="Threads the embedder may use.")
    max_file_mb: int = Field(200, ge=1, le=4096, description="Largest PDF that is read, in MB.")
    max_pages: int = Field(5000, ge=1, le=100_000, description="Most pages of a PDF that is read.")
    read_memory_mb: int = Field(
        1024, ge=128, le=65536, description="Memory limit of the child that opens a PDF."
    )
    read_seconds: int = Field(
        120, ge=5, le=3600, description="Time limit of the child that reads a PDF, in seconds."
    )
    render_seconds: int = Field(
        20, ge=1, le=600, description="Time limit of the child that draws a page, in seconds."
    )
    confinement: str = Field(
        "preferred",
        pattern="^(preferred|required)$",
        description="Sandboxing of processes that open PDFs and web pages (no network, no files, few system "
        "calls): 'preferred' warns if the kernel supports only part of it, 'required' refuses to start.",
    )
    pdf_passwords: SecretStr | None = Field(
        None,
        description="Passwords for locked PDFs of all folders: env:NAME or file:/path, with commas between.",
    )
    ocr_workers: int = Field(1, ge=1, le=64, description="Pages that OCR reads at the same time.")
    ocr_memory_mb: int = Field(
        1536, ge=1024, le=65536, description="Memory limit of the child that reads a page by OCR."
    )
    ocr_seconds: int = Field(
        120, ge=10, le=3600, description="Time limit of the child that reads a page by OCR, in seconds."
    )

    memory_days: float = Field(
        30,
        gt=0,
        le=3650,
        description="Days a thread's questions and answers are kept, so that follow-ups are understood.",
    )
    record_days: float = Field(
        30,
        ge=0,
        le=3650,
        description="Days the record of a question is kept: what was found, sent to a model, written and "
        "dropped; 0 keeps none.",
    )
    message_days: float = Field(
        30,
        ge=1,
        le=3650,
        description="Retention in days for questions, answers and notices; upper bound for "
        "FOOTNOTE_MEMORY_DAYS and FOOTNOTE_RECORD_DAYS.",
    )
    citation_days: float = Field(
        30,
        ge=1,
        le=3650,
        description="Days a quote that was shown is kept for its link; at least as long as links live.",
    )
    audit_days: float = Field(
        365,
        ge=1,
        le=3650,
        description="Audit log retention in days.",
    )

    web_cache_days: float = Field(
        30, gt=0, le=3650, description="Days after which an approved web page is fetched anew."
    )
    web_retry_minutes: float = Field(
        15, ge=1, le=1440, description="Minutes after which one that could not be fetched is tried again."
    )

    @model_validator(mode="after")
    def _refuse_nameless_words(self) -> Self:
        """Refuse to keep conversation data longer than the messages that name its author."""
        for variable, days in (("MEMORY_DAYS", self.memory_days), ("RECORD_DAYS", self.record_days)):
            if days > self.message_days:
                kept = f"{PREFIX}{variable} ({days:g}) is longer than {PREFIX}MESSAGE_DAYS"
                raise ValueError(
                    f"{kept} ({self.message_days:g}): after that their author is unknown, and "
                    "erasure on request would miss them"
                )
        return self

    @property
    def home_path(self) -> Path:
        """The home as an absolute path."""
        return self.home.expanduser().absolute()

    @property
    def blobs_url(self) -> str | None:
        """Address of the blob store; None: blobs are in the home."""
        return self.blobs.get_secret_value() if self.blobs else None

    @property
    def is_empty_home(self) -> bool:
        """True if the home's own database does not exist yet; always False with a DATABASE_URL."""
        return self.database_url is None and not (self.home_path / "footnote.db").exists()

    @field_validator("pdf_passwords")
    @classmethod
    def _refuse_plain(cls, value: SecretStr | None) -> SecretStr | None:
        for reference in _split(value):
            if fault := reference_error(reference):
                raise ValueError(fault)
        return value

    @property
    def is_confinement_required(self) -> bool:
        """True if untrusted content is opened only under full kernel confinement."""
        return self.confinement == "required"

    @property
    def has_bundled_embedder(self) -> bool:
        """True if no other embedder is configured."""
        return self.embedder is None and self.embed_model is None and self.embed_base_url is None

    @property
    def password_references(self) -> tuple[str, ...]:
        """References of the passwords that apply to all folders."""
        return _split(self.pdf_passwords)


def _split(value: SecretStr | None) -> tuple[str, ...]:
    parts = value.get_secret_value().split(",") if value else ()
    return tuple(part.strip() for part in parts if part.strip())
