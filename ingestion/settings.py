"""Settings of ingestion: folders, reading and publishing."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field, SecretStr

from storage.settings import Address, FootnoteSettings

# How long a scan trusts its cached SQL state, which another process may have repaired.
REMEMBERED_SECONDS = 900.0


class IngestionSettings(FootnoteSettings):
    """Settings of folder watching and reading."""

    inbox: Path | None = Field(
        None, description="Watched folder; each folder in it is a channel. Unset: inbox/ in the home."
    )
    scan_seconds: float = Field(1.0, ge=0.2, le=3600, description="Seconds between two scans of a folder.")
    share_scan_seconds: float = Field(
        15.0, ge=0.2, le=86_400, description="The same for a folder on a network share or behind a URL."
    )
    settle_seconds: float = Field(
        1.0,
        ge=1,
        le=600,
        description="Seconds until an unchanged file is read, or a missing one counts as deleted.",
    )
    rest_seconds: float = Field(
        10.0, ge=1, le=3600, description="The same for a file that looks truncated, or is on a network share."
    )
    stop_at: str = Field("full", pattern="^(quick|full)$", description="Rung at which reading stops.")
    layout: bool = Field(
        True,
        description="Layout analysis (headings, tables, columns) at low priority: 1 s per page.",
    )
    ocr: bool = Field(
        True,
        description="OCR for pages without usable text, and for text in figures: 5 s per page.",
    )
    ocr_pages: int = Field(500, ge=1, le=100_000, description="Maximum pages and figures per PDF for OCR.")
    sentence_vectors: bool = Field(
        True,
        description="Embed sentences at ingestion: faster quotes, slower reading.",
    )
    vision_url: Address | None = Field(
        None,
        pattern="^https?://",
        description="OpenAI-compatible endpoint of a vision model that describes figures; unset: off.",
    )
    vision_model: str | None = Field(None, description="Its vision model; needed with FOOTNOTE_VISION_URL.")
    vision_key: SecretStr | None = Field(None, description="Its key.")
    metadata_model: str = Field(
        "off",
        pattern="^(off|missing)$",
        description="missing: the model that writes answers reads the metadata of a procedure that patterns "
        "miss; a value that its first pages do not print is dropped.",
    )
    read_workers: int = Field(2, ge=1, le=64, description="PDFs read at the same time.")
    lease_seconds: float = Field(
        15.0,
        ge=1,
        le=600,
        description="Lease in seconds; after it, other workers take over the work of a dead one.",
    )
    retire_grace_seconds: float = Field(
        120.0,
        ge=1,
        le=86_400,
        description="Grace seconds before a replaced reading is removed; longer than any question takes.",
    )
    delete_grace_seconds: float = Field(
        86_400.0, ge=0, le=31_536_000, description="Seconds a deleted document can still be brought back."
    )
    left_days: float = Field(
        30,
        ge=0,
        le=3650,
        description="Days after which a chat channel is erased that was deleted, or that the bot has left.",
    )
    sweep_grace_seconds: float = Field(
        3600.0,
        ge=0,
        le=31_536_000,
        description="Grace seconds before an unreferenced stored file is removed.",
    )
    ask_before_deleting_share: float = Field(
        0.5,
        gt=0,
        le=1,
        description="Share of a channel's documents that may be deleted at once without approval.",
    )
    chunk_tokens: int = Field(400, ge=50, le=2000, description="Maximum tokens per chunk (cl100k_base).")

    web_contact: str | None = Field(
        None,
        min_length=3,
        max_length=200,
        pattern="^[!-~]+$",
        description="Contact (e-mail address or URL) in the User-Agent header when an approved page is "
        "fetched; unset: FOOTNOTE_PUBLIC_URL.",
    )
    web_page_mb: float = Field(2, gt=0, le=20, description="Maximum size of a web page, in MB.")
    web_page_seconds: float = Field(
        10, gt=0, le=60, description="Timeout for fetching a web page, in seconds."
    )
    web_loopback: bool = Field(
        False,
        description="Fetch approved pages from this machine, too, on any port: for test servers, and refused "
        "where `serve` listens to others.",
    )

    @property
    def reads_pictures(self) -> bool:
        """True if pages without text are read by OCR."""
        return self.ocr and self.stop_at == "full"
