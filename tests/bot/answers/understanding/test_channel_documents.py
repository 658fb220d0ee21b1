"""Document filters by name: an explicit filter counts, a mere mention does not."""

from __future__ import annotations

from uuid import NAMESPACE_URL, uuid5

from fakes.core import ASKED_AT, Register, make_channel
from harness.tables import for_each

from bot.answers.understanding.channel_documents import ChannelView, compared_documents, filtered_documents
from bot.core.models import Question
from storage.models import DocumentStatus, MetadataField, Rung


def document(file: str, title: str, state: str = "live", **metadata: str) -> DocumentStatus:
    fields = {name: MetadataField(name, value, 1, ()) for name, value in metadata.items()}
    return DocumentStatus(
        "it", uuid5(NAMESPACE_URL, file), "0" * 64, file, title, 3, state, Rung.FULL, None, fields
    )


BACKUP = document("backup.pdf", "Backup and Restore", sop_id="SOP-IT-04", department="IT")
LEAVE = document("leave.pdf", "Parental Leave", sop_id="SOP-HR-02", department="Human Resources")
OLD = document("handbook_2019.pdf", "Employee Handbook", effective="1 March 2019")
NEW = document("handbook.pdf", "Employee Handbook", effective="1 March 2024")
DOCUMENTS = [BACKUP, LEAVE, OLD, NEW]


def said(question: str) -> list[str]:
    wanted = filtered_documents(question, DOCUMENTS)
    return [one.file for one in DOCUMENTS if one.document in wanted]


@for_each(
    ("question", "files"),
    [
        ("How often are backups tested in SOP-IT-04?", ["backup.pdf"]),
        ("in sop-hr-02, who signs?", ["leave.pdf"]),
        ("How many days are there in the 2024 handbook?", ["handbook.pdf"]),
        ("according to the employee handbook, may I work at home?", ["handbook_2019.pdf", "handbook.pdf"]),
        ("what do we have from HR about leave", ["leave.pdf"]),
        ("Is there anything from Human Resources on leave?", ["leave.pdf"]),
        ("who signs the SOPs of HR?", ["leave.pdf"]),
        ("what is the scope of SOP-HR-02?", ["leave.pdf"]),
        ("who signs, see leave.pdf", ["leave.pdf"]),
        ("Was steht im Employee Handbook zum Urlaub?", ["handbook_2019.pdf", "handbook.pdf"]),
    ],
)
def test_an_explicit_document_is_a_filter(question: str, files: list[str]) -> None:
    """Covers SOP id, file, department, and a name followed by a word for a document."""
    assert said(question) == files


@for_each(
    "question",
    [
        "How does parental leave work?",
        "Who is the head of HR?",
        "What has to be approved by Human Resources?",
        "What happens in an emergency?",
        "is SOP-IT-04 still valid",
        "How many days in 2024?",
        "Who works in IT-04?",
        "what does it say in the travel handbook?",
        "How is it in the report of last year?",
    ],
)
def test_a_mere_mention_is_no_filter(question: str) -> None:
    """Shows the same for a place that is no document's name."""
    assert said(question) == []


def test_a_filter_that_excludes_nothing_is_ignored() -> None:
    """A channel with a single handbook is searched as a whole."""
    assert not filtered_documents("in the handbook, what about leave?", [NEW])


async def test_only_live_documents_in_scope_are_selected() -> None:
    """Excludes deleted documents, respects a given filter, and reads SQL once."""
    gone = document("old/backup.pdf", "Backup and Restore", state="deleted", sop_id="SOP-IT-04")
    register = Register([*DOCUMENTS, gone])
    view = ChannelView(register, make_channel())
    question = Question("q", "When are backups tested in SOP-IT-04?", make_channel(), ASKED_AT)
    assert (await view.narrow(question)).documents == {BACKUP.document}
    elsewhere = Question(
        "q", question.text, question.channel, ASKED_AT, frozenset({LEAVE.document, OLD.document})
    )
    assert await view.narrow(elsewhere) == elsewhere
    assert register.reads == 1


@for_each(
    ("question", "files"),
    [
        ("Compare parental leave with backup and restore", ["leave.pdf", "backup.pdf"]),
        ("Do Backup and Restore and Parental Leave both need a form?", ["backup.pdf", "leave.pdf"]),
        ("What differs between the employee handbooks?", ["handbook_2019.pdf", "handbook.pdf"]),
        ("SOP-HR-02 vs. SOP-IT-04: who signs?", ["leave.pdf", "backup.pdf"]),
        ("Is leave the same for all of us?", []),
        ("Does the employee handbook cover all of it?", []),
        ("Compare parental leave with paid leave", []),
    ],
)
def test_documents_named_together_are_compared(question: str, files: list[str]) -> None:
    """Shows their order, that two of one name are compared only on request, and that a topic names none."""
    compared = compared_documents(question, DOCUMENTS)
    assert [one.file for document in compared for one in DOCUMENTS if one.document == document] == files


async def test_a_comparison_is_limited_to_its_named_documents() -> None:
    """Shows that they form a filter, within one set by a person."""
    view = ChannelView(Register(DOCUMENTS), make_channel())
    question = Question("q", "Compare parental leave with backup and restore", make_channel(), ASKED_AT)
    narrowed = await view.narrow(question)
    assert narrowed.compared == (LEAVE.document, BACKUP.document)
    assert narrowed.documents == frozenset(narrowed.compared)
    alone = Question("q", question.text, question.channel, ASKED_AT, frozenset({LEAVE.document}))
    assert (await view.narrow(alone)).compared == ()


async def test_documents_named_by_their_kinds_are_compared() -> None:
    """Shows words for documents that name too little of their titles."""
    backup = document("b.pdf", "Backup, Restore and Archiving of File Servers", sop_id="SOP-IT-04")
    remote = document("r.pdf", "Requests for Remote Work and Travel Abroad", sop_id="SOP-HR-02")
    view = ChannelView(Register([backup, remote, OLD]), make_channel())
    text = "Compare the approval in the backup SOP and in the remote work SOP"
    narrowed = await view.narrow(Question("q", text, make_channel(), ASKED_AT))
    assert set(narrowed.compared) == {backup.document, remote.document}
    assert narrowed.filter is None
