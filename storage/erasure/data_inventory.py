"""Data inventory: owner and retention of every SQL table and every entry of a home.

``docs/erasure.md`` prints both lists, and a test compares them with the tables, the home and the page.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

UNTIL_PURGED = "until its document is purged"
ADMINS = "until the admin changes it"
FOREVER = "as long as the home"


class TextOwner(StrEnum):
    """Subject whose erasure removes a text."""

    DOCUMENT = "document"
    CHANNEL = "channel"
    PERSON = "person"


@dataclass(frozen=True, slots=True)
class InventoryEntry:
    """Table, or entry of a home."""

    holds: str
    # Empty if nothing in it belongs to a document, a channel or a person.
    owners: tuple[TextOwner, ...] = ()
    # Environment variable of the setting that limits its age or size.
    setting: str | None = None
    # In words, if no setting says it all.
    retention: str = ""


_D, _C, _P = TextOwner.DOCUMENT, TextOwner.CHANNEL, TextOwner.PERSON

# By name of the table.
TABLES: dict[str, InventoryEntry] = {
    "channel": InventoryEntry(
        "name and address of a channel", (_C,), "FOOTNOTE_LEFT_DAYS", "after the bot left it"
    ),
    "channel_move": InventoryEntry("ids that a channel got since it was first known", (_C,), None, FOREVER),
    "folder": InventoryEntry("where a channel's files lie, what is wrong with it", (_C,), None, FOREVER),
    "document": InventoryEntry(
        "path of a file, why it cannot be read; of a purged one its path", (_D, _C), None, FOREVER
    ),
    "blob": InventoryEntry(
        "checksum and size of a content, no text", (_D, _C), "FOOTNOTE_DELETE_GRACE_SECONDS", UNTIL_PURGED
    ),
    "version": InventoryEntry("corrected metadata of a content", (_D, _C), None, FOREVER),
    "reading": InventoryEntry(
        "title and metadata of a content", (_D, _C), "FOOTNOTE_DELETE_GRACE_SECONDS", UNTIL_PURGED
    ),
    "publication": InventoryEntry(
        "which reading answers, no text", (_D, _C), "FOOTNOTE_DELETE_GRACE_SECONDS", UNTIL_PURGED
    ),
    "inbox": InventoryEntry("a chat's question, who asked it and where", (_C, _P), "FOOTNOTE_MESSAGE_DAYS"),
    "outbox": InventoryEntry(
        "the answer to it, and what names its message", (_D, _C, _P), "FOOTNOTE_MESSAGE_DAYS"
    ),
    "answer_source": InventoryEntry(
        "which versions an answer cites, no text", (_D, _C), "FOOTNOTE_MESSAGE_DAYS"
    ),
    "turn": InventoryEntry(
        "question and answer as their thread remembers them", (_D, _C, _P), "FOOTNOTE_MEMORY_DAYS"
    ),
    "question_record": InventoryEntry(
        "how a question was answered: words, passages, prompts", (_D, _C, _P), "FOOTNOTE_RECORD_DAYS"
    ),
    "feedback": InventoryEntry(
        "what a person said of an answer, under a hash", (_D, _C, _P), "FOOTNOTE_RECORD_DAYS"
    ),
    "citation": InventoryEntry("a quote that was shown, for its link", (_D, _C), "FOOTNOTE_CITATION_DAYS"),
    "source_opening": InventoryEntry(
        "how often a source was opened per day, no text, no personal data", (_D, _C), "FOOTNOTE_CITATION_DAYS"
    ),
    "subscription": InventoryEntry(
        "the quote of a page that a thread follows", (_D, _C, _P), None, "until the thread ends it"
    ),
    "notice": InventoryEntry(
        "an event of a file or folder, suggested questions", (_D, _C), "FOOTNOTE_MESSAGE_DAYS"
    ),
    "web_page": InventoryEntry(
        "an approved address and when it is fetched again", (), None, "until web_sources.toml drops it"
    ),
    "cached_vector": InventoryEntry(
        "vector and hash of a text, not the text", (), None, "until it is unused for 30 days"
    ),
    "upload": InventoryEntry(
        "name of a file that was uploaded in a chat, and who did it",
        (_D, _C, _P),
        None,
        "until it is removed",
    ),
    "slack_installation": InventoryEntry(
        "encrypted tokens and the name of a Slack workspace",
        (),
        None,
        "until the app is removed there",
    ),
    "api_token": InventoryEntry(
        "name and hash of a token for programs, and the channel that it opens",
        (_C,),
        None,
        "until it is revoked",
    ),
    "link_key": InventoryEntry("the keys that sign links", (), None, "until they are rotated twice"),
    "audit": InventoryEntry(
        "who did what: ids, the e-mail address of people who sign in, no message text",
        (),
        "FOOTNOTE_AUDIT_DAYS",
    ),
    "fact": InventoryEntry(
        "settings in force, figures of a channel's answers, names of files that are no documents, outages, "
        "ids of sessions that were signed out",
        (_D, _C),
        None,
        FOREVER,
    ),
    "alembic_version": InventoryEntry("revision of the tables, no text", (), None, FOREVER),
}

# By name of the entry; a pattern if there are several.
HOME_ENTRIES: dict[str, InventoryEntry] = {
    "footnote.db*": InventoryEntry(
        "the tables above, where SQL is SQLite", (_D, _C, _P), None, "as each table"
    ),
    "blobs": InventoryEntry(
        "the bytes of PDFs and web pages, or copies of some",
        (_D, _C),
        "FOOTNOTE_DELETE_GRACE_SECONDS",
        UNTIL_PURGED,
    ),
    "readings": InventoryEntry(
        "pages, chunks, figures and vectors, or copies",
        (_D, _C),
        "FOOTNOTE_DELETE_GRACE_SECONDS",
        UNTIL_PURGED,
    ),
    "images": InventoryEntry(
        "rendered pages and figures",
        (_D, _C),
        "FOOTNOTE_PAGE_IMAGES_MB",
        "at most; none of a purged document",
    ),
    "index": InventoryEntry(
        "the embedded index", (_D, _C), "FOOTNOTE_RETIRE_GRACE_SECONDS", "after it was replaced or deleted"
    ),
    "weaviate": InventoryEntry(
        "the index of our own Weaviate",
        (_D, _C),
        "FOOTNOTE_RETIRE_GRACE_SECONDS",
        "then its next merge of segments; erased at once",
    ),
    "inbox": InventoryEntry(
        "the watched folders: only what people upload is written there", (), None, ADMINS
    ),
    "folders.toml": InventoryEntry("where channels' folders lie", (), None, ADMINS),
    "glossary.toml": InventoryEntry("synonyms", (), None, ADMINS),
    "web_sources.toml": InventoryEntry("approved web pages", (), None, ADMINS),
    "footnote.toml": InventoryEntry("settings", (), None, ADMINS),
    "token_keys.json": InventoryEntry("the keys that encrypt Slack's tokens", (), None, FOREVER),
    "console_secret": InventoryEntry("what opens the console", (), None, FOREVER),
    "*.toml.restored": InventoryEntry(
        "files of the admins in a restored backup", (), None, "until the admin renames it"
    ),
    "replaced": InventoryEntry(
        "files that `footnote restore --force` moved aside", (_D, _C, _P), None, "until the admin removes it"
    ),
    "serve.json": InventoryEntry("where `footnote serve` listens", (), None, "while it runs"),
}
