"""Turns plain English sentences into the questions that they answer, by a few safe patterns and no model.

"A lost device is reported to the service desk within one hour" answers "When is a lost device reported
to the service desk?". What fits no pattern, or points outside itself, asks nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable

_WORDS = r"[\w'’/-]+"
_SUBJECT = rf"(?P<subject>{_WORDS}(?:\s+{_WORDS}){{0,6}}?)"
_TIME = r"(?P<time>within|when|whenever|before|after|until|every|once|daily|weekly|monthly|on|at)\b"
_SPAN = r"for\s+(?:\d|at\s+least|up\s+to|one|two|three|four|five|six|seven|ten|twelve)"
_PARTICIPLE = (
    r"(?P<done>\w{3,}ed|kept|given|made|sent|held|paid|done|taken|written|chosen|set|run|shown|built|sold)"
)
_MIDDLE = rf"(?P<middle>(?:\s+{_WORDS}){{0,6}}?)"
_GOES = r"(?P<verb>run|start|begin|end|close|open|expire|last|arrive|leave)"
_ROLES = r"approve|review|sign|check|manage|maintain|handle|coordinate|confirm|own|supervise|authori[sz]e"


_PATTERNS = tuple(
    (re.compile(pattern), question)
    for pattern, question in (
        (rf"{_SUBJECT}\s+(?P<be>is|are)\s+{_PARTICIPLE}\s+(?:with|using)\s", "How {be} {subject} {done}?"),
        (
            rf"{_SUBJECT}\s+(?P<be>is|are)\s+{_PARTICIPLE}{_MIDDLE}\s+{_TIME}",
            "When {be} {subject} {done}{middle}?",
        ),
        (
            rf"{_SUBJECT}\s+(?P<be>is|are)\s+{_PARTICIPLE}{_MIDDLE}\s+{_SPAN}",
            "How long {be} {subject} {done}{middle}?",
        ),
        (
            rf"{_SUBJECT}\s+(?P<modal>must|should)\s+(?P<do>(?!not\b|be\b){_WORDS}){_MIDDLE}\s+{_TIME}",
            "When {modal} {subject} {do}{middle}?",
        ),
        (
            rf"{_SUBJECT}\s+(?P<modal>must|should)\s+be\s+(?P<do>{_WORDS}){_MIDDLE}\s+{_TIME}",
            "When {modal} {subject} be {do}{middle}?",
        ),
        (rf"{_SUBJECT}\s+{_GOES}\s+(?:(?:daily|weekly|monthly)\s+)?{_TIME}", "When do {subject} {verb}?"),
        (rf"{_SUBJECT}\s+{_GOES}s\s+(?:(?:daily|weekly|monthly)\s+)?{_TIME}", "When does {subject} {verb}?"),
        (rf"{_SUBJECT}\s+{_GOES}s\s+{_SPAN}", "How long does {subject} {verb}?"),
        (
            rf"{_SUBJECT}\s+(?P<verb>keep|retain|store)s\s+(?P<thing>{_WORDS}(?:\s+{_WORDS}){{0,5}}?)\s+{_SPAN}",
            "How long does {subject} {verb} {thing}?",
        ),
        (
            rf"The\s+{_SUBJECT}\s+(?P<verb>(?:{_ROLES})s)\s+(?P<thing>{_WORDS}(?:\s+{_WORDS}){{0,7}})[.;]?$",
            "Who {verb} {thing}?",
        ),
        (
            rf"{_SUBJECT}\s+(?P<modal>may|can)\s+(?P<do>(?!not\b|be\b){_WORDS}(?:\s+{_WORDS}){{2,9}})[.;]?$",
            "{modal} {subject} {do}?",
        ),
        (
            r"(?P<subject>(?:The|Our)\s+[\w'’/-]+(?:\s+[\w'’/-]+){1,5}?)\s+(?P<be>is|are)\s+"
            r"(?:\d+|USD|EUR|up\s+to|at\s+(?:least|most)|between|the|an?)\b",
            "What {be} {subject}?",
        ),
    )
)

_POINTS_ELSEWHERE = re.compile(
    r"\b(?:it|its|this|that|these|those|they|their|there|we|us|you|your|he|she|his|her|which|who|then|also|if"
    r"|following|above|below|page|table|figure|only|no|not|none)\b",
    re.IGNORECASE,
)
_OPENERS = {"the", "a", "an", "all", "each", "every", "our", "any", "some", "new", "both", "most"}


def question_of(sentence: str, soften: Callable[[str], str]) -> str | None:
    """The question that an English sentence answers, or None.

    Args:
        sentence: one sentence on one line.
        soften: takes the capital off a word that only begins a sentence.
    """
    for pattern, question in _PATTERNS:
        if found := pattern.match(sentence):
            parts = {name: text or "" for name, text in found.groupdict().items()}
            asked = question.format(**parts | {"subject": _soften(parts["subject"], soften)})
            is_clear = asked.count(" ") >= 3 and not _POINTS_ELSEWHERE.search(" ".join(parts.values()))
            return asked[0].upper() + asked[1:] if is_clear else None
    return None


def _soften(subject: str, soften: Callable[[str], str]) -> str:
    first, space, rest = subject.partition(" ")
    return (first.lower() if first.lower() in _OPENERS else soften(first)) + space + rest
