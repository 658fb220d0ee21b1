"""Texts of announcements to channels and admins, in English only.

Replies are in ``replies/``, one file per language. No text quotes an exception, a path or an id. Functions
build the sentences that contain numbers or names from the reader's own channel.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from bot.quality.monthly_usage import ChannelUsage

FOLDERS_LEAD = "Something changed in the watched folders."

SOURCES_LEAD = "Something changed on the approved web pages."

OUTAGES_LEAD = "Something changed in this Footnote installation."

OUTAGE_HINT = "I’ll answer each waiting question once I can. footnote doctor says what to fix."

# Name of a check in /readyz -> its name for admins.
PARTS = {
    "sql": "the database",
    "index": "the index",
    "tenants": "a channel’s index",
    "blobs": "the PDF store",
    "keys": "the link signing keys",
}

WELCOME_LEAD = (
    "Hello, I’m Footnote. I answer questions from the PDFs in this channel, and from nothing else. Every "
    "answer shows its page with the passage marked. Mention me with a question, then follow up in the "
    "thread. Say “help” to learn more."
)

HOME_LEAD = (
    "I answer questions from the PDFs in a channel, and from nothing else. Click a source to open its page "
    "with the passage marked. If the documents don’t say it, I’ll tell you."
)

HOME_CHANNELS = "Your channels and their documents:"

HOME_NO_CHANNELS = "None of your channels has documents yet."

HOME_UNKNOWN = "Slack isn’t telling me which channels you’re in, so I can’t show any. Please try again later."

WELCOME_LIBRARY = "Just write your question: I search the library that an admin chose for direct chats."

TRY_ASKING = "Try asking:"

HOME_TRY = "Try asking. Only you get the answer, in Messages:"

HOME_ASK = "Ask your question"

HOME_ASK_HINT = "Only you see the answer, in Messages"

HOME_RECENT = "Your latest answers:"

RECENT_DIRECT = "direct chat"

ASK = "Ask this"

# Buttons below a receipt, and what the first of them asks.
NEWS, ASK_NEWS = "What’s new?", "What is new?"

SHOW = "Show"

HELP_PROMPT = "What can I ask?"

ASK_HELP = "What can you do?"

EARLIER_ANSWERS = "For now I answer from its previous version."

REPAIRED = "This file is damaged. I could read it after a repair, but please replace it with a sound copy."


def welcome_direct(*, has_library: bool) -> str:
    """Return the welcome of a direct chat."""
    return " ".join(
        (
            "Hello, I’m Footnote. I answer questions from PDFs, and from nothing else. Every answer shows",
            "its page with the passage marked.",
            *((WELCOME_LIBRARY,) if has_library else ()),
            "Say “help” to learn more.",
        )
    )


def receipt_lead(titles: Sequence[str], live: int, pages: int, failed: int, *, is_new: bool = True) -> str:
    """Return the first line of a receipt.

    Args:
        titles: of the searchable files, as far as they are known.
        live: number of searchable files.
        pages: of all of them; 0: not counted.
        failed: number of unreadable files.
        is_new: False: the only file is a new version.
    """
    counted = f" ({pages} page{'' if pages == 1 else 's'})" if pages else ""
    named = f"“{titles[0]}”" if live == 1 and titles else f"{live} document{'' if live == 1 else 's'}"
    sentences = [f"{'Added' if is_new else 'Updated'} {named}{counted}."] if live else []
    if failed:
        sentences.append(f"I couldn’t read {failed} file{'' if failed == 1 else 's'}.")
    return " ".join(sentences)


def receipt(title: str, file: str, channel: str) -> str:
    """Return the line for a searchable file with notes; ``channel`` is '' in that channel itself."""
    named = file if title == file else f"{title} ({file})"
    return f"{named}{f' in {channel}' if channel else ''}:"


def unreadable(file: str, channel: str) -> str:
    """Return the line for an unreadable file; ``channel`` is '' in that channel itself."""
    return f"I couldn’t read {file}{f' in {channel}' if channel else ''}."


def pages_without_text(pages: Sequence[int]) -> str:
    """Return the note on pages without a text layer, probably scanned."""
    return (
        f"{_pages(pages)} {'has' if len(pages) == 1 else 'have'} no text, probably because of a scan, so I "
        "can’t answer from there. Run OCR on the file and add it again."
    )


def pages_read_by_ocr(pages: Sequence[int]) -> str:
    """Return the note on pages whose text comes from OCR, finished or pending."""
    return f"{_pages(pages)}: I read this with OCR, a few seconds a page. Please double-check numbers."


def pages_unread(pages: Sequence[int]) -> str:
    """Return the note on pages that the reader failed to read."""
    return f"{_pages(pages)}: I couldn’t read this. Print the file to a new PDF and add it again."


def _pages(pages: Sequence[int]) -> str:
    named = ", ".join(map(str, pages[:5]))
    more = f" and {len(pages) - 5} more" if len(pages) > 5 else ""
    return f"Page{'' if len(pages) == 1 else 's'} {named}{more}"


def more_unreadable(count: int) -> str:
    """Return the count of unreadable files not listed."""
    return f"and {count} more that I couldn’t read"


def more_folders(count: int) -> str:
    """Return the count of folders not listed."""
    return f"and {count} more: see footnote folders"


def folder_problem(location: str, channel: str, problem: str) -> str:
    """Return the line for a folder's problem."""
    return f"Folder {location} of {channel}: {problem}"


def folder_well(location: str, channel: str) -> str:
    """Return the line for a folder that works again."""
    return f"Folder {location} of {channel}: everything works again."


def _part(name: str) -> str:
    """Return a part's name for admins; all others are chat platforms."""
    return PARTS.get(name, f"the connection to {name.capitalize()}")


def outage(part: str, reason: str, since: datetime) -> str:
    """Return the line for an outage that has lasted a minute; ``reason`` is a sentence."""
    return f"Not ready since {_moment(since)}: {_part(part)}. {reason}"


def outage_over(part: str, reason: str, since: datetime, until: datetime) -> str:
    """Return the line for the end of an outage, with its beginning."""
    began = f"{since:%H:%M}" if since.date() == until.date() else f"{since:%Y-%m-%d %H:%M}"
    return f"Ready again: {_part(part)}. Not ready from {began} to {_moment(until)}: {reason}"


def _moment(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M} UTC"


def more_outages(count: int) -> str:
    """Return the count of outages not listed."""
    return f"and {count} more: see footnote doctor"


def source_failed(url: str, reason: str) -> str:
    """Return the line for an approved web page whose refresh has failed for a week."""
    return f"I haven’t been able to fetch the web page {url} for a week: {reason}"


def source_changed(url: str, channel: str, quote: str) -> str:
    """Return the line for an approved web page that no longer contains a quoted passage."""
    return (
        f'The web page {url} has changed. An answer in {channel} quotes it: "{quote}" The answer keeps the '
        "quote, but its link no longer marks it."
    )


def more_sources(count: int) -> str:
    """Return the count of web pages not listed."""
    return f"and {count} more: see footnote sources check"


def digest_lead(count: int, channel: str) -> str:
    """Return the first line of a weekly digest; ``channel`` is '' in that channel itself."""
    questions = "1 question" if count == 1 else f"{count} questions"
    place = f" in {channel}" if channel else ""
    return (
        f"In the last seven days, {questions}{place} went unanswered or got a disputed answer. A document on "
        "this would help:"
    )


def gap(question: str, count: int, doubted: int) -> str:
    """Return the line for an unanswered or disputed question."""
    times = "" if count == 1 else f", asked {count} times"
    doubts = f", disputed by {doubted}" if doubted else ""
    return f"“{question}”{times}{doubts}"


def words_nowhere(words: Sequence[str]) -> str:
    """Return the question's words that occur in no document."""
    return f"No document mentions: {', '.join(words)}"


def more_gaps(count: int) -> str:
    """Return the count of questions not listed."""
    return f"and {count} more"


USAGE_INCOMPLETE = "The first days are not counted, because their records are gone (FOOTNOTE_RECORD_DAYS)."


def usage_lead(month: str, usage: Sequence[ChannelUsage]) -> str:
    """Return the first line of a monthly summary."""
    questions = sum(one.questions for one in usage)
    asked = "1 question" if questions == 1 else f"{questions:,} questions"
    channels = "1 channel" if len(usage) == 1 else f"{len(usage)} channels"
    costs = [one.cost for one in usage if one.cost is not None]
    cost = f", tokens for {sum(costs):,.2f}" if costs else ""
    return f"Usage in {month}: {asked} in {channels}{cost}"


def usage_of_channel(one: ChannelUsage) -> str:
    """Return a channel's line of a monthly summary."""
    people = f", {one.people} {'person' if one.people == 1 else 'people'}" if one.people else ""
    up, down = one.thumbs_up, one.thumbs_down
    thumbs = f", thumbs {up:,} up and {down:,} down" if up + down else ""
    outcomes = f"{one.answered:,} answered, {one.not_found:,} plain no"
    return f"{one.channel}: {one.questions:,} asked{people}, {outcomes}{thumbs}"
