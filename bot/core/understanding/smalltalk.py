"""Messages that ask nothing of the documents: greetings, thanks, a call for help."""

from __future__ import annotations

import re

from bot.core.models import Answer, AnswerState, Language, Question
from bot.core.wording import reply_words
from storage.text.analyzer import fold

_GREETINGS = {
    Language.ENGLISH: r"(?:hi|hello|hey|good (?:morning|afternoon|evening))(?: there| all| everyone| bot)?",
    Language.GERMAN: r"(?:hallo|hi|hey|moin|servus|gruss gott|guten (?:tag|morgen|abend))(?: zusammen| bot)?",
    Language.FRENCH: r"(?:bonjour|bonsoir|salut|coucou|hello)(?: a tous| bot)?",
    Language.SPANISH: r"(?:hola|buenas|buenos dias|buenas (?:tardes|noches))(?: a todos| bot)?",
    Language.ITALIAN: r"(?:ciao|salve|buongiorno|buonasera)(?: a tutti| bot)?",
    Language.PORTUGUESE: r"(?:ola|oi|bom dia|boa (?:tarde|noite))(?: a todos| bot)?",
    Language.DUTCH: r"(?:hallo|hoi|goede(?:morgen|middag|navond)|goeden?dag)(?: allemaal| bot)?",
}
_THANKS = {
    Language.ENGLISH: r"(?:many )?(?:thanks|thank you|thx|cheers)(?: a lot| so much| very much)?",
    Language.GERMAN: r"(?:vielen |besten |herzlichen )?dank(?:e(?: schon| sehr| dir| ihnen)?)?|dankeschon",
    Language.FRENCH: r"merci(?: bien| beaucoup| a vous| a toi)?",
    Language.SPANISH: r"(?:muchas |mil )?gracias",
    Language.ITALIAN: r"(?:molte |tante )?grazie(?: mille| tante)?",
    Language.PORTUGUESE: r"(?:muito )?obrigad[oa]|valeu",
    Language.DUTCH: r"(?:dank (?:je|u)(?: wel)?|bedankt|dankjewel|dankuwel)",
}
_HELP = {
    Language.ENGLISH: r"help(?: me)?|what can (?:you do|i ask)(?: here)?|how (?:do you|does this) work"
    r"|who are you",
    Language.GERMAN: r"hilfe|was kannst du(?: alles)?|was konnen sie|wie funktionier(?:t das|st du)"
    r"|wer bist du",
    Language.FRENCH: r"aide|a l aide|que (?:sais tu|peux tu|savez vous|pouvez vous) faire|comment ca marche"
    r"|qui es tu|qui etes vous",
    Language.SPANISH: r"ayuda|que (?:puedes|sabes) hacer|como funciona(?:s| esto)?|quien eres",
    Language.ITALIAN: r"aiuto|cosa (?:sai|puoi) fare|come funziona|chi sei",
    Language.PORTUGUESE: r"ajuda|socorro|o que voce (?:faz|sabe fazer)|como (?:isso )?funciona|quem e voce",
    Language.DUTCH: r"wat kun je(?: doen)?|hoe werkt (?:dit|het|dat)|wie ben je",
}


def reply_to(question: Question) -> Answer | None:
    """The reply to small talk, in the language of the reply if it is said so there; None for a question."""
    bare = " ".join(re.sub(r"[\W_]+", " ", fold(question.text)).casefold().split())
    likeliest_first = sorted(Language, key=lambda language: language is not question.language)
    replies = ((language, _reply(bare, language)) for language in likeliest_first)
    said = ((language, reply) for language, reply in replies if reply)
    return next((Answer(AnswerState.CHAT, reply, language=language) for language, reply in said), None)


def _reply(bare: str, language: Language) -> str | None:
    words = reply_words(language)
    if not bare:
        return words.help
    known = ((_GREETINGS, words.greeting), (_THANKS, words.thanks), (_HELP, words.help))
    return next((reply for said, reply in known if re.fullmatch(said[language], bare)), None)
