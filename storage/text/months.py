"""Names and abbreviations of the months in the seven reply languages."""

from __future__ import annotations

_NAMES = (
    "january januar jänner janvier enero gennaio janeiro januari jan ene gen janv",
    "february februar février febrero febbraio fevereiro februari feb fév févr fev",
    "march märz mars marzo março maart mar mär mrz mrt",
    "april avril abril aprile apr avr abr",
    "may mai mayo maggio maio mei mag",
    "june juni juin junio giugno junho jun giu",
    "july juli juillet julio luglio julho jul juil lug",
    "august août agosto augustus aug ago",
    "september septembre septiembre settembre setembro sep sept set",
    "october oktober octobre octubre ottobre outubro oct okt ott out",
    "november novembre noviembre novembro nov",
    "december dezember décembre diciembre dicembre dezembro dec dez déc dic",
)

# Lower-case name -> month, 1 to 12.
MONTHS = {name: number for number, names in enumerate(_NAMES, start=1) for name in names.split()}
