"""Texts of announcements to channels and admins, in English only.

Replies are in ``replies/``, one file per language. No text quotes an exception, a path or an id. Functions
build the sentences that contain numbers or names from the reader's own channel.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

FOLDERS_LEAD = "Something changed with the watched folders."

SOURCES_LEAD = "Something changed with the approved web pages."

OUTAGES_LEAD = "Something changed with this installation of Footnote."

OUTAGE_HINT = "Questions wait meanwhile and are answered once. footnote doctor says what to mend."

# Name of a check in /readyz -> its name for admins.
PARTS = {
    "sql": "the database",
    "index": "the index",
    "tenants": "the index of a channel",
    "blobs": "the store of PDFs",
    "keys": "the keys that sign links",
    "slack": "the connection to Slack",
}

WELCOME_LEAD = (
    "Hello, I am Footnote. I answer questions from the PDFs of this channel and nothing else; every answer "
    "shows the page it comes from, with the passage marked. Mention me with a question, and go on in the "
    "thread of my answer. “Help” tells you more."
)

HOME_LEAD = (
    "I answer questions from the PDFs of a channel and nothing else. Every answer carries numbered sources; "
    "each opens the page it came from, with the passage marked. When the documents do not say it, I say so."
)

HOME_HOW = (
    "Mention me in a channel and go on in the thread of my answer, or ask privately with /footnote. Each "
    "channel is asked about its own documents."
)

HOME_CHANNELS = "The channels that you are in and their documents:"

HOME_NO_CHANNELS = "None of the channels that you are in has documents yet."

HOME_UNKNOWN = "Slack could not say which channels you are in, so none is shown. Open this page again later."

WELCOME_LIBRARY = "Here I search the library that an admin chose for direct chats: just write your question."

TRY_ASKING = "Try asking:"

HOME_TRY = "Try asking; the answer comes to you alone, in Messages:"

HOME_RECENT = "What you asked last:"

RECENT_DIRECT = "direct chat"

ASK = "Ask this"

HELP_PROMPT = "What can I ask?"

ASK_HELP = "What can you do?"

EARLIER_ANSWERS = "Until then its earlier version answers."

REPAIRED = "The file is damaged and was repaired for reading: better replace it by a sound copy."


def welcome_direct(*, has_library: bool) -> str:
    """Return the welcome of a direct chat."""
    return " ".join(
        (
            "Hello, I am Footnote. I answer questions from PDFs and nothing else; every answer shows the",
            "page it comes from, with the passage marked.",
            *((WELCOME_LIBRARY,) if has_library else ()),
            "“Help” tells you more.",
        )
    )


def receipt_lead(live: int, failed: int) -> str:
    """Return the first line of a receipt."""
    sentences = (
        [f"{live} PDF{' is' if live == 1 else 's are'} new here and can be asked about."] if live else []
    )
    if failed:
        sentences.append(f"{failed} file{'' if failed == 1 else 's'} could not be read.")
    return " ".join(sentences)


def receipt(title: str, file: str, pages: int, channel: str, *, is_replacement: bool) -> str:
    """Return the line for a file that is now searchable; ``channel`` is '' in that channel itself."""
    named = file if title == file else f"{title} ({file})"
    fresh = "new version, " if is_replacement else ""
    place = f" in {channel}" if channel else ""
    return f"{named}{place}: {fresh}{pages} page{'' if pages == 1 else 's'}"


def unreadable(file: str, channel: str) -> str:
    """Return the line for an unreadable file; ``channel`` is '' in that channel itself."""
    return f"{file}{f' in {channel}' if channel else ''} could not be read."


def pages_without_text(pages: Sequence[int]) -> str:
    """Return the note on pages without a text layer, probably scanned."""
    return (
        f"{_pages(pages)} {'holds' if len(pages) == 1 else 'hold'} no text, probably because scanned, and "
        "cannot be asked about. Run OCR over the file and drop it again."
    )


def pages_read_by_ocr(pages: Sequence[int]) -> str:
    """Return the note on pages whose text comes from OCR, finished or pending."""
    return f"{_pages(pages)}: OCR reads the picture, some seconds a page; compare its numbers with the page."


def pages_unread(pages: Sequence[int]) -> str:
    """Return the note on pages that the reader failed to read."""
    return f"{_pages(pages)} could not be read: print the file into a new PDF and drop it again."


def _pages(pages: Sequence[int]) -> str:
    named = ", ".join(map(str, pages[:5]))
    more = f" and {len(pages) - 5} more" if len(pages) > 5 else ""
    return f"Page{'' if len(pages) == 1 else 's'} {named}{more}"


def more_files(count: int) -> str:
    """Return the count of searchable files not listed."""
    return f"and {count} more that can be asked about"


def more_unreadable(count: int) -> str:
    """Return the count of unreadable files not listed."""
    return f"and {count} more that could not be read: see footnote documents"


def more_folders(count: int) -> str:
    """Return the count of folders not listed."""
    return f"and {count} more: see footnote folders"


def folder_problem(location: str, channel: str, problem: str) -> str:
    """Return the line for a folder's problem."""
    return f"Folder {location} of {channel}: {problem}"


def folder_well(location: str, channel: str) -> str:
    """Return the line for a folder that works again."""
    return f"Folder {location} of {channel}: all is well again."


def outage(part: str, reason: str, since: datetime) -> str:
    """Return the line for an outage that has lasted a minute; ``reason`` is a sentence."""
    return f"Not ready since {_moment(since)}: {PARTS.get(part, part)}. {reason}"


def outage_over(part: str, reason: str, since: datetime, until: datetime) -> str:
    """Return the line for the end of an outage, with its beginning."""
    began = f"{since:%H:%M}" if since.date() == until.date() else f"{since:%Y-%m-%d %H:%M}"
    return f"Ready again: {PARTS.get(part, part)}. Not ready from {began} to {_moment(until)}: {reason}"


def _moment(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M} UTC"


def more_outages(count: int) -> str:
    """Return the count of outages not listed."""
    return f"and {count} more: see footnote doctor"


def source_failed(url: str, reason: str) -> str:
    """Return the line for an approved web page whose refresh has failed for a week."""
    return f"Web page {url} has failed for a week: {reason}"


def source_changed(url: str, channel: str, quote: str) -> str:
    """Return the line for an approved web page that no longer contains a quoted passage."""
    return (
        f'Web page {url} no longer says what {channel} was shown of it: "{quote}" The answer keeps the '
        "quote, and its link marks nothing."
    )


def more_sources(count: int) -> str:
    """Return the count of web pages not listed."""
    return f"and {count} more: see footnote sources check"


def digest_lead(count: int, channel: str) -> str:
    """Return the first line of a weekly digest; ``channel`` is '' in that channel itself."""
    questions = "1 question" if count == 1 else f"{count} questions"
    place = f" in {channel}" if channel else ""
    return (
        f"In the last seven days the documents did not answer {questions}{place}, or somebody doubted the "
        "answer. A document that says it would help:"
    )


def gap(question: str, count: int, doubted: int) -> str:
    """Return the line for an unanswered or disputed question."""
    times = "" if count == 1 else f", asked {count} times"
    doubts = f", doubted by {doubted}" if doubted else ""
    return f"“{question}”{times}{doubts}"


def words_nowhere(words: Sequence[str]) -> str:
    """Return the question's words that occur in no document."""
    return f"In no document: {', '.join(words)}"


def more_gaps(count: int) -> str:
    """Return the count of questions not listed."""
    return f"and {count} more: see footnote gaps"
