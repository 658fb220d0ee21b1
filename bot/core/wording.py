"""Every sentence that a person in a chat can read, whatever the door.

Nothing here quotes an exception, a path or an id. Functions are for the sentences that carry a
number or a file name of the reader's own channel.
"""

from __future__ import annotations

from collections.abc import Sequence

SEARCHING = "Searching…"

STILL_WRITING = "Still writing…"

GREETING = (
    "Hello! Ask me anything about the documents in this channel; every answer shows the page it stands on."
)

THANKS = "You are welcome."

HELP = (
    "I answer questions from the PDFs of this channel and nothing else. Ask in your own words, for example "
    "“How many vacation days do new employees get?”. Every answer carries numbered sources; each opens the "
    "page it came from with the passage marked. When the documents do not say it, I tell you so."
)


NOT_FOUND = "That is not in your documents."
NO_SUCH_DOCUMENT = (
    "No document of this channel says so of itself, so none was searched. "
    "`footnote documents` and `footnote metadata` show what they say."
)

ENGINE_FAILED = (
    "Something failed on our side while searching. Nothing is wrong with your question: please try again."
)

MODEL_FAILED = "The language model did not answer, so here is what your documents say in their own words:"

MODEL_UNUSABLE = (
    "The reply of the language model cannot be used, so here is what your documents say in their own words:"
)

MODEL_BROKE_OFF = "The language model broke off here."

MODEL_UNVERIFIED = (
    "What the language model wrote could not be verified, so here is what your documents say "
    "in their own words:"
)

QUOTES_LEAD = "Your documents say:"

CUT_SHORT = "The answer was too long for one message: the sources hold the rest."


def empty_channel(folder: str) -> str:
    """For a channel without a single document; ``folder`` is its folder in the inbox."""
    return (
        f"There are no documents in this channel yet. An admin adds PDFs to the folder {folder} of the "
        "inbox; they can be asked about a few seconds later."
    )


def still_reading(files: int) -> str:
    """An answer is missing while files wait to be read."""
    if files == 1:
        return "1 file is still being read: please ask again shortly."
    return f"{files} files are still being read: please ask again shortly."


def searched(documents: int) -> str:
    """What was searched before saying that nothing fits."""
    return f"I searched {documents} document{'' if documents == 1 else 's'} of this channel."


def nearest(title: str, page: int) -> str:
    """The page that came nearest, labelled as no answer."""
    return f"The nearest page, which may not answer it: p. {page} of {title}."


def unread(files: Sequence[str]) -> str:
    """Files of the channel that could not be read; at most three are named."""
    named = ", ".join(files[:3])
    more = f" and {len(files) - 3} more" if len(files) > 3 else ""
    return f"I could not read: {named}{more}."


def understood(question: str) -> str:
    """What was searched for, when it is not what was typed."""
    return f"Understood as: {question}"


def dropped(sentences: int) -> str:
    """Sentences that could not be verified were left out."""
    if sentences == 1:
        return "One sentence was left out because your documents do not confirm it."
    return f"{sentences} sentences were left out because your documents do not confirm them."


def question_too_long(limit: int) -> str:
    """The question is longer than what is read."""
    return f"That question is too long for me: please ask it in at most {limit:,} characters."


def figures_lead(count: int) -> str:
    """Opens an answer that is a figure."""
    return "Here is the figure:" if count == 1 else "Here are the figures:"


def figure_on(page: int, number: int) -> str:
    """A figure whose caption cannot be quoted."""
    return f"It stands on page {page} [{number}]"


def described(description: str) -> str:
    """What a vision model says of a figure without a caption; '' when it says nothing."""
    return f"described by a model: {description}" if description else ""


def figure_label(caption: str, page: int) -> str:
    """The line, or the button, that shows a figure."""
    return f"Figure: {caption}, page {page}" if caption else f"Figure on page {page}"


def page_of(page: int, file: str) -> str:
    """Text of a source where a button cannot be shown."""
    return f"Page {page} of {file}"


def source_label(page: int, title: str, *, is_ocr: bool = False) -> str:
    """Text of a source button."""
    return f"p. {page}{' (OCR)' if is_ocr else ''} · {title}"


def more_sources(count: int) -> str:
    """The control behind which the further sources lie."""
    return f"{count} more source{'' if count == 1 else 's'}"


def receipt_lead(live: int, failed: int) -> str:
    """Opens a receipt for several files."""
    told = [f"{live} PDF{' is' if live == 1 else 's are'} new here and can be asked about."] if live else []
    if failed:
        told.append(f"{failed} file{'' if failed == 1 else 's'} could not be read.")
    return " ".join(told)


FOLDERS_LEAD = "Something changed with the watched folders."

TRY_ASKING = "Try asking:"


def receipt(title: str, file: str, pages: int, channel: str, *, is_replacement: bool) -> str:
    """One file that can be asked about; ``channel`` is '' in that channel itself."""
    named = file if title == file else f"{title} ({file})"
    fresh = "new version, " if is_replacement else ""
    place = f" in {channel}" if channel else ""
    return f"{named}{place}: {fresh}{pages} page{'' if pages == 1 else 's'}"


def unreadable(file: str, channel: str) -> str:
    """One file that could not be read; ``channel`` is '' in that channel itself."""
    return f"{file}{f' in {channel}' if channel else ''} could not be read."


EARLIER_ANSWERS = "Until then its earlier version answers."


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


REPAIRED = "The file is damaged and was repaired for reading: better replace it by a sound copy."


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
    """The end of a folder's problem."""
    return f"Folder {location} of {channel}: all is well again."


_QUESTIONS_ABOUT = {
    "en": ("What does {} say about {}?", "“{}”", "the document"),
    "de": ("Was steht in {} zu „{}“?", "„{}“", "dem Dokument"),
    "fr": ("Que dit {} sur « {} » ?", "« {} »", "le document"),
    "es": ("¿Qué dice {} sobre «{}»?", "«{}»", "el documento"),
}


def question_about(topic: str, title: str, language: str) -> str:
    """How a person might ask about a heading; ``title`` is '' for a document that has none to speak of."""
    question, quoted, untitled = _QUESTIONS_ABOUT[language]
    return question.format(quoted.format(title) if title else untitled, topic)


HOW_DO_I = "How do I {}?"
