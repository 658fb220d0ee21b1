"""Filler sentences; every opening is unique, so that it can be found again."""

from __future__ import annotations

from random import Random

SUBJECTS = (
    "The night shift",
    "Every visitor",
    "A trained guide",
    "The store keeper",
    "One spare pump",
    "Our supplier",
    "The cooling loop",
    "Each sample",
    "A written permit",
    "The duty officer",
    "This checklist",
    "The east gate",
    "Any spilled acid",
    "The weekly audit",
    "A second reader",
    "The main valve",
    "Fresh water",
    "The old archive",
    "A torn glove",
    "The alarm panel",
    "Each delivery",
    "The back office",
    "A paper copy",
    "The crane driver",
    "Warm air",
    "The test bench",
    "A missing label",
    "The loading ramp",
    "Quiet work",
    "The forklift",
    "A new colleague",
    "The drying oven",
    "Each key",
    "The rain gauge",
    "An open drawer",
    "The spare fuse",
)
VERBS = (
    "waits near the south entrance",
    "is noted in the log before noon",
    "stays locked until two people sign",
    "needs a calm hand and good light",
    "has to pass the second inspection",
    "is replaced after ninety days",
    "belongs to the person who opened it",
    "goes back to the shelf it came from",
)
ENDS = (
    "Nobody leaves before the count is right.",
    "The reading is repeated when it looks odd.",
    "Ask before you move anything heavy.",
    "What was written in pencil is copied in ink.",
    "Two minutes of care save an afternoon.",
    "Gloves are worn from the first step to the last.",
    "The sheet is kept for five years.",
    "A short note is better than a long silence.",
)


def openings(random: Random) -> list[str]:
    """Return the openings of paragraphs in random order, each once."""
    subjects = list(SUBJECTS)
    random.shuffle(subjects)
    return [f"{subject} {random.choice(VERBS)}" for subject in subjects]


def paragraph(opening: str, random: Random, sentences: int = 3) -> str:
    """Return a paragraph with this opening."""
    return " ".join([f"{opening}.", *random.sample(ENDS, sentences)])
