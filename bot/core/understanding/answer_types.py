"""What a text must hold to answer a question for a phone number, a price, a time or a number of things.

A text without it is no answer at all. Questions in other languages than English require nothing.
"""

from __future__ import annotations

import re

_FLAGS = re.IGNORECASE | re.VERBOSE

_COUNT = r"""(?:\d[\d.,]* | \b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty
    |thirty|sixty|ninety|half|once|twice|no|none|unlimited|several|both|an?)\b)"""
_SPAN = rf"""{_COUNT}[\s-]{{0,2}}(?:business\s|calendar\s|working\s)?
    (?:second|sec|minute|min|hour|hr|day|week|month|quarter|year|yr)s?\b
    | \b(?:dai|hour|week|month|quarter|year|annual)ly\b | \bannual\b"""
_DAY = r"""\d{1,4}[./-]\d{1,2}[./-]\d{1,4} | \d:\d\d | \b(?:19|20)\d{2}\b
    | \b(?:mon|tues|wednes|thurs|fri|satur|sun)day | \b(?:jan|feb|apr|jun|jul|aug|sept?|oct|nov|dec)\b
    | \b(?:jan|febr)uary\b | \b(?:march|april|may|june|july|august)\b | \b(?:septem|octo|novem|decem)ber\b"""

_REQUIRED_KINDS = (
    # a phone number
    (
        r"\b(?:tele)?phone\ number\b | \bnumber\ (?:do\ i|can\ i|to)\ (?:call|dial)\b",
        r"\d{3}\W{1,3}\d{3,4} | \+\d{6} | \bext\.?\s?\d | \b(?:911|112)\b",
    ),
    (r"\bfax(?:\ number)?\b", r"\d{3}\W{1,3}\d{3,4} | \+\d{6}"),
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
    # what one thing alone is called or numbered by
    (
        r"\b(?:account|serial|part|model|catalog|group|licen[cs]e|registration|tail|order|room)\ number\b",
        r"\b(?=[\w-]*\d)[\w-]{3,}",
    ),
    (
        r"\bwho\ (?:is|was)\ (?:the|our)\ (?:c[eft]o|president|chair\w*|director|owner|founder|author)\b",
        r"(?-i:\b(?:Mr|Mrs|Ms|Dr|Prof)\.?\ [A-Z] | \b[A-Z][a-z'’-]+\ (?:[A-Z]\.\ )?[A-Z][a-z'’-]+)",
    ),
    # money
    (
        r"\bsalar(?:y|ies)\b | \bwages?\b | \bdollar\ amount\b | \bhow\ much\b.*\b(?:costs?|pay|price|fee)\b",
        r"[$€£¥]\s?\d | \d\s?(?:dollars|euros|pounds|usd|eur|cents|%|percent) | \bfree\b | \bcovered\b"
        r" | \bno\ (?:cost|charge|fee)",
    ),
    # a share
    (r"\b(?:what|which)\ percent(?:age)?\b | \bhow\ many\ percent\b", r"\d\s?(?:%|percent)"),
    # an age
    (
        r"\bhow\ old\b | \b(?:what|which)\ age\b",
        r"\bage[ds]?\b\W{0,4}\d | \d\W?years?\W(?:of\Wage|old) | \bunder\ \d",
    ),
    # a speed
    (
        r"\bhow\ fast\b | \bair\s?speed\b | \bwhat\ speed\b",
        r"\d\W{0,2}(?:knots?|kts?|mph|km/h|kph|m/s|rpm)\b",
    ),
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
    # a day
    (r"\b(?:what|which)\ year\b", r"\b(?:1[89]|20)\d{2}\b"),
    (
        r"\b(?:what|which)\ (?:date|day)\b | \bdeadline\b | \bwhen\ (?:was|were|did)\b",
        rf"{_DAY} | {_SPAN}",
    ),
    # how often, how long, how much
    (
        r"\bhow\ (?:often|frequently)\b",
        rf"{_SPAN} | \b(?:every|each|per|once|twice|times|after|before|periodic\w*|regular\w*)\b",
    ),
    (r"\bhow\ (?:long|soon|quickly)\b", rf"{_SPAN} | \d | \b(?:until|immediate\w*|as\ soon|once)\b"),
    (
        r"\bhow\ (?:big|large|high|deep|tall|heavy|far|wide|much)\b",
        rf"{_COUNT} | \b(?:all|full\w*|half)\b",
    ),
)
"""(what a question says, what its answer holds)."""

_REQUIRED = tuple((re.compile(asked, _FLAGS), re.compile(held, _FLAGS)) for asked, held in _REQUIRED_KINDS)

_HOW_MANY = re.compile(
    r"""\bhow\ many\ (?:of\ (?:the|these|those)\ |more\ |other\ |different\ |\w+(?:ed|al|ion|ing)\ )*
    (?P<noun>[a-z]{3,})""",
    _FLAGS,
)
_ABBREVIATED = {"hour": r"h(?:ou)?rs?\b", "minute": r"min(?:ute)?s?\b", "year": r"y(?:ea)?rs?\b"}


def required_answers(question: str) -> list[re.Pattern[str]]:
    """One pattern for each kind of answer that is asked for; none where any words would do."""
    kinds = [held for asked, held in _REQUIRED if asked.search(question)]
    return kinds + [_counted(match["noun"].lower()) for match in _HOW_MANY.finditer(question)]


def _counted(noun: str) -> re.Pattern[str]:
    """A number near what is counted, before or behind it, or a list of such things."""
    if noun == "times":
        return re.compile(_COUNT, _FLAGS)
    stem = noun.removesuffix("ies") if noun.endswith("ies") else noun.removesuffix("s")
    counted = _ABBREVIATED.get(stem, rf"{stem}\w*")
    return re.compile(
        rf"""{_COUNT}\W{{0,4}}(?:[\w']+\W+){{0,3}}{counted} | \b{counted}\W{{0,4}}(?:\w+\W+){{0,3}}\d
        | \b{counted}[^\n]{{0,60}}:\s*\n""",
        _FLAGS,
    )
