"""Which kind of answer a question asks for, and how a text that could be one looks."""

from __future__ import annotations

import re

_FLAGS = re.IGNORECASE | re.VERBOSE

_AMOUNT = re.compile(
    r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|twelve|half|once|twice|none|unlimited)\b",
    _FLAGS,
)
_MONEY = re.compile(r"[$€£¥]\s?\d|\d[\d,.]*\s?(?:dollars|euros|pounds|usd|eur|%|percent)\b", _FLAGS)
_DATE = re.compile(
    r"""\d{1,4}[./-]\d{1,2}[./-]\d{1,4} | \b\d{1,2}:\d{2}\b | \b(?:19|20)\d{2}\b | \b\d{1,2}\s*[ap]\.?m\b
      | \b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b | \b(?:dai|week|month|quarter|year|annual)ly\b
      | \b(?:january|february|march|april|june|july|august|september|october|november|december)\b
      | \b(?:day|week|month|year|hour|minute)s?\b""",
    _FLAGS,
)
_REASON = re.compile(
    r"\b(?:because|since|due\ to|so\ that|in\ order\ to|purpose|caused?|reason|result(?:ed)?\ (?:of|from))\b",
    _FLAGS,
)
_NAME = r"(?<=[a-z,;:)]\ )[A-Z][\w'’-]+"
_PERSON = re.compile(
    rf"""{_NAME} | \b(?:manager|officer|director|team|department|staff|supervisor|representative
      |coordinator|committee|president|engineer|employee)s?\b""",
    re.VERBOSE,
)
_PLACE = re.compile(rf"{_NAME} | \b(?:at|near|under|inside|room|building|site|office|portal)\b", re.VERBOSE)

_KINDS = (
    (r"\bhow\ much\ (?:do|does|is|are|will|can|money)\b | \b(?:cost|price|fee|copay|premium)s?\b", _MONEY),
    (r"\bhow\ (?:many|much|long|often|far|fast|old|high|deep|large|big)\b", _AMOUNT),
    (r"\b(?:number|percentage|amount|rate)\ of\b | \b(?:maximum|minimum|limit|deductible)\b", _AMOUNT),
    (r"\bwhen\b | \bwhat\ (?:time|date|year|day)\b | \bhow\ (?:soon|long|often)\b | \bdeadline\b", _DATE),
    (r"\bwhy\b | \bwhat\ (?:caused|is\ the\ (?:reason|purpose|cause))\b", _REASON),
    (r"\bwho(?:m|se)?\b", _PERSON),
    (r"\bwhere\b", _PLACE),
)
_ASKED = tuple((re.compile(asks, _FLAGS), answer) for asks, answer in _KINDS)


def answer_type_patterns(question: str) -> list[re.Pattern[str]]:
    """What an answer's text would hold, one pattern for each kind that the question asks for."""
    return [answer for asks, answer in _ASKED if asks.search(question)]
