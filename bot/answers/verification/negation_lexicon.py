"""Words that negate, limit and oblige, by language, in folded lowercase.

``contradiction.py`` compares them, and skips a sentence as soon as a limiting word is on one side only:
whatever may invert a meaning without negating it belongs in ``limits``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

# Placeholder for "not all", "nicht immer" and the like, which neither deny nor assert.
PARTLY = "partly"

CONDITIONS = frozenset(
    "if when whether wenn falls sofern si lorsque cuando se qualora quando als indien wanneer".split()
)


# Words that exclude what they introduce or head from something.
EXCLUSIONS = frozenset(
    """except excepting exception exceptions exclude excludes excluded excluding exclusion exclusions exempt
    prohibit prohibited prohibits prohibition forbidden banned disallowed
    ausgenommen ausgeschlossen ausnahme ausnahmen ausschluss ausschlusse untersagt verboten
    exclu exclue exclues exclus exclut interdit interdite interdites interdits sauf
    excluida excluidas excluido excluidos excluye exclusiones prohibida prohibidas prohibido prohibidos salvo
    esclusa escluse esclusi esclusioni escluso vietata vietate vietati vietato
    exclui exclusoes proibida proibidas proibido proibidos
    uitgesloten uitsluiting uitsluitingen verboden""".split()
)


@dataclass(frozen=True)
class NegationWords:
    """Word lists of one language."""

    denies: frozenset[str]
    # Words that exclude, refuse, compare or set a condition: "without", "prohibited", "before", "if".
    limits: frozenset[str]
    # Words of obligation; negated, they forbid nothing: "not required".
    owes: frozenset[str]
    # Auxiliary and permissive verbs: two of them make two clauses.
    verbs: frozenset[str]
    # Other function words.
    light: frozenset[str]
    # Words that end the scope of a negation.
    turns: frozenset[str]
    # Two negations in one clause cancel out; in other languages they reinforce each other (negative concord).
    is_strict: bool

    @cached_property
    def signs(self) -> frozenset[str]:
        """Words by which a text of this language is recognised."""
        return self.denies | self.verbs | self.light | self.turns

    @cached_property
    def unnamed(self) -> frozenset[str]:
        """Words that neither name nor negate anything."""
        return self.verbs | self.light | self.limits | self.owes


def _words(*, is_strict: bool = False, **words: str) -> NegationWords:
    sets = {name: frozenset(said.split()) for name, said in words.items()}
    return NegationWords(**{**sets, "limits": sets["limits"] | {PARTLY}}, is_strict=is_strict)


NEGATIONS = {
    "en": _words(
        is_strict=True,
        denies="not no never none nor neither nobody nothing nowhere cannot non",
        limits="""without unless except excepting excluding exclude excludes excluded exception exempt
            exempted waived only solely just merely exclusively prohibited prohibits prohibit prohibition
            forbidden forbid forbids banned barred ban disallowed refuse refused refuses reject rejected
            deny denied denies declined lack lacks lacking missing absent absence fail fails failed
            failure free stop stops cease avoid prevent prevents instead otherwise optional voluntary
            until till before after since more less fewer greater larger higher lower longer later earlier
            sooner exceed exceeds exceeding over under above below beyond outside maximum minimum max min
            most least hardly rarely seldom barely scarcely zero nil void null omit omitted omits expire
            expires expired if when whether too enough yet lose loses lost other rather unable hesitate
            forget yes restricted reserved closed""",
        owes="""required require requires need needs needed necessary mandatory obligatory obliged
            compulsory""",
        verbs="""is are was were be been being am do does did has have had having may might can could must
            shall should will would allowed allow allows permitted permit permits able possible entitled""",
        light="""case circumstances means true a about all also an and any anyone anything as at both by
            each either every everyone for from get gets he her here him his how i in into it its itself
            let me my of off on one or our out own per please she so some someone such than that the their
            them themselves then there these they this those thus to up upon us was we what where which
            who whom whose why with within you your yours""",
        turns="but however whereas although though",
    ),
    "de": _words(
        is_strict=True,
        denies="""nicht kein keine keiner keines keinen keinem nie niemals niemand niemanden niemandem
            nichts nirgends weder keinesfalls keineswegs""",
        limits="""ohne ausser ausgenommen ausnahme ausnahmen ausschliesslich nur lediglich bloss verboten
            untersagt verbietet unzulassig abgelehnt ablehnen verweigert verweigern fehlt fehlen fehlende
            mangels frei befreit entfallt entfallen statt sonst andernfalls freiwillig optional bis vor
            nach ab seit mehr weniger grosser hoher niedriger langer spater fruher kurzer uberschreiten
            ubersteigen uber unter hochstens mindestens maximal minimal spatestens fruhestens kaum selten
            wenn falls sofern soweit solange ob vergessen versaumen verhindern vermeiden ja noch teilweise
            geschlossen""",
        owes="""mussen muss musste brauchen braucht notig notwendig erforderlich verpflichtet verpflichtend
            pflicht""",
        verbs="""ist sind war waren sei wird werden wurde wurden hat haben hatte hatten kann konnen konnte
            darf durfen durfte soll sollen sollte will wollen lassen lasst erlaubt gestattet zulassig
            moglich berechtigt""",
        light="""der die das den dem des ein eine einer eines einen einem und oder in im an am auf aus bei
            beim mit von vom zum zur fur durch um als auch es er sie wir ich ihr ihre ihren sein seine
            sich man dass welche welcher diese dieser dieses dies alle jede jeder jedes hier dort so dann
            da was wer wie wo zu""",
        turns="aber sondern jedoch doch wahrend hingegen",
    ),
    "fr": _words(
        denies="pas jamais aucun aucune rien ni nul nulle non ne n",
        limits="""sans sauf excepte hormis hors exception exclu exclus exclut seul seule seuls seulement
            uniquement exclusivement interdit interdite interdits interdites interdiction prohibe refuse
            refusee refuser rejete defaut manque absence absent gratuit libre exempt exonere dispense
            facultatif volontaire optionnel jusque jusqu avant apres depuis plus moins davantage superieur
            inferieur maximum minimum maximal minimal tard tot exceder depasser dela dessous dessus si
            lorsque quand cas trop assez autre autrement sinon oublier eviter empecher peine rarement
            guere que qu oui ferme""",
        owes="necessaire obligatoire obligatoires requis requise oblige tenu besoin faut",
        verbs="""est sont etait etaient etre sera seront soit ont avait avoir peut peuvent pouvait pourra
            pourront doit doivent devra devront va vont fait autorise autorisee autorises permis permise
            possible admis""",
        light="""le la les l un une du de des d au aux et ou en dans par pour sur avec ce cet cette ces son
            sa ses leur leurs il elle ils elles on nous vous je qui dont y se s c j m t lui meme tout tous
            toute toutes chaque""",
        turns="mais cependant toutefois tandis alors",
    ),
    "es": _words(
        denies="no nunca jamas ningun ninguna ninguno nada nadie tampoco ni",
        limits="""sin salvo excepto excepcion excluido excluye solo solamente unicamente exclusivamente
            prohibido prohibida prohibe prohibicion rechaza rechazado denegado falta faltan ausencia
            gratuito gratis libre exento opcional voluntario hasta antes despues desde mas menos mayor
            menor superior inferior maximo minimo tarde temprano exceder supera sobre bajo si cuando caso
            demasiado bastante otro otra olvidar evitar impedir apenas raramente cerrado""",
        owes="""necesario obligatorio obligatoria requerido requiere necesita necesitan tiene tienen hace
            obligado""",
        verbs="""es son era eran ser sera seran esta estan estar ha han haber hay puede pueden podra podran
            debe deben debera deberan va van permitido permitida permite autorizado posible""",
        light="""el la los las lo un una unos unas de del al y o u en por para con que se su sus le les me
            te nos este esta estos estas ese esa eso aquel quien cual donde como todo todos toda todas
            cada""",
        turns="pero sino aunque mientras",
    ),
    "it": _words(
        denies="non no mai nessun nessuno nessuna niente nulla neanche nemmeno",
        limits="""senza salvo tranne eccetto eccezione escluso esclusi esclude solo soltanto solamente
            esclusivamente unicamente vietato vietata vietati vieta divieto proibito rifiuta rifiutato
            manca mancano mancanza assenza gratuito libero esente opzionale facoltativo fino prima dopo
            piu meno maggiore minore superiore inferiore massimo minimo tardi presto oltre superare sopra
            sotto se quando qualora caso troppo abbastanza altro altra dimenticare evitare impedire appena
            raramente chiuso""",
        owes="necessario necessaria obbligatorio obbligatoria richiesto occorre serve bisogna obbligato",
        verbs="""e sono era erano essere sara saranno ha hanno avere puo possono potra potranno deve devono
            dovra dovranno va vanno viene vengono consentito consentita permesso permessa autorizzato
            possibile""",
        light="""il lo la i gli le l un uno una di del dello della dei degli delle a al allo alla ai agli
            alle in nel nella nei nelle con su sul sulla per tra fra ed o che chi cui ne ci questo questa
            questi queste tutto tutti tutte ogni loro suo sua d da si""",
        turns="ma pero bensi mentre invece",
    ),
    "pt": _words(
        denies="nao nunca jamais nenhum nenhuma ninguem nada nem tampouco",
        limits="""sem salvo exceto excecao excluido exclui so somente apenas unicamente exclusivamente
            proibido proibida proibe proibicao vedado recusa recusado negado falta faltam ausencia
            gratuito livre isento opcional voluntario facultativo ate antes apos depois desde mais menos
            maior menor superior inferior maximo minimo tarde cedo exceder ultrapassar sobre sob se quando
            caso demais bastante outro outra esquecer evitar impedir raramente fechado sim""",
        owes="necessario necessaria obrigatorio obrigatoria exigido precisa precisam tem obrigado",
        verbs="""e sao era eram ser sera serao esta estao estar foi foram ha pode podem podera poderao deve
            devem devera deverao vai vao permitido permitida permite autorizado possivel""",
        light="""o a os as um uma uns umas de do da dos das em no na nos nas ao aos por pelo pela para com
            que ou seu sua seus suas lhe este estas estes esse essa isso quem qual onde como todo todos
            toda todas cada""",
        turns="mas porem contudo enquanto",
    ),
    "nl": _words(
        is_strict=True,
        denies="niet geen nooit niemand niets nergens noch",
        limits="""zonder behalve uitgezonderd uitzondering tenzij alleen slechts enkel uitsluitend verboden
            verbod verbiedt geweigerd weigeren afgewezen ontbreekt ontbreken gratis vrij vrijgesteld
            optioneel vrijwillig tot voor na sinds vanaf meer minder groter hoger lager langer later
            eerder korter overschrijden boven onder over maximaal minimaal hoogstens minstens uiterlijk
            nauwelijks zelden als indien wanneer mits anders vergeten vermijden voorkomen ja nog
            gedeeltelijk gesloten""",
        owes="hoeft hoeven nodig noodzakelijk verplicht vereist",
        verbs="""is zijn was waren wordt worden werd werden heeft hebben had kan kunnen kon mag mogen moet
            moeten zal zullen zou laat toegestaan toegelaten mogelijk gerechtigd""",
        light="""de het een en of in op aan uit bij met van om door naar er hij zij ze wij we ik je u uw hun
            zijn haar zich men dat die dit deze welke alle elke ieder iedere hier daar zo dan wat wie hoe
            waar ook te""",
        turns="maar echter terwijl",
    ),
}
