"""Word lists per language, for language detection."""

from __future__ import annotations

from bot.core.models import Language

# Function words (stop words), without accents. The English list also has words that English shares with
# another language ("die casting", "comment", "plus", "solo"), so that such a word alone decides nothing.
FUNCTION_WORDS = {
    Language.ENGLISH: """
a about ad after again al all also am an and ante any anybody anyone anything applies apply are aren as
ask at ate back be because been before being below ben bent best between bin both bring but buy by call
called can cannot car cause cell change come comes comment con cost costs could couldn dan day days
dear del den did didn die different dir do doe does doesn doing don done door dos dove down dr
due during each either el else employee employees end ends era est et etc even ever every everybody
everyone far fare few file find first font for form from full fur get gets give given go goes going gone
good got had happen happened happens has hasn hat have haven having hay he hello help her here hers hi
high him his hot hour hours how hows i if in ing into is isn it its just keep kind know last
later least leave less let like list ll long longer longest look los low made mag main make man many may
maybe me mean means men met mi mia might mine minutes month months more most much must my na name need
needs never new next nine no non none not now number ob of off often old on once one only op open or ore
other our ours out over own page pages paid par para pay people per please plus policy pour pro really
report request route sale same san sans say says sea section see sem send shall she should show sin since
so sob solo some somebody someone something son soon start starts still such sue sure tag take takes tan
tell ten than thank thanks that the their theirs them then there these they thing things think this
those through time times to toe ton too tot tout two um under until up us use used using van ve very vs
want wants war was we wear week weeks well went were what when whenever where which while who whole
whom whose why will with within without won word work working works would wouldn ya year years
yes yet you your yours
""",
    Language.GERMAN: """
aber alle allen alles als also am an andere anderen auch auf aus ausserhalb bei beim bereits bin bis bitte
bzw da dabei dafur damit danach dann daran darauf darf darfst daruber das dass davon dazu dein deine dem
den der deren des deshalb dich die dies diese diesem diesen dieser dieses dir doch dort du durch durfen
ein eine einem einen einer eines er erhalten erst es etwas fuer fur gab geben gegen gehen geht gemass gibt
habe haben hat hatte hier ich ihm ihn ihnen ihr ihre ihren im immer in innerhalb ist jede jedem jeden
jeder jedes jemand jetzt jeweils kann kannst kein keine keinen kommt konnen konnte lang lange langer laut
man manche manchen mancher mehr mein meine meinem meinen meiner mich mit muessen muss mussen musst nach
nachste nein nicht nichts noch nur ob oder oft ohne pro schon sehr sein seine seit sich sie sind so sobald
solche solcher soll sollen sonst sowie sowohl stehen steht tun uber um und uns unser unsere unserem
unseren unter viel viele vielen vom von vor wahrend wann war waren warum was weil welche welchem welchen
welcher welches wem wen wenn wer werde werden wessen wie wieder wieso wieviel will wir wird wo wofur wohin
wollen womit worden wozu wurde wurden zu zum zur zwei zwischen
""",
    Language.FRENCH: """
a afin alors apres as assez au aucun aucune aujourd aurait aussi autre autres aux avait avant avec avez
avoir avons beaucoup bien ca car ce ceci cela celle celles celui ces cet cette chaque chez combien comme
comment contre dans de depuis des dit dois doit doivent donc dont du durant elle elles en encore entre est
et etaient etait etant ete etes etre eu eux fait faites faut font hui il ils jamais je jusqu la laquelle
le lequel les leur leurs lors lorsqu lorsque lui mais me meilleur meilleure meilleurs meilleures meme mes
moi moins mon ne ni non nos notre nous on ont ou par parce pas pendant peu peut peuvent peux plus pour
pourquoi pouvez pres puis puisque qu quand que quel quelle quelles quels qui quoi rien sa sans se selon
sera serait ses si soit sommes son sont sous suis sur ta tes toi ton toujours tous tout toute toutes tres
tu un une va vers voici voila vont vos votre vous y
""",
    Language.SPANISH: """
a al algo alguien algun alguna algunas alguno algunos ante antes aqui asi aun aunque bajo bien cada casi
como con contra cual cuales cualquier cuando cuanta cuantas cuanto cuantos de debe deben debo del dentro
desde despues dice donde dos durante el ella ellas ellos en entonces entre era eran eres es esa esas ese
eso esos esta estaba estado estamos estan estar estas este esto estos estoy fue fueron ha haber habia hace
hacen hacer hacia han hasta hay he la las le les lo los mas me mejor mejores mi mientras mis mismo mucho
muchos muy nada nadie ni ningun ninguna no nos nosotros nuestra nuestro nuestros o otra otras otro otros
para pero poco por porque puede pueden puedo pues que quien quienes quiero se sea segun ser si sido
siempre sin sobre solo son soy su sus tal tambien tan tanto te tener tengo ti tiene tienen todas todo
todos tras tu tus un una unas uno unos usted ustedes y ya yo
""",
    Language.ITALIAN: """
a abbiamo ad agli ai al alcuni alla alle allo altra altre altri altro anche ancora avere aveva che chi ci
ciascun come con cosa cosi cui da dagli dai dal dalla dalle dallo degli dei del dell della delle dello
dentro deve devo devono di dice dopo dove e entro era erano essere fa fare fino fra gia gli ha hanno ho i
il in io la le lei li lo loro lui ma mai me meno mentre mi mia mie miei miglior migliore migliori mio
molto ne negli nei nel nell nella nelle nello nessun nessuno niente no noi non nostra nostri nostro o ogni
oppure ore per perche pero piu poi possiamo posso possono prima puo qual qualcosa quale quali quando quant
quanta quante quanti quanto quella quelle quelli quello questa queste questi questo se secondo sei sempre
senza si sia siamo sono sotto su sua sue sugli sui sul sull sulla sulle sullo suo suoi tra troppo tu tua
tuo tutta tutte tutti tutto un una uno vengono vi viene voi vostro
""",
    Language.PORTUGUESE: """
a agora ainda alem algo alguem algum alguma alguns antes ao aos apos aquela aquele aquilo as ate bem cada
com como contra cujo da das de dela dele deles depois desde deve devem devo diz do dois dos durante e ela
elas ele eles em enquanto entao entre era essa essas esse esses esta estao estar estas estava este estes
estou eu faz fazer fica foi foram ha isso isto ja la lhe lhes mais mas me meio melhor melhores menos mesmo
meu meus minha minhas muito muitos na nada nao nas nem nenhum nenhuma nos nossa nosso nossos num numa
nunca o onde os ou outra outras outro outros para pela pelas pelo pelos per pode podem podemos por porque
posso pouco quais qual qualquer quando quanta quantas quanto quantos que quem sao se segundo seja sem
sempre ser sera seu seus sim so sob sobre sua suas tambem tanto tem temos tenho ter teu tinha toda todas
todo todos tudo um uma umas uns vai voce voces
""",
    Language.DUTCH: """
aan al alle alleen als altijd andere ben bent beste bij daar dan dat de deze die dit doe doen doet door
dus een eens eerst en er ervoor gaan gaat geen haar had heb hebben hebt heeft hem hen het hier hij hoe
hoelang hoeveel hun iemand iets ik in is ja je jij jou jouw jullie kan kun kunnen kunt lang maar mag meer
meest men met mij mijn moet moeten na naar nadat niet niets nog nu of om omdat onder ons onze ook op over
per sinds staat te tegen tijdens toch toe tot tussen twee u uit uw van vanaf vanuit veel volgens voor waar
waarom waarvoor wanneer want waren was wat we weer wel welk welke wie wij wil willen word worden wordt zal
ze zegt zei zelf zich zij zijn zo zoals zodat zonder zou
""",
}

# Articles, possessives and question words that follow a verb or a preposition. Prepositions that look like an
# article in Romance languages are left out.
DETERMINERS = {
    Language.ENGLISH: "a an the my our your his her their any some me us how what why",
    Language.GERMAN: "der die das den dem ein eine einen einem einer mein meine meinen meiner unser mir",
    Language.FRENCH: "le la les l un une mon ma mes notre nos votre vos ce cet cette ces",
    Language.SPANISH: "el la los las un una mi mis su sus nuestro nuestra este esta",
    Language.ITALIAN: "il lo la l i gli le un uno una mio mia miei mie nostro nostra questo questa",
    Language.PORTUGUESE: "o os as um uma meu minha meus minhas nosso nossa este esta",
    Language.DUTCH: "de het een mijn ons onze uw je jouw dit deze",
}
# Subject pronouns: in a question the verb comes after them, in German and Dutch before them.
SUBJECTS = {
    Language.ENGLISH: "i we you he she they who",
    Language.GERMAN: "ich wir man",
    Language.FRENCH: "j je nous vous on ils elles qui",
    Language.SPANISH: "quien",
    Language.ITALIAN: "chi",
    Language.PORTUGUESE: "quem",
    Language.DUTCH: "ik wij we u men",
}
VERB_FIRST = (Language.GERMAN, Language.DUTCH)

# Content words that are frequent in questions and small talk.
OTHER_WORDS = {
    Language.GERMAN: """
abrechnung anleitung antrag arbeit arbeiten arbeitszeit ausnahmen beantragen bekomme bekommen bekommt
bezahlt brauche brauchen braucht danke einreichen erlaubt formular freitag frist ganz gehalt gelten genau
gilt hallo heute hilfe hoch kosten kostet krank krankheit kundigen kundigung kundigungsfrist laufen lauft
mitarbeitende mitarbeitenden mitarbeiter moglich monat monate montag neu neue neuen passwort probezeit
rechnung regelung reisekosten seite stunden tag tage tagen taglich uberstunden uhr urlaub verboten
vergessen vertrag vorgesetzte woche wochen zeig zeige zustandig
""",
    Language.FRENCH: """
anciennete arret autorise autorises bonjour conge conges contrat coute delai demande demander duree
embauche employe employes envoyer existe facture formulaire frais gerer horaires jour jours maladie
maternite merci mois obligatoire oublie paie paye payes personne preavis prend rembourse remboursement
salaire salarie salaries semaine semaines stagiaires teletravail travail travailler utiliser veux
""",
    Language.SPANISH: """
ano anos aprobar contrasena contrato cuesta cuestan dan despido dia dias empleado empleados
enfermedad enviar existe factura formulario gastos gracias habla hola horas jornada maternidad mes meses
necesito nuevo nuevos obligatorio olvide pagadas pagar permiso permite permiten plazo pregunta puesto
salario semana semanas solicitar sueldo teletrabajo tiempo trabajador trabajadores trabajar trabajo ultima
ultimo vacaciones vale
""",
    Language.ITALIAN: """
aggiornamento anni anno assenza azienda bisogno buongiorno ciao congedo contratto dimenticato dipendente
dipendenti domanda esiste fattura ferie giorni giorno grazie inviare lavorare lavoro lungo malattia
maternita mese mesi obbligatorio pagare permessi permesso preavviso richiesta rimborso scadenza
settimana settimane spese stipendio straordinari tempo vuole
""",
    Language.PORTUGUESE: """
ano anos atestado bom contrato custa demissao demora despesas dia dias doente empresa enviar esqueci
existe fatura feriado ferias formulario funcionario funcionarios licenca maternidade mes meses nova novo
obrigada obrigado obrigatorio ola pagar pedido prazo preciso reembolso salario semana semanas senha
solicitar tempo trabalhador trabalhar trabalho ultima versao
""",
    Language.DUTCH: """
aanvragen afspraken arbeidsovereenkomst bedankt betaald betaalt dag dagen declaratie duurt factuur
formulier geldt goed graag hallo indienen kost krijg krijgen krijgt maand maanden medewerker
medewerkers nieuwe ontslag opzegtermijn overuren proeftijd reiskosten thuiswerken toegestaan uur vergeten
verlof verlofdagen verplicht vraag wachtwoord week weken werken werkgever werktijd ziek ziekte
zwangerschap
""",
}

# Contractions without their apostrophe are no misspellings. Spanish and Portuguese have none.
CONTRACTIONS = {
    Language.ENGLISH: """
aint arent cant couldnt didnt doesnt dont hadnt hasnt havent heres hows im isnt ive mightnt mustnt neednt
shant shouldnt thats theres theyll theyre theyve wasnt werent weve whats wheres whos wont wouldnt youll
youre youve
""",
    Language.GERMAN: "findets gehts gibts ists kanns nich solls wenns wirds",
    Language.FRENCH: "aujourdhui cest cetait daccord jetais jusqua jusquau navons nont quil quils quon",
    Language.ITALIAN: "dellaltro nellaltro quellaltro tuttaltro unaltra unaltro",
    Language.DUTCH: "savonds smiddags smorgens snachts sweekends",
}
