"""Every sentence of an announcement: what channels and admins read of documents and folders, in English.

What a reply says stands in ``replies/``, one file per language. Nothing in either quotes an exception, a
path or an id. Functions are for the sentences that carry a number or a name of the reader's own channel.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

FOLDERS_LEAD = "Something changed with the watched folders."

SOURCES_LEAD = "Something changed with the approved web pages."

OUTAGES_LEAD = "Something changed with this installation of Footnote."

OUTAGE_HINT = "Questions wait meanwhile and are answered once. footnote doctor says what to mend."

# What admins call the parts of /readyz.
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
    """Opens the first message of a direct chat."""
    return " ".join(
        (
            "Hello, I am Footnote. I answer questions from PDFs and nothing else; every answer shows the",
            "page it comes from, with the passage marked.",
            *((WELCOME_LIBRARY,) if has_library else ()),
            "“Help” tells you more.",
        )
    )


def receipt_lead(live: int, failed: int) -> str:
    """Opens a receipt for several files."""
    sentences = (
        [f"{live} PDF{' is' if live == 1 else 's are'} new here and can be asked about."] if live else []
    )
    if failed:
        sentences.append(f"{failed} file{'' if failed == 1 else 's'} could not be read.")
    return " ".join(sentences)


def receipt(title: str, file: str, pages: int, channel: str, *, is_replacement: bool) -> str:
    """One file that can be asked about; ``channel`` is '' in that channel itself."""
    named = file if title == file else f"{title} ({file})"
    fresh = "new version, " if is_replacement else ""
    place = f" in {channel}" if channel else ""
    return f"{named}{place}: {fresh}{pages} page{'' if pages == 1 else 's'}"


def unreadable(file: str, channel: str) -> str:
    """One file that could not be read; ``channel`` is '' in that channel itself."""
    return f"{file}{f' in {channel}' if channel else ''} could not be read."


def pages_without_text(pages: Sequence[int]) -> str:
    """Pages that are probably pictures."""
    return (
        f"{_pages(pages)} {'holds' if len(pages) == 1 else 'hold'} no text, probably because scanned, and "
        "cannot be asked about. Run OCR over the file and drop it again."
    )


def pages_read_by_ocr(pages: Sequence[int]) -> str:
    """Pages whose text comes from their picture, soon or already."""
    return f"{_pages(pages)}: OCR reads the picture, some seconds a page; compare its numbers with the page."


def pages_unread(pages: Sequence[int]) -> str:
    """Pages that the reader gave up."""
    return f"{_pages(pages)} could not be read: print the file into a new PDF and drop it again."


def _pages(pages: Sequence[int]) -> str:
    named = ", ".join(map(str, pages[:5]))
    more = f" and {len(pages) - 5} more" if len(pages) > 5 else ""
    return f"Page{'' if len(pages) == 1 else 's'} {named}{more}"


def more_files(count: int) -> str:
    """Files of a receipt that can be asked about and are not named."""
    return f"and {count} more that can be asked about"


def more_unreadable(count: int) -> str:
    """Unreadable files of a receipt that are not named."""
    return f"and {count} more that could not be read: see footnote documents"


def more_folders(count: int) -> str:
    """Folders of a receipt that are not named."""
    return f"and {count} more: see footnote folders"


def folder_problem(location: str, channel: str, problem: str) -> str:
    """Something that an admin must know of a folder."""
    return f"Folder {location} of {channel}: {problem}"


def folder_well(location: str, channel: str) -> str:
    """Return the end of a folder's problem."""
    return f"Folder {location} of {channel}: all is well again."


def outage(part: str, reason: str, since: datetime) -> str:
    """Return a part of the service that has not worked for a minute; ``reason`` is a sentence."""
    return f"Not ready since {_moment(since)}: {PARTS.get(part, part)}. {reason}"


def outage_over(part: str, reason: str, since: datetime, until: datetime) -> str:
    """Return the end of it; all of it where it could not be announced before."""
    began = f"{since:%H:%M}" if since.date() == until.date() else f"{since:%Y-%m-%d %H:%M}"
    return f"Ready again: {PARTS.get(part, part)}. Not ready from {began} to {_moment(until)}: {reason}"


def _moment(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M} UTC"


def more_outages(count: int) -> str:
    """Outages of a message that are not named."""
    return f"and {count} more: see footnote doctor"


def source_failed(url: str, reason: str) -> str:
    """Return an approved web page that could not be renewed for long."""
    return f"Web page {url} has failed for a week: {reason}"


def source_changed(url: str, channel: str, quote: str) -> str:
    """Return an approved web page that was quoted, and says something else now."""
    return (
        f'Web page {url} no longer says what {channel} was shown of it: "{quote}" The answer keeps the '
        "quote, and its link marks nothing."
    )


def more_sources(count: int) -> str:
    """Web pages of a receipt that are not named."""
    return f"and {count} more: see footnote sources check"


def digest_lead(count: int, channel: str) -> str:
    """Opens a weekly digest; ``channel`` is '' in that channel itself."""
    questions = "1 question" if count == 1 else f"{count} questions"
    place = f" in {channel}" if channel else ""
    return (
        f"In the last seven days the documents did not answer {questions}{place}, or somebody doubted the "
        "answer. A document that says it would help:"
    )


def gap(question: str, count: int, doubted: int) -> str:
    """One question that was asked in vain."""
    times = "" if count == 1 else f", asked {count} times"
    doubts = f", doubted by {doubted}" if doubted else ""
    return f"“{question}”{times}{doubts}"


def words_nowhere(words: Sequence[str]) -> str:
    """Words of such a question."""
    return f"In no document: {', '.join(words)}"


def more_gaps(count: int) -> str:
    """Questions of a digest that are not named."""
    return f"and {count} more: see footnote gaps"
