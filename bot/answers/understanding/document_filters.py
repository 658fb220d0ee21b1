"""Document filters in a question, by kind, date and version: "only SOPs since 2023", "not the drafts".

A filter must be about documents. A time span counts after a word for documents ("reports from 2019 to 2021")
or after "only", an exclusion between two pauses. "How many accidents since 2019?" is about accidents.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from functools import lru_cache
from pathlib import PurePosixPath

from bot.answers.verification.dates import find_dates
from bot.answers.verification.number_lexicon import MONTHS
from bot.core.wording import ReplyWords
from storage.models import DocumentStatus

# Kinds of documents: the words for each in all languages, in questions and in document names.
KINDS = {
    "sop": r"sops?|standard operating procedures?|work instructions?|proc[eé]dures?|procedimentos?|"
    r"procedimientos?|procedur[ae]|(?:verfahrens|arbeits)anweisung(?:en)?|werkinstructies?",
    "policy": r"polic(?:y|ies)|\w*richtlinien?|politiques?|pol[ií]ticas?|politic(?:a|he)|beleid",
    "handbook": r"(?:hand|guide)books?|manuals?|\w*handb(?:uch|[üu]cher)|manuel(?:le)?s?|manuales|manual[ei]|"
    r"manuais|handleiding(?:en)?|handboek(?:en)?",
    "report": r"reports?|\w*berichte?n?|rapport(?:s|i|o|en)?|informes?|relat[oó]rios?|relazion[ei]",
    "guide": r"guide(?:line)?s?|leitf[aä]den|gu[ií]as?|guid[ae]|lignes directrices|richtlijn(?:en)?",
    "form": r"forms?|checklists?|formulare?|formulaires?|formul[aá]rios?|modul[oi]|formulier(?:en)?",
    "draft": r"drafts?|entw(?:urf|[üu]rfen?)|brouillons?|borrador(?:es)?|bozz[ae]|rascunhos?|concepten",
}

_ANY = (
    r"documents?|docs|files|pdfs|dokumenten?|dateien|unterlagen|fichiers|documentos?|archivos|document[oi]|"
    r"arquivos|documenten|bestanden|edi(?:tion|zion|ci[oó]n|ç[aã]o)\w*|versions?"
)
_KIND = "|".join((*KINDS.values(), _ANY)).replace(" ", r"\ ")
_NAMES = {kind: re.compile(rf"\b(?:{words})\b", re.IGNORECASE) for kind, words in KINDS.items()}

_ONLY = r"only|just|nur|seulement|uniquement|s[oó]lo|solamente|soltanto|apenas|somente|alleen|enkel"
_THE = r"(?:(?:the|our|all|die|den|der|das|les?|las?|los?|el|i|gli|os?|as?|de|het)\s+)?"
_FROM = r"(?:in|from|by|of|within|under|aus|von|im|dans|de|des|du|en|della?|di|do|da|van|uit)"
_MONTH = "|".join(sorted(MONTHS, key=len, reverse=True))
_DATE = (
    rf"(?:(?:\d{{1,2}}(?:st|nd|rd|th|er|\.)?\s+(?:of\s+|de\s+)?)?(?:{_MONTH})\.?(?:\s+\d{{1,2}}(?:st|nd|rd|th)?,?)?"
    r"\s+(?:de\s+)?)?(?:19|20)\d\d(?:-\d\d?){0,2}(?![\w/-])|\d{1,2}[./]\d{1,2}[./](?:19|20)\d\d(?!\w)"
)
_IL = r"(?:(?:the|il|le|dem|o)\s+)?"
_RANGE = rf"""(?:
    (?:between|from|zwischen|von|entre|du|des?|tra|fra|dal|da|tussen|van)\s+{_IL}(?P<first>{_DATE})
        \s*(?:-|–|and|to|until|through|und|bis|et|[àa]|au|y|al?|e|at[eé]|hasta|en|tot)\s*{_IL}(?P<last>{_DATE})
  | (?:from(?=\s+\S+(?:\s+\S+){{0,2}}\s+on(?:wards)?\b)|since|as\ of|seit|ab|depuis|[àa]\ partir\ d[eou]|desde
        |(?:a\ partire\ )?dal|vanaf|sinds)\s+{_IL}(?P<since>{_DATE})(?:\s+on(?:wards)?\b)?
  | (?:after|(?:later|newer)\ than|nach|neuer\ als|apr[eè]s|despu[eé]s\ de|dopo|depois\ de
        |ap[oó]s|na)\s+{_IL}(?P<after>{_DATE})
  | (?:before|(?:earlier|older)\ than|vor|[äa]lter\ als|avant|antes\ de|prima\ del|voor)
        \s+{_IL}(?P<before>{_DATE})
  | (?:until|till|up\ to|bis|jusqu.[àe]n?|hasta|fino\ al|at[eé]|tot)\s+{_IL}(?P<until>{_DATE})
  | (?:from|of|in|dated|von|aus|vom|im\ jahr|de|du|del|dell.|di|do|van|uit)\s+{_IL}(?P<within>{_DATE})
)"""
_SCOPED = re.compile(
    rf"""(?:\b(?P<only>{_ONLY})\s+)?(?:\b{_FROM}\s+)?\b{_THE}(?P<kind>{_KIND})\b
    (?:\s+{_FROM}\s+{_THE}(?!\d)[\w&-]+(?:\s+(?!\d)[\w&-]+)??)?\s*(?P<range>{_RANGE})?""",
    re.IGNORECASE | re.VERBOSE,
)
_ONLY_RANGE = re.compile(rf"\b(?:{_ONLY})\s+(?P<range>{_RANGE})", re.IGNORECASE | re.VERBOSE)
_WITHOUT = re.compile(
    rf"""\b(?:without|except(?:\ for)?|excluding|but\ not|not|no|nicht|keine|ohne|au(?:ß|ss)er|sans|sauf|pas
    |hors|sin|excepto|salvo|senza|tranne|non|sem|exceto|n[aã]o|zonder|behalve|niet|geen)\s+
    (?:{_FROM}\s+)?{_THE}(?P<kind>{_KIND})(?=\s*(?:[,;:.?!)]|$))""",
    re.IGNORECASE | re.VERBOSE,
)
_VERSION = re.compile(
    rf"""\b(?:{_ONLY}|in|from|per|according\ to|laut|nach|dans|selon|en|seg[uú]n|nella|secondo|na|volgens)
    \s+{_THE}(?P<said>(?:version|v(?:er)?\.?|rev(?:ision)?\.?|versione|versi[oó]n|vers[aã]o|versie|fassung)\ ?
    (?P<version>\d+(?:\.\d+)*))(?![\w.-]*\d)""",
    re.IGNORECASE | re.VERBOSE,
)
_FILE_VERSION = re.compile(r"(?<![a-z])v(?:er(?:sion)?)?[. _-]?(\d+(?:\.\d+)*)", re.IGNORECASE)
# Cheap pre-check: every filter contains a word for documents or a version, or "only".
MAY_FILTER = re.compile(
    rf"\b(?:{_KIND}|{_ONLY}|vers\w*|fassung|rev\w*|v(?:er)?\.?\s?\d[\d.]*)\b", re.IGNORECASE
)
_PAUSE = re.compile(
    r"(?:^|[,;:.(?!–-]|\b(?:and|but|und|aber|mais|pero|ma|mas|maar|et|y|e|en))\s*$", re.IGNORECASE
)
_PAUSE_BEHIND = re.compile(r"\s*(?:[,;:.?!)]|$)")
_ENDS_IN_KIND = re.compile(rf"\b(?:{_KIND})\s*$", re.IGNORECASE)
_IS_PLURAL = re.compile(r"(?:s|en|er|[aeio]n?i|e)$", re.IGNORECASE)


_YEAR_OR_MONTH = re.compile(r"(?P<year>(?:19|20)\d\d)(?:-(?P<month>0?[1-9]|1[0-2]))?")


@lru_cache(maxsize=10_000)
def read_days(text: str) -> tuple[date, date] | None:
    """Return the first and last day that a date, month or year may mean; None if it is none."""
    text = text.strip()
    if found := _YEAR_OR_MONTH.fullmatch(text):
        year, month = int(found["year"]), int(found["month"] or 0)
        return date(year, month or 1, 1), _last_day(year, month)
    days = [day for mention in find_dates(text)[:1] for day in mention.days]
    try:
        spans = [(date(year, month, day or 1), _last(year, month, day)) for month, day, year in days if year]
    except ValueError:  # not a day of the calendar
        return None
    return (min(spans)[0], max(last for _, last in spans)) if spans else None


def _last(year: int, month: int, day: int) -> date:
    return date(year, month, day) if day else _last_day(year, month)


def _last_day(year: int, month: int) -> date:
    """Return the last day of a month; of the year if ``month`` is 0."""
    return date(year, month or 12, calendar.monthrange(year, month or 12)[1])


@dataclass(frozen=True, slots=True)
class DaySpan:
    """An inclusive range of days; None: open-ended."""

    first: date | None = None
    last: date | None = None

    def __contains__(self, day: date | None) -> bool:
        """True if ``day`` is in the range; False for None."""
        return day is not None and (self.first or day) <= day <= (self.last or day)


@dataclass(frozen=True, slots=True)
class DocumentFilter:
    """A condition on documents, from one place in a question."""

    # (start, end) of the words that only filter and can be removed from the query.
    place: tuple[int, int]
    # Kind of document, as typed; '' for any kind.
    word: str = ""
    # Range of document dates.
    span: DaySpan | None = None
    version: str = ""
    # Documents of this kind are left out.
    is_excluded: bool = False

    def fits(self, document: DocumentStatus, day: date | None) -> bool:
        """True if a document with the date ``day`` may answer."""
        if self.is_excluded:
            return not is_of_kind(document, self.word)
        if self.version:
            return any(map(_is_version(self.version), _versions_of(document)))
        return (self.span is None or day in self.span) and is_of_kind(document, self.word)

    def named(self, words: ReplyWords) -> str:
        """Return the condition in the words of a reply."""
        if self.is_excluded:
            return words.filter_without(kind=self.word)
        if self.version:
            return words.version(version=self.version)
        first, last = (self.span.first, self.span.last) if self.span else (None, None)
        days = [words.filter_since(day=first.isoformat())] if first else []
        days += [words.filter_until(day=last.isoformat())] if last else []
        return ", ".join(filter(None, (self.word, *days)))


def read_filters(text: str) -> list[DocumentFilter]:
    """Parse the document filters of a question."""
    excluded = list(_exclusions(text))
    rest = _blanked(text, excluded)
    return [*_scopes(rest), *_versions(rest), *excluded]


def without_filters(text: str, filters: Iterable[DocumentFilter]) -> str:
    """Remove the filters from a question; a version stays, as it may be part of a name."""
    left = " ".join(_blanked(text, [one for one in filters if not one.version]).split())
    left = re.sub(r"\s+(?=[,;:.?!])|[,;:–-]\s*(?=[,;:.?!]|$)|^[\s,;:.–-]+", "", left)
    left = re.sub(r"([.?!])\s*[,;:.]+", r"\1", left).strip()
    return left if re.search(r"\w", left) else text


def _blanked(text: str, filters: Iterable[DocumentFilter]) -> str:
    """Replace the filters by spaces, so that all offsets stay valid."""
    for one in filters:
        start, end = one.place
        text = text[:start] + " " * (end - start) + text[end:]
    return text


def is_of_kind(document: DocumentStatus, word: str) -> bool:
    """True if a document is of the kind that a word names; every document is a "document"."""
    kinds = [kind for kind, names in _NAMES.items() if names.fullmatch(word)]
    return not kinds or any(_is_kind(document, kind) for kind in kinds)


def names_kind(word: str) -> bool:
    """True if a word names a kind of documents."""
    return any(names.fullmatch(word) for names in _NAMES.values())


def _is_kind(document: DocumentStatus, kind: str) -> bool:
    printed = document.metadata.get("document_type")
    file = re.sub(r"[_\W]+", " ", PurePosixPath(document.file).stem)
    said = " . ".join((document.title, file, printed.value if printed else ""))
    return (kind == "sop" and "sop_id" in document.metadata) or _NAMES[kind].search(said) is not None


def _exclusions(text: str) -> Iterator[DocumentFilter]:
    for found in _WITHOUT.finditer(text):
        before = text[: found.start()]
        if _is_several(found["kind"]) and (_PAUSE.search(before) or _ENDS_IN_KIND.search(before)):
            yield DocumentFilter(found.span(), found["kind"], is_excluded=True)


def _scopes(text: str) -> Iterator[DocumentFilter]:
    for found in _SCOPED.finditer(text):
        span = _span(found)
        is_kind_alone = found["only"] and _is_several(found["kind"]) and _PAUSE.search(text[: found.start()])
        if span or is_kind_alone:
            is_apart = _PAUSE.search(text[: found.start()]) and _PAUSE_BEHIND.match(text, found.end())
            place = found.span("range") if span and not is_apart else found.span()
            yield DocumentFilter(place, found["kind"], span)
    for found in _ONLY_RANGE.finditer(text):
        if span := _span(found):
            yield DocumentFilter(found.span(), span=span)


def _is_several(word: str) -> bool:
    """True if a word is the plural of a kind; the singular, as "report", may be a verb."""
    return _IS_PLURAL.search(word) is not None and names_kind(word)


def _span(found: re.Match[str]) -> DaySpan | None:
    """Return the days that a matched range means; None if there are none."""
    said = {name: read_days(found[name]) for name in _BOUNDS if found[name]}
    first = last = None
    for name, days in said.items():
        if days is None:
            return None
        lower, upper = _BOUNDS[name](*days)
        first, last = lower or first, upper or last
    return DaySpan(first, last) if said else None


_DAY = timedelta(days=1)
# Group of a range -> its first and last day, computed from the days that its date may mean.
_BOUNDS: Mapping[str, Callable[[date, date], tuple[date | None, date | None]]] = {
    "first": lambda first, _: (first, None),
    "last": lambda _, last: (None, last),
    "since": lambda first, _: (first, None),
    "after": lambda _, last: (last + _DAY, None),
    "before": lambda first, _: (None, first - _DAY),
    "until": lambda _, last: (None, last),
    "within": lambda first, last: (first, last),
}


def _versions(text: str) -> Iterator[DocumentFilter]:
    for found in _VERSION.finditer(text):
        yield DocumentFilter(found.span("said"), version=found["version"])


def _versions_of(document: DocumentStatus) -> list[str]:
    """Return the versions printed in a document and in its file name."""
    printed = document.metadata.get("version")
    return [*([printed.value] if printed else ()), *_FILE_VERSION.findall(PurePosixPath(document.file).stem)]


def _is_version(wanted: str) -> Callable[[str], bool]:
    """Return the predicate of a version: 2 accepts 02, v2.0 and 2.1; 2.1 does not accept 2."""
    parts = version_parts(wanted)
    return lambda other: version_parts(other)[: len(parts)] == parts


def version_parts(version: str) -> list[int]:
    """Split a version into numbers, so that 1.10 is newer than 1.9, and 03 equals 3."""
    return [int(part) for part in re.findall(r"\d+", version)]
