"""The whole list that a quote is of: who asks how it is done, or what there is, needs all of it, in order."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, zip_longest

from bot.core.models import Claim, Evidence, Language, Quote
from bot.core.understanding.answer_types import wants_list, wants_steps
from bot.core.verification.claims import page_at
from bot.core.wording import reply_words
from storage.text.sentences import Quotable, opens_box, split_units

# Most steps that are quoted; of a longer list those from the one that was asked for.
MAX_STEPS = 12

# Longest box before a list that is quoted with it.
MAX_BOX_CHARS = 600

_LINE = re.compile(r"^.*$", re.MULTILINE)
_STEP = re.compile(r"^[ \t]*\(?(?:step[ \t]+)?(\d{1,2}(?:\.\d{1,2})*)[.):]?[ \t]+(?=\S)", re.MULTILINE | re.I)


@dataclass(frozen=True, slots=True)
class _Step:
    """One numbered paragraph: ``7.2 Press Start.``"""

    number: tuple[int, ...]
    item: Evidence
    start: int
    end: int

    def follows(self, other: _Step) -> bool:
        """True if it is the next one of the same list."""
        return self.number == (*other.number[:-1], other.number[-1] + 1)

    def is_within(self, other: _Step) -> bool:
        """True if it is a step of a step of the same list: 7.2.1 beside 7.3."""
        depth = len(other.number)
        return len(self.number) > depth and self.number[: depth - 1] == other.number[:-1]


# A passage, and start and end of a part of its text.
Span = tuple[Evidence, int, int]


@dataclass(frozen=True, slots=True)
class StepList:
    """The list of steps that a step stands in."""

    # What is quoted of it, one part for each page.
    parts: tuple[Span, ...]
    # What is not, because it has more than ``MAX_STEPS`` steps.
    rest: tuple[Span, ...] = ()
    # Numbers of the steps of the rest, as printed.
    rest_numbers: tuple[str, ...] = ()
    # Numbers of the steps before its first one.
    left_out: tuple[str, ...] = ()

    def introduced(self, item: Evidence, start: int) -> StepList:
        """Return the same, from where the sentence before it begins that introduces it."""
        first, begin, end = self.parts[0]
        is_before = first is item and start < begin
        return replace(self, parts=((item, start, end), *self.parts[1:])) if is_before else self

    def guarded(self) -> StepList:
        """Return the same, from the box before its first step, which warns of something."""
        item, begin, end = self.parts[0]
        boxes = [one for one in _LINE.finditer(item.passage.text, 0, begin) if opens_box(one[0])]
        start = boxes[-1].start() if boxes else begin
        between = item.passage.text[start:begin]
        if not between or len(between) > MAX_BOX_CHARS or _STEP.search(between):
            return self
        return replace(self, parts=((item, start, end), *self.parts[1:]))

    def claims(self, language: Language) -> Iterator[Claim]:
        """A quote for each part; before them which steps they leave out, of the rest the page it is on."""
        if self.left_out:
            said = reply_words(language).earlier_steps(len(self.left_out), steps=_range(self.left_out))
            yield Claim(said, _quoted(self.parts[0])[1], is_reference=True)
        yield from (Claim(*_quoted(part)) for part in self.parts)
        if self.rest:
            item, start, _ = self.rest[0]
            count, page = len(self.rest_numbers), page_at(item, start)
            said = reply_words(language).more_steps(count, steps=_range(self.rest_numbers), page=page)
            quotes = tuple(quote for part in self.rest for quote in _quoted(part)[1])
            yield Claim(said, quotes, is_reference=True)


def _range(numbers: Sequence[str]) -> str:
    return "–".join(dict.fromkeys((numbers[0], numbers[-1])))


def _quoted(part: Span) -> tuple[str, tuple[Quote, ...]]:
    item, start, end = part
    text = item.passage.text[start:end]
    return text, (Quote(item.number, text, start),)


def whole_steps(item: Evidence, at: int, evidence: Iterable[Evidence]) -> StepList | None:
    """Return the list of steps that stands at an offset.

    It is followed through the passages beside it as far as they were read. None where no list of at least two
    steps stands there.

    Args:
        item: the passage of the step that was asked for.
        at: an offset in its text.
        evidence: all that was read.
    """
    steps = [step for one in _beside(item, evidence) for step in _steps(one)]
    asked = next((n for n, one in enumerate(steps) if one.item is item and one.start <= at < one.end), None)
    while asked is not None:
        first, last = _reach(steps, asked, -1), _reach(steps, asked, 1)
        while last + 1 < len(steps) and steps[last + 1].is_within(steps[asked]):
            last += 1
        depth = len(steps[asked].number)
        ranks = [place for place in range(first, last + 1) if len(steps[place].number) == depth]
        if len(ranks) > 1:
            begin = 0 if ranks.index(asked) < MAX_STEPS else ranks.index(asked)
            later = ranks[begin + MAX_STEPS :]
            stop = later[0] if later else last + 1
            first_shown = steps[ranks[begin]].number
            return StepList(
                tuple(_parts(steps[ranks[begin] : stop])),
                tuple(_parts(steps[stop : last + 1])),
                tuple(".".join(map(str, steps[place].number)) for place in later),
                tuple(
                    ".".join(map(str, (*first_shown[:-1], last_part)))
                    for last_part in range(1, first_shown[-1])
                ),
            )
        above = (place for place in range(asked) if steps[place].number == steps[asked].number[:-1])
        asked = max(above, default=None)
    return None


def asked_list(
    question: str, item: Evidence, quote: Quotable, evidence: Iterable[Evidence]
) -> StepList | None:
    """Return the list with its introduction that a quote introduces, or ends with an item of.

    None where it does neither, or the question asks neither how something is done nor what there is.

    Args:
        question: its words.
        item: the passage.
        quote: a part of its text.
        evidence: all that was read.
    """
    is_procedure = wants_steps(question)
    if not is_procedure and (quote.is_row or not wants_list(question)):
        return None
    rest = item.passage.text[quote.end :]
    following = quote.end + len(rest) - len(rest.lstrip())
    steps = whole_steps(item, following if quote.text.endswith(":") else quote.end - 1, evidence)
    if steps:
        return steps.introduced(item, quote.lead[0] if quote.lead else quote.start).guarded()
    return _guarded_by(item, quote, evidence) if is_procedure else _whole_bullets(item, quote)


def _guarded_by(item: Evidence, quote: Quotable, evidence: Iterable[Evidence]) -> StepList | None:
    """Return the list behind the box that a quote stands in."""
    first = _STEP.search(item.passage.text, quote.end)
    steps = whole_steps(item, first.start(1), evidence) if first else None
    guarded = steps.guarded() if steps else None
    return guarded if guarded and guarded.parts[0][1] <= quote.start else None


def _whole_bullets(item: Evidence, quote: Quotable) -> StepList | None:
    units = split_units(item.passage.text)
    inside = [(one.start, one.end, one.lead) for one in units if quote.start <= one.start < quote.end]
    leads = {one.lead for one in units}
    lead = next((span if (span := one[:2]) in leads else one[2] for one in reversed(inside)), None)
    if lead is None:
        return None
    members, stop = {lead}, lead[1]
    for one in units:
        if one.lead in members:
            members.add((one.start, one.end))
            stop = one.end
    return StepList(tuple(_on_pages(item, lead[0], stop)))


def _beside(item: Evidence, evidence: Iterable[Evidence]) -> list[Evidence]:
    """Return the passages that follow each other around one, in the order of the document."""
    places = {
        one.passage.ordinal: one
        for one in evidence
        if one.passage.publication.id == item.passage.publication.id
    }
    first = last = item.passage.ordinal
    while first - 1 in places:
        first -= 1
    while last + 1 in places:
        last += 1
    return [places[ordinal] for ordinal in range(first, last + 1)]


def _steps(item: Evidence) -> Iterator[_Step]:
    text = item.passage.text
    headings = {" ".join(heading.split()) for _, path in item.sections for heading in path}
    found = list(_STEP.finditer(text))
    for match, following in zip_longest(found, found[1:]):
        stop = following.start() if following else len(text)
        gap = text.find("\n\n", match.start(1), stop)
        whole = text[match.start() : stop if gap < 0 else gap]
        start = match.start() + len(whole) - len(whole.lstrip())
        if " ".join(whole.strip().partition("\n")[0].split()) in headings:
            continue
        number = tuple(int(part) for part in match[1].split("."))
        yield _Step(number, item, start, start + len(whole.strip()))


def _reach(steps: Sequence[_Step], asked: int, way: int) -> int:
    """The last step of its rank that a list comes to from one of them, going forward (1) or back (-1)."""
    reached = asked
    for place in range(asked + way, len(steps) if way > 0 else -1, way):
        one = steps[place]
        before, after = (steps[reached], one) if way > 0 else (one, steps[reached])
        if after.follows(before):
            reached = place
        elif not one.is_within(steps[asked]):
            break
    return reached


def _parts(steps: Sequence[_Step]) -> Iterator[Span]:
    """One stretch of text for each passage and page."""
    for _, group in groupby(steps, key=lambda one: one.item.number):
        members = list(group)
        yield from _on_pages(members[0].item, members[0].start, max(one.end for one in members))


def _on_pages(item: Evidence, start: int, end: int) -> Iterator[Span]:
    """Yield a stretch of a passage, page by page."""
    turns = [offset for offset, _ in item.page_starts if start < offset < end]
    for begin, stop in zip([start, *turns], [*turns, end], strict=True):
        if text := item.passage.text[begin:stop].strip():
            begins = item.passage.text.index(text, begin)
            yield item, begins, begins + len(text)
