"""Subject words of a question, named in a not-found reply."""

from __future__ import annotations

import re

from harness.tables import for_each

from bot.answers.understanding.question_terms import subject_words
from bot.core.models import Language

SUBJECTS = [
    (Language.ENGLISH, "What is the best restaurant near the office?", "restaurant office"),
    (Language.ENGLISH, "How do I leave the garage?", "garage"),
    (Language.ENGLISH, "How do I connect to the guest wifi?", "guest wifi"),
    (Language.ENGLISH, "Explain how photosynthesis works, with a table.", "photosynthesis"),
    (Language.ENGLISH, "How many trips a year, and in which hotels the next summer?", "trips hotels summer"),
    (Language.ENGLISH, "If I lose a badge, the elevator of Acme opens?", "badge elevator Acme opens"),
    (Language.ENGLISH, "Who recommends hotels by the door?", "hotels door"),
    (Language.GERMAN, "Wie beantrage ich als günstige Lösung Elternzeit?", "Lösung Elternzeit"),
    (Language.GERMAN, "wie beantrage ich elternzeit?", "elternzeit"),
    (Language.FRENCH, "Où puis-je acheter la meilleure voiture ?", "voiture"),
    (Language.FRENCH, "Où est la cantine la moins loin ?", "cantine loin"),
    (Language.SPANISH, "¿Cómo cancelo mi suscripción de correo?", "suscripción correo"),
    (Language.ITALIAN, "Dove compro il biglietto migliore?", "biglietto"),
    (Language.PORTUGUESE, "Posso levar o meu cachorro?", "cachorro"),
    (Language.DUTCH, "Hoe vraag ik verlof aan voor een verbouwing?", "verlof verbouwing"),
]


@for_each(("language", "text", "named"), SUBJECTS)
def test_not_found_lists_names_nouns_and_codes(language: Language, text: str, named: str) -> None:
    """Shows that verbs, prepositions, function words and words for the answer's form are left out."""
    words = [word for word in re.findall(r"\w+", text) if len(word) > 3]
    assert subject_words(text, words, language) == named.split()
