"""Months and small numbers as words, folded, in the languages of replies."""

from __future__ import annotations

from bot.core.languages import Language

_MONTHS = """
january jan januar janvier janv enero ene gennaio janeiro januari
february feb februar fevrier fevr febrero febbraio fevereiro februari
march mar marz mrz mars marzo marco maart
april apr avril avr abril abr aprile
may mai mayo maggio maio mei
june jun juni juin junio giugno junho
july jul juli juillet juil julio luglio julho
august aug aout agosto augustus
september sept sep septembre septiembre settembre setembro
october oct oktober okt octobre octubre ottobre outubro
november nov novembre noviembre novembro
december dec dezember dez decembre diciembre dic dicembre dezembro
"""
MONTHS = {
    name: number
    for number, names in enumerate(_MONTHS.strip().splitlines(), start=1)
    for name in names.split()
}
"""Name -> number. Abbreviations that are other words ("set", "out", "ago") are left out."""

SPELLED = {
    language: dict(zip(words.split(), (0, *range(2, 21)), strict=True))
    for language, words in {
        Language.ENGLISH: "zero two three four five six seven eight nine ten eleven twelve thirteen fourteen "
        "fifteen sixteen seventeen eighteen nineteen twenty",
        Language.GERMAN: "null zwei drei vier funf sechs sieben acht neun zehn elf zwolf dreizehn vierzehn "
        "funfzehn sechzehn siebzehn achtzehn neunzehn zwanzig",
        Language.FRENCH: "zero deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze "
        "quinze seize dix-sept dix-huit dix-neuf vingt",
        Language.SPANISH: "cero dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce "
        "quince dieciseis diecisiete dieciocho diecinueve veinte",
        Language.ITALIAN: "zero due tre quattro cinque sei sette otto nove dieci undici dodici tredici "
        "quattordici quindici sedici diciassette diciotto diciannove venti",
        Language.PORTUGUESE: "zero dois tres quatro cinco seis sete oito nove dez onze doze treze catorze "
        "quinze dezesseis dezessete dezoito dezenove vinte",
        Language.DUTCH: "nul twee drie vier vijf zes zeven acht negen tien elf twaalf dertien veertien "
        "vijftien zestien zeventien achttien negentien twintig",
    }.items()
}
"""Word -> number, up to 20; not 1, whose word is an article in most of them."""
