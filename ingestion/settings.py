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
        description="Seconds a file must look the same before it is taken, or be away before it is gone.",
    )
    rest_seconds: float = Field(
        10.0, ge=1, le=3600, description="The same for a file that looks cut off, or lies on a network share."
    )
    stop_at: str = Field("full", pattern="^(quick|full)$", description="Rung at which reading stops.")
    layout: bool = Field(
        True,
        description="Find headings, tables and columns on each page, behind everything else: 1 s a page.",
    )
    ocr: bool = Field(
        True,
        description="Read pages without usable text, and words in pictures, in the full rung: 5 s a page.",
    )
    ocr_pages: int = Field(
        500, ge=1, le=100_000, description="Most pages and figures of a PDF that OCR reads."
    )
    sentence_vectors: bool = Field(
        True,
        description="Give sentences vectors when a PDF is read: quotes come sooner, reading takes longer.",
    )
    vision_url: Address | None = Field(
        None,
        pattern="^https?://",
        description="OpenAI-compatible endpoint that sees and describes figures; unset: none does.",
    )
    vision_model: str | None = Field(None, description="Its vision model; needed with FOOTNOTE_VISION_URL.")
    vision_key: SecretStr | None = Field(None, description="Its key.")
    read_workers: int = Field(2, ge=1, le=64, description="PDFs read at the same time.")
    lease_seconds: float = Field(
        15.0, ge=1, le=600, description="Seconds after which a dead worker's work is taken over."
    )
    retire_grace_seconds: float = Field(
        120.0,
        ge=1,
        le=86_400,
        description="Seconds a replaced reading is kept; longer than a question may take.",
    )
    delete_grace_seconds: float = Field(
        86_400.0, ge=0, le=31_536_000, description="Seconds a deleted document can still be brought back."
    )
    left_days: float = Field(
        30,
        ge=0,
        le=3650,
        description="Days after which a chat channel is erased that is gone, or that the bot is no more in.",
    )
    sweep_grace_seconds: float = Field(
        3600.0,
        ge=0,
        le=31_536_000,
        description="Seconds a stored file that no document wants is left alone.",
    )
    ask_before_deleting_share: float = Field(
        0.5,
        gt=0,
        le=1,
        description="Share of a channel's documents that may vanish at once before an admin is asked.",
    )
    chunk_tokens: int = Field(400, ge=50, le=2000, description="Most tokens of a chunk (cl100k_base).")

    web_contact: str | None = Field(
        None,
        min_length=3,
        max_length=200,
        pattern="^[!-~]+$",
        description="Address of mail or of a page that web servers are told whenever an approved page is "
        "fetched; unset: FOOTNOTE_PUBLIC_URL.",
    )
    web_page_mb: float = Field(2, gt=0, le=20, description="Largest web page that is fetched, in MB.")
    web_page_seconds: float = Field(10, gt=0, le=60, description="Seconds a web page may take to come.")
    web_loopback: bool = Field(
        False,
        description="Fetch approved pages from this machine, too, on any port: for test servers, and refused "
        "where `serve` listens to others.",
    )

    @property
    def reads_pictures(self) -> bool:
        """True if pages without text are read by OCR."""
        return self.ocr and self.stop_at == "full"
