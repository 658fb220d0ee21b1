"""The words by which a question leans on the one before it: English first, then German, French and Spanish.

All of it is compared with folded, lower-case text.
"""

from __future__ import annotations

import re

from storage.text.analyzer import analyze, fold

FILLERS = re.compile(
    r"^(?:(?:ok(?:ay)?|thanks|thank you|thx|great|cool|perfect|got it|i see|hm+|well|so|right|sorry|please|"
    r"yes|no|yeah|alright|understood|danke|merci|gracias|vale|d'accord|gut|alors|bueno|entonces)"
    r"(?=[\s,.!;:-])[\s,.!;:-]+)+",
    re.IGNORECASE,
)
"""What people say before they ask."""

NEW_TOPIC = re.compile(
    r"^(?:(?:by the way|btw)[\s,]+)?"
    r"(?:(?:and |on )?(?:an? |one |something |now )?(?:(?:completely|totally|very|whole) )?"
    r"(?:different|unrelated|new|next|else)(?: (?:one|thing|question|topic|subject|matter|note))?"
    r"|(?:another|one (?:other|more)) (?:question|thing|topic)|changing (?:the )?(?:topic|subject)"
    r"|by the way|btw|andere frage|anderes thema|autre question|otra pregunta|otro tema)"
    r"\s*[:;,.–—-]+\s*",
    re.IGNORECASE,
)
"""Somebody says that what follows is about something else."""

ABOUT = re.compile(
    r"^(?:(?:and|but|oh|also|und|aber|et|mais|y|pero)[\s,]+)?"
    r"(?:what about|how about|what of|same (?:question )?(?:for|with|about)|the same (?:for|with)|"
    r"was ist mit|wie (?:ist|sieht|steht) es (?:aus )?(?:mit|bei|um|fur)|und was ist mit|gilt das auch fur|"
    r"qu'en est-il (?:de|du|des|pour)|et qu'en est-il (?:de|du|des|pour)|c'est pareil pour|"
    r"que (?:tal|pasa con|hay de)|y que (?:tal|pasa con|hay de))\b[\s,]*",
    re.IGNORECASE,
)
"""Openers behind which only the changed part follows."""

JOINING = re.compile(
    r"^(?:and|but|or|also|plus|und|aber|oder|auch|sowie|et|mais|ou|y|e|pero|o|tambien)\b[\s,]+", re.IGNORECASE
)

ASKING = frozenset(
    """
    what which who whom whose when where why how is are was were am do does did can could may might must
    shall should will would has have had whats hows wheres whos show tell explain describe list give find
    name compare summarize define isnt arent dont doesnt cant wont was wer wen wem wie wo wann warum wieso
    weshalb welche welcher welches welchen wohin woher wieviel ist sind hat haben kann konnen darf durfen
    muss mussen soll sollen wird werden gibt zeig zeige que qui quoi quel quelle quels quelles quand comment
    pourquoi combien ou est sont peut peux doit faut puis cual cuales cuando como donde quien quienes cuanto
    cuanta cuantos cuantas es son puede puedo pueden debe hay tiene
    """.split()
)
"""Words that open a whole question, or an order to answer one."""

LEADING = frozenset(
    """
    for in with at on during after before per by without under over from to of as if when while until since
    within than unless bei fur mit ohne im in am an auf nach vor wahrend ab seit wenn falls pour avec sans
    dans chez pendant apres avant si para con sin en durante despues antes desde
    """.split()
)
"""Words that open the changed part of a question."""

PRONOUNS = frozenset("it he she him they them himself herself eso esto ello aquello ca cela".split())
OWNERS = frozenset("its his her their theirs hers".split())
POINTERS = frozenset("that this these those".split())
JOINTS = frozenset(
    "say says said state states means so such know knows ensure tell tells sure true given find".split()
)
"""Words behind which a 'that' only joins."""
DA_WORDS = frozenset(
    """
    davon dafur damit dazu daruber dabei daran darauf dadurch danach dies diese dieser dieses diesen diesem
    dieselbe dieselben derselbe celui-ci celle-ci ceux-ci celles-ci celui-la celle-la
    """.split()
)
"""Words of other languages that always point back."""

BOUNDARIES = frozenset(
    """
    when if because after before while until unless once since although though whether who which where and
    or but so than then that as wenn falls weil nachdem bevor dass ob und oder si quand parce lorsque et
    cuando porque y
    """.split()
)
"""Words behind which a pronoun may mean what stands before them in the same question."""

THIS_TIME = frozenset(
    """
    year month week quarter morning afternoon evening weekend day days channel company organisation
    organization handbook document documents office team department time way
    """.split()
)
"""'This year' points at nothing that was said."""

ALWAYS_BACK = re.compile(
    r"\b(?:the|that|this|which|another|each|first|second|third|last|other|next|same|left|right|\d+\w*)\s+"
    r"(?:[\w-]+\s+){0,2}ones?\b|"
    r"\b(?:the|your) (?:same|latter|former|above|others?|previous|rest)\b(?! (?:as|time|day|hand))|"
    r"\b(?:der|die|das|dem|den) (?:andere|gleiche|selbe)[nrsm]?\b|\bl'autre\b|\b(?:le|la|les) memes?\b|"
    r"\b(?:el|la|los|las) (?:otr|mism)[oa]s?\b|"
    r"\b(?:dauert|kostet|ist|geht|gilt|funktioniert|heisst|bedeutet|macht) (?:das|es)\b|\b(?:das|es) ?\?*$",
    re.IGNORECASE,
)

FULL_IT = re.compile(
    r"(?:is|was|be|take|takes|cost|costs|mean|means|matter|matters)?\s*"
    r"(?:ok|okay|possible|allowed|required|necessary|mandatory|legal|safe|fine|permitted|better|important|"
    r"worth|normal|common|true|usual|compulsory|long)?\s*(?:to|that|if|when|for)\s+(?P<what>.+)"
)
"""Behind an 'it' that stands for what follows it: 'is it allowed to smoke indoors'."""

COMPARED = re.compile(
    r"\b(?:more|less|cheaper|better|worse|longer|shorter|higher|lower|larger|bigger|smaller|faster|slower|"
    r"earlier|later|older|newer|stricter|else|instead|otherwise|then|there)\b(?!.*\bthan\b)"
)
"""Compared with, or besides, or after what was said."""
EXISTING = re.compile(r"\b(?:is|are|was|were|be|will|any)\s+there\b|\bthere\s+(?:is|are|was|were|be|will)\b")

_ASPECTS = """
take takes long cost costs pay paid price fee apply applies applied application work begin start starts end
ends expire change sign approve approves approved approval decide qualify eligible eligibility count request
ask contact submit send file notify deadline limit limits maximum minimum max min exception exceptions
requirement requirements required step steps penalty notice duration process reason reasons purpose form
forms amount rate percentage difference differ example examples consequence consequences condition
conditions detail details rule rules mean means time times day days week weeks month months hour hours
minute minutes year years number part person people responsible allowed possible mandatory necessary happen
happens explain describe name called come go going went give keep stop wait due old big high low often soon
late early fast far really exactly else dont doesnt isnt arent cant wont didnt whats hows wheres thats
theres im ca wo not yes ok okay thing things dauert dauern lange kostet kosten viel beantrage beantragen
genehmigt genehmigen frist gilt ausnahmen temps dure durer coute prend faire delai tiempo dura cuesta tarda
hacer excepciones plazo first second third next last previous latest new
"""
ASPECTS = frozenset(analyze(fold(_ASPECTS)))
"""Words that ask something of a subject and name none: 'who approves?', 'how long does it take?'."""
