"""Whole lists for quotes: a question about steps, or about what there is, needs all items in order."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, takewhile, zip_longest

from bot.answers.understanding.answer_types import wants_list, wants_steps
from bot.answers.verification.claims import page_at
from bot.core.models import Claim, Evidence, Language, Quote
from bot.core.wording import reply_words
from storage.text.callouts import is_callout, opens_callout
from storage.text.sentences import Quotable, split_units

# Maximum steps or items quoted; of a longer list those from the requested one.
MAX_STEPS = 12

# Maximum length of a callout that is quoted with the list after it.
MAX_CALLOUT_CHARS = 600

# (passage, start, end) of a part of its text.
Span = tuple[Evidence, int, int]

_LINE = re.compile(r"^.*$", re.MULTILINE)
_STEP = re.compile(r"^[ \t]*\(?(?:step[ \t]+)?(\d{1,2}(?:\.\d{1,2})*)[.):]?[ \t]+(?=\S)", re.MULTILINE | re.I)


@dataclass(frozen=True, slots=True)
class _Step:
    """Numbered paragraph: ``7.2 Press Start.``"""

    number: tuple[int, ...]
    item: Evidence
    start: int
    end: int

    @property
    def span(self) -> Span:
        """Place of the step in its passage."""
        return self.item, self.start, self.end

    def follows(self, other: _Step) -> bool:
        """True if it is the next step of the same list."""
        return self.number == (*other.number[:-1], other.number[-1] + 1)

    def is_within(self, other: _Step) -> bool:
        """True if it is a substep in the same list: 7.2.1 next to 7.3."""
        depth = len(other.number)
        return len(self.number) > depth and self.number[: depth - 1] == other.number[:-1]


@dataclass(frozen=True, slots=True)
class StepList:
    """The list that a step belongs to."""

    # Quoted parts, one per page.
    parts: tuple[Span, ...]
    # Parts beyond ``MAX_STEPS`` steps, which are not quoted.
    rest: tuple[Span, ...] = ()
    # Step numbers of the rest, as printed; of bullets their marks.
    rest_numbers: tuple[str, ...] = ()
    # Step numbers before the first one quoted.
    left_out: tuple[str, ...] = ()

    def with_introduction(self, item: Evidence, start: int) -> StepList:
        """Return the list extended by the sentence that introduces it, which begins at ``start``."""
        first, begin, end = self.parts[0]
        is_before = first is item and start < begin
        return replace(self, parts=((item, start, end), *self.parts[1:])) if is_before else self

    def with_callouts(self) -> StepList:
        """Return the list, extended by the callouts before its first step in each passage."""
        guarded = (_on_pages(item, _callout_start(item, start), end) for item, start, end in self.parts)
        return replace(self, parts=tuple(span for part in guarded for span in part))

    def claims(self, language: Language) -> Iterator[Claim]:
        """Yield a quote per part; the steps left out before them, and the page of the rest after them."""
        if self.left_out:
            said = reply_words(language).earlier_steps(len(self.left_out), steps=_range(self.left_out))
            yield Claim(said, _quoted(self.parts[0])[1], is_reference=True)
        yield from (Claim(*_quoted(part)) for part in self.parts)
        if self.rest:
            item, start, _ = self.rest[0]
            count, page, words = len(self.rest_numbers), page_at(item, start), reply_words(language)
            steps = _range(self.rest_numbers)
            is_numbered = any(map(str.isdigit, steps))
            said = (
                words.more_steps(count, steps=steps, page=page)
                if is_numbered
                else words.more_items(count, page=page)
            )
            quotes = tuple(quote for part in self.rest for quote in _quoted(part)[1])
            yield Claim(said, quotes, is_reference=True)


def _range(numbers: Sequence[str]) -> str:
    return "–".join(dict.fromkeys((numbers[0], numbers[-1])))


def _quoted(part: Span) -> tuple[str, tuple[Quote, ...]]:
    item, start, end = part
    text = item.passage.text[start:end]
    return text, (Quote(item.number, text, start),)


def is_step(text: str) -> bool:
    """True if a text begins with the number of a step: ``7.2 Press Start.``"""
    return _STEP.match(text) is not None


def whole_steps(item: Evidence, at: int, evidence: Iterable[Evidence]) -> StepList | None:
    """Return the list of steps at an offset; None if it has fewer than two steps.

    The list is followed through the adjacent passages, as far as they were read.

    Args:
        item: the passage of the requested step.
        at: an offset in its text.
        evidence: all passages that were read.
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
                tuple(_grouped(one.span for one in steps[ranks[begin] : stop])),
                tuple(_grouped(one.span for one in steps[stop : last + 1])),
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
    """Return the list that a quote introduces or ends in, with its lead-in.

    None if it does neither, or the question asks neither for steps nor for a list.

    Args:
        question: its text.
        item: the passage.
        quote: a part of its text.
        evidence: all passages that were read.
    """
    is_procedure = wants_steps(question)
    if not is_procedure and (quote.is_row or not wants_list(question)):
        return None
    rest = item.passage.text[quote.end :]
    following = quote.end + len(rest) - len(rest.lstrip())
    steps = whole_steps(item, following if quote.text.endswith(":") else quote.end - 1, evidence)
    if steps:
        return steps.with_introduction(item, quote.lead[0] if quote.lead else quote.start).with_callouts()
    return _guarded_by(item, quote, evidence) if is_procedure else _whole_bullets(item, quote, evidence)


def _guarded_by(item: Evidence, quote: Quotable, evidence: Iterable[Evidence]) -> StepList | None:
    """Return the list after the callout that contains a quote."""
    first = _STEP.search(item.passage.text, quote.end)
    steps = whole_steps(item, first.start(1), evidence) if first else None
    guarded = steps.with_callouts() if steps else None
    return guarded if guarded and guarded.parts[0][1] <= quote.start else None


def _whole_bullets(item: Evidence, quote: Quotable, evidence: Iterable[Evidence]) -> StepList | None:
    """Return the list that a quote introduces or is in, with its parts in the adjacent passages.

    A list that is cut where a chunk ends goes on in the next one below its lead-in, which is repeated there.
    """
    lead = _lead_of(item, quote)
    if lead is None:
        return None
    said, passages = _plain(item, lead), _beside(item, evidence)
    at = passages.index(item)
    lists = [(item, lead)]
    for one in passages[at + 1 :]:
        if (again := _opening_lead(one, said)) is None:
            break
        lists.append((one, again))
    for one, below in zip(reversed(passages[:at]), reversed(passages[: at + 1]), strict=False):
        earlier = _last_lead(one, said) if _opening_lead(below, said) else None
        if earlier is None:
            break
        lists.insert(0, (one, earlier))
    found = [entry for one, span in lists for entry in _entries(one, span)]
    own = [place for place, entry in enumerate(found) if entry[0] is item]
    if not own:
        return StepList(tuple(_on_pages(item, *lead)))
    begin = 0 if own[0] < MAX_STEPS else own[0]
    stop = max(begin + MAX_STEPS, own[-1] + 1)
    first = found[begin][0]
    (start,) = (span[0] for one, span in lists if one is first)
    later = found[stop:]
    return StepList(
        tuple(_grouped([(first, start, found[begin][2]), *found[begin + 1 : stop]])),
        tuple(_grouped(later)),
        ("•",) * len(later),
    )


def _lead_of(item: Evidence, quote: Quotable) -> tuple[int, int] | None:
    """Return the lead-in that a quote contains, or that of its last item; None if it is in no list."""
    units = split_units(item.passage.text)
    leads = {one.lead for one in units}
    inside = [one for one in units if quote.start <= one.start < quote.end]
    spans = ((one.start, one.end) if (one.start, one.end) in leads else one.lead for one in reversed(inside))
    return next(spans, None)


def _plain(item: Evidence, span: tuple[int, int]) -> str:
    return " ".join(item.passage.text[slice(*span)].split())


def _opening_lead(item: Evidence, said: str) -> tuple[int, int] | None:
    """Return where the lead-in stands among those that open a passage; None if it does not."""
    units = split_units(item.passage.text)
    leads = {one.lead for one in units}
    opening = takewhile(leads.__contains__, ((one.start, one.end) for one in units))
    return next((span for span in opening if _plain(item, span) == said), None)


def _last_lead(item: Evidence, said: str) -> tuple[int, int] | None:
    """Return where the lead-in stands if its list reaches the end of a passage; else None."""
    units = split_units(item.passage.text)
    above = {(one.start, one.end): one.lead for one in units}
    lead = units[-1].lead if units else None
    while lead and _plain(item, lead) != said:
        lead = above[lead]
    return lead


def _entries(item: Evidence, lead: tuple[int, int]) -> list[Span]:
    """Return the items of a list, each with what it introduces."""
    members, found = {lead}, list[Span]()
    for one in split_units(item.passage.text):
        if one.lead in members:
            members.add((one.start, one.end))
            if one.lead == lead:
                found.append((item, one.start, one.end))
            else:
                found[-1] = (item, found[-1][1], one.end)
    return found


def _beside(item: Evidence, evidence: Iterable[Evidence]) -> list[Evidence]:
    """Return the consecutive passages around one, in document order."""
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


def _callout_start(item: Evidence, begin: int) -> int:
    """Return where the callouts directly before an offset begin; the offset itself if there are none."""
    text, start = item.passage.text, begin
    labels = [one for one in _LINE.finditer(text, 0, begin) if opens_callout(one[0])]
    for label in reversed(labels):
        between = text[label.start() : start]
        # Another callout follows this one directly: its label may be a block of its own.
        is_next = start == begin or between.strip().count("\n\n") <= is_callout(label[0])
        has_step = any(label.start() <= step.start < begin for step in _steps(item))
        if not is_next or has_step or len(between) > MAX_CALLOUT_CHARS:
            break
        start = label.start()
    return start


def _reach(steps: Sequence[_Step], asked: int, way: int) -> int:
    """Return the last step of the same level in a list, searching forward (1) or back (-1)."""
    reached = asked
    for place in range(asked + way, len(steps) if way > 0 else -1, way):
        one = steps[place]
        before, after = (steps[reached], one) if way > 0 else (one, steps[reached])
        if after.follows(before):
            reached = place
        elif not one.is_within(steps[asked]):
            break
    return reached


def _grouped(spans: Iterable[Span]) -> Iterator[Span]:
    """Yield one span for each passage and page."""
    for _, group in groupby(spans, key=lambda one: one[0].number):
        members = list(group)
        yield from _on_pages(members[0][0], members[0][1], members[-1][2])


def _on_pages(item: Evidence, start: int, end: int) -> Iterator[Span]:
    """Yield a span of a passage, split at its page breaks."""
    turns = [offset for offset, _ in item.page_starts if start < offset < end]
    for begin, stop in zip([start, *turns], [*turns, end], strict=True):
        if text := item.passage.text[begin:stop].strip():
            begins = item.passage.text.index(text, begin)
            yield item, begins, begins + len(text)
