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
class KeptText:
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
TABLES: dict[str, KeptText] = {
    "channel": KeptText(
        "name and address of a channel", (_C,), "FOOTNOTE_LEFT_DAYS", "after the bot left it"
    ),
    "channel_move": KeptText("ids that a channel got since it was first known", (_C,), None, FOREVER),
    "folder": KeptText("where a channel's files lie, what is wrong with it", (_C,), None, FOREVER),
    "document": KeptText(
        "path of a file, why it cannot be read; of a purged one its path", (_D, _C), None, FOREVER
    ),
    "blob": KeptText(
        "checksum and size of a content, no text", (_D, _C), "FOOTNOTE_DELETE_GRACE_SECONDS", UNTIL_PURGED
    ),
    "version": KeptText("corrected metadata of a content", (_D, _C), None, FOREVER),
    "reading": KeptText(
        "title and metadata of a content", (_D, _C), "FOOTNOTE_DELETE_GRACE_SECONDS", UNTIL_PURGED
    ),
    "publication": KeptText(
        "which reading answers, no text", (_D, _C), "FOOTNOTE_DELETE_GRACE_SECONDS", UNTIL_PURGED
    ),
    "inbox": KeptText("a chat's question, who asked it and where", (_C, _P), "FOOTNOTE_MESSAGE_DAYS"),
    "outbox": KeptText("the answer to it, and what names its message", (_D, _C, _P), "FOOTNOTE_MESSAGE_DAYS"),
    "answer_source": KeptText("which versions an answer cites, no text", (_D, _C), "FOOTNOTE_MESSAGE_DAYS"),
    "turn": KeptText(
        "question and answer as their thread remembers them", (_D, _C, _P), "FOOTNOTE_MEMORY_DAYS"
    ),
    "question_record": KeptText(
        "how a question was answered: words, passages, prompts", (_D, _C, _P), "FOOTNOTE_RECORD_DAYS"
    ),
    "feedback": KeptText(
        "what a person said of an answer, under a hash", (_D, _C, _P), "FOOTNOTE_RECORD_DAYS"
    ),
    "citation": KeptText("a quote that was shown, for its link", (_D, _C), "FOOTNOTE_CITATION_DAYS"),
    "source_opening": KeptText(
        "how often a source was opened on a day, no text and nobody", (_D, _C), "FOOTNOTE_CITATION_DAYS"
    ),
    "subscription": KeptText(
        "the quote of a page that a thread follows", (_D, _C, _P), None, "until the thread ends it"
    ),
    "notice": KeptText("an event of a file or folder, tried questions", (_D, _C), "FOOTNOTE_MESSAGE_DAYS"),
    "web_page": KeptText(
        "an approved address and when it is fetched again", (), None, "until web_sources.toml drops it"
    ),
    "web_text": KeptText(
        "what was read of a web page", (), "FOOTNOTE_CITATION_DAYS", "after the page says something else"
    ),
    "web_citation": KeptText("a quote of a web page that was shown", (_C,), "FOOTNOTE_CITATION_DAYS"),
    "cached_vector": KeptText(
        "vector and hash of a text, not the text", (), None, "until it is unused for 30 days"
    ),
    "upload": KeptText(
        "name of a file that was uploaded in a chat, and who did it",
        (_D, _C, _P),
        None,
        "until it is removed",
    ),
    "slack_installation": KeptText(
        "sealed tokens and the name of a Slack workspace",
        (),
        None,
        "until the app is removed there",
    ),
    "link_key": KeptText("the keys that sign links", (), None, "until they are rotated twice"),
    "audit": KeptText(
        "who did what: ids, of who signs in the e-mail address, no words of anybody",
        (),
        "FOOTNOTE_AUDIT_DAYS",
    ),
    "fact": KeptText(
        "settings in force, figures of a channel's answers, names of files that are no documents, outages, "
        "ids of sessions that were signed out",
        (_D, _C),
        None,
        FOREVER,
    ),
    "alembic_version": KeptText("revision of the tables, no text", (), None, FOREVER),
}

# By name of the entry; a pattern if there are several.
HOME_ENTRIES: dict[str, KeptText] = {
    "footnote.db*": KeptText("the tables above, where SQL is SQLite", (_D, _C, _P), None, "as each table"),
    "blobs": KeptText(
        "the PDFs' bytes, or copies of some", (_D, _C), "FOOTNOTE_DELETE_GRACE_SECONDS", UNTIL_PURGED
    ),
    "readings": KeptText(
        "pages, chunks, figures and vectors, or copies",
        (_D, _C),
        "FOOTNOTE_DELETE_GRACE_SECONDS",
        UNTIL_PURGED,
    ),
    "images": KeptText(
        "drawn pages and figures", (_D, _C), "FOOTNOTE_PAGE_IMAGES_MB", "at most; none of a purged document"
    ),
    "index": KeptText(
        "the embedded index", (_D, _C), "FOOTNOTE_RETIRE_GRACE_SECONDS", "after it was replaced or deleted"
    ),
    "weaviate": KeptText(
        "the index of our own Weaviate",
        (_D, _C),
        "FOOTNOTE_RETIRE_GRACE_SECONDS",
        "then its next merge of segments; erased at once",
    ),
    "inbox": KeptText("the watched folders: only what people upload is written there", (), None, ADMINS),
    "folders.toml": KeptText("where channels' folders lie", (), None, ADMINS),
    "glossary.toml": KeptText("how people say what documents say", (), None, ADMINS),
    "web_sources.toml": KeptText("approved web pages", (), None, ADMINS),
    "footnote.toml": KeptText("settings", (), None, ADMINS),
    "token_keys.json": KeptText("the keys that seal Slack's tokens", (), None, FOREVER),
    "console_secret": KeptText("what opens the console", (), None, FOREVER),
    "*.toml.restored": KeptText(
        "files of the admins in a restored backup", (), None, "until the admin renames it"
    ),
    "replaced": KeptText(
        "what `footnote restore --force` put aside", (_D, _C, _P), None, "until the admin removes it"
    ),
    "serve.json": KeptText("where `footnote serve` listens", (), None, "while it runs"),
}
