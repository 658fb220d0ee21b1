"""Draws the two sample SOPs, by hand after a change: ``python deploy/samples/make_samples.py [FOLDER]``.

Reproducible: the same text gives the same bytes, as there are no timestamps or random ids.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pymupdf
from sheet import Control, Sheet

SAMPLES = Path(__file__).parents[2] / "bot" / "cli" / "setup" / "samples"
COMPANY = "Halden Instruments"
BACKUP = Control(
    company=COMPANY,
    number="SOP-IT-04",
    title="Backup and Restore",
    version="2.1",
    department="IT",
    effective="2024-01-15",
    updated="2024-01-08",
    owner="M. Okafor",
    colour=(0.09, 0.25, 0.42),
)
REMOTE = Control(
    company=COMPANY,
    number="SOP-HR-02",
    title="Remote Work Requests",
    version="1.4",
    department="HR",
    effective="2024-03-01",
    updated="2024-02-19",
    owner="L. Brandt",
    colour=(0.11, 0.36, 0.29),
)


def write_backup_schedule(sheet: Sheet) -> None:
    """Write page 1 of SOP-IT-04."""
    sheet.heading("1. Purpose")
    sheet.paragraph(
        "This procedure says how the data of Halden Instruments is backed up, how each backup is checked, "
        "and how lost or damaged data is brought back. It limits the loss of work to one day for files and "
        "to 15 minutes for databases."
    )
    sheet.heading("2. Scope")
    sheet.paragraph(
        "It applies to all production servers, databases, shared drives and mailboxes in both data centers. "
        "Laptops are not covered: work must be saved on a shared drive to be backed up."
    )
    sheet.heading("3. Backup schedule")
    sheet.paragraph(
        "Backups run daily at 2:00 AM. The backup window closes at 5:00 AM; a job that is still running then "
        "is stopped and reported to the backup operator on duty. All times are local time of the main data "
        "center. Every backup is encrypted with AES-256 before it leaves the server."
    )
    sheet.caption("Table 1. What is backed up, and for how long it is kept")
    sheet.table(
        (0.21, 0.33, 0.27, 0.19),
        ("System", "What is saved", "When", "Kept for"),
        ("File servers", "Files changed since the last backup", "Daily at 2:00 AM", "30 days"),
        (
            "Databases",
            "Full copy; log files in between",
            "Daily at 2:00 AM; logs every 15 minutes",
            "35 days",
        ),
        ("Mailboxes", "New and changed messages", "Daily at 2:00 AM", "90 days"),
        ("All systems", "Full image, copied off site", "First Sunday of the month", "12 months"),
    )
    sheet.heading("4. Daily check")
    sheet.paragraph("The backup operator completes these steps on every working day before 9:00 AM:")
    sheet.steps(
        "Open the backup console and confirm that every job of the night shows the state Completed.",
        "Start each failed job again once. If it fails a second time, open a ticket of priority 2.",
        "Compare the size of the backup with the day before. A change of more than 20 % is investigated.",
        "Record the result in form IT-04-A and sign it.",
    )
    sheet.heading("5. Responsibilities")
    sheet.paragraph(
        "The backup operator runs and checks the backups. The system owner approves every restore. The head "
        "of IT reviews this procedure once a year."
    )


def write_restore(sheet: Sheet) -> None:
    """Write page 2 of SOP-IT-04."""
    sheet.heading("6. Restore procedure")
    sheet.warning(
        "Never restore over a running production database. Restore to a separate server, check the data with "
        "the system owner, and only then switch over. A restore in place destroys all work since the last "
        "backup."
    )
    sheet.steps(
        "The requester opens a ticket of type Restore and names the system, the folder and the date wanted.",
        "The system owner approves the ticket in writing. Without approval nothing is restored.",
        "The backup operator picks the latest backup before the date wanted and restores it to the "
        "recovery server RS-02.",
        "The requester checks the restored data and confirms in the ticket that it is complete.",
        "The backup operator moves the data to its place, closes the ticket and records form IT-04-B.",
    )
    sheet.paragraph(
        "A single file is restored within 4 working hours, a database within 8 hours and a whole server "
        "within 24 hours of the approval."
    )
    sheet.heading("7. Restore test")
    sheet.paragraph(
        "Once in every quarter the backup operator restores one database and one shared drive, chosen at "
        "random, to the recovery server. A failed test is reported to the head of IT on the same day."
    )
    sheet.heading("8. Growth of the nightly backup")
    sheet.caption("Figure 1. Average size of the nightly backup in 2023, by quarter")
    sheet.bars("GB", Q1_2023=212, Q2_2023=248, Q3_2023=305, Q4_2023=361)
    sheet.paragraph("Storage is extended when the nightly backup reaches 450 GB.")
    sheet.heading("9. Revision history")
    sheet.table(
        (0.14, 0.2, 0.66),
        ("Version", "Effective", "Change"),
        ("2.1", "2024-01-15", "Restore times added; databases kept for 35 days instead of 30."),
        ("2.0", "2023-02-06", "Monthly off-site image added; encryption made mandatory."),
        ("1.0", "2021-09-01", "First issue."),
    )


def write_remote_rules(sheet: Sheet) -> None:
    """Write page 1 of SOP-HR-02."""
    sheet.heading("1. Purpose")
    sheet.paragraph(
        "This procedure says who may work remotely, how a request is made and decided, and what both sides "
        "owe each other while it lasts. It replaces all earlier agreements made by e-mail."
    )
    sheet.heading("2. Who may ask")
    sheet.paragraph(
        "Every employee may ask for remote work after 90 days of employment. Work that needs a laboratory, a "
        "workshop or the reception desk is excluded. Contractors follow the rules of their own employer."
    )
    sheet.heading("3. Kinds of remote work")
    sheet.caption("Table 1. Kinds of remote work and who decides")
    sheet.table(
        (0.22, 0.34, 0.22, 0.22),
        ("Kind", "Meaning", "Decided by", "Answer within"),
        ("Occasional", "Up to 2 days a month", "Team lead", "2 working days"),
        ("Regular", "Up to 3 fixed days a week", "Department head", "10 working days"),
        ("Full", "All days, office visits on request", "Department head and HR", "20 working days"),
        ("Abroad", "Up to 20 days a year in another country", "HR and Legal", "30 working days"),
    )
    sheet.heading("4. How to ask")
    sheet.steps(
        "Fill in form HR-02-A with the kind, the days wanted and the first day.",
        "Hand it to your team lead at least 14 days before the first day.",
        "The team lead adds a comment within 2 working days and passes it on to the one who decides.",
        "The decision is given in writing. A refusal names its reason.",
        "You may object once within 10 working days; HR then decides for good.",
    )
    sheet.caption("Figure 1. The way of a request for regular remote work")
    sheet.chain(
        Employee="form HR-02-A",
        Team_lead="comment, 2 days",
        Department_head="decision, 10 days",
        HR="file and contract",
    )
    sheet.paragraph(
        "A regular arrangement runs for 12 months and ends by itself unless it is asked for again."
    )


def write_remote_duties(sheet: Sheet) -> None:
    """Write page 2 of SOP-HR-02."""
    sheet.heading("5. While working remotely")
    sheet.paragraph(
        "Core hours are 10:00 AM to 3:00 PM; during these hours you can be reached by chat and telephone. "
        "Working time is recorded as in the office."
    )
    sheet.warning(
        "Never print or store customer data at home. Paper with personal data is brought back to the office "
        "and destroyed there. A lost device is reported to the service desk within one hour, day and night."
    )
    sheet.heading("6. Equipment and costs")
    sheet.caption("Table 2. What the company provides")
    sheet.table(
        (0.36, 0.2, 0.22, 0.22),
        ("Item", "Occasional", "Regular", "Full"),
        ("Laptop with encrypted disk", "yes", "yes", "yes"),
        ("Second screen and keyboard", "no", "yes", "yes"),
        ("Chair and desk", "no", "no", "up to 450 EUR"),
        ("Internet allowance", "no", "15 EUR a month", "30 EUR a month"),
    )
    sheet.paragraph(
        "Equipment stays the property of the company and is returned within 10 days after the end."
    )
    sheet.heading("7. Ending an arrangement")
    sheet.steps(
        "Either side may end the arrangement in writing with 4 weeks' notice.",
        "It ends at once when data protection rules are broken.",
        "It is reviewed whenever the employee changes to another department.",
    )
    sheet.heading("8. Records")
    sheet.paragraph(
        "HR keeps requests and decisions for 3 years after the end of the arrangement. Questions go to "
        "the HR desk, extension 2240."
    )
    sheet.heading("9. Revision history")
    sheet.table(
        (0.14, 0.2, 0.66),
        ("Version", "Effective", "Change"),
        ("1.4", "2024-03-01", "Work from abroad limited to 20 days a year; objection added."),
        ("1.3", "2023-05-15", "Internet allowance added."),
        ("1.0", "2020-11-02", "First issue."),
    )


def draw(path: Path, control: Control, *pages: Callable[[Sheet], None]) -> None:
    """Save one SOP as a PDF."""
    document = pymupdf.open()
    for number, write in enumerate(pages, 1):
        sheet = Sheet(document, control)
        sheet.cover() if number == 1 else sheet.running_head()
        write(sheet)
        sheet.foot(number, len(pages))
    date = f"D:{control.updated.replace('-', '')}090000Z"
    title = f"{control.number} {control.title}"
    about = {"title": title, "author": COMPANY, "subject": "Standard operating procedure"}
    document.set_metadata({**about, "creationDate": date, "modDate": date})
    document.save(path, garbage=4, deflate=True, no_new_id=True)


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else SAMPLES
    draw(folder / "SOP-IT-04-Backup-and-Restore.pdf", BACKUP, write_backup_schedule, write_restore)
    draw(folder / "SOP-HR-02-Remote-Work-Requests.pdf", REMOTE, write_remote_rules, write_remote_duties)
