"""A question that spans documents gets passages of each; one about a single document is not diluted."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from itertools import chain, zip_longest
from uuid import UUID

from bot.core.models import Passage

MIN_SCORE = 0.4
"""Share of the best score that a document's best passage reaches before it takes part, unless it is named."""

MAX_PER_DOCUMENT = 8
"""Documents that take part."""

_SPANS = re.compile(
    r"""\bcompar(?:e[sd]?|ing|ison)\b | \bdiffer(?:s|ent|ence|ences|ently)?\b | \b(?:vs|versus)\b | \bboth\b
      | \bwhich\ (?:of|ones?|\w+s)\b | \b(?:each|every|all)\ (?:of\ )?(?:the\ |our\ )?\w+s?\b
      | \bacross\b | \brespectively\b | \b(?:any|either|neither)\ of\b | \bin\ common\b | \bsame\b
      | \bhow\ many\ of\b | \b(?:more|less|higher|lower|longer|shorter|better|cheaper)\b.*\b(?:than|or)\b
      | \bunterschie\w+ | \bunterscheid\w+ | \bvergl\w+ | \bdiff[ée]ren\w+ | \bcompara\w+ | \bdiferen\w+""",
    re.IGNORECASE | re.VERBOSE,
)


def spans_documents(question: str) -> bool:
    """Whether the words ask for several documents: comparisons, "which of", "each of"."""
    return _SPANS.search(question) is not None


def diversify(passages: Sequence[Passage], named: Collection[UUID] = ()) -> list[Passage]:
    """The passages so that the documents take turns, each with its best first.

    Args:
        passages: best first.
        named: the documents that the question names; two of them leave the others for the end.
    """
    queues: dict[UUID, list[Passage]] = {}
    for passage in passages:
        queues.setdefault(passage.publication.document_id, []).append(passage)
    chosen = [id_ for id_ in queues if id_ in named]
    if len(chosen) < 2:
        least = MIN_SCORE * passages[0].score if passages else 0.0
        chosen = [id_ for id_, queue in queues.items() if queue[0].score >= least][:MAX_PER_DOCUMENT]
    turns = chain.from_iterable(zip_longest(*(queues[id_] for id_ in chosen)))
    others = (passage for passage in passages if passage.publication.document_id not in chosen)
    return [*filter(None, turns), *others]
