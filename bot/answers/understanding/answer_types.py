"""Answer types: whether a question asks for a phone number, a price, a count, a figure, several documents ...

A text without the required number, price or date cannot be an answer. Only English questions require any.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from bot.answers.understanding.question_terms import FUNCTION_TERMS
from bot.answers.verification.negation_lexicon import NEGATIONS
from storage.models import FigureKind
from storage.text.analyzer import analyze, fold

# A question of up to this many words that names a figure and asks nothing else wants to see it.
BARE_WORDS = 6

# Subject terms needed if the thing to show is not called a figure: a single word fits too many things.
MIN_IMPLICIT_TERMS = 2

# Words that mean a figure and nothing else.
_SURE_NAMES = (
    r"charts?|graphs?|diagrams?|figure(?=\s+\d)|figures(?=\s+\d)|fig\.?(?=\s*\d)|histograms?|infographics?|"
    r"schematics?|flow[ -]?charts?|diagramme?|abbildung(?:en)?|schaubild(?:er)?|grafik(?:en)?|graphiques?|"
    r"schémas?|gráficos?|figuras?"
)
_NAMES = (
    rf"{_SURE_NAMES}|figure|plots?|pictures?|images?|photos?|photographs?|illustrations?|drawings?|"
    r"screen[ -]?shots?|maps?|exhibit|symbols?|pictograms?|icons?|curves?|spectr(?:um|a)|sketch(?:es)?"
)
_NAME = re.compile(rf"\b(?:{_NAMES})(?!\w)(?!\s+out\b)", re.IGNORECASE)
_SURE_NAME = re.compile(rf"\b(?:{_SURE_NAMES})(?!\w)|\b(?:{_NAMES})\W*$", re.IGNORECASE)
_PLURAL = re.compile(r"(?:s|en|er|me)$", re.IGNORECASE)
# A request, as the whole question or as a part of it.
_SHOW = re.compile(
    r"(?:^|[,;:.?!–—]|\s-)\W*"
    r"(?:(?:please|can you|could you|can i|may i|i(?:'d like| would like| want| need) to|let me|and)\s+)*"
    r"(?:(?P<sure>show|see|display|open|bring|pull up|look at|zeige?|montrez?|muestr[ae])|find|give|get|got"
    r"|where is|(?:is|are) there"
    rf"|do (?:you|we) have|which(?=\s+(?:{_NAMES})\b))\b",
    re.IGNORECASE,
)
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
# References to figures in a sentence: "Figures 1 and 2".
_NUMBERS = re.compile(
    r"\b(?:figures?|figs?|charts?|exhibits?|diagrams?|abbildung(?:en)?|abb|figuras?|graphiques?)\.?\s*"
    r"([a-z]?\d[\w.-]*(?:\s*(?:,|and|und|et|y|&)\s*[a-z]?\d[\w.-]*)*)",
    re.IGNORECASE,
)
_CAPTION = re.compile(rf"^\W*(?:{_NAMES}|abb)\.?\s*([a-z]?\d+(?:[.-]\d+)*[a-z]?)", re.IGNORECASE)
# Words for showing say nothing about a figure's subject.
_SHOWING = frozenset(analyze("shown shows depicted illustrated displayed drawn see look mean tell"))
_KINDS = {
    FigureKind.BAR: re.compile(r"\b(?:bar|column)(?= (?:chart|graph|plot))", re.IGNORECASE),
    FigureKind.LINE: re.compile(r"\bline(?= (?:chart|graph|plot))", re.IGNORECASE),
    FigureKind.PIE: re.compile(r"\bpie(?= (?:chart|graph))", re.IGNORECASE),
}

# Asks a figure for numbers or their trend.
_DATA = re.compile(
    r"""\b(?:numbers|data|values|statistics|trends?|growth|development|over\ time|how\ (?:many|much|often)
    |(?:by|per|each|every)\ (?:day|week|month|quarter|year)|zahlen|daten|werte|verlauf|entwicklung|wachstum
    |chiffres|données|tendances?|évolution|croissance|datos|cifras|tendencias?|evolución|crecimiento
    |dati|cifre|tendenz[ae]|andamento|crescita|dados|números|tendências?|evolução|cijfers|gegevens|groei)\b""",
    re.IGNORECASE | re.VERBOSE,
)

_COMPARISON = r"""\bcompar(?:e[sd]?|ing|isons?)\b | \bdiffer(?:s|ent|ence|ences|ently)?\b | \b(?:vs|versus)\b
      | \bunterschie\w+ | \bunterscheid\w+ | \bvergl\w+ | \bdiff[ée]ren\w+ | \bcompara\w+ | \bdiferen\w+
      | \bconfront\w+ | \bdifferenz\w+ | \bparagon\w+ | \bverschil\w* | \bvergelijk\w*"""
_SPANS = re.compile(
    rf"""{_COMPARISON} | \bboth\b
      | \bwhich\ (?:of|ones?|\w+s)\b | \b(?:each|every|all)\ (?:of\ )?(?:the\ |our\ )?\w+s?\b
      | \bacross\b | \brespectively\b | \b(?:any|either|neither)\ of\b | \bin\ common\b | \bsame\b
      | \bhow\ many\ of\b | \b(?:more|less|higher|lower|longer|shorter|better|cheaper)\b.*\b(?:than|or)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_COMPARES = re.compile(_COMPARISON, re.IGNORECASE | re.VERBOSE)

_HOW_TO = re.compile(
    r"""\bhow\ (?:do|can|could|should|must|would|to|does|is|are)\b | \bsteps?\b
      | \bprocedures?\ (?:for|to|when|if|in\ case)\b
      | \binstructions?\b | \bwhat\ (?:do|should|must)\ (?:i|we|you)\ do\b | \b(?:walk|talk)\ me\ through\b
      | \bnow\ what\b | \bwie\ (?:kann|muss|soll|wird|werden|geht)\b | \bcomment\b | \bc[óo]mo\b
      | \bschritte?\b | \b[ée]tapes?\b | \bpasos?\b""",
    re.IGNORECASE | re.VERBOSE,
)

_TABLE = re.compile(r"\b(?:tables?|tabellen?|tableaux?|tablas?|tabell[ae]|tabelas?)\b", re.IGNORECASE)

_LIST = re.compile(
    r"""\bwhat\ are\b | \blist\b | \b(?:name|show|tell\ me)\ all\b | \ball\ (?:of\ )?the\b | \beverything\b
      | \b(?:was|welche[rs]?)\ sind\b | \bquel(?:le)?s\ sont\b | \bcu[áa]les\ son\b | \bquali\ sono\b
      | \bquais\ s[ãa]o\b | \b(?:wat|welke)\ zijn\b""",
    re.IGNORECASE | re.VERBOSE,
)

_FLAGS = re.IGNORECASE | re.VERBOSE

_NUMERAL = r"""(?:\d[\d.,]* | \b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve
    |(?:thir|four|fif|six|seven|eigh|nine)teen|(?:twen|thir|for|fif|six|seven|eigh|nine)ty|hundred
    |half|once|twice|double|no|none|unlimited)\b)"""
_COUNT = rf"""(?:{_NUMERAL} | \b(?:several|both|an?)\b)"""
_SPAN = rf"""{_COUNT}[\s-]{{0,2}}(?:business\s|calendar\s|working\s)?
    (?:second|sec|minute|min|hour|hr|day|week|month|quarter|year|yr)s?\b
    | \b(?:dai|hour|week|month|quarter|year|annual)ly\b | \bannual\b"""
_SPEED = r"\d\W{0,2}(?:knots?|kts?|mph|km/h|kph|m/s|rpm)\b"
_DAY = r"""\d{1,4}[./-]\d{1,2}[./-]\d{1,4} | \d:\d\d | \b(?:19|20)\d{2}\b
    | \b(?:mon|tues|wednes|thurs|fri|satur|sun)day | \b(?:jan|feb|apr|jun|jul|aug|sept?|oct|nov|dec)\b
    | \b(?:jan|febr)uary\b | \b(?:march|april|may|june|july|august)\b | \b(?:septem|octo|novem|decem)ber\b"""

_OFFICE = r"(?:c[eft]o|president|chair\w*|director|owner|founder|author|manager|officer|head|supervisor)\b"

_TITLE = (
    r"(?:Chief|Vice|Senior|Executive|Officer|Manager|Director|President|Head|Department|Office|Team|Board)\b"
)

_PRICE = r"\bsalar(?:y|ies)\b | \bwages?\b | \bdollar\ amount\b | \bhow\ much\b.*\b(?:costs?|pay|price|fee)\b"
_FEE = r"""\bhow\ much\b.*\b(?:charge|salary|owe|money|reimburs\w*|worth|amount)\b | \bco-?pays?\b
    | \bfees?\b | \bdeductible\b | \bdollars?\b | \bprice\b | \bwhat\b.*\bcost\b | \bcommission\b
    | \ballowance\b"""

# (pattern of the question, pattern of its answer).
_REQUIRED_KINDS = (
    # a phone number
    (
        r"\b(?:tele)?phone\ number\b | \bnumber\ (?:do\ i|can\ i|to)\ (?:call|dial)\b",
        r"\d{3}\W{1,3}\d{3,4} | \+\d{6} | \bext\.?\s?\d | \b(?:911|112)\b",
    ),
    (r"\bfax(?:\ number)?\b", r"\d{3}\W{1,3}\d{3,4} | \+\d{6}"),
    (r"\bphone\b | \bwho\b.*\bcall\b", r"\d{3}\W{1,3}\d{3,4} | \+\d{6} | \bext\.?\s?\d | \b(?:911|112)\b"),
    # a warning
    (
        r"\b(?:warnings?|cautions?)\b",
        r"\b(?:never|do\ not|don['’]t|must\ not|should\ not|avoid|warning|caution|danger\w*|hazard\w*)\b",
    ),
    # an address
    (r"\be-?mail\ address\b", r"\S@\S"),
    (
        r"\b(?:url|web\s?(?:site|page|address)|link\ to)\b",
        r"https?:// | \bwww\. | \.(?:com|org|net|edu|gov|io)\b",
    ),
    (
        r"\b(?:street|mailing|postal)\ address\b | \bzip\ code\b",
        r"\b\d{5}\b | \bp\.?o\.?\ box\b | \d\ (?:\w+\ ){1,3}(?:street|st|avenue|ave|road|rd|drive|suite)\b",
    ),
    # a unique number or name
    (
        r"\b(?:account|serial|part|model|catalog|group|licen[cs]e|registration|tail|order|room)\ number\b",
        r"\b(?=[\w-]*\d)[\w-]{3,}",
    ),
    (
        rf"""\bwho(?:\ is|\ was|['’]?s)\ (?:the|our|my)\ (?:\w+\ ){{0,3}}{_OFFICE}
        | \b(?:the|their|his|her)\ names?\b | \bnames?\ of\ (?:the|our|my)\ (?:\w+\ ){{0,3}}{_OFFICE}""",
        rf"""(?-i:\b(?:Mr|Mrs|Ms|Dr|Prof)\.?\ [A-Z]
        | \b(?!{_TITLE})[A-Z][a-z'’-]+\ (?:[A-Z]\.\ )?(?!{_TITLE})[A-Z][a-z'’-]+)""",
    ),
    # a place
    (
        r"\b(?:which|what)\ (?:building|room|floor|street)\b",
        r"\b(?:building|room|floor|hall|house|street|st|avenue|ave|road|campus)\b",
    ),
    # money
    (
        _PRICE,
        r"[$€£¥]\s?\d | \d\s?(?:dollars|euros|pounds|usd|eur|cents|%|percent) | \bfree\b | \bcovered\b"
        r" | \bno\ (?:cost|charge|fee)",
    ),
    (
        _FEE,
        r"[$€£¥]\s?\d | \d\s?(?:dollars|euros|pounds|usd|eur|cents|%|percent) | \bfree\b"
        r" | \bno\ (?:cost|charge|fee)",
    ),
    # a percentage
    (r"\b(?:what|which)\ percent(?:age)?\b | \bhow\ many\ percent\b", r"\d\s?(?:%|percent)"),
    # an age
    (
        r"\bhow\ old\b | \b(?:what|which)\ age\b",
        r"\bage[ds]?\b\W{0,4}\d | \d\W?years?\W(?:of\Wage|old) | \bunder\ \d",
    ),
    # a speed
    (r"\bair\s?speed\b | \bwhat\ speed\b", _SPEED),
    (r"\bhow\ fast\b", rf"{_SPEED} | {_SPAN} | \b(?:until|immediate\w*)\b"),  # of a car, or of a reply
    # a temperature, a wavelength
    (
        r"\b(?:what|which)\ temp\w* | \bhow\ (?:hot|cold|warm)\b | \bdew\s?point\b",
        r"\d\W{0,2}(?:°|degrees?|[cfk]\b) | \broom\ temp",
    ),
    (r"\bwave\s?length\b", r"\d\W{0,2}nm\b"),
    # a time of the day
    (
        r"\b(?:at|by)?\ ?what\ time\b | \b(?:opening|business|office)\ hours\b",
        r"\d\s?(?:[ap]\.?m\b|o['’]clock) | \d:\d\d | \b(?:noon|midnight|24\ hours|around\ the\ clock)\b",
    ),
    # a date
    (r"\b(?:what|which)\ year\b", r"\b(?:1[89]|20)\d{2}\b"),
    (
        r"\b(?:what|which)\ (?:date|day)\b | \bdeadline\b | \bwhen\ (?:was|were|did)\b",
        rf"{_DAY} | {_SPAN}",
    ),
    (r"\b(?:what|which)\ month\b", _DAY),
    (
        r"\bwhen\b",
        rf"{_DAY} | {_SPAN} | \b(?:every|each|within|after|before|during|when|until|prior)\b",
    ),
    # how often, how long, how much
    (
        r"\bhow\ (?:often|frequently)\b",
        rf"{_SPAN} | \b(?:every|each|per|once|twice|times|after|before|periodic\w*|regular\w*)\b",
    ),
    (
        r"\bhow\ (?:long|soon|quickly)\b | \bnotice\ period\b",
        rf"{_SPAN} | \b(?:until|immediate\w*|permanent\w*|indefinitely|lifetime)\b",
    ),
    (
        r"""\bhow\ (?:big|large|high|deep|tall|heavy|far|wide|much|many|strong|old)\b
        | \bnumber\ of\b | \bdose\b
        | \b(?:what|which)\b(?:\s\w+){0,3}\s(?:number|no|altitude|horsepower|hp|percentage|size|weight|mass
        |volume|concentration|length|elevation|page|channel|dose|rate|limit|count|total|amount|score|ph|rpm
        |voltage|capacity|pressure|distance|height)\b
        | \b(?:serial|catalog|cat\.?|account|part|model|group|tail)\ (?:number|no)\b""",
        rf"{_NUMERAL} | \b(?:all|full\w*)\b",
    ),
)

_REQUIRED = tuple((re.compile(asked, _FLAGS), re.compile(held, _FLAGS)) for asked, held in _REQUIRED_KINDS)

_ASKS_PRICE = re.compile(rf"{_PRICE} | {_FEE}", _FLAGS)
# In whatever currency; the number of a table is none.
_AMOUNT = re.compile(
    rf"(?<!\d)(?<!table\ )(?<!figure\ )(?<!section\ ){_NUMERAL} | \b(?:free|covered|gratis)\b", _FLAGS
)

_HOW_MANY = re.compile(
    r"""\bhow\ many\ (?:of\ (?:the|these|those)\ |more\ |other\ |different\ |\w+(?:ed|al|ion|ing)\ )*
    (?P<noun>[a-z]{3,})""",
    _FLAGS,
)
_ENUMERATED = re.compile(r"^\W*\d+(?:\.\d+)*[.)]?\s")
_DIGITS = re.compile(r"\d(?:[\d.,:/-]*\d)?")
_ABBREVIATED = {"hour": r"h(?:ou)?rs?\b", "minute": r"min(?:ute)?s?\b", "year": r"y(?:ea)?rs?\b"}


class RequiredAnswer:
    """The kinds of answer that a question requires, such as a number or a date; falsy if none.

    Numbers in the question itself do not count: "Cessna 210" is no age.
    """

    def __init__(self, question: str) -> None:
        self._asks_price = _ASKS_PRICE.search(question) is not None
        self._kinds = [held for asked, held in _REQUIRED if asked.search(question)]
        self._kinds += [_counted(match["noun"].lower()) for match in _HOW_MANY.finditer(question)]
        own = sorted(set(_DIGITS.findall(question)), key=len, reverse=True) if self._kinds else []
        self._own = [re.compile(rf"(?<![\d.]){re.escape(number)}(?!\d)") for number in own]

    def __bool__(self) -> bool:
        return bool(self._kinds)

    def is_held_by(self, *texts: str) -> bool:
        """True if each required kind occurs in one of these texts, or if none is required."""
        others = [self._without_own_numbers(text) for text in texts] if self._kinds else []
        return all(any(kind.search(text) for text in others) for kind in self._kinds)

    def may_be_answered_by(self, *texts: str) -> bool:
        """False if the question asks for a price, and none of these texts has an amount.

        Other kinds are worded in too many ways to refuse a passage: "at nine", "on your first day".
        """
        return not self._asks_price or any(_AMOUNT.search(text) for text in texts)

    def parts_held(self, text: str) -> list[str]:
        """Return the parts of a text that match: whole words, and the next one, which may be a unit."""
        rest = self._without_own_numbers(text)
        return [
            rest[rest.rfind(" ", 0, found.start()) + 1 : _word_end(rest, _word_end(rest, found.end()))]
            for kind in self._kinds
            for found in kind.finditer(rest)
        ]

    def _without_own_numbers(self, text: str) -> str:
        rest = _ENUMERATED.sub("", text)
        for number in self._own:
            rest = number.sub(" ", rest)
        return rest


def _word_end(text: str, at: int) -> int:
    """Return the end of the word at an offset, or of the next one."""
    following = re.compile(r"\s?\S*").match(text, at)
    return following.end() if following else at


def _counted(noun: str) -> re.Pattern[str]:
    """Return a pattern for a number close to the counted noun, or for a list of such things."""
    if noun == "times":
        return re.compile(_COUNT, _FLAGS)
    stem = noun.removesuffix("ies") if noun.endswith("ies") else noun.removesuffix("s")
    counted = _ABBREVIATED.get(stem, rf"{stem}\w*")
    return re.compile(
        rf"""{_COUNT}\W{{0,4}}(?:[\w']+\W+){{0,3}}{counted} | \b{counted}\W{{0,4}}(?:\w+\W+){{0,3}}\d
        | \b{counted}[^\n]{{0,60}}:\s*\n""",
        _FLAGS,
    )


def wants_steps(question: str) -> bool:
    """True if a question asks how to do something, and for no number, date or the like.

    So "How many days do I get (steps to request leave)?", a follow-up with its context, asks for no steps.
    """
    return _HOW_TO.search(question) is not None and not RequiredAnswer(question)


def wants_list(question: str) -> bool:
    """True if a question asks for all items of a kind: "what are the values?"."""
    return _LIST.search(question) is not None and not RequiredAnswer(question)


def wants_whole_list(question: str) -> bool:
    """True if a question asks for a complete list: of steps, or of all items of a kind."""
    return wants_steps(question) or wants_list(question)


def wants_table(question: str) -> bool:
    """True if a question asks for a table, and for no number, date or the like from one of its rows."""
    return _TABLE.search(question) is not None and not RequiredAnswer(question)


def asks_whether(question: str) -> bool:
    """True for a yes/no question, which opens with its verb, in any language."""
    opening = re.search(r"[^\W_]+", fold(question).lower())
    return opening is not None and any(opening[0] in words.verbs for words in NEGATIONS.values())


def spans_documents(question: str) -> bool:
    """True if a question asks for several documents: comparisons, "which of", "each of"."""
    return _SPANS.search(question) is not None


def asks_across_documents(question: str) -> bool:
    """True if it spans documents apart from comparing: one document may hold both things compared."""
    return spans_documents(_COMPARES.sub(" ", question))


def compares(question: str) -> bool:
    """True if a question asks how things differ."""
    return _COMPARES.search(question) is not None


@dataclass(frozen=True, slots=True)
class FigureQuestion:
    """A parsed question about a figure."""

    # Asks for the figure itself, not for its content.
    wants_it: bool
    # Uses an unambiguous word for a figure, or asks to be shown something.
    is_sure: bool
    # Calls the thing a figure; otherwise it only asks to be shown something.
    names_one: bool
    wants_several: bool
    # "3" for "figure 3"; '' if it has none.
    number: str
    # Bar, line or pie, if it says so.
    kind: FigureKind | None
    # Asks for numbers or their trend, or for a kind of figure that shows them.
    wants_data: bool
    # Terms of the figure's subject.
    subject: frozenset[str]

    @property
    def is_particular(self) -> bool:
        """True if it identifies a figure by subject, number or kind."""
        enough = 1 if self.names_one else MIN_IMPLICIT_TERMS
        return bool(len(self.subject) >= enough or self.number or self.kind)

    def fits(self, caption: str, kind: FigureKind) -> bool:
        """True if a figure may be meant: neither its number nor its kind, if known, contradicts."""
        numbered = _CAPTION.match(caption)
        is_number = not self.number or (numbered is not None and numbered[1].lower() == self.number)
        return is_number and (self.kind is None or kind in {self.kind, FigureKind.UNKNOWN})


def speaks_of(quote: str, caption: str) -> bool:
    """True if a sentence is a figure's caption, or a part of it, or refers to the figure by number."""
    said, known = (" ".join(text.split()).casefold() for text in (quote, caption))
    if said and known and (said in known or known in said):
        return 2 * len(said.split()) >= len(known.split())
    numbered = _CAPTION.match(caption)
    return numbered is not None and any(
        numbered[1].lower() in re.findall(r"[a-z]?\d+(?:[.-]\d+)*[a-z]?", named[1].lower())
        for named in _NUMBERS.finditer(quote)
    )


def wants_figure(text: str) -> bool:
    """True if only a figure answers the question."""
    asked = figure_question(text)
    return asked is not None and asked.wants_it


def figure_question(text: str) -> FigureQuestion | None:
    """Parse a question about a figure; None if it mentions none."""
    named, requests = _NAME.search(text), list(_SHOW.finditer(text))
    is_shown = any(one["sure"] for one in requests)
    if named is None and not is_shown:
        return None
    number = _NUMBER.search(text)
    rest = _SHOW.sub(" ", text)
    for words in (*_KINDS.values(), _NUMBER, _NAME, _DATA):
        rest = words.sub(" ", rest)
    asks_in_words = _ASKS.match(text) and not (requests and requests[0].start() == 0)
    is_sure = is_shown or _SURE_NAME.search(text) is not None
    is_bare = len(text.split()) <= BARE_WORDS
    kind = next((kind for kind, words in _KINDS.items() if words.search(text)), None)
    return FigureQuestion(
        wants_it=named is not None and is_sure and (is_bare or bool(requests)) and not asks_in_words,
        is_sure=is_sure,
        names_one=named is not None,
        wants_several=named is not None and _PLURAL.search(named[0]) is not None and number is None,
        number=number[1].lower() if number else "",
        kind=kind,
        wants_data=kind is not None or _DATA.search(text) is not None,
        subject=frozenset(analyze(rest)) - FUNCTION_TERMS - _SHOWING,
    )
