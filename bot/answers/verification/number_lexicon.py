"""Number words, units and month names, in folded lowercase."""

from __future__ import annotations

from itertools import product

_ENGLISH = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen twenty"
).split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth".split()
_OTHERS = {
    "2": "zwei deux dos due dois duas twee",
    "3": "drei trois tres tre drie",
    "4": "vier quatre cuatro quattro quatro",
    "5": "funf cinq cinco cinque vijf",
    "6": "sechs seis sei zes",
    "7": "sieben sept siete sette sete zeven",
    "8": "acht huit ocho otto oito",
    "9": "neun neuf nueve nove negen",
    "10": "zehn dix diez dieci dez tien",
    "12": "zwolf douze doce dodici doze twaalf dozen dutzend",
    "14": "vierzehn quatorze catorce quattordici catorze veertien",
    "15": "funfzehn quinze quince quindici vijftien",
    "20": "zwanzig vingt veinte venti vinte twintig",
    "24": "vierundzwanzig vierentwintig",
    "30": "dreissig trente treinta trenta trinta dertig",
    "40": "vierzig quarante cuarenta quaranta quarenta veertig",
    "50": "funfzig cinquante cincuenta cinquanta cinquenta vijftig",
    "60": "sechzig soixante sesenta sessanta sessenta zestig",
    "90": "neunzig noventa novanta negentig",
    "100": "hundred hundert cent cien ciento cento cem honderd",
    "1000": "thousand tausend mille mil duizend",
}
# Number word -> digits.
CARDINALS = {
    **{word: str(value) for value, word in enumerate(_ENGLISH)},
    **{word: str(10 * tens) for tens, word in enumerate(_TENS, start=2)},
    **{
        f"{ten}-{one}": str(10 * tens + ones)
        for (tens, ten), (ones, one) in product(enumerate(_TENS, 2), enumerate(_ENGLISH[1:10], 1))
    },
    **{word: value for value, words in _OTHERS.items() for word in words.split()},
}

# Also words that may mean a number, but more often do not.
SPELLED = {
    **CARDINALS,
    **{word: str(value) for value, word in enumerate(_ORDINALS, start=1)},
    "half": "0.5",
}

# Unit word -> unit. Excludes ambiguous ones such as "m" and "k".
UNITS = {
    word: name
    for name, words in {
        "second": "second seconds sec secs sekunde sekunden seconde secondes segundo segundos secondi",
        "minute": "minute minutes min mins minuten minuto minutos minuti minuut",
        "hour": "hour hours hr hrs stunde stunden heure heures hora horas ora ore uur",
        "day": "day days tag tage tagen jour jours dia dias giorno giorni dag dagen",
        "week": "week weeks woche wochen semaine semaines semana semanas settimana settimane weken",
        "month": "month months monat monate monaten mois mes meses mese mesi maand maanden",
        "year": "year years yr yrs jahr jahre jahren ans annee annees ano anos anno anni jaar",
        "percent": "% percent prozent procent",
        "microgram": "μg mcg microgram micrograms",
        "milligram": "mg milligram milligrams",
        "gram": "g gram grams gramm",
        "kilogram": "kg kilogram kilograms kilo kilos",
        "pound": "lb lbs pound pounds £ gbp",
        "millilitre": "ml milliliter milliliters millilitre millilitres",
        "litre": "l liter liters litre litres",
        "millimetre": "mm millimeter millimeters millimetre millimetres",
        "centimetre": "cm centimeter centimeters centimetre centimetres",
        "kilometre": "km kilometer kilometers kilometre kilometres",
        "mile": "mile miles",
        "foot": "ft foot feet",
        "celsius": "°c",
        "fahrenheit": "°f",
        "dollar": "$ usd dollar dollars",
        "euro": "€ eur euro euros",
        "franc": "chf",
        "megabyte": "mb megabytes",
        "gigabyte": "gb gigabytes",
    }.items()
    for word in words.split()
}

# Unit -> (dimension, size in the smallest unit of that dimension).
FACTORS = {
    **{"second": ("time", 1), "minute": ("time", 60), "hour": ("time", 3600), "day": ("time", 86_400)},
    **{"week": ("time", 604_800), "month": ("months", 1), "quarter": ("months", 3), "year": ("months", 12)},
    **{"microgram": ("mass", 1), "milligram": ("mass", 1_000), "gram": ("mass", 1_000_000)},
    **{"kilogram": ("mass", 1_000_000_000), "millilitre": ("volume", 1), "litre": ("volume", 1_000)},
    **{"millimetre": ("length", 1), "centimetre": ("length", 10), "kilometre": ("length", 1_000_000)},
    **{"megabyte": ("bytes", 1), "gigabyte": ("bytes", 1_000)},
}

# Adjective or adverb of frequency -> unit of time.
PERIODS = {
    word: name
    for name, words in {
        "hour": "hourly stundlich horaire",
        "day": "daily taglich quotidien quotidienne quotidiennement diario diaria diariamente giornaliero "
        "giornaliera quotidianamente dagelijks dagelijkse",
        "week": "weekly wochentlich hebdomadaire semanal semanalmente settimanale settimanalmente wekelijks "
        "wekelijkse",
        "month": "monthly monatlich mensuel mensuelle mensuellement mensual mensualmente mensile "
        "mensilmente mensal mensalmente maandelijks maandelijkse",
        "quarter": "quarterly vierteljahrlich trimestriel trimestrielle trimestral trimestrale",
        "year": "yearly annual annually jahrlich annuel annuelle annuellement anual anualmente annuale "
        "annualmente jaarlijks jaarlijkse",
    }.items()
    for word in words.split()
}

MAGNITUDES = {
    word: size
    for size, words in {
        100: "hundred hundert cent cien ciento cento cem honderd",
        1_000: "thousand tausend mille mil duizend",
        1_000_000: "million millions mio millionen millones milioni milhoes miljoen",
        1_000_000_000: "billion billions milliarde milliarden milliard milliards mrd miljard",
    }.items()
    for word in words.split()
}

MONTHS = {
    word: number
    for number, words in enumerate(
        (
            "january jan januar janvier enero gennaio janeiro januari",
            "february feb februar fevrier febrero febbraio fevereiro februari",
            "march mar marz mars marzo marco maart",
            "april apr avril abril aprile",
            "may mai mayo maggio maio mei",
            "june jun juni juin junio giugno junho",
            "july jul juli juillet julio luglio julho",
            "august aug aout agosto augustus",
            "september sep sept septembre septiembre settembre setembro",
            "october oct oktober okt octobre octubre ottobre outubro",
            "november nov novembre noviembre novembro",
            "december dec dezember dez decembre diciembre dicembre dezembro",
        ),
        start=1,
    )
    for word in words.split()
}
