"""Messages that ask nothing of the documents: greetings, thanks, a call for help."""

from __future__ import annotations

import re

from bot.core import wording

_GREETINGS = (
    r"(?:hi|hello|hey|hallo|moin|bonjour|hola|good (?:morning|afternoon|evening))(?: there| all| bot)?"
)
_THANKS = r"(?:many )?(?:thanks|thank you|thx|danke|merci|gracias)(?: a lot| so much| very much)?"
_HELP = r"|help(?: me)?|hilfe|what can (?:you do|i ask)(?: here)?|how (?:do you|does this) work|who are you"

_KNOWN = tuple(
    (re.compile(said, re.IGNORECASE), reply)
    for said, reply in (
        (_GREETINGS, wording.GREETING),
        (_THANKS, wording.THANKS),
        (_HELP, wording.HELP),
    )
)


def reply_to(text: str) -> str | None:
    """The reply to small talk; None when the text may be a question."""
    bare = " ".join(re.sub(r"[!?.,…\s]+", " ", text).split())
    return next((reply for said, reply in _KNOWN if said.fullmatch(bare)), None)
