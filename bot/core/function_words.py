"""Words that ask or join and name nothing: they weigh nothing when it is judged what a text covers.

English first; of the other languages all small words that English does not write for something else, and a
few that it does, because they open and join questions there.
"""

from bot.core.languages import SMALL_WORDS, Language
from storage.analyzer import analyze, fold

_ENGLISH = """
a about according again all also am an and any anyone anything are as at back be been being but by
can could did do document documents does doing done during each either else every far file files
find for from get gets give gives go got had happen happens has have having he her here hers him his
how i if in into is it its itself kind know let list long many may me mean might mine more most much
must my need no not of off often on one or other our ours out over own page pages pdf per please
provide say says shall she should show so some someone something such tell than that the their
theirs them then there these they thing things this those to too under until up us use used very
want was way we were what whats when where which while who whom whose why will with within without
would you your yours
"""
_OTHERS = """
was wer wie wo wann warum welche welcher welches ist sind der die das den dem ein eine einen und oder
in im mit von zu fur auf bei nach aus wird werden hat haben kann man es sie ich wir
que qui quoi quel quelle quels quelles quand comment pourquoi combien est sont le la les un une des du
de et ou a au aux en dans pour par sur avec il elle on nous vous je ce cette
cual cuales cuando como donde quien cuanto cuantos es son el los las una unos y o del al con por para
"""


def _foreign() -> set[str]:
    """Terms of the other languages' small words, without those that are English words, too.

    The shortest are left out: some are names ("EU", "AI"), and a document in their language holds them
    in every chunk, so that they weigh nothing anyway.
    """
    words = {word for small in SMALL_WORDS.values() for word in small.split() if len(word) > 3}
    return set(analyze(" ".join(words))) - set(analyze(SMALL_WORDS[Language.ENGLISH]))


FUNCTION_TERMS = frozenset(analyze(fold(_ENGLISH + _OTHERS))) | _foreign()
