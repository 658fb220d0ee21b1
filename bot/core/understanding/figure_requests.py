"""What a question says of figures: that it wants to see one, which kind, and which number."""

from __future__ import annotations

import re
from dataclasses import dataclass

from bot.core.understanding.question_terms import FUNCTION_TERMS
from storage.models import FigureKind
from storage.text.analyzer import analyze

BARE_WORDS = 6
"""A question of no more words that names a figure and asks nothing else wants to see it."""

MIN_IMPLICIT_TERMS = 2
"""What is asked to be shown, and is not called a figure, is one of many things by a single word."""

_SURE_NAMES = (
    r"charts?|graphs?|diagrams?|figure(?=\s+\d)|figures(?=\s+\d)|fig\.?(?=\s*\d)|histograms?|infographics?|"
    r"schematics?|flow[ -]?charts?|diagramme?|abbildung(?:en)?|schaubild(?:er)?|grafik(?:en)?|graphiques?|"
    r"schémas?|gráficos?|figuras?"
)
"""They name a figure and nothing else."""
_NAMES = (
    rf"{_SURE_NAMES}|figure|plots?|pictures?|images?|photos?|photographs?|illustrations?|drawings?|"
    r"screen[ -]?shots?|maps?|exhibit|symbols?|pictograms?|icons?|curves?|spectr(?:um|a)|sketch(?:es)?"
)
_NAME = re.compile(rf"\b(?:{_NAMES})(?!\w)(?!\s+out\b)", re.IGNORECASE)
_SURE_NAME = re.compile(rf"\b(?:{_SURE_NAMES})(?!\w)|\b(?:{_NAMES})\W*$", re.IGNORECASE)
_PLURAL = re.compile(r"(?:s|en|er|me)$", re.IGNORECASE)
_SHOW = re.compile(
    r"(?:^|[,;:.?!–—]|\s-)\W*"
    r"(?:(?:please|can you|could you|can i|may i|i(?:'d like| would like| want| need) to|let me|and)\s+)*"
    r"(?:(?P<sure>show|see|display|open|bring|pull up|look at|zeige?|montrez?|muestr[ae])|find|give|get|got"
    r"|where is|(?:is|are) there"
    rf"|do (?:you|we) have|which(?=\s+(?:{_NAMES})\b))\b",
    re.IGNORECASE,
)
"""A request, as the question or as a part of it."""
_ASKS = re.compile(
    r"^\W*(?:what|who|when|where|why|how|which|whose|is|are|was|were|do|does|did|can|could|may|must|should|"
    r"will|would|has|have|had)\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(
    r"\b(?:figures?|fig|charts?|exhibit|diagram|abbildung|abb|figura|graphique)\.?\s*"
    r"([a-z]?\d+(?:[.-]\d+)*[a-z]?)\b",
    re.IGNORECASE,
)
_NUMBERS = re.compile(
    r"\b(?:figures?|figs?|charts?|exhibits?|diagrams?|abbildung(?:en)?|abb|figuras?|graphiques?)\.?\s*"
    r"([a-z]?\d[\w.-]*(?:\s*(?:,|and|und|et|y|&)\s*[a-z]?\d[\w.-]*)*)",
    re.IGNORECASE,
)
"""How a sentence names figures: "Figures 1 and 2"."""
_CAPTION = re.compile(rf"^\W*(?:{_NAMES}|abb)\.?\s*([a-z]?\d+(?:[.-]\d+)*[a-z]?)", re.IGNORECASE)
_SHOWING = frozenset(analyze("shown shows depicted illustrated displayed drawn see look mean tell"))
"""What a figure does is not what it is about."""
_KINDS = {
    FigureKind.BAR: re.compile(r"\b(?:bar|column)(?= (?:chart|graph|plot))", re.IGNORECASE),
    FigureKind.LINE: re.compile(r"\bline(?= (?:chart|graph|plot))", re.IGNORECASE),
    FigureKind.PIE: re.compile(r"\bpie(?= (?:chart|graph))", re.IGNORECASE),
}


@dataclass(frozen=True, slots=True)
class FigureQuestion:
    """A question that speaks of a figure."""

    wants_it: bool
    """It asks for the figure itself, not for what it says."""
    is_sure: bool
    """It names a figure by a word that means nothing else, or asks to be shown something."""
    names_one: bool
    """It calls what it speaks of a figure; otherwise it only asks to be shown something."""
    wants_several: bool
    number: str
    """As "3" of "figure 3", '' when it gives none."""
    kind: FigureKind | None
    """bar, line or pie, when it says so."""
    subject: frozenset[str]
    """The terms that say what the figure is about."""

    @property
    def is_particular(self) -> bool:
        """It says which figure, in some way."""
        enough = 1 if self.names_one else MIN_IMPLICIT_TERMS
        return bool(len(self.subject) >= enough or self.number or self.kind)

    def fits(self, caption: str, kind: FigureKind) -> bool:
        """Whether a figure can be meant: neither another number nor surely another kind."""
        numbered = _CAPTION.match(caption)
        is_number = not self.number or (numbered is not None and numbered[1].lower() == self.number)
        return is_number and (self.kind is None or kind in {self.kind, FigureKind.UNKNOWN})


def speaks_of(quote: str, caption: str) -> bool:
    """Whether a sentence is a figure's caption, or a part of it, or names the figure by its number."""
    said, known = (" ".join(text.split()).casefold() for text in (quote, caption))
    if said and known and (said in known or known in said):
        return 2 * len(said.split()) >= len(known.split())
    numbered = _CAPTION.match(caption)
    return numbered is not None and any(
        numbered[1].lower() in re.findall(r"[a-z]?\d+(?:[.-]\d+)*[a-z]?", named[1].lower())
        for named in _NUMBERS.finditer(quote)
    )


def wants_figure(text: str) -> bool:
    """Whether nothing but a figure answers the question."""
    asked = figure_question(text)
    return asked is not None and asked.wants_it


def figure_question(text: str) -> FigureQuestion | None:
    """What a question says of figures; None when it speaks of none."""
    named, requests = _NAME.search(text), list(_SHOW.finditer(text))
    is_shown = any(one["sure"] for one in requests)
    if named is None and not is_shown:
        return None
    number = _NUMBER.search(text)
    asks_in_words = _ASKS.match(text) and not (requests and requests[0].start() == 0)
    is_sure = is_shown or _SURE_NAME.search(text) is not None
    is_bare = len(text.split()) <= BARE_WORDS
    return FigureQuestion(
        wants_it=named is not None and is_sure and (is_bare or bool(requests)) and not asks_in_words,
        is_sure=is_sure,
        names_one=named is not None,
        wants_several=named is not None and _PLURAL.search(named[0]) is not None and number is None,
        number=number[1].lower() if number else "",
        kind=next((kind for kind, words in _KINDS.items() if words.search(text)), None),
        subject=_subject(text),
    )


def _subject(text: str) -> frozenset[str]:
    rest = _SHOW.sub(" ", text)
    for words in (*_KINDS.values(), _NUMBER, _NAME):
        rest = words.sub(" ", rest)
    return frozenset(analyze(rest)) - FUNCTION_TERMS - _SHOWING
