"""Metadata labels in English, German, French, Spanish, Italian, Portuguese and Dutch, as patterns."""

from __future__ import annotations

# In a procedure such a label means the document's number; elsewhere it may mean anything.
NUMBER = "number"
# Labels that only delimit the previous value; their own values are dropped.
IGNORED = ""

_NR = r"(?:no|nr|num|number|nummer|núm|número|numero|n[°º]|id|identifier|kennung|code|ref|reference|#)"

LABELS = {
    "sop_id": (
        r"(?:sop|document|doc|procedure|policy|control|work instruction|form)[ -]?(?:control )?" + _NR,
        rf"standard operating procedure {_NR}",
        rf"(?:dokument(?:en)?|vorschrift|verfahrens?|anweisungs?|richtlinien?)[ -]?{_NR}",
        rf"(?:{_NR}|numéro|référence|identifiant) (?:du |de la |de )?(?:document|procédure)",
        rf"(?:{_NR}|código|referencia|referência) (?:del |de |do )?(?:documento|procedimiento|procedimento)",
        rf"(?:{_NR}|codice|riferimento) (?:del |della )?(?:documento|procedura)",
        r"sop(?= ?[:#]| \d)",
    ),
    NUMBER: (r"(?:reference|ref|number|no|nummer|référence|código|codice|code|kennung)(?= ?[.:#])",),
    "effective": (
        r"(?:date )?effective(?: date| from| as of| on)?",
        r"date (?:effective|of effect|in force)",
        r"(?:valid|in force) (?:from|since|as of)",
        r"(?:implementation|start|commencement) date",
        r"(?:gültig|wirksam) (?:ab|seit|vom)|gültigkeitsdatum|inkrafttreten|in kraft (?:ab|seit)",
        r"(?:date d.)?(?:entrée en vigueur|effet)(?: le)?|en vigueur (?:le|depuis|à partir du)",
        r"(?:applicable|valable) (?:le|à partir du|depuis le|dès le)|date d.application",
        r"(?:fecha de )?(?:entrada en vigor|vigencia)|fecha efectiva",
        r"(?:vigente|en vigor|válid[oa]) (?:desde|a partir de)(?: el)?",
        r"(?:data di )?(?:entrata in vigore|decorrenza)|(?:in vigore|valid[oa]) (?:dal|da|a partire dal)",
        r"(?:data de )?(?:entrada em vigor|vigência)|(?:em vigor|válid[oa]|vigente) (?:desde|a partir de)",
        r"ingangsdatum|datum (?:van )?inwerkingtreding|(?:geldig|van kracht) (?:vanaf|per|sinds)",
    ),
    "last_updated": (
        r"(?:last |date )?(?:revised|updated|modified|amended)(?: on| date)?",
        r"(?:last )?(?:revision|update|modification|amendment) date",
        r"date of (?:last |latest )?(?:revision|update|amendment)",
        r"last (?:revision|update|modification|amendment|change)",
        r"letzte[rn]? (?:änderung|aktualisierung|überarbeitung|revision)(?: am| vom)?",
        r"zuletzt (?:geändert|aktualisiert|überarbeitet)(?: am)?|stand(?= ?:| \d)",
        r"(?:änderungs|revisions|aktualisierungs|überarbeitungs)datum|datum der (?:letzten )?änderung",
        r"(?:date de (?:la )?)?dernière (?:mise à jour|modification|révision)(?: le)?",
        r"date de (?:mise à jour|modification|révision)|(?:modifiée?|mise? à jour|révisée?) le|mise à jour",
        r"(?:fecha de (?:la )?)?última (?:actualización|modificación|revisión)|actualizad[oa](?: el)?",
        r"fecha de (?:actualización|modificación|revisión)|(?:modificad[oa]|revisad[oa]) el",
        r"(?:data (?:dell.)?)?ultim[oa] (?:aggiornamento|modifica|revisione)|aggiornato (?:il|al)",
        r"data (?:di |dell.)?(?:aggiornamento|modifica|revisione)|(?:modificato|revisionato) il",
        r"(?:data da )?última (?:atualização|modificação|alteração|revisão)|atualizad[oa] em",
        r"data (?:da |de )?(?:atualização|modificação|alteração|revisão)|(?:modificad[oa]|revist[oa]) em",
        r"laatst(?:e|elijk)? (?:gewijzigd|bijgewerkt|herzien|wijziging|herziening|revisie|update)(?: op)?",
        r"(?:wijzigings|revisie|herzienings)datum|datum (?:laatste )?(?:wijziging|revisie|herziening)",
    ),
    "version": (
        r"(?:document |dokument(?:en)?|sop |current |aktuelle )?(?:versions?|revisions?|rev|issue|edition|ver"
        rf"|ausgabe|fassung|révision|édition|indice|versión|revisión|edición|versione|revisione|edizione"
        rf"|versão|revisão|edição|versie|revisie|uitgave)[ .-]?{_NR}?",
        r"v(?=\.? ?\d)",
    ),
    "department": (
        r"(?:responsible |owning |owner |issuing )?(?:department|dept)(?: name)?",
        r"(?:responsible )?(?:division|business unit)",
        r"(?:zuständige |verantwortliche )?(?:abteilung|fachabteilung|fachbereich|referat)",
        r"(?:département|service|direction)(?: responsable| émett(?:eur|rice))?",
        r"(?:departamento|área|unidad|unidade|setor)(?: responsable| responsável)?",
        r"(?:dipartimento|reparto|ufficio|funzione)(?: responsabile)?",
        r"(?:verantwoordelijke )?afdeling",
    ),
    "author": (
        r"author(?:s|\(s\))?|(?:prepared|written|compiled|drafted|created) by",
        r"autor(?:in|a|e)?|verfasser(?:in)?|(?:erstellt|verfasst) (?:von|durch)",
        r"auteur|(?:rédigé|établi|préparé) par|(?:elaborado|redactado|preparado|redigido) por",
        r"(?:redatto|preparato|elaborato) da|(?:opgesteld|geschreven) door",
    ),
    "organisation": (
        r"(?:company|organi[sz]ation|institution|facility)(?: name)?",
        r"firma|unternehmen|société|entreprise|organisme|empresa|organización|azienda|società|organizzazione"
        r"|organização|bedrijf|organisatie",
    ),
    "document_type": (
        r"(?:document|doc) type|type of document|dokument(?:en)?(?:typ|art)|type de document"
        r"|tipo d[ei] documento|documenttype|soort document",
    ),
    "title": (
        r"(?:sop |document |procedure |policy )?title|subject",
        r"titel|titre|título|titolo|betreff|objet|asunto|oggetto|assunto|onderwerp",
    ),
    IGNORED: (
        r"(?:date )?(?:approved|authori[sz]ed|reviewed|checked|issued|signed|supersedes|replaces)"
        r"(?: by| on| date)?",
        r"(?:approval|authori[sz]ation|next review|review|issue|print(?:ed)?|expiry|expiration|training|due)"
        r"[ -]?date",
        r"(?:next|last|periodic) review(?: due)?",
        r"date(?: of issue| issued)?",
        r"page(?: no)?",
        r"status|signature|name|owner|process owner|classification|location|site|distribution|copy no|scope",
        r"e-?mail(?: address)?|phone|telephone|position|role|keywords|category|section|approver|purpose"
        r"|language",
        r"(?:freigegeben|genehmigt|geprüft|erstellt) (?:von|durch|am)|nächste (?:über)?prüfung|ersetzt",
        r"(?:approuvé|vérifié|validé) par|prochaine révision|remplace|statut|nom|date de création",
        r"(?:aprobado|revisado|aprovado|revisto|verificado) por|próxima revisi[óã]on?|sustituye a|substitui",
        r"(?:approvato|verificato|controllato) da|prossima revisione|sostituisce|stato|nome|assinatura",
        r"(?:goedgekeurd|gecontroleerd) door|volgende (?:herziening|revisie)|vervangt|naam|handtekening",
        r"datum|fecha|data|seite|página|pagina|estado|firma|nombre|unterschrift|telefono?|téléphone",
    ),
}
