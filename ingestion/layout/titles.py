"""Title detection: the largest print on page 1 that looks like a title, else a sane /Title."""

from __future__ import annotations

import re
from collections.abc import Iterable

from storage.text.callouts import is_callout
from storage.text.months import MONTHS

MAX_TITLE_CHARS = 200
MAX_TITLE_LINES = 5

# A shorter single word is no title; "Reisekostenrichtlinie" is one.
MIN_WORD_CHARS = 12

# Largest texts of which one that ends in a kind of document is preferred, and its minimum length.
MAX_CANDIDATES, MIN_NAME_WORDS = 3, 3

# From this many words, a text with a full stop at the end or a lower-case start is a sentence.
SENTENCE_WORDS = 5

_GENERIC = (
    r"document|presentation|slides?|page|sheet|book|workbook|spreadsheet|template|report|form|file"
    r"|dokument|präsentation|folie|seite|mappe|vorlage|bericht|formular|datei"
    r"|présentation|diapositive|classeur|modèle|feuille|rapport|formulaire|fichier"
    r"|documento|presentación|diapositiva|libro|hoja|plantilla|informe|formulario|archivo"
    r"|presentazione|cartella|foglio|modello|relazione|modulo"
    r"|apresentação|pasta|folha|modelo|relatório|ficheiro|arquivo"
    r"|presentatie|dia|werkmap|werkblad|sjabloon|rapportage|formulier|bestand"
)
_PROGRAM = (
    r"microsoft|ms|office|word|powerpoint|excel|publisher|visio|activereports?|(?:crystal|jasper) ?reports?"
    r"|ssrs|fastreport|google docs|libreoffice|openoffice|indesign|quarkxpress|acrobat|latex|canva|print"
)
_EXTENSION = (
    r"docx?|dot[xm]?|docm|pptx?|ppsx?|potx?|xlsx?|xlsm|csv|od[tpsg]|rtf|tex|dvi|x?html?|xml|indd|qxd|pdf|ps|eps"
    r"|ai|txt|tmp|md|exe|dll|bat|com|msi|png|jpe?g|gif|tiff?|bmp|webp|heic|svg|psd|cdr|dwg|dxf|vsdx?|pub|pages"
    r"|numbers|key|rpt|rdlc?|jrxml|aspx?|php|jsp|eml|msg|zip"
)
_NAMELESS = (
    r"(?:untitled|unbenannt|ohne titel|unbekannt|sans (?:titre|nom)|sin t[íi]tulo|senza (?:titolo|nome)"
    r"|sem (?:t[íi]tulo|nome)|naamloos|zonder titel|no title).*"
    r"|\(anonymous\)|unknown|none|null|default|test|draft|confidential|internal use only"
)
_PLACEHOLDER = (
    r"(?:insert|enter|type|add|click|your|document|report|cover|the|here|to|edit|a|of|master|\W)*"
    r"(?:sub)?(?:title|titel|titre|t[íi]tulo|titolo)(?: (?:style|here|page|\S+ \w*do[ck]ument\w*))?\W*"
)
_SCAN = (
    r"(?:scan(?:ned)?|img|dsc|image|doc|fax|screen\s?shot|bildschirmfoto|capture|captura|schermata"
    r"|schermafbeelding)(?: d.écran| de (?:pantalla|tela))?[\d\W_]*(?:(?:at|um|à|a las|alle|às|om)[\d\W_]+)?"
    r"(?:[ap]m)?"
)
_PART = (
    r"(?:table of )?contents|index|inhalt(?:sverzeichnis)?|sommaire|table des matières|[íi]ndice|sommario"
    r"|sumário|inhoud(?:sopgave)?|cover|deckblatt|page de garde|portada|copertina|capa"
    r"|(?:chapter|section|part|unit|lesson|module|volume|appendix|annex|kapitel|abschnitt|teil|band|anhang"
    r"|chapitre|partie|cap[íi]tulo|secci[óo]n|parte|capitolo|sezione|seção|hoofdstuk|deel|bijlage)"
    r"\s*[\divxl]+[.:]?"
    r"|(?:page|seite|p[áa]gina|blatt)\s*\d+(?:\s*\W?\s*(?:of|von|de|di|sur|van)?\s*\d+)?"
)
_JUNK = re.compile(
    rf"(?:(?:{_GENERIC})\s)?(?:{_NAMELESS})|{_PLACEHOLDER}|{_SCAN}|{_PART}"
    rf"|(?:new|neue[sr]?|nouveau|nouvelle|nuev[oa]|nuov[oa]|nov[oa]|nieuwe?|blank)?\s*(?:{_GENERIC})[\s_-]*\d*"
    rf"|(?:{_GENERIC})?[\s-]*(?:de|di|do|da|von|van)?\s*(?:{_PROGRAM})"
    rf"(?:[\s-]+(?:{_GENERIC}|viewer|designer))?[\s-]*\d*"
    r"|.*\\.*|/\S+/.*|\[.*\]|<.*>|\{.*\}"
    rf"|(?:microsoft (?:word|powerpoint|excel)|word|print)\s*-.*|.*\.(?:{_EXTENSION})"
    r"|(?:https?|file):.*|about:blank"
    r"|\W?[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}\W?",
    re.IGNORECASE,
)
_ADDRESS = re.compile(
    r"(?:https?://|www\.)\S+|\S+@\S+\.\w{2,}"
    r"|\b(?:tel|phone|fax|telefon|téléphone|teléfono|telefono)\b\W*[\d+(]|p\.? ?o\.? box|postfach|apartado\b"
    r"|\d\S* (?:(?!of |the )\S+ ){0,3}"
    r"(?:street|st|avenue|ave|road|rd|lane|drive|boulevard|blvd|suite|quay|square|way)\b"
    r"|(?:straße|strasse|str\.|gasse|allee|platz|laan|straat|weg) \d"
    r"|\b(?:rue|avenue|calle|avenida|via|viale|piazza|rua|plaza) (?:\S+ ){1,4}\d"
    r"|\d+,? (?:rue|avenue|boulevard|place|quai)\b|\b[A-Z]{2} \d{5}\b|^(?!(?:19|20)\d\d )\d{4,5} [^\W\d_]+$",
    re.IGNORECASE,
)
_ORGANISATION = re.compile(
    r"\b(?:laborator(?:y|ies)|university|college|institute|inc\.?|ltd\.?|llc|gmbh|ag|corp(?:oration)?\.?|company"
    r"|board|agency|instruments|electronics|hospital|foundation|association|society|council|ministry)$"
    r"|^(?:university|ministry|office|bank|institute) of\b",
    re.IGNORECASE,
)
_KIND = re.compile(
    r"\b(?:guide|manual|handbook|reference|policy|procedures?|instructions|faq|handbuch|anleitung"
    r"|leitfaden|richtlinie|manuel|politique|procédure|guía|política|procedimiento|guida|manuale|procedura"
    r"|guia|procedimento|handleiding|gids|beleid)\b",
    re.IGNORECASE,
)
_ARTICLES = {"a", "an", "ein", "eine", "un", "une", "una", "um", "uma", "een"}
_SMALL_WORDS = {"and", "of", "the", "&", "de", "für"}
_DANGLING = re.compile(
    r"(?:[,&/–-]|\b(?:and|or|of|for|the|a|an|to|in|on|with|by|from|und|oder|der|die|das|von|für|mit|et|ou|de|du|des|la"
    r"|le|les|pour|y|o|del|para|con|e|di|della|per|da|do|em|en|het|een|van|voor|met))$",
    re.IGNORECASE,
)
_NUMBERED = re.compile(r"\d{1,2}(?:\.|(?:\.\d{1,2})+\.?)\s|\(?[a-z\d]\)\s", re.IGNORECASE)
_DATE_WORDS = frozenset({*MONTHS, "de", "of", "den", "le", "del", "al", "the"})
_DAY = re.compile(r"\d{1,4}(?:st|nd|rd|th|er)?")
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff]{2}")


def choose_title(printed: Iterable[str], own: str) -> str:
    """Return the title, '' if there is no meaningful one.

    Args:
        printed: largest texts of page 1, the largest first; lines separated by newlines.
        own: the file's /Title.
    """
    joined = (_joined(one) for one in printed if one.count("\n") < MAX_TITLE_LINES)
    found = [one for one in joined if looks_like_title(one) and not _names_nothing(one)]
    found += [one for one in [_joined(own)] if looks_like_title(one)]
    best = next((one for one in found if not is_organisation(one)), next(iter(found), ""))
    # Above the name of a manual, its publisher may print a slogan that is larger.
    named = (one for one in found[:MAX_CANDIDATES] if _names_kind(one))
    return best if _KIND.search(best) else next(named, best)


def looks_like_title(text: str) -> bool:
    """True if a text may be a document title."""
    words = text.split()
    letters = sum(map(str.isalpha, text))
    if letters < 3 or len(text) > MAX_TITLE_CHARS or _JUNK.fullmatch(text):
        return False
    if len(words) == 1 and (re.search(r"[\d_]", text) or text.islower()):
        return False
    if _NUMBERED.match(text) or is_callout(text):
        return False
    is_sentence = len(words) >= SENTENCE_WORDS and (text[0].islower() or text.endswith((".", ";", ":")))
    return not (is_sentence or _is_date(text) or _ADDRESS.search(text) or _DANGLING.search(text))


def _names_kind(text: str) -> bool:
    """True for a name that ends in a kind of document, such as ``Bacula Console and Operators Guide``."""
    words = text.split()
    is_named = len(words) >= MIN_NAME_WORDS and all(word[:1].isupper() or len(word) < 4 for word in words)
    return is_named and words[0].casefold() not in _ARTICLES and _KIND.search(words[-1]) is not None


def _names_nothing(text: str) -> bool:
    """True for one short word, such as a logo or a chapter heading."""
    return " " not in text and len(text) < MIN_WORD_CHARS and not _UNSPACED.search(text)


def is_organisation(text: str) -> bool:
    """True for capitalised words that begin or end like the name of an organisation."""
    words = text.split()
    is_name = all(word[:1].isupper() or word in _SMALL_WORDS for word in words)
    return is_name and 2 <= len(words) <= 9 and _ORGANISATION.search(text) is not None


def _is_date(text: str) -> bool:
    """True for texts that consist of a date, like ``NOVEMBER 2000`` and ``Monday, 3. März 2024``."""
    words = re.findall(r"\w+", text.casefold())
    is_named = any(word in MONTHS for word in words)
    rest = [word for word in words if word not in _DATE_WORDS and not _DAY.fullmatch(word)]
    return len(rest) <= is_named and not (rest and rest[0] == words[-1])


def _joined(text: str) -> str:
    """Join lines, and words with letter spacing."""
    text = re.sub(r"(?<!\S)(?:\S ){3,}\S(?!\S)", lambda found: found[0].replace(" ", ""), text)
    return " ".join(text.split())
